//! The entries, by what their findings are about.

mod background_traffic;
mod below_link;
mod core_saturated;
mod cpu_quota;
mod disk;
mod link_speed;
mod mtu;
mod path_loss;
mod receive_drops;
mod receive_window;
mod send_buffer;
mod slow_at_times;
mod slow_host;
mod starved_host;
mod stated_nic;
mod tool_limit;
mod uplink;
