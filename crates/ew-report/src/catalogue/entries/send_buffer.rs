//! The sender's buffer is too small to keep the path full.

use crate::catalogue::phrases::{next_to_peers, percent};
use crate::catalogue::proof;
use crate::catalogue::why::Reasoned;
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::{LimitingSendBuffer, SmallSendBuffer};
use ew_model::units::format_bytes;

const ENLARGE: &str = "compare `sysctl net.ipv4.tcp_wmem net.core.wmem_max` with the other hosts'; the buffer must hold what is on the \
                       way, bandwidth times round trip, and as much again";

impl Reasoned for LimitingSendBuffer {
    fn because(&self, _: &Inventory) -> String {
        format!(
            "send buffer limited TX {} of the time",
            percent(self.limited_share.own)
        )
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let name = names.name(self.host);
        vec![proof(
            format!(
                "flows from {name}: limited by the send buffer for {} of their busy time in the median{}",
                percent(self.limited_share.own),
                next_to_peers(&self.limited_share, percent),
            ),
            format!("flows.parquet: src = {name}, send_buffer_limited_us over busy_us"),
        )]
    }

    fn next_step(&self, _: &Inventory) -> String {
        ENLARGE.into()
    }
}

impl Reasoned for SmallSendBuffer {
    fn because(&self, _: &Inventory) -> String {
        format!(
            "send buffer {} (congestion window {})",
            bytes(self.buffer_bytes.own),
            format_bytes(self.congestion_window_bytes)
        )
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let name = names.name(self.host);
        vec![proof(
            format!(
                "flows from {name}: send buffer of {} in the median{}",
                bytes(self.buffer_bytes.own),
                next_to_peers(&self.buffer_bytes, bytes)
            ),
            format!(
                "flows.parquet: src = {name}, send_buffer_bytes, congestion_window_segments times send_mss_bytes"
            ),
        )]
    }

    fn next_step(&self, _: &Inventory) -> String {
        ENLARGE.into()
    }
}

fn bytes(bytes: f64) -> String {
    format_bytes(bytes as u64)
}
