//! The entries, by what their findings are about.

mod bad_path;
mod black_hole;
mod bond_member;
mod faster_network;
mod incast;
mod latency;
mod line_rate;
mod loss;
mod lost_path;
mod measurement;
mod nic_classes;
mod paths;
mod slow_pair;
mod stated_nic;
mod uplink;
