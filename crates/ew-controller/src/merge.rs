//! Joins what both ends report about a flow into one record. Pure.

use crate::silence;
use ew_model::inventory::HostId;
use ew_model::plan::{Flow, RoundIndex, StageIndex};
use ew_model::record::{EndRecord, FlowOutcome, FlowRecord};
use ew_model::workload::{Tool, Workload};
use ew_proto::message::FlowReport;
use std::collections::BTreeMap;

/// What arrived for one round so far.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    by_flow: BTreeMap<u32, Vec<(HostId, FlowReport)>>,
}

/// Which record to make.
pub(crate) struct RecordKey {
    pub(crate) stage: StageIndex,
    pub(crate) round: RoundIndex,
    pub(crate) sample: u32,
}

impl Reports {
    /// Takes one end's report; further ones from the same host are ignored.
    pub(crate) fn add(&mut self, from: HostId, report: FlowReport) {
        let reports = self.by_flow.entry(report.flow.0).or_default();
        if !reports.iter().any(|(host, _)| *host == from) {
            reports.push((from, report));
        }
    }

    /// The flow's record; `why_silent` explains an end that did not report.
    pub(crate) fn record(
        &mut self,
        key: &RecordKey,
        flow: &Flow,
        workload: &Workload,
        names: &dyn Fn(HostId) -> String,
        why_silent: &dyn Fn(HostId) -> String,
    ) -> FlowRecord {
        let reports = self.by_flow.remove(&flow.id.0).unwrap_or_default();
        let of = |end: HostId| Some(&reports.iter().find(|(host, _)| *host == end)?.1);
        let mut reasons = Vec::new();
        for end in [flow.src, flow.dst] {
            let error = of(end).map_or_else(|| Some(why_silent(end)), |r| r.error.clone());
            reasons.extend(error.map(|error| format!("{}: {error}", names(end))));
        }
        if let (true, Some(src), Some(dst)) = (reasons.is_empty(), of(flow.src), of(flow.dst)) {
            reasons = silences(flow, src, dst, names);
        }
        let (sender, mut receiver) = ends(flow, reports, workload.tool);
        if reasons.is_empty() && (sender.is_none() || receiver.is_none()) {
            reasons.push("neither end counted the flow".into());
        }
        if let (true, Some(asking)) = (reasons.is_empty(), &sender) {
            reasons.extend(
                without_times(asking, workload.tool)
                    .map(|reason| format!("{}: {reason}", names(flow.src))),
            );
        }
        if let (Some(sender), Some(receiver)) = (&sender, &mut receiver) {
            count_all_lost(workload, sender, receiver);
        }
        let outcome = if reasons.is_empty() {
            FlowOutcome::Measured
        } else {
            FlowOutcome::Missing {
                reason: reasons.join("; "),
            }
        };
        FlowRecord {
            is_aggressor: flow.is_aggressor,
            stage: key.stage,
            round: key.round,
            flow: flow.id,
            sample: key.sample,
            src: flow.src,
            dst: flow.dst,
            outcome,
            sender: sender.map(|end| *end),
            receiver: receiver.map(|end| *end),
        }
    }
}

type End = Option<Box<EndRecord>>;

/// Sender and receiver. With the engine each end counts for itself, and what it reports about the
/// other does not count: a host that is wrong must not decide another's figure. A tool's client may
/// know both.
fn ends(flow: &Flow, reports: Vec<(HostId, FlowReport)>, tool: Tool) -> (End, End) {
    let (mut sender, mut receiver) = (None, None);
    for (host, report) in reports {
        let speaks_for = |end: HostId| tool != Tool::Engine || host == end;
        if speaks_for(flow.src) {
            sender = sender.or(report.sender);
        }
        if speaks_for(flow.dst) {
            receiver = receiver.or(report.receiver);
        }
    }
    (sender, receiver)
}

/// A receiver to which no datagram came knows of no numbers: then the sender knows how many are
/// lost.
fn count_all_lost(workload: &Workload, sender: &EndRecord, receiver: &mut EndRecord) {
    if let Some(counts) = &mut receiver.datagrams
        && counts.received + counts.lost == 0
    {
        counts.lost = sender.bytes.div_ceil(workload.message_bytes.max(1));
    }
}

/// Why the end that asked has answers and no time of one: its thread came to a CPU only after the
/// window.
fn without_times(asking: &EndRecord, tool: Tool) -> Option<&'static str> {
    let has_times = asking
        .latency
        .as_ref()
        .is_some_and(|latency| latency.times.count() > 0);
    let is_late = tool == Tool::Engine && asking.transactions.is_some() && !has_times;
    is_late
        .then_some("no transaction began and ended inside the window; its thread waited for a CPU")
}

/// Why a flow that both ends counted has no figure all the same.
fn silences(
    flow: &Flow,
    sender: &FlowReport,
    receiver: &FlowReport,
    names: &dyn Fn(HostId) -> String,
) -> Vec<String> {
    if silence::is_starved(sender, receiver) {
        return Vec::new();
    }
    let (src, dst) = (names(flow.src), names(flow.dst));
    let reported = [
        silence::at_sender(sender).map(|reported| format!("{src}: send to {dst}: {reported}")),
        silence::at_receiver(receiver)
            .map(|reported| format!("{dst}: receive from {src}: {reported}")),
    ];
    reported.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::latency::{Histogram, Latency};
    use ew_model::plan::{End, FlowId};
    use ew_model::record::DatagramCounts;
    use ew_model::workload::WorkloadKind;
    use ew_proto::message::EndState;

    fn flow() -> Flow {
        Flow {
            id: FlowId(7),
            src: HostId(0),
            dst: HostId(1),
            opened_by: End::Src,
            lane: None,
            is_aggressor: false,
            traces: None,
        }
    }

    fn report(sender: bool, receiver: bool, error: Option<&str>) -> FlowReport {
        let end = |present: bool| {
            present.then(|| {
                Box::new(EndRecord {
                    bytes: 1000,
                    window_ns: 1_000_000,
                    ..EndRecord::default()
                })
            })
        };
        FlowReport {
            flow: FlowId(7),
            sender: end(sender),
            receiver: end(receiver),
            standing: None,
            error: error.map(Into::into),
        }
    }

    fn record(reports: Vec<(u32, FlowReport)>) -> FlowRecord {
        record_by(Tool::Engine, reports)
    }

    fn record_by(tool: Tool, reports: Vec<(u32, FlowReport)>) -> FlowRecord {
        let mut all = Reports::default();
        for (host, report) in reports {
            all.add(HostId(host), report);
        }
        let key = RecordKey {
            stage: StageIndex(0),
            round: RoundIndex(0),
            sample: 0,
        };
        let names = |id: HostId| format!("h{}", id.0);
        let workload = Workload {
            tool,
            message_bytes: 100,
            ..Workload::of(WorkloadKind::UdpStream)
        };
        all.record(&key, &flow(), &workload, &names, &|_| "no report".into())
    }

    #[test]
    fn two_good_ends_make_a_measured_flow() {
        let record = record(vec![
            (0, report(true, false, None)),
            (1, report(false, true, None)),
        ]);
        assert_eq!(record.outcome, FlowOutcome::Measured);
        assert_eq!(record.bits_per_sec(), Some(8e6));
    }

    #[test]
    fn a_tools_client_may_speak_for_both() {
        let reports = vec![
            (0, report(true, true, None)),
            (1, report(false, false, None)),
        ];
        let by_tool = record_by(Tool::Iperf3, reports.clone());
        assert_eq!(by_tool.outcome, FlowOutcome::Measured);
        let by_engine = record(reports);
        assert_ne!(by_engine.outcome, FlowOutcome::Measured);
    }

    #[test]
    fn datagrams_of_which_none_came_are_all_lost() {
        let mut silent = report(false, true, None);
        let receiver = silent.receiver.as_mut().unwrap();
        receiver.bytes = 0;
        receiver.datagrams = Some(DatagramCounts::default());
        let record = record(vec![(0, report(true, false, None)), (1, silent)]);
        assert_eq!(record.bits_per_sec(), Some(0.0));
        let counts = record.receiver.unwrap().datagrams.unwrap();
        assert_eq!((counts.received, counts.lost), (0, 10));
    }

    #[test]
    fn an_end_cannot_give_the_other_ends_figure() {
        let mut forged = report(true, true, None);
        forged.receiver.as_mut().unwrap().bytes = u64::MAX;
        let record = record(vec![(0, forged), (1, report(false, true, None))]);
        assert_eq!(record.bits_per_sec(), Some(8e6));
    }

    #[test]
    fn a_silent_flow_is_missing_unless_it_is_only_starved() {
        let end = |sends: bool, others_silent_ms| FlowReport {
            standing: Some(EndState {
                silent_ms: 1500,
                unanswered_timeouts: u8::from(sends),
                link_up: true,
                others_silent_ms,
                ..EndState::default()
            }),
            ..report(sends, !sends, None)
        };
        let alone = record(vec![(0, end(true, None)), (1, end(false, None))]);
        let reason = "h0: send to h1: the peer was silent for the window's last 1500 ms; \
                      h1: receive from h0: no data came in the window's last 1500 ms";
        let missing = FlowOutcome::Missing {
            reason: reason.into(),
        };
        assert_eq!(alone.outcome, missing);
        assert_eq!(alone.bits_per_sec(), None);
        let among_others = record(vec![(0, end(true, None)), (1, end(false, Some(4)))]);
        assert_eq!(among_others.outcome, FlowOutcome::Measured);
        assert_eq!(among_others.bits_per_sec(), Some(8e6));
    }

    #[test]
    fn answers_without_a_time_are_no_figure() {
        let asked = |times: Option<Histogram>| {
            let mut report = report(true, false, None);
            let sender = report.sender.as_mut().unwrap();
            sender.transactions = Some(560);
            sender.latency = times.map(|times| Latency {
                times,
                uncorrected: None,
            });
            record(vec![(0, report), (1, self::report(false, true, None))]).outcome
        };
        assert_eq!(
            asked(Some(Histogram::of(20_000, 560))),
            FlowOutcome::Measured
        );
        for late in [None, Some(Histogram::default())] {
            let FlowOutcome::Missing { reason } = asked(late) else {
                panic!("it has no figure");
            };
            assert!(reason.starts_with("h0: no transaction"), "{reason}");
        }
    }

    #[test]
    fn an_error_or_a_silent_end_is_missing_and_never_zero() {
        let failed = record(vec![
            (0, report(false, false, Some("connect: refused"))),
            (1, report(false, true, None)),
        ]);
        assert_eq!(
            failed.outcome,
            FlowOutcome::Missing {
                reason: "h0: connect: refused".into()
            }
        );
        assert_eq!(failed.bits_per_sec(), None);
        let silent = record(vec![(1, report(false, true, None))]);
        assert_eq!(
            silent.outcome,
            FlowOutcome::Missing {
                reason: "h0: no report".into()
            }
        );
    }
}
