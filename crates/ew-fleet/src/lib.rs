//! Starts agents (local, lab, ssh), hands back byte-stream links, always tears down
