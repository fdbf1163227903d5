//! The table of hosts: a row each, with the worst of what its counters report.

use super::accused::{Accused, Mark};
use super::anchors::host_anchor;
use super::panels::{has_panel, link_words};
use crate::host_figures::{DISK_TOLD, cpu_parts, link_share, name_of_stage};
use crate::view::{HostWords, RateWords, payload_ceiling};
use crate::words::{MISSING, one_line, percent};
use ew_model::Analysis;
use ew_model::analysis::{Estimate, HostAnalysis, HostStageAnalysis};
use serde::Serialize;

/// A part of a host or pair that is slower than this share of what it should do is a finding, where
/// it stands out: 1 less `MIN_EFFECT` of ew-evidence, which reports do not know.
pub(super) const FAULT_BELOW: f64 = 0.93;

/// The table, and what its bars are drawn by.
#[derive(Serialize)]
pub(super) struct HostsView {
    rows: Vec<HostView>,
    /// Where on the bars the max goodput is, per cent.
    mark: Option<String>,
    has_nic: bool,
    has_disk: bool,
}

#[derive(Serialize)]
struct HostView {
    anchor: String,
    id: u32,
    has_panel: bool,
    marks: Vec<Mark>,
    name: String,
    rack: String,
    up: bool,
    state: String,
    tx: Bar,
    rx: Bar,
    /// NIC, CPU and disk, where the table has these columns.
    most: Vec<Most>,
    link: String,
    idle_rtt: String,
    idle_rtt_sort: i64,
    retransmits: String,
    retransmits_sort: i64,
}

#[derive(Serialize)]
struct Bar {
    text: String,
    interval: String,
    effect: Option<String>,
    low: bool,
    width: Option<String>,
    sort: f64,
}

/// The max of a share over stages.
#[derive(Serialize)]
struct Most {
    text: String,
    note: String,
    /// In which stage, or that it is of the busiest second.
    when: String,
    sort: f64,
}

/// All hosts, in inventory order.
pub(super) fn view(analysis: &Analysis, words: &[HostWords], accused: &Accused<'_>) -> HostsView {
    let scale = scale(analysis);
    let ceiling = payload_ceiling(analysis);
    let stages = || analysis.hosts.iter().flat_map(|host| &host.stages);
    let has_nic = stages().any(|stage| link_share(stage).is_some());
    let has_disk = stages().any(|stage| disk_share(stage) >= Some(DISK_TOLD));
    let row = |(h, words): (&HostAnalysis, &HostWords)| {
        let most = mosts(analysis, h, has_nic, has_disk);
        host(h, words, scale, accused.host(h.host), most)
    };
    HostsView {
        rows: analysis.hosts.iter().zip(words).map(row).collect(),
        mark: ceiling
            .zip(scale)
            .map(|(ceiling, scale)| format!("{:.2}", ceiling / scale * 100.0)),
        has_nic,
        has_disk,
    }
}

fn host(
    host: &HostAnalysis,
    words: &HostWords,
    scale: Option<f64>,
    marks: Vec<Mark>,
    most: Vec<Most>,
) -> HostView {
    HostView {
        anchor: host_anchor(host.host),
        id: host.host.0,
        has_panel: has_panel(host),
        marks,
        name: words.name.clone(),
        rack: words.rack.clone(),
        up: words.is_up,
        state: words.state_and_reason.clone(),
        tx: bar(&words.sends, host.tx_bits_per_sec, host.tx_effect, scale),
        rx: bar(&words.receives, host.rx_bits_per_sec, host.rx_effect, scale),
        most,
        link: link_words(host),
        idle_rtt: words.idle_rtt.clone(),
        idle_rtt_sort: host.idle_rtt_ns.map_or(-1, |ns| ns as i64),
        retransmits: words.retransmits.clone(),
        retransmits_sort: host.retransmits.map_or(-1, |r| r as i64),
    }
}

/// NIC, CPU and disk, where the table has these columns.
fn mosts(analysis: &Analysis, host: &HostAnalysis, has_nic: bool, has_disk: bool) -> Vec<Most> {
    let nic = has_nic.then(|| most(analysis, host, link_share, direction));
    let disk = has_disk.then(|| most(analysis, host, disk_share, disk_name));
    let all = [nic, Some(busiest_cpu(analysis, host)), disk];
    all.into_iter().flatten().collect()
}

/// Over a stage where that is known, else over the busiest second.
fn busiest_cpu(analysis: &Analysis, host: &HostAnalysis) -> Most {
    let share = |stage: &HostStageAnalysis| stage.busiest_cpu.map(|cpu| cpu.busy_share);
    let parts = |stage: &HostStageAnalysis| {
        let cpu = stage.busiest_cpu.as_ref();
        cpu.map_or_else(String::new, |cpu| cpu_parts(cpu, 1))
    };
    let over_a_stage = most(analysis, host, share, parts);
    match over_a_stage.text == MISSING {
        false => over_a_stage,
        true => Most {
            text: percent(host.busiest_cpu),
            note: String::new(),
            when: "in the busiest second".into(),
            sort: host.busiest_cpu.map_or(-1.0, finite),
        },
    }
}

fn most(
    analysis: &Analysis,
    host: &HostAnalysis,
    share: impl Fn(&HostStageAnalysis) -> Option<f64>,
    note: impl Fn(&HostStageAnalysis) -> String,
) -> Most {
    let known = host.stages.iter().filter_map(|s| Some((share(s)?, s)));
    let most = known.max_by(|a, b| a.0.total_cmp(&b.0));
    let stage = most.map(|(_, stage)| stage);
    Most {
        text: percent(most.map(|(share, _)| share)),
        note: stage.map(note).unwrap_or_default(),
        when: stage.map_or_else(String::new, |stage| {
            format!("in stage {}", name_of_stage(analysis, stage))
        }),
        sort: most.map_or(-1.0, |(share, _)| finite(share)),
    }
}

fn direction(stage: &HostStageAnalysis) -> String {
    let is_out = stage.tx_link_share() >= stage.rx_link_share();
    if is_out { "out" } else { "in" }.into()
}

fn disk_name(stage: &HostStageAnalysis) -> String {
    let name = stage.disk.as_ref().map(|disk| one_line(&disk.name));
    name.unwrap_or_default()
}

fn disk_share(stage: &HostStageAnalysis) -> Option<f64> {
    stage.disk.as_ref().map(|disk| disk.busy_share)
}

fn bar(
    words: &RateWords,
    estimate: Option<Estimate>,
    effect: Option<f64>,
    scale: Option<f64>,
) -> Bar {
    let value = estimate.map(|e| e.value).filter(|v| v.is_finite());
    Bar {
        text: words.short.clone(),
        interval: words.with_interval.clone(),
        effect: effect
            .filter(|e| (e - 1.0).abs() > 0.05)
            .map(|e| format!("{} of peers", percent(Some(e)))),
        low: effect.is_some_and(|e| e < FAULT_BELOW),
        width: value
            .zip(scale)
            .map(|(v, s)| format!("{:.2}", (v / s * 100.0).clamp(0.0, 100.0))),
        sort: value.unwrap_or(-1.0),
    }
}

/// The full length of a bar: the expectation or the fastest host, whichever is more.
fn scale(analysis: &Analysis) -> Option<f64> {
    analysis
        .hosts
        .iter()
        .flat_map(|h| [h.tx_bits_per_sec, h.rx_bits_per_sec])
        .flatten()
        .map(|e| e.value)
        .chain(payload_ceiling(analysis))
        .filter(|v| v.is_finite() && *v > 0.0)
        .reduce(f64::max)
}

/// To sort by: what is no number is below all that are.
pub(super) fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { -1.0 }
}
