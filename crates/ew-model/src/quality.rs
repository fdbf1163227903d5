//! Whether the flows of a round ran together: what a controller repeats a round by, and what an
//! analysis leaves out.

use crate::inventory::HostId;
use crate::record::{EndRecord, FlowRecord};
use std::collections::BTreeMap;

/// A round is void when more than this share of its flows is missing, or late.
pub const VOID_SHARE: f64 = 0.10;
/// A flow is late when an end started this share of the window after its time.
pub const LATE_SHARE: f64 = 0.10;

/// A flow of a round, and which of its ends kept it from running with the others.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// Sender and receiver.
    pub ends: [HostId; 2],
    /// Whether that one may be why.
    pub by: [bool; 2],
}

/// Share of a round's rows that are late, but for one host's: see [`share_beyond_one_host`].
#[must_use]
pub fn late_share<'r>(rows: impl IntoIterator<Item = &'r FlowRecord>) -> f64 {
    let kept = rows.into_iter().map(|row| Kept {
        ends: [row.src, row.dst],
        by: [&row.sender, &row.receiver].map(|end| end.as_ref().is_some_and(is_late)),
    });
    share_beyond_one_host(&kept.collect::<Vec<_>>())
}

/// Share of flows that did not run with the others, without those of the host that kept most from
/// it; 0 of none. What one host lacks does not keep the others from running together, unless most
/// flows are that host's.
#[must_use]
pub fn share_beyond_one_host(flows: &[Kept]) -> f64 {
    let mut by_host: BTreeMap<HostId, u32> = BTreeMap::new();
    for flow in flows {
        for (host, _) in flow.ends.into_iter().zip(flow.by).filter(|(_, by)| *by) {
            *by_host.entry(host).or_default() += 1;
        }
    }
    let worst = by_host.into_iter().max_by_key(|(_, flows)| *flows);
    let is_of_worst = |flow: &&Kept| worst.is_some_and(|(host, _)| flow.ends.contains(&host));
    let others = flows.iter().filter(|flow| !is_of_worst(flow));
    match 2 * others.clone().count() < flows.len() {
        true => share_kept(flows.iter()),
        false => share_kept(others),
    }
}

fn share_kept<'f>(flows: impl Iterator<Item = &'f Kept>) -> f64 {
    let (mut kept, mut all) = (0_u32, 0_u32);
    for flow in flows {
        kept += u32::from(flow.by.contains(&true));
        all += 1;
    }
    f64::from(kept) / f64::from(all.max(1))
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
