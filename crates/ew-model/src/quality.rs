//! Whether the flows of a round ran together: what a controller repeats a round by, and what an
//! analysis leaves out.

use crate::inventory::HostId;
use crate::record::{EndRecord, FlowRecord};
use std::collections::BTreeMap;

/// A round is void when more than this share of its flows is missing, or late.
pub const VOID_SHARE: f64 = 0.10;
/// A flow is late when an end started this share of the window after its time.
pub const LATE_SHARE: f64 = 0.10;

/// The one host that keeps the others from running together: most of the flows that are late, at
/// its own end, or `missing`, are its own. `missing` are both ends of each one, since nobody knows
/// which of them it was. `None` where several hosts share the blame, or none.
#[must_use]
pub fn straggler<'r>(
    rows: impl IntoIterator<Item = &'r FlowRecord>,
    missing: impl IntoIterator<Item = [HostId; 2]>,
) -> Option<HostId> {
    let late = rows.into_iter().map(|row| late_hosts(row).collect());
    let missing = missing.into_iter().map(|ends| ends.to_vec());
    let (mut flows, mut of_hosts) = (0, BTreeMap::<HostId, u32>::new());
    for hosts in late
        .chain(missing)
        .filter(|hosts: &Vec<_>| !hosts.is_empty())
    {
        flows += 1;
        for host in hosts {
            *of_hosts.entry(host).or_default() += 1;
        }
    }
    let (host, own) = of_hosts.into_iter().max_by_key(|(_, own)| *own)?;
    (2 * own > flows).then_some(host)
}

/// The flows of a round but for those of the straggler: what it lacks does not keep the others from
/// running together. All of them where most are its own.
#[must_use]
pub fn but_for<F>(
    flows: impl IntoIterator<Item = F>,
    straggler: Option<HostId>,
    ends: impl Fn(&F) -> [HostId; 2],
) -> Vec<F> {
    let is_other = |flow: &F| !ends(flow).map(Some).contains(&straggler);
    let (others, own): (Vec<F>, Vec<F>) = flows.into_iter().partition(is_other);
    match others.len() < own.len() {
        true => others.into_iter().chain(own).collect(),
        false => others,
    }
}

/// Share of a round's rows that are late, but for those of the straggler; 0 of none.
#[must_use]
pub fn late_share<'r>(
    rows: impl IntoIterator<Item = &'r FlowRecord>,
    straggler: Option<HostId>,
) -> f64 {
    let rows = but_for(rows, straggler, |row| [row.src, row.dst]);
    let late = rows.iter().filter(|row| late_hosts(row).next().is_some());
    late.count() as f64 / rows.len().max(1) as f64
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
    fn the_straggler_of_many_rounds_does_not_make_the_others_late() {
        let share = |hosts, late: &[u32]| {
            let rows = ring(hosts, late);
            late_share(&rows, straggler(&rows, []))
        };
        assert!(share(8, &[]) < 1e-9);
        assert!(share(8, &[3]) < 1e-9);
        // Each of the two has half of the late flows.
        assert!((share(8, &[1, 5]) - 0.5).abs() < 1e-9);
        // All flows, or most, are this host's.
        assert!((share(2, &[0]) - 1.0).abs() < 1e-9);
        assert!((share(3, &[0]) - 2.0 / 3.0).abs() < 1e-9);
        // Another host is late in each round.
        let rounds = [[1], [4], [4]].map(|late| ring(8, &late));
        let late = straggler(rounds.iter().flatten(), []);
        let shares = rounds.map(|rows| late_share(&rows, late));
        assert!((shares[0] - 2.0 / 6.0).abs() < 1e-9 && shares[1] < 1e-9);
        assert!(late_share(&[], None) < 1e-9 && straggler(&[], []).is_none());
    }

    #[test]
    fn the_host_that_most_missing_flows_share_is_the_straggler() {
        let missing = [[2, 5], [5, 3], [5, 2]].map(|ends| ends.map(HostId));
        assert_eq!(straggler(&ring(8, &[3]), missing), Some(HostId(5)));
        let others = but_for(missing, Some(HostId(3)), |ends| *ends);
        assert_eq!(others, [missing[0], missing[2]]);
        // All are its own.
        assert_eq!(but_for(missing, Some(HostId(5)), |ends| *ends), missing);
    }
}
