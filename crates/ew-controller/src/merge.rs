//! Joins what both ends say of a flow into one record. Pure.

use ew_model::inventory::HostId;
use ew_model::plan::{Flow, RoundIndex, StageIndex};
use ew_model::record::{FlowOutcome, FlowRecord};
use ew_proto::message::FlowReport;
use std::collections::BTreeMap;

/// What arrived for one round so far.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    by_flow: BTreeMap<u32, Vec<(HostId, FlowReport)>>,
}

/// Which record to make.
pub(crate) struct Place {
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
        place: &Place,
        flow: &Flow,
        names: &dyn Fn(HostId) -> String,
        why_silent: &dyn Fn(HostId) -> String,
    ) -> FlowRecord {
        let reports = self.by_flow.remove(&flow.id.0).unwrap_or_default();
        let mut reasons: Vec<String> = reports
            .iter()
            .filter_map(|(host, report)| {
                Some(format!("{}: {}", names(*host), report.error.as_ref()?))
            })
            .collect();
        for end in [flow.src, flow.dst] {
            if !reports.iter().any(|(host, _)| *host == end) {
                reasons.push(format!("{}: {}", names(end), why_silent(end)));
            }
        }
        let sender = reports.iter().find_map(|(_, report)| report.sender.clone());
        let receiver = reports
            .iter()
            .find_map(|(_, report)| report.receiver.clone());
        if reasons.is_empty() && (sender.is_none() || receiver.is_none()) {
            reasons.push("neither end counted the flow".into());
        }
        let outcome = if reasons.is_empty() {
            FlowOutcome::Measured
        } else {
            FlowOutcome::Missing {
                reason: reasons.join("; "),
            }
        };
        FlowRecord {
            stage: place.stage,
            round: place.round,
            flow: flow.id,
            sample: place.sample,
            src: flow.src,
            dst: flow.dst,
            outcome,
            sender,
            receiver,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::plan::{End, FlowId};
    use ew_model::record::EndRecord;

    fn flow() -> Flow {
        Flow {
            id: FlowId(7),
            src: HostId(0),
            dst: HostId(1),
            opened_by: End::Src,
            lane: None,
        }
    }

    fn report(sender: bool, receiver: bool, error: Option<&str>) -> FlowReport {
        let end = |present: bool| {
            present.then(|| EndRecord {
                bytes: 1000,
                window_ns: 1_000_000,
                ..EndRecord::default()
            })
        };
        FlowReport {
            flow: FlowId(7),
            sender: end(sender),
            receiver: end(receiver),
            error: error.map(Into::into),
        }
    }

    fn record(reports: Vec<(u32, FlowReport)>) -> FlowRecord {
        let mut all = Reports::default();
        for (host, report) in reports {
            all.add(HostId(host), report);
        }
        let place = Place {
            stage: StageIndex(0),
            round: RoundIndex(0),
            sample: 0,
        };
        all.record(&place, &flow(), &|id| format!("h{}", id.0), &|_| {
            "no report".into()
        })
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
        let record = record(vec![
            (0, report(true, true, None)),
            (1, report(false, false, None)),
        ]);
        assert_eq!(record.outcome, FlowOutcome::Measured);
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
