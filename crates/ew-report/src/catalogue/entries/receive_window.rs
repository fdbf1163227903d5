//! The receiver's window holds the senders back: its buffer is too small for the path.

use crate::catalogue::phrases::{next_to_peers, percent};
use crate::catalogue::proof;
use crate::catalogue::why::Reasoned;
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::SmallReceiveWindow;

impl Reasoned for SmallReceiveWindow {
    fn because(&self, _: &Inventory) -> String {
        format!(
            "receive window limited the senders {} of the time",
            percent(self.limited_share.own)
        )
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let name = names.name(self.host);
        vec![proof(
            format!(
                "flows to {name}: limited by the receiver's window for {} of their busy time in the median{}",
                percent(self.limited_share.own),
                next_to_peers(&self.limited_share, percent),
            ),
            format!("flows.parquet: dst = {name}, receive_window_limited_us over busy_us"),
        )]
    }

    fn next_step(&self, _: &Inventory) -> String {
        "compare `sysctl net.ipv4.tcp_rmem net.core.rmem_max net.ipv4.tcp_moderate_rcvbuf` with the other hosts'; the largest \
         buffer must hold twice the bandwidth times the round trip"
            .into()
    }
}
