//! How many streams a flow has where the scenario says `auto`.

use crate::scenario::MAX_AUTO_STREAMS;
use ew_model::inventory::Inventory;
use ew_model::plan::{Plan, Stage};
use ew_model::scenario::Pattern;

/// Streams of a capacity test at least, so that they spread over hashed paths: with 8 streams a
/// flow a non-blocking fabric of up to 16 paths carries 97% and more of what hosts send; with one,
/// 74 to 92%.
const SPREAD_STREAMS: u32 = 8;
/// Connections out of a rack that fill its uplinks: eight on each of eight paths. With half as many
/// full uplinks carry 87 to 100% of what they could, and one ratio in 250 is more than 5% off.
const TO_FILL_UPLINKS: usize = 64;
/// Connections that a rack sends in one round of a test of paths: with sixteen paths, eight each.
const TO_SEE_PATHS: usize = 128;
/// Streams of a flow of such a test. More than the upper ones are too slow each for losses to show.
const PATHS_STREAMS: (u32, u32) = (8, 32);
/// Segments of a paced stream in a window. Its edges take up to one at either end: of 20 a tenth.
const MIN_SEGMENTS: f64 = 20.0;
/// Payload of an Ethernet frame, with TCP's timestamps.
const SEGMENT_BYTES: f64 = 1448.0;

/// Streams of a capacity test, where so many fill a host: what spreads over paths, too, and
/// cross-rack what fills the uplinks of the smallest rack. Not of hosts that may not load their
/// links in full: they hardly fill the uplinks, and more connections repeat and acknowledge more.
pub(crate) fn for_capacity(
    plan: &Plan,
    stage: &Stage,
    inventory: &Inventory,
    fill_a_host: u32,
) -> u32 {
    let spread = match stage.pattern {
        Pattern::CrossRack { .. } if plan.rate_limit.is_none() => {
            of_smallest_rack(inventory, TO_FILL_UPLINKS).clamp(SPREAD_STREAMS, MAX_AUTO_STREAMS)
        }
        _ => SPREAD_STREAMS,
    };
    spread.max(fill_a_host)
}

/// Streams of a flow that loads paths in part, so that the smallest rack shows each of its paths.
pub(crate) fn for_paths(inventory: &Inventory) -> u32 {
    let (least, most) = PATHS_STREAMS;
    of_smallest_rack(inventory, TO_SEE_PATHS).clamp(least, most)
}

/// The same, but for slow hosts so few that each stream shows its rate. `None` before rates were
/// measured.
pub(crate) fn for_paths_at_pace(plan: &Plan, stage: &Stage, inventory: &Inventory) -> Option<u32> {
    let flows = stage.rounds.iter().flat_map(|round| &round.flows);
    let mut paces: Vec<f64> = flows.filter_map(|flow| plan.pace_of(stage, flow)).collect();
    paces.sort_by(f64::total_cmp);
    let window_bits = paces.get(paces.len() / 2)? * stage.duration_ns as f64 / 1e9;
    let shown = window_bits / 8.0 / SEGMENT_BYTES / MIN_SEGMENTS;
    Some(for_paths(inventory).min(shown as u32).max(PATHS_STREAMS.0))
}

/// Streams of each of its hosts, for so many connections in all.
fn of_smallest_rack(inventory: &Inventory, connections: usize) -> u32 {
    let racks = inventory.rack_ids();
    let smallest = racks.map(|rack| inventory.hosts_in(rack).len()).min();
    let hosts = smallest.unwrap_or(inventory.hosts.len()).max(1);
    u32::try_from(connections.div_ceil(hosts)).unwrap_or(u32::MAX)
}
