//! A round that runs, for who follows it.

use crate::stream::Stream;
use ew_model::plan::FlowId;
use ew_proto::message::Role;
use ew_sys::socket::tcp_info;
use std::sync::Arc;

/// Reports how the connections of a round's flows go. Closes nothing and keeps nothing open.
#[derive(Clone, Debug, Default)]
pub struct RunningRound {
    pub(crate) flows: Vec<Vec<Arc<Stream>>>,
}

/// What the kernel has counted of a flow's connections at their sending end, since they were
/// opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentOverTcp {
    /// Payload that the receiver has acknowledged.
    pub acked_bytes: u64,
    /// Segments retransmitted.
    pub retransmits: u64,
}

impl RunningRound {
    /// Sums over the connections of a flow that this host sends. `None` unless all of them are
    /// there and the kernel reports the counters (Linux 4.1).
    #[must_use]
    pub fn sent_over_tcp(&self, flow: FlowId) -> Option<SentOverTcp> {
        let is_its = |s: &&Arc<Stream>| s.key.flow == flow && s.role == Role::Send;
        let mut sum: Option<SentOverTcp> = None;
        for stream in self.flows.iter().flatten().filter(is_its) {
            let reading = tcp_info(&*stream.connection()?).ok()?;
            let sum = sum.get_or_insert_default();
            sum.acked_bytes += reading.acked_bytes?;
            sum.retransmits += u64::from(reading.info.total_retransmits);
        }
        sum
    }
}
