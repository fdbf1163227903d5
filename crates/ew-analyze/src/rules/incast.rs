//! Many senders to one receiver: whether goodput collapses below what the fitted network carries of
//! it, how long packets wait, and how evenly the senders share it.

use super::case::Case;
use crate::finding::{finding_of, plain};
use ew_evidence::criteria::{LEAST_FILL, LONG_NS, LOSSY, MIN_SEEN};
use ew_evidence::observations::{RoundView, StageView};
use ew_evidence::quality::{LITTLE_STARVATION, starvation};
use ew_fit::{Network, retransmitted_share};
use ew_model::HostId;
use ew_model::finding::details::Incast;
use ew_model::finding::{Cause, Details, Finding, Severity, Subject};
use ew_model::record::FlowRecord;
use ew_model::scenario::Pattern;
use ew_stats::median;
use std::collections::BTreeMap;

/// One receiver in one round.
struct Received {
    senders: usize,
    /// Median of the senders' retransmitted segments over those sent.
    lost: f64,
    /// Jain's index of the senders' rates: 1 is even, 1/n is one sender alone.
    fairness: f64,
    /// Median over the senders of round trip less the connection's shortest one.
    queue_ns: Option<f64>,
}

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let stages = case.observations.stages.iter().enumerate();
    let incasts = stages.filter(|(_, stage)| stage.judged && is_incast(stage));
    incasts
        .filter_map(|(at, stage)| finding(case, at, stage))
        .collect()
}

pub(super) fn is_incast(stage: &StageView<'_>) -> bool {
    matches!(stage.stage.pattern, Pattern::Incast { .. })
}

fn finding(case: &Case<'_>, at: usize, stage: &StageView<'_>) -> Option<Finding> {
    let all: Vec<Received> = stage
        .rounds
        .iter()
        .filter(|round| has_cpu(round))
        .flat_map(|round| of_round(case.network, round))
        .collect();
    let middle = |figure: fn(&Received) -> f64| median(&all.iter().map(figure).collect::<Vec<_>>());
    let (share, lost) = (case.network.explained(at)?, middle(|r| r.lost)?);
    let fairness = middle(|r| r.fairness)?;
    let queues: Vec<f64> = all
        .iter()
        .filter_map(|received| received.queue_ns)
        .collect();
    let queue_ns = median(&queues);
    // Who lost the tail of a window waits for a timeout.
    let has_collapsed = share < LEAST_FILL && lost > case.network.typical_loss.max(LOSSY);
    // Deep buffers that nobody manages delay everybody who shares them.
    let is_long = queue_ns.is_some_and(|queue_ns| queue_ns > LONG_NS);
    let is_uneven = fairness < 0.5;
    if !(has_collapsed || is_uneven || is_long) {
        return None;
    }
    let senders = all.iter().map(|received| received.senders).max()?;
    Some(Finding {
        measured: plain(share, "share"),
        expected: plain(1.0, "share"),
        ..finding_of(
            if has_collapsed {
                Severity::Notice
            } else {
                Severity::Info
            },
            Subject::Run,
            Cause::Congestion,
            Details::Incast(Incast {
                stage: stage.stage.name.clone(),
                senders,
                goodput_share: share,
                has_collapsed,
                queueing_delay_ns: queue_ns.map(|queue_ns| queue_ns as u64),
                fairness,
                samples: all.len(),
                retransmitted_share: lost,
            }),
        )
    })
}

/// Starved hosts are their own limit.
fn has_cpu(round: &RoundView<'_>) -> bool {
    median(&starvation(round)).is_none_or(|starved| starved < LITTLE_STARVATION)
}

fn of_round(network: &Network, round: &RoundView<'_>) -> Vec<Received> {
    let mut receivers: BTreeMap<HostId, Vec<&FlowRecord>> = BTreeMap::new();
    for row in &round.records {
        receivers.entry(row.dst).or_default().push(row);
    }
    receivers
        .into_iter()
        .filter(|(host, rows)| rows.len() >= MIN_SEEN && !network.is_slow(*host))
        .filter_map(|(_, rows)| received(&rows))
        .collect()
}

fn received(rows: &[&FlowRecord]) -> Option<Received> {
    let rates: Vec<f64> = rows.iter().filter_map(|row| row.bits_per_sec()).collect();
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    let queues: Vec<f64> = rows.iter().filter_map(|row| queue_ns(row)).collect();
    let lost: Vec<f64> = rows
        .iter()
        .filter_map(|row| retransmitted_share(row))
        .collect();
    (squares > 0.0).then(|| Received {
        senders: rows.len(),
        lost: median(&lost).unwrap_or(0.0),
        fairness: sum * sum / (rates.len() as f64 * squares),
        queue_ns: median(&queues),
    })
}

fn queue_ns(row: &FlowRecord) -> Option<f64> {
    let info = row.sender.as_ref()?.streams.first()?.tcp_info?;
    let shortest_us = info.min_rtt_us?;
    Some(1e3 * f64::from(info.rtt_us.saturating_sub(shortest_us)))
}

#[cfg(test)]
mod tests {
    use super::received;
    use ew_model::HostId;
    use ew_model::plan::{FlowId, RoundIndex, StageIndex};
    use ew_model::record::{EndRecord, FlowOutcome, FlowRecord, StreamRecord, TcpInfo};

    fn row(mbits: u64, rtt_us: u32) -> FlowRecord {
        let end = EndRecord {
            window_ns: 1_000_000_000,
            bytes: mbits * 125_000,
            streams: vec![StreamRecord {
                tcp_info: Some(TcpInfo {
                    rtt_us,
                    min_rtt_us: Some(100),
                    ..TcpInfo::default()
                }),
                ..StreamRecord::default()
            }],
            ..EndRecord::default()
        };
        FlowRecord {
            is_aggressor: false,
            stage: StageIndex(0),
            round: RoundIndex(0),
            flow: FlowId(0),
            sample: 0,
            src: HostId(1),
            dst: HostId(0),
            outcome: FlowOutcome::Measured,
            sender: Some(end.clone()),
            receiver: Some(end),
        }
    }

    #[test]
    fn one_sender_of_four_with_all_is_as_unfair_as_it_gets() {
        let rows = [row(400, 5_100), row(0, 5_100), row(0, 5_100), row(0, 5_100)];
        let rows: Vec<&FlowRecord> = rows.iter().collect();
        let uneven = received(&rows).unwrap();
        assert!((uneven.fairness - 0.25).abs() < 1e-9);
        assert_eq!(uneven.queue_ns, Some(5e6));
        let rows = [row(200, 100), row(200, 100), row(200, 100)];
        let rows: Vec<&FlowRecord> = rows.iter().collect();
        assert!((received(&rows).unwrap().fairness - 1.0).abs() < 1e-9);
    }
}
