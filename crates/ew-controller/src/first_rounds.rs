//! Whether it is worth going on: a run whose first rounds did not run together measures a busy
//! machine, and minutes more of it add nothing.

use ew_model::plan::{RoundIndex, Stage};
use ew_model::quality::{VOID_SHARE, late_share, straggler};
use ew_model::record::FlowRecord;
use ew_model::workload::{Tool, WorkloadKind};
use std::collections::{BTreeMap, BTreeSet};

/// Full rounds that are checked. One or two may be void where a host was busy for a moment.
const FIRST: usize = 4;

/// The first rounds that use at least half of the hosts.
#[derive(Debug)]
pub(crate) struct FirstRounds {
    hosts: usize,
    /// Their flows, by round.
    rounds: Vec<Vec<FlowRecord>>,
}

impl FirstRounds {
    pub(crate) fn new(hosts: usize) -> Self {
        Self {
            hosts,
            rounds: Vec::new(),
        }
    }

    /// Takes the records of rounds that are over.
    pub(crate) fn note(&mut self, stage: &Stage, records: &[FlowRecord]) {
        let workload = &stage.workload;
        if workload.kind != WorkloadKind::TcpStream || workload.tool != Tool::Engine {
            return;
        }
        let mut rounds: BTreeMap<RoundIndex, Vec<&FlowRecord>> = BTreeMap::new();
        for record in records {
            rounds.entry(record.round).or_default().push(record);
        }
        for rows in rounds.values() {
            let ends = rows.iter().flat_map(|row| [row.src, row.dst]);
            let hosts: BTreeSet<_> = ends.collect();
            if self.rounds.len() < FIRST && 2 * hosts.len() >= self.hosts {
                let flows = rows.iter().map(|row| row.figures());
                self.rounds.push(flows.collect());
            }
        }
    }

    /// Why the run ends here, if all of them are void.
    pub(crate) fn are_void(&self) -> Option<String> {
        let straggler = straggler(self.rounds.iter().flatten(), []);
        let rounds = self.rounds.iter();
        let late: Vec<f64> = rounds.map(|rows| late_share(rows, straggler)).collect();
        let are_void = late.len() == FIRST && late.iter().all(|late| *late > VOID_SHARE);
        are_void.then(|| {
            let mean = late.iter().sum::<f64>() / FIRST as f64;
            format!(
                "stopped: in the first {FIRST} rounds {:.0}% of flows started later than 10% of the window, so nothing can be concluded; \
                 free CPU on the hosts, measure fewer hosts at a time, or use longer windows (`--set duration=10s`)",
                100.0 * mean
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::HostId;
    use ew_model::plan::{FlowId, StageIndex};
    use ew_model::record::{EndRecord, FlowOutcome};
    use ew_model::scenario::Pattern;
    use ew_model::workload::Workload;

    fn stage() -> Stage {
        Stage {
            name: "test".into(),
            pattern: Pattern::Permutation,
            workload: Workload {
                message_bytes: 1,
                ..Workload::of(WorkloadKind::TcpStream)
            },
            duration_ns: 1,
            warm_up_ns: 1,
            gap_ns: 1,
            auto: None,
            sweep: None,
            rounds: Vec::new(),
        }
    }

    /// A round of flows from each host to the next one, started so late.
    fn round(number: u32, hosts: u32, skew_ns: i64) -> Vec<FlowRecord> {
        let flow = |host: u32| FlowRecord {
            is_aggressor: false,
            stage: StageIndex(0),
            round: RoundIndex(number),
            flow: FlowId(host),
            sample: 0,
            src: HostId(host),
            dst: HostId((host + 1) % hosts),
            outcome: FlowOutcome::Measured,
            sender: Some(EndRecord {
                window_ns: 1_000_000,
                start_skew_ns: skew_ns,
                ..EndRecord::default()
            }),
            receiver: None,
        };
        (0..hosts).map(flow).collect()
    }

    #[test]
    fn a_run_ends_only_when_all_of_its_first_full_rounds_are_late() {
        let ends = |skews: &[i64], hosts: u32| {
            let mut first = FirstRounds::new(8);
            for (number, skew_ns) in (0..).zip(skews) {
                first.note(&stage(), &round(number, hosts, *skew_ns));
            }
            first.are_void().is_some()
        };
        assert!(ends(&[500_000; 4], 8));
        assert!(!ends(&[500_000; 3], 8), "too early");
        assert!(!ends(&[500_000, 50_000, 500_000, 500_000, 500_000], 8));
        assert!(!ends(&[500_000; 6], 3), "rounds of few hosts are not full");
    }

    #[test]
    fn one_host_that_is_late_in_every_round_ends_no_run() {
        let ends = |late_hosts: [&[u32]; FIRST]| {
            let mut first = FirstRounds::new(8);
            for (number, late) in (0..).zip(late_hosts) {
                let mut rows = round(number, 8, 50_000);
                for row in rows.iter_mut().filter(|row| late.contains(&row.src.0)) {
                    row.sender.as_mut().unwrap().start_skew_ns = 500_000;
                }
                first.note(&stage(), &rows);
            }
            first.are_void().is_some()
        };
        assert!(!ends([&[3]; FIRST]));
        assert!(ends([&[3, 6]; FIRST]));
        assert!(
            !ends([&[3], &[6], &[3], &[3]]),
            "but for host 3 one was late"
        );
        assert!(ends([&[3], &[6], &[3], &[1]]), "no lone straggler");
        assert!(ends([&[1, 3], &[3, 6], &[3, 5], &[3, 4]]));
    }
}
