//! eastwest qualifies a cluster network.
fn main() {}
