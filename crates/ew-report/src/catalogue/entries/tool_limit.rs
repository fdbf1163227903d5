//! What moves the bytes is the limit: a thread that uses one CPU whole, or a tool that has only
//! one.

use crate::catalogue::phrases::{next_to_peers, percent};
use crate::catalogue::proof;
use crate::catalogue::why::Reasoned;
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::{BusyThread, SingleThread};

const SHARE_THE_WORK: &str = "use more streams (`--set streams=4`), so that more CPUs share the work, or the engine instead of the tool (iperf3 has a \
                              thread per stream from 3.16 on)";

impl Reasoned for BusyThread {
    fn because(&self, _: &Inventory) -> String {
        "the thread of a stream uses one CPU whole".into()
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let name = names.name(self.host);
        vec![proof(
            format!(
                "{name}: the engine's threads used {} of a CPU each in the median{}",
                percent(self.cpu_share.own),
                next_to_peers(&self.cpu_share, percent)
            ),
            format!(
                "flows.parquet: src or dst = {name}, tx_cpu_engine_ns and rx_cpu_engine_ns over the window, per stream"
            ),
        )]
    }

    fn next_step(&self, _: &Inventory) -> String {
        SHARE_THE_WORK.into()
    }
}

impl Reasoned for SingleThread {
    fn because(&self, _: &Inventory) -> String {
        format!(
            "{} has one thread for all streams, which saturates a CPU",
            self.version
        )
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let name = names.name(self.host);
        vec![proof(
            format!(
                "{name}: busiest CPU {} busy{}",
                percent(self.busy_share.own),
                next_to_peers(&self.busy_share, percent)
            ),
            format!(
                "events.jsonl: host-up of {name}, tools; hosts.parquet: host = {name}, kind = cpu"
            ),
        )]
    }

    fn next_step(&self, _: &Inventory) -> String {
        SHARE_THE_WORK.into()
    }
}
