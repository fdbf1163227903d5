//! Loss, order, jitter and one-way delay of bulk UDP.

use crate::latency::figures;
use ew_evidence::observations::StageView;
use ew_model::analysis::{DatagramAnalysis, OneWayDelay};
use ew_model::latency::Histogram;
use ew_model::record::{DatagramCounts, FlowRecord};
use ew_stats::{median, median_estimate};

/// A stage's datagrams. `None` when no receiver counted any.
pub(crate) fn datagrams(stage: &StageView<'_>) -> Option<DatagramAnalysis> {
    let rows: Vec<&FlowRecord> = stage.measured().collect();
    Some(DatagramAnalysis {
        received_per_sec: stage.sum_over_flows(received_per_sec),
        ..sum(stage, &rows)?
    })
}

/// The datagrams of some of a stage's rows, with the rate as the median of theirs.
pub(crate) fn sum(stage: &StageView<'_>, rows: &[&FlowRecord]) -> Option<DatagramAnalysis> {
    let all: Vec<DatagramCounts> = rows.iter().filter_map(|row| counts(row)).collect();
    let total = |part: fn(&DatagramCounts) -> u64| {
        all.iter()
            .fold(0_u64, |sum, counts| sum.saturating_add(part(counts)))
    };
    let jitters: Vec<f64> = all.iter().map(|counts| counts.jitter_ns as f64).collect();
    let rates: Vec<f64> = rows
        .iter()
        .filter_map(|row| received_per_sec(row))
        .collect();
    let (received, lost) = (total(|c| c.received), total(|c| c.lost));
    Some(DatagramAnalysis {
        received_per_sec: median_estimate(&rates),
        received,
        lost,
        loss: loss(received, lost),
        worst_loss: all
            .iter()
            .filter_map(|counts| loss(counts.received, counts.lost))
            .max_by(f64::total_cmp),
        reordered: total(|c| c.reordered),
        duplicates: total(|c| c.duplicates),
        jitter_ns: median(&jitters)? as u64,
        worst_jitter_ns: all.iter().map(|counts| counts.jitter_ns).max()?,
        one_way: one_way(stage, rows),
    })
}

/// `None` as soon as one of the clocks is not known: its times would count among the others.
fn one_way(stage: &StageView<'_>, rows: &[&FlowRecord]) -> Option<OneWayDelay> {
    let mut all = Histogram::default();
    let mut clock_error_ns = 0;
    for row in rows {
        let delays = row
            .receiver
            .as_ref()
            .and_then(|end| end.one_way_delay.as_ref());
        let Some(delays) = delays else { continue };
        let of_sender_ns = stage.clock_error_ns(row.src, row.sender.as_ref())?;
        let of_receiver_ns = stage.clock_error_ns(row.dst, row.receiver.as_ref())?;
        let of_pair_ns = of_sender_ns.saturating_add(of_receiver_ns);
        clock_error_ns = of_pair_ns.max(clock_error_ns);
        all.merge(delays);
    }
    Some(OneWayDelay {
        times: figures(&all)?,
        clock_error_ns,
    })
}

/// What a row's receiver counted.
pub(crate) fn counts(row: &FlowRecord) -> Option<DatagramCounts> {
    row.receiver.as_ref()?.datagrams
}

/// The share of a row's datagrams that came. `None` when there were none.
pub(crate) fn delivered(row: &FlowRecord) -> Option<f64> {
    let counts = counts(row)?;
    Some(1.0 - loss(counts.received, counts.lost)?)
}

fn received_per_sec(row: &FlowRecord) -> Option<f64> {
    let end = row.receiver.as_ref().filter(|end| end.window_ns > 0)?;
    Some(end.datagrams?.received as f64 * 1e9 / end.window_ns as f64)
}

/// What never came over all that was sent.
fn loss(received: u64, lost: u64) -> Option<f64> {
    let sent = received.saturating_add(lost);
    (sent > 0).then(|| lost as f64 / sent as f64)
}
