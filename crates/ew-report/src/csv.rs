//! Ordered pairs as CSV: one header line, one row per pair of the stage that the matrix comes from,
//! by sender and receiver; then one row per pair of every other stage with transactions or
//! datagrams, where these are more than a probe of round trips.
//!
//! A run of nothing but sweeps over message sizes has another table: one row per sweep and size.
//!
//! The CPU of both ends is the stage's, the same in all its rows. Rates are bits per second and
//! times ns, in full, not rounded to a prefix. What was not measured is "-", with the reason in the
//! column `missing`, so that no reader can take it for a 0.

use crate::csv_line::{push_line, whole};
use crate::figures::has_details;
use crate::sweep;
use crate::words::{MISSING, host_name, one_line, or_missing, rack_of};
use ew_model::analysis::{CpuAnalysis, HostPair, PairAnalysis, StageAnalysis};
use ew_model::{Analysis, HostId};
use std::collections::BTreeMap;

/// The first eleven are the matrix; further ones are added at the end.
const HEADER: &str = "src,dst,src_rack,dst_rack,bits_per_sec,expected_bits_per_sec,ratio,samples,retransmits,rtt_us,missing,\
    stage,workload,transactions_per_sec,latency_count,latency_min_ns,latency_mean_ns,latency_p50_ns,latency_p90_ns,\
    latency_p99_ns,latency_p999_ns,latency_p9999_ns,latency_max_ns,datagrams_received,datagrams_lost,datagrams_reordered,\
    datagrams_duplicate,jitter_ns,remarks,\
    senders_engine_cpus,senders_busy_share,senders_softirq_share,senders_steal_share,senders_us_per_kib,senders_us_per_transaction,\
    receivers_engine_cpus,receivers_busy_share,receivers_softirq_share,receivers_steal_share,receivers_us_per_kib,\
    receivers_us_per_transaction,one_way_p50_ns,one_way_p99_ns,one_way_max_ns,clock_error_ns\n";

pub(crate) fn render(analysis: &Analysis) -> String {
    if sweep::is_all(analysis) {
        return sweep::csv(analysis);
    }
    let mut text = String::from(HEADER);
    let matrix_stage = analysis
        .stages
        .iter()
        .find(|stage| Some(&stage.name) == analysis.host_pairs_stage.as_ref());
    let matrix_pairs: BTreeMap<(HostId, HostId), &PairAnalysis> = matrix_stage
        .iter()
        .flat_map(|stage| &stage.pairs)
        .map(|pair| ((pair.src, pair.dst), pair))
        .collect();
    for host_pair in &analysis.host_pairs {
        let pair = matrix_pairs.get(&(host_pair.src, host_pair.dst)).copied();
        push_row(
            &mut text,
            host_pair_fields(analysis, host_pair),
            matrix_stage,
            pair,
        );
    }
    let is_matrix = |stage| matrix_stage.is_some_and(|matrix| std::ptr::eq(matrix, stage));
    for stage in analysis.stages.iter().filter(|_| has_details(analysis)) {
        if is_matrix(stage) {
            continue;
        }
        for pair in &stage.pairs {
            let fields = pair_fields(analysis, pair);
            push_row(&mut text, fields, Some(stage), Some(pair));
        }
    }
    text
}

fn push_row(
    text: &mut String,
    mut fields: Vec<String>,
    stage: Option<&StageAnalysis>,
    pair: Option<&PairAnalysis>,
) {
    fields.extend(stage_fields(stage));
    fields.extend(figure_fields(pair));
    fields.push(stage.map_or_else(String::new, notes));
    fields.extend(cpu_fields(stage.and_then(|stage| stage.sender_cpu)));
    fields.extend(cpu_fields(stage.and_then(|stage| stage.receiver_cpu)));
    fields.extend(one_way_fields(pair));
    push_line(text, fields.into_iter());
}

fn host_pair_fields(analysis: &Analysis, host_pair: &HostPair) -> Vec<String> {
    let ratio = host_pair
        .bits_per_sec
        .zip(host_pair.expected_bits_per_sec)
        .filter(|(_, expected)| *expected > 0.0)
        .map(|(measured, expected)| measured / expected);
    let mut fields = hosts(analysis, host_pair.src, host_pair.dst);
    fields.extend([
        whole(host_pair.bits_per_sec),
        whole(host_pair.expected_bits_per_sec),
        or_missing(ratio, |r| format!("{r:.4}")),
        host_pair.samples.to_string(),
        or_missing(host_pair.retransmits, |r| r.to_string()),
        or_missing(host_pair.rtt_us, |r| r.to_string()),
        host_pair
            .missing
            .as_deref()
            .map_or_else(String::new, one_line),
    ]);
    fields
}

fn pair_fields(analysis: &Analysis, pair: &PairAnalysis) -> Vec<String> {
    let none = || MISSING.to_owned();
    let mut fields = hosts(analysis, pair.src, pair.dst);
    let samples = pair.samples.to_string();
    fields.extend([whole(pair.bits_per_sec), none(), none(), samples]);
    fields.extend([none(), none(), String::new()]);
    fields
}

fn hosts(analysis: &Analysis, src: HostId, dst: HostId) -> Vec<String> {
    let inventory = analysis.inventory();
    vec![
        host_name(inventory, src),
        host_name(inventory, dst),
        rack_of(inventory, src),
        rack_of(inventory, dst),
    ]
}

fn stage_fields(stage: Option<&StageAnalysis>) -> [String; 2] {
    [
        or_missing(stage, |stage| one_line(&stage.name)),
        or_missing(stage, |stage| one_line(&stage.workload)),
    ]
}

fn figure_fields(pair: Option<&PairAnalysis>) -> Vec<String> {
    let times = pair.and_then(|pair| pair.times);
    let datagrams = pair.and_then(|pair| pair.datagrams);
    let number = |value: Option<u64>| or_missing(value, |v| v.to_string());
    let mut fields = vec![or_missing(
        pair.and_then(|pair| pair.transactions_per_sec),
        |rate| format!("{rate:.1}"),
    )];
    let numbers = [
        times.map(|t| t.count),
        times.map(|t| t.min_ns),
        times.map(|t| t.mean_ns),
        times.map(|t| t.p50_ns),
        times.and_then(|t| t.p90_ns),
        times.and_then(|t| t.p99_ns),
        times.and_then(|t| t.p999_ns),
        times.and_then(|t| t.p9999_ns),
        times.map(|t| t.max_ns),
        datagrams.map(|d| d.received),
        datagrams.map(|d| d.lost),
        datagrams.map(|d| d.reordered),
        datagrams.map(|d| d.duplicates),
        datagrams.map(|d| d.jitter_ns),
    ];
    fields.extend(numbers.map(number));
    fields
}

fn one_way_fields(pair: Option<&PairAnalysis>) -> [String; 4] {
    let delay = pair.and_then(|pair| pair.datagrams?.one_way);
    let number = |value: Option<u64>| or_missing(value, |v| v.to_string());
    [
        number(delay.map(|d| d.times.p50_ns)),
        number(delay.and_then(|d| d.times.p99_ns)),
        number(delay.map(|d| d.times.max_ns)),
        number(delay.map(|d| d.clock_error_ns)),
    ]
}

/// What the stage cost the hosts at one of its ends.
fn cpu_fields(cpu: Option<CpuAnalysis>) -> [String; 6] {
    let decimal = |of: fn(CpuAnalysis) -> Option<f64>| {
        let value = cpu.and_then(of).filter(|v| v.is_finite());
        or_missing(value, |v| format!("{v:.4}"))
    };
    [
        decimal(|c| Some(c.engine_cpus)),
        decimal(|c| Some(c.busy_share)),
        decimal(|c| Some(c.softirq_share)),
        decimal(|c| Some(c.steal_share)),
        decimal(|c| c.micros_per_kib),
        decimal(|c| c.micros_per_transaction),
    ]
}

/// The stage's notes in the words of the JSON report, separated by blanks.
fn notes(stage: &StageAnalysis) -> String {
    let words = stage.labels.iter().filter_map(|label| {
        let word = serde_json::to_value(label.note).ok()?;
        Some(word.as_str()?.to_owned())
    });
    words.collect::<Vec<_>>().join(" ")
}
