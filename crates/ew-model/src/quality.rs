//! Whether the flows of a round ran together: what a controller repeats a round by, and what an
//! analysis leaves out.

use crate::inventory::HostId;
use crate::record::{EndRecord, FlowRecord};
use std::collections::BTreeMap;

/// A round is void when more than this share of its flows is missing, or late.
pub const VOID_SHARE: f64 = 0.10;
/// A flow is late when an end started this share of the window after its time.
pub const LATE_SHARE: f64 = 0.10;

/// The host that was late most often in these rows. `None` where none was.
#[must_use]
pub fn latest_host<'r>(rows: impl IntoIterator<Item = &'r FlowRecord>) -> Option<HostId> {
    let mut late_ends: BTreeMap<HostId, u32> = BTreeMap::new();
    for host in rows.into_iter().flat_map(late_hosts) {
        *late_ends.entry(host).or_default() += 1;
    }
    let latest = late_ends.into_iter().max_by_key(|(_, ends)| *ends);
    latest.map(|(host, _)| host)
}

/// Share of a round's rows that are late, but for those of one host, the latest of many rounds; 0
/// of none. What one host lacks does not keep the others from running together, unless most rows
/// are its own.
#[must_use]
pub fn late_share<'r>(
    rows: impl IntoIterator<Item = &'r FlowRecord>,
    but_for: Option<HostId>,
) -> f64 {
    let rows: Vec<&FlowRecord> = rows.into_iter().collect();
    let is_other = |row: &&&FlowRecord| ![Some(row.src), Some(row.dst)].contains(&but_for);
    let others = rows.iter().filter(is_other);
    match 2 * others.clone().count() < rows.len() {
        true => share_of_late(rows.iter()),
        false => share_of_late(others),
    }
}

fn share_of_late<'r>(rows: impl Iterator<Item = &'r &'r FlowRecord>) -> f64 {
    let (mut late, mut all) = (0_u32, 0_u32);
    for row in rows {
        late += u32::from(late_hosts(row).next().is_some());
        all += 1;
    }
    f64::from(late) / f64::from(all.max(1))
}

fn late_hosts(row: &FlowRecord) -> impl Iterator<Item = HostId> {
    let ends = [(row.src, &row.sender), (row.dst, &row.receiver)];
    let late = ends
        .into_iter()
        .filter(|(_, end)| end.as_ref().is_some_and(is_late));
    late.map(|(host, _)| host)
}

/// Whether an end of a flow started too late for its rate to be one next to the others.
fn is_late(end: &EndRecord) -> bool {
    let max_skew_ns = LATE_SHARE * end.window_ns as f64;
    end.window_ns > 0 && end.start_skew_ns.unsigned_abs() as f64 > max_skew_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{FlowId, RoundIndex, StageIndex};
    use crate::record::FlowOutcome;

    /// From each host to the next one; these were late.
    fn ring(hosts: u32, late: &[u32]) -> Vec<FlowRecord> {
        let end = |host: u32| {
            Some(EndRecord {
                window_ns: 1_000_000,
                start_skew_ns: if late.contains(&host) {
                    -200_000
                } else {
                    90_000
                },
                ..EndRecord::default()
            })
        };
        let flow = |host: u32| FlowRecord {
            is_aggressor: false,
            stage: StageIndex(0),
            round: RoundIndex(0),
            flow: FlowId(host),
            sample: 0,
            src: HostId(host),
            dst: HostId((host + 1) % hosts),
            outcome: FlowOutcome::Measured,
            sender: end(host),
            receiver: end((host + 1) % hosts),
        };
        (0..hosts).map(flow).collect()
    }

    #[test]
    fn the_latest_host_of_many_rounds_does_not_make_the_others_late() {
        let share = |hosts, late: &[u32]| {
            let rows = ring(hosts, late);
            late_share(&rows, latest_host(&rows))
        };
        assert!(share(8, &[]) < 1e-9);
        assert!(share(8, &[3]) < 1e-9);
        // One of the two is set aside with its two flows; of the six others two are late.
        assert!((share(8, &[1, 5]) - 2.0 / 6.0).abs() < 1e-9);
        // All flows, or most, are this host's.
        assert!((share(2, &[0]) - 1.0).abs() < 1e-9);
        assert!((share(3, &[0]) - 2.0 / 3.0).abs() < 1e-9);
        // Another host is late in each round.
        let rounds = [[1], [4], [4]].map(|late| ring(8, &late));
        let latest = latest_host(rounds.iter().flatten());
        let shares = rounds.map(|rows| late_share(&rows, latest));
        assert!((shares[0] - 2.0 / 6.0).abs() < 1e-9 && shares[1] < 1e-9);
        assert!(late_share(&[], None) < 1e-9 && latest_host(&[]).is_none());
    }
}
