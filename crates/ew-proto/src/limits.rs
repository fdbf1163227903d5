//! How long each kind of message may be. A length is checked before anything is read or allocated
//! for it.

use crate::message::{StageOrder, ToAgent, ToController};
use ew_model::sizes::MAX_SIZES;
use ew_model::workload::WorkloadKind;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest message, without its length field.
pub const MAX_FRAME_BYTES: usize = 16 * 1024 * 1024;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;
/// A kind, and a few numbers.
const FEW_NUMBERS: usize = 128;
/// A kind, and words for people.
const WORDS: usize = 64 * KIB;
/// In a round's report: what is not of a flow.
const REPORT_BYTES: usize = 64 * KIB;
/// In a round's report: a flow's figures and histograms of both ends, and an error's words.
const FLOW_BYTES: usize = 128 * KIB;
/// In a round's report: a stream of a flow, with its `TCP_INFO`.
const STREAM_BYTES: usize = 512;
/// In a round's report: an interval of a flow.
const INTERVAL_BYTES: usize = 64;
/// In a round's report: the times of messages of one size. Buckets of 1% over four decades.
const SIZE_BYTES: usize = 16 * KIB;
/// Shortest interval of a flow that any engine or tool reports.
const INTERVAL_NS: u64 = 100_000_000;

/// A message of the protocol.
pub trait Message: Serialize + DeserializeOwned {
    /// Longest body of a message whose first byte, the number of its kind, is `kind`.
    fn limit_bytes(kind: u8) -> usize;
}

impl Message for ToController {
    fn limit_bytes(kind: u8) -> usize {
        match kind {
            // StageRefused, Fault and StorageProgress.
            3 | 9 | 14 => WORDS,
            // RoundReport: the session knows what it ordered, and sends less.
            4 => MAX_FRAME_BYTES,
            // StorageReport: thousands of files, each with an error's words at worst. Only who was
            // ordered to may send it.
            13 => MAX_FRAME_BYTES,
            // Ready, Sample, PortsChecked and Reading: of hosts with hundreds of CPUs and thousands
            // of peers.
            0 | 7 | 8 | 12 => 4 * MIB,
            _ => FEW_NUMBERS,
        }
    }
}

impl Message for ToAgent {
    fn limit_bytes(kind: u8) -> usize {
        match kind {
            // Welcome.
            0 => 4 * KIB,
            // Stage.
            2 => MAX_FRAME_BYTES,
            // CheckPorts and Storage.
            6 | 8 => MIB,
            _ => FEW_NUMBERS,
        }
    }
}

/// The number of [`ToController::RoundReport`].
pub(crate) const ROUND_REPORT: u8 = 4;
/// The number of [`ToController::StorageReport`].
pub(crate) const STORAGE_REPORT: u8 = 13;

/// Longest report of any round of a stage, by what was ordered.
pub(crate) fn report_limit_bytes(order: &StageOrder) -> usize {
    let flows = order.rounds.iter().map(|round| round.flows.len()).max();
    let streams = order.workload.streams as usize;
    let intervals = usize::try_from(order.duration_ns / INTERVAL_NS).unwrap_or(usize::MAX);
    let stream_bytes = streams.saturating_mul(STREAM_BYTES);
    let sizes_bytes = match order.workload.kind {
        WorkloadKind::FlowSizes => MAX_SIZES * SIZE_BYTES,
        _ => 0,
    };
    // Both ends: a tool's client may know both.
    let flow_bytes = intervals
        .saturating_mul(INTERVAL_BYTES)
        .saturating_add(stream_bytes)
        .saturating_mul(2)
        .saturating_add(FLOW_BYTES + sizes_bytes);
    let flows_bytes = flows.unwrap_or(0).saturating_mul(flow_bytes);
    flows_bytes
        .saturating_add(REPORT_BYTES)
        .min(MAX_FRAME_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing::seeds::{stage_order, to_agent, to_controller};

    fn kind(frame: &[u8]) -> u8 {
        frame[4]
    }

    #[test]
    fn every_kind_has_the_limit_meant_for_it() {
        for (name, frame) in to_controller() {
            let meant = match name {
                "ready" | "sample" => 4 * MIB,
                "refused" | "fault" | "storage-progress" => WORDS,
                "report" | "storage-report" => MAX_FRAME_BYTES,
                "ports-checked" | "reading" => 4 * MIB,
                _ => FEW_NUMBERS,
            };
            assert_eq!(ToController::limit_bytes(kind(&frame)), meant, "{name}");
            assert_eq!(kind(&frame) == ROUND_REPORT, name == "report");
            assert_eq!(kind(&frame) == STORAGE_REPORT, name == "storage-report");
        }
        for (name, frame) in to_agent() {
            let meant = match name {
                "welcome" => 4 * KIB,
                "stage" => MAX_FRAME_BYTES,
                "check-ports" | "storage" => MIB,
                _ => FEW_NUMBERS,
            };
            assert_eq!(ToAgent::limit_bytes(kind(&frame)), meant, "{name}");
        }
    }

    #[test]
    fn a_reports_limit_follows_the_order() {
        let few = report_limit_bytes(&stage_order(0, 1, 2));
        let many = report_limit_bytes(&stage_order(0, 1, 20));
        assert!(few < many && few < MIB, "{few} {many}");
        let mut sizes = stage_order(0, 1, 2);
        sizes.workload.kind = WorkloadKind::FlowSizes;
        assert_eq!(report_limit_bytes(&sizes), few + 2 * MAX_SIZES * 16 * KIB);
        let mut endless = stage_order(0, 1, 2);
        endless.duration_ns = u64::MAX;
        assert_eq!(report_limit_bytes(&endless), MAX_FRAME_BYTES);
    }
}
