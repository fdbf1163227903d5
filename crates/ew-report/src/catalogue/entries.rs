//! The entries, by what their findings are about.

mod cells_missing;
mod congestion;
mod host_missing;
mod not_determined;
mod pod_network;
mod uplink;
