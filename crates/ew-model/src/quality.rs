//! Whether the flows of a round ran together: what a controller repeats a round by, and what an
//! analysis leaves out.

use crate::inventory::HostId;
use crate::record::{EndRecord, FlowRecord};
use std::collections::BTreeMap;

/// A round is void when more than this share of its flows is missing, or late.
pub const VOID_SHARE: f64 = 0.10;
/// A flow is late when an end started this share of the window after its time.
pub const LATE_SHARE: f64 = 0.10;

/// Share of a round's rows that are late, but for those of the host that was late most often; 0 of
/// none. What one host lacks does not keep the others from running together, unless most rows are
/// that host's.
#[must_use]
pub fn late_share<'r>(rows: impl IntoIterator<Item = &'r FlowRecord>) -> f64 {
    let rows: Vec<&FlowRecord> = rows.into_iter().collect();
    let mut late_ends: BTreeMap<HostId, u32> = BTreeMap::new();
    for host in rows.iter().flat_map(|row| late_hosts(row)) {
        *late_ends.entry(host).or_default() += 1;
    }
    let latest = late_ends.into_iter().max_by_key(|(_, ends)| *ends);
    let is_of_latest =
        |row: &&FlowRecord| latest.is_some_and(|(host, _)| row.src == host || row.dst == host);
    let others = rows.iter().filter(|row| !is_of_latest(row));
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

/// The ends of a flow that started too late for its rate to be one next to the others.
fn late_hosts(row: &FlowRecord) -> impl Iterator<Item = HostId> {
    let ends = [(row.src, &row.sender), (row.dst, &row.receiver)];
    let is_late = |end: &EndRecord| {
        let max_skew_ns = LATE_SHARE * end.window_ns as f64;
        end.window_ns > 0 && end.start_skew_ns.unsigned_abs() as f64 > max_skew_ns
    };
    ends.into_iter()
        .filter(move |(_, end)| end.as_ref().is_some_and(|end| is_late(end)))
        .map(|(host, _)| host)
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
    fn one_late_host_does_not_make_the_others_late() {
        let share = |hosts, late: &[u32]| late_share(&ring(hosts, late));
        assert!(share(8, &[]) < 1e-9);
        assert!(share(8, &[3]) < 1e-9);
        // One of the two is set aside with its two flows; of the six others two are late.
        assert!((share(8, &[1, 5]) - 2.0 / 6.0).abs() < 1e-9);
        assert!((share(100, &[1, 5, 9, 13, 17, 21]) - 10.0 / 98.0).abs() < 1e-9);
        // All flows are this host's.
        assert!((share(2, &[0]) - 1.0).abs() < 1e-9);
        assert!((share(3, &[0]) - 2.0 / 3.0).abs() < 1e-9);
        assert!(late_share(&[]) < 1e-9);
    }
}
