//! The entries, by what their findings are about.

mod uplink;
