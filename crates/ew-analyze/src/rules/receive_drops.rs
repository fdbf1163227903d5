//! The receiving host drops packets that reached it.

use super::case::Case;
use super::peers::{compared, is_judged, of_stages};
use super::suspect::Suspect;
use ew_evidence::basis::data_interface;
use ew_evidence::criteria::{LOSSY_UNLOADED, TIMES_TYPICAL};
use ew_evidence::telemetry::receive_drop_counts;
use ew_model::HostId;
use ew_model::analysis::HostStageAnalysis;
use ew_model::finding::details::{DropLocation, ReceiveDrops, Why};

/// Bits of a full segment's frame at the typical MTU.
const FRAME_BITS: f64 = 1514.0 * 8.0;

pub(super) fn explain(case: &Case<'_>, suspect: &Suspect) -> Option<Why> {
    if !suspect.rx {
        return None;
    }
    let host = suspect.host;
    let share = compared(case, host, |host| {
        of_stages(case, host, |stage| drop_share(case, host, stage))
    })?;
    if !share.stands_out(LOSSY_UNLOADED, TIMES_TYPICAL) {
        return None;
    }
    let (location, packets) = worst_location(case, host)?;
    Some(Why::ReceiveDrops(ReceiveDrops {
        host,
        location,
        packets,
        dropped_share: share.into(),
    }))
}

/// Drops in a stage over the packets that its received bits make, were they full.
fn drop_share(case: &Case<'_>, host: HostId, stage: &HostStageAnalysis) -> Option<f64> {
    let in_stage = |index: usize| index == stage.stage as usize;
    let seconds = case.telemetry.cover(host, in_stage)?.ns() / 1e9;
    let packets = stage.rx_bits_per_sec? * seconds / FRAME_BITS;
    (packets > 0.0).then_some(stage.receive_drops? as f64 / packets)
}

/// Where the max was dropped, and how many packets.
fn worst_location(case: &Case<'_>, host: HostId) -> Option<(DropLocation, u64)> {
    let cover = case.telemetry.cover(host, |stage| is_judged(case, stage))?;
    let interface = data_interface(case.observations.run, host).map(|i| i.name.as_str());
    let drops = cover.grown_by_key(None, |sample| receive_drop_counts(sample, interface));
    let worst = drops.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some((worst.0, worst.1.round() as u64))
}
