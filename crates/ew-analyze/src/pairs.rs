//! Ordered pairs one by one: their single measurements, and the paths they took.

use ew_evidence::observations::{Observations, StageView, typical_ns};
use ew_evidence::telemetry::Telemetry;
use ew_model::HostId;
use ew_model::analysis::{HostPair, PairDetail, PairPath, PairSample};
use ew_model::record::{EndRecord, FlowRecord, StreamRecord};
use ew_model::workload::WorkloadKind;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Measurements that an analysis keeps one by one; a run of a thousand hosts has millions.
const MAX_SAMPLES: usize = 60_000;
/// Different paths kept.
const MAX_PATHS: usize = 20_000;

type Pair = (HostId, HostId);

/// The measurements of all pairs; when they are too many, of whole pairs, those first that are
/// furthest below the expectation of `host_pairs`.
pub(crate) fn details(
    observations: &Observations<'_>,
    telemetry: &Telemetry<'_>,
    host_pairs: &[HostPair],
) -> Vec<PairDetail> {
    let stages = || {
        (0u32..)
            .zip(&observations.stages)
            .filter(|(_, s)| has_samples(s))
    };
    let mut counts: BTreeMap<Pair, usize> = BTreeMap::new();
    for row in stages().flat_map(|(_, stage)| stage.measured()) {
        *counts.entry((row.src, row.dst)).or_default() += 1;
    }
    let kept = kept(&counts, host_pairs);
    let mut details: BTreeMap<(Pair, u32), Vec<&FlowRecord>> = BTreeMap::new();
    for (index, stage) in stages() {
        for row in stage.measured() {
            let pair = (row.src, row.dst);
            if kept.contains(&pair) {
                details.entry((pair, index)).or_default().push(row);
            }
        }
    }
    let details = details.into_iter();
    details
        .map(|(((src, dst), stage), rows)| PairDetail {
            stage,
            src,
            dst,
            tcp: rows.last().and_then(|row| slowest_stream(row)?.tcp_info),
            streams: rows.last().and_then(|row| tcp_streams(row)),
            samples: samples(observations, telemetry, stage, &rows),
        })
        .collect()
}

/// Traces are shown as paths.
fn has_samples(stage: &StageView<'_>) -> bool {
    stage.stage.workload.kind != WorkloadKind::Trace
}

fn kept(counts: &BTreeMap<Pair, usize>, host_pairs: &[HostPair]) -> BTreeSet<Pair> {
    let share =
        |host_pair: &HostPair| Some(host_pair.bits_per_sec? / host_pair.expected_bits_per_sec?);
    let shares: BTreeMap<Pair, f64> = host_pairs
        .iter()
        .filter_map(|host_pair| Some(((host_pair.src, host_pair.dst), share(host_pair)?)))
        .collect();
    let mut pairs: Vec<(&Pair, &usize)> = counts.iter().collect();
    let share = |pair: &Pair| shares.get(pair).copied().unwrap_or(f64::INFINITY);
    pairs.sort_by(|a, b| share(a.0).total_cmp(&share(b.0)));
    let mut free = MAX_SAMPLES;
    let fits = |(_, count): &(&Pair, &usize)| {
        let fits = **count <= free;
        free = free.saturating_sub(**count);
        fits
    };
    pairs
        .into_iter()
        .take_while(fits)
        .map(|(p, _)| *p)
        .collect()
}

fn samples(
    observations: &Observations<'_>,
    telemetry: &Telemetry<'_>,
    stage: u32,
    rows: &[&FlowRecord],
) -> Vec<PairSample> {
    let stage = observations.stages.get(stage as usize);
    let has_rates = stage.is_some_and(StageView::is_bulk);
    let samples = rows.iter().map(|row| PairSample {
        bits_per_sec: row.bits_per_sec().filter(|_| has_rates),
        ..sample(telemetry, row)
    });
    samples.collect()
}

/// But its rate.
fn sample(telemetry: &Telemetry<'_>, row: &FlowRecord) -> PairSample {
    let datagrams = row.receiver.as_ref().and_then(|end| end.datagrams);
    let loss = datagrams.and_then(|counts| {
        let all = counts.lost + counts.received;
        (all > 0).then(|| counts.lost as f64 / all as f64)
    });
    PairSample {
        t_ns: telemetry.window_start_ns(row),
        bits_per_sec: None,
        retransmits: row.retransmits(),
        rtt_us: slowest_stream(row).and_then(|stream| Some(stream.tcp_info?.rtt_us)),
        time_ns: typical_ns(row),
        loss,
    }
}

fn sender_streams(row: &FlowRecord) -> impl Iterator<Item = &StreamRecord> {
    let ends: Option<&EndRecord> = row.sender.as_ref();
    ends.into_iter().flat_map(|end| &end.streams)
}

fn slowest_stream(row: &FlowRecord) -> Option<&StreamRecord> {
    sender_streams(row)
        .filter(|stream| stream.tcp_info.is_some())
        .min_by_key(|stream| stream.bytes)
}

fn tcp_streams(row: &FlowRecord) -> Option<u32> {
    let streams = sender_streams(row).filter(|stream| stream.tcp_info.is_some());
    Some(streams.count() as u32).filter(|count| *count > 0)
}

/// The paths of the stages that traced them, each once, with the connections that took it.
pub(crate) fn paths(observations: &Observations<'_>) -> Vec<PairPath> {
    let mut paths: BTreeMap<(Pair, &[Option<IpAddr>]), u32> = BTreeMap::new();
    let stages = observations.stages.iter();
    let traces = stages.filter(|stage| stage.stage.workload.kind == WorkloadKind::Trace);
    for row in traces.flat_map(StageView::measured) {
        for path in sender_streams(row).filter_map(|stream| stream.path.as_ref()) {
            let key = ((row.src, row.dst), path.hops.as_slice());
            *paths.entry(key).or_default() += 1;
        }
    }
    let paths = paths.into_iter().take(MAX_PATHS);
    paths
        .map(|(((src, dst), hops), connections)| PairPath {
            src,
            dst,
            hops: hops.to_vec(),
            connections,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(src: u32, dst: u32) -> Pair {
        (HostId(src), HostId(dst))
    }

    fn host_pair((src, dst): Pair, share: f64) -> HostPair {
        HostPair {
            src,
            dst,
            bits_per_sec: Some(share * 1e9),
            expected_bits_per_sec: Some(1e9),
            samples: 1,
            retransmits: None,
            rtt_us: None,
            missing: None,
        }
    }

    #[test]
    fn of_too_many_measurements_those_of_the_slowest_pairs_stay() {
        let pairs: Vec<Pair> = (1..=100).map(|dst| pair(0, dst)).collect();
        let counts = pairs.iter().map(|p| (*p, MAX_SAMPLES / 10)).collect();
        let host_pairs = pairs.iter().zip(1..).map(|(p, n)| {
            let share = if n == 77 {
                0.4
            } else {
                f64::from(100 + n) / 150.0
            };
            host_pair(*p, share)
        });
        let kept = kept(&counts, &host_pairs.collect::<Vec<_>>());
        assert_eq!(kept.len(), 10);
        assert!(kept.contains(&pair(0, 77)) && kept.contains(&pair(0, 1)));
        assert!(!kept.contains(&pair(0, 100)));
    }

    #[test]
    fn few_measurements_stay_all_with_or_without_an_expectation() {
        let counts = [(pair(0, 1), 3), (pair(1, 0), 1)].into_iter().collect();
        assert_eq!(kept(&counts, &[host_pair(pair(0, 1), 1.0)]).len(), 2);
    }
}
