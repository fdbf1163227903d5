//! What the page's template shows: every number already in words.

use super::accused::{Accused, Mark};
use super::anchors::rack_anchor;
use super::fabric::{self, Fabric};
use super::findings::{self, Card, Headline};
use super::hosts::{self, HostsView, finite};
use super::matrix::MapsView;
use super::rich_text::rich;
use super::run_line::{self, RunLine};
use super::{chart, matrix, panels, spectrum, sweep_chart};
use crate::catalogue::basis::nic_source;
use crate::figures::{Figures, stage_name, stages_outside_sweeps};
use crate::view::{RackPairWords, View, payload_ceiling};
use crate::words::{
    MISSING, capitalised, duration, healthy_knee, one_line, plural, rack_name, rate, took_ns, utc,
};
use ew_model::Analysis;
use ew_model::RackId;
use ew_model::analysis::{HostState, RackPairAnalysis, StageAnalysis};
use ew_model::sweep::SweepAnalysis;
use serde::Serialize;
use std::collections::BTreeMap;

/// Charts of at most this many rack pairs; the table has all.
const RAMPS_SHOWN: usize = 12;
/// More findings than this are below.
const HEADLINES_SHOWN: usize = 4;
/// From this many racks on, the ratios are shown as a grid, too.
const RACKS_FOR_GRID: usize = 4;

/// One scope, strict.
const SCRIPT: &str = concat!(
    "(function () {\n\"use strict\";\n",
    include_str!("base.js"),
    include_str!("fabric.js"),
    include_str!("pair.js"),
    include_str!("map.js"),
    include_str!("panel.js"),
    "})();"
);

#[derive(Serialize)]
pub(super) struct Page {
    title: String,
    style: &'static str,
    script: &'static str,
    status: &'static str,
    status_class: &'static str,
    sentence: String,
    subtitle: String,
    run_id: String,
    print_head: String,
    headlines: Vec<Headline>,
    headlines_left_out: usize,
    fabric: Option<Fabric>,
    run_line: Option<RunLine>,
    tiles: Vec<Tile>,
    findings: Vec<Card>,
    rack_pairs: Vec<RackPairView>,
    rack_grid: Option<RackGrid>,
    ramps: Vec<ChartView>,
    ramps_left_out: usize,
    matrix: Option<MapsView>,
    has_racks: bool,
    hosts: HostsView,
    panels: Option<String>,
    stage_header: Vec<&'static str>,
    stages: Vec<Vec<String>>,
    stage_notes: Vec<String>,
    figures: Vec<FiguresView>,
    sweeps: Vec<ChartView>,
    spectra: Vec<ChartView>,
    timelines: Vec<ChartView>,
    facts: Vec<(&'static str, String)>,
    warnings: Vec<String>,
    version: String,
}

#[derive(Serialize)]
struct Tile {
    name: &'static str,
    value: String,
    note: String,
}

#[derive(Serialize)]
struct RackPairView {
    anchor: String,
    mark: Option<Mark>,
    from: String,
    to: String,
    inside: String,
    across: String,
    ratio: String,
    ratio_sort: f64,
    uplink: String,
    knee: String,
}

/// Oversubscription as a grid, sending racks down, receiving racks across.
#[derive(Serialize)]
struct RackGrid {
    names: Vec<String>,
    rows: Vec<RackRow>,
}

#[derive(Serialize)]
struct RackRow {
    name: String,
    cells: Vec<RackCell>,
}

#[derive(Serialize)]
struct RackCell {
    text: String,
    heat: Option<String>,
}

#[derive(Serialize)]
struct ChartView {
    title: String,
    note: String,
    svg: String,
}

/// A table of words and numbers.
#[derive(Serialize)]
struct FiguresView {
    title: &'static str,
    header: Vec<Figure>,
    rows: Vec<Vec<Figure>>,
    notes: Vec<String>,
}

/// A cell and whether it is a number.
#[derive(Serialize)]
struct Figure {
    text: String,
    number: bool,
}

pub(super) fn page(analysis: &Analysis) -> Result<Page, serde_json::Error> {
    let view = View::of(analysis);
    let accused = Accused::new(analysis);
    let ramps = ramps(analysis);
    let headlines = findings::headlines(analysis.inventory(), &view.findings);
    let rack_pairs = analysis.rack_pairs.iter().zip(&view.rack_pairs);
    Ok(Page {
        title: format!("{}: {}", one_line(&analysis.run.scenario.name), view.status),
        style: include_str!("report.css"),
        script: SCRIPT,
        status: view.status,
        status_class: view.tone.class(),
        sentence: rich(&capitalised(analysis.inventory(), &view.sentence)),
        subtitle: subtitle(analysis, view.network.as_deref()),
        print_head: print_head(&view),
        headlines_left_out: headlines.len().saturating_sub(HEADLINES_SHOWN),
        headlines: headlines.into_iter().take(HEADLINES_SHOWN).collect(),
        fabric: fabric::view(analysis, &accused),
        run_line: run_line::view(analysis),
        tiles: tiles(analysis),
        findings: findings::cards(analysis, &view.findings),
        rack_pairs: rack_pairs
            .map(|(pair, words)| rack_pair(pair, words, accused.rack_pair(pair)))
            .collect(),
        rack_grid: rack_grid(analysis),
        ramps_left_out: ramps.len().saturating_sub(RAMPS_SHOWN),
        ramps: ramps.into_iter().take(RAMPS_SHOWN).collect(),
        matrix: matrix::view(analysis)?,
        has_racks: !analysis.inventory().racks.is_empty(),
        hosts: hosts::view(analysis, &view.hosts, &accused),
        panels: panels::data(analysis, &accused)?,
        stage_header: view.stages.header,
        stages: view.stages.rows,
        stage_notes: view.stages.notes,
        figures: view.figures.into_iter().map(figures_view).collect(),
        sweeps: analysis.sweeps.iter().flat_map(sweep_charts).collect(),
        spectra: stages_outside_sweeps(analysis)
            .filter_map(latency_chart)
            .collect(),
        timelines: stages_outside_sweeps(analysis)
            .filter_map(timeline)
            .collect(),
        facts: view.facts,
        warnings: view.warnings.iter().map(|warning| rich(warning)).collect(),
        version: one_line(&analysis.run.version),
        run_id: view.run_id,
    })
}

fn timeline(stage: &StageAnalysis) -> Option<ChartView> {
    Some(ChartView {
        title: stage_name(stage),
        note: format!(
            "{}, {}",
            plural(stage.rounds as usize, "round"),
            one_line(&stage.workload)
        ),
        svg: chart::timeline(stage)?,
    })
}

fn sweep_charts(sweep: &SweepAnalysis) -> Vec<ChartView> {
    let chart = |what, svg: Option<String>| {
        Some(ChartView {
            title: format!("{}, {what}", one_line(&sweep.name)),
            note: plural(sweep.points.len(), "size"),
            svg: svg?,
        })
    };
    let rates = chart("rate", sweep_chart::rates(sweep));
    let times = chart("time of a message", sweep_chart::times(sweep));
    rates.into_iter().chain(times).collect()
}

fn latency_chart(stage: &StageAnalysis) -> Option<ChartView> {
    let latency = stage.latency.as_ref()?;
    let solid = match latency.uncorrected {
        Some(_) => ", from when a request was due; dashed: from when it was sent",
        None => "",
    };
    Some(ChartView {
        title: one_line(&stage.name),
        note: format!("{} transactions{solid}", latency.times.count),
        svg: spectrum::spectrum(stage)?,
    })
}

fn figures_view(figures: Figures) -> FiguresView {
    let cells = |texts: Vec<String>| -> Vec<Figure> {
        let cell = |(at, text)| Figure {
            text,
            number: at >= figures.left,
        };
        texts.into_iter().enumerate().map(cell).collect()
    };
    FiguresView {
        title: figures.title,
        header: cells(figures.header.into_iter().map(headed).collect()),
        rows: figures.rows.into_iter().map(cells).collect(),
        notes: figures.notes,
    }
}

/// A column's name with a capital, but for percentiles.
fn headed(name: &str) -> String {
    match name.split_at_checked(1) {
        Some((first, rest)) if !rest.starts_with(|c: char| c.is_ascii_digit()) => {
            format!("{}{rest}", first.to_ascii_uppercase())
        }
        _ => name.to_owned(),
    }
}

fn subtitle(analysis: &Analysis, network: Option<&str>) -> String {
    let inventory = analysis.inventory();
    let racks = match inventory.racks.len() {
        0 => String::new(),
        n => format!(" in {}", plural(n, "rack")),
    };
    let network = network.map(|network| format!(" over {network}"));
    format!(
        "{} on {}{racks}{}, {}",
        one_line(&analysis.run.scenario.name),
        plural(inventory.hosts.len(), "host"),
        network.unwrap_or_default(),
        utc(Some(analysis.run.started_unix_ns)),
    )
}

/// The text on top of every printed page, as the inside of a CSS string.
fn print_head(view: &View) -> String {
    let text = format!("eastwest: {}, {}", view.run_id, view.status);
    let is_plain = |c: &char| c.is_alphanumeric() || " .,:;_-".contains(*c);
    text.chars().filter(is_plain).collect()
}

fn tiles(analysis: &Analysis) -> Vec<Tile> {
    let up = analysis
        .hosts
        .iter()
        .filter(|h| h.state == HostState::Alive)
        .count();
    let measured = analysis
        .host_pairs
        .iter()
        .filter(|c| c.bits_per_sec.is_some())
        .count();
    let worst = analysis
        .rack_pairs
        .iter()
        .filter(|p| p.limited != Some(false))
        .filter_map(|p| p.oversubscription.map(|e| (e.value, p)))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let mut tiles = vec![Tile {
        name: "Hosts",
        value: format!("{up} of {}", analysis.hosts.len()),
        note: "up to the end".into(),
    }];
    if !analysis.host_pairs.is_empty() {
        tiles.push(Tile {
            name: "Pairs measured",
            value: format!("{measured} of {}", analysis.host_pairs.len()),
            note: analysis
                .host_pairs_stage
                .as_deref()
                .map_or_else(String::new, one_line),
        });
    }
    if let Some((ratio, pair)) = worst {
        tiles.push(Tile {
            name: "Highest oversubscription",
            value: format!("{ratio:.1}:1"),
            note: format!(
                "{} to {}",
                rack_name(analysis.inventory(), pair.from),
                rack_name(analysis.inventory(), pair.to)
            ),
        });
    }
    tiles.push(latency_tile(analysis).unwrap_or_else(|| ceiling_tile(analysis)));
    tiles.push(Tile {
        name: "Took",
        value: duration(took_ns(&analysis.run)),
        note: stages_run(analysis),
    });
    tiles
}

/// An interrupted run has planned more than it came to.
fn stages_run(analysis: &Analysis) -> String {
    let planned = plural(analysis.stages.len(), "stage");
    let idle = |stage: &&StageAnalysis| stage.rounds == 0;
    match analysis.stages.iter().filter(idle).count() {
        0 => planned,
        idle => format!("{} of {planned}", analysis.stages.len() - idle),
    }
}

/// For runs without a rate that could be compared with a ceiling.
fn latency_tile(analysis: &Analysis) -> Option<Tile> {
    if analysis.stages.iter().any(|stage| stage.kind.is_bulk()) {
        return None;
    }
    let first = analysis.stages.first()?;
    let times = first.latency.as_ref()?.times;
    Some(Tile {
        name: "Median time",
        value: duration(Some(times.p50_ns)),
        note: format!("p99 {}, {}", duration(times.p99_ns), one_line(&first.name)),
    })
}

fn ceiling_tile(analysis: &Analysis) -> Tile {
    Tile {
        name: "Max goodput",
        value: rate(payload_ceiling(analysis)),
        note: match analysis.basis.nic_bits_per_sec {
            Some(line_rate) => {
                format!("of {} line rate of a reference host", rate(Some(line_rate)))
            }
            None => nic_source(analysis.basis.nic_rate_source).into(),
        },
    }
}

fn rack_pair(pair: &RackPairAnalysis, words: &RackPairWords, mark: Option<Mark>) -> RackPairView {
    RackPairView {
        anchor: rack_anchor(pair.from, pair.to),
        mark,
        from: words.from.clone(),
        to: words.to.clone(),
        inside: words.inside.with_interval.clone(),
        across: words.across.with_interval.clone(),
        ratio: words.oversubscription.clone(),
        ratio_sort: pair.oversubscription.map_or(0.0, |e| finite(e.value)),
        uplink: words.uplink.clone(),
        knee: words.full_at.clone(),
    }
}

/// Worst ratio first; of equals in the order of the table.
fn ramps(analysis: &Analysis) -> Vec<ChartView> {
    let ratio = |p: &RackPairAnalysis| p.oversubscription.map_or(0.0, |e| e.value);
    let mut pairs: Vec<&RackPairAnalysis> = analysis.rack_pairs.iter().collect();
    pairs.sort_by(|a, b| ratio(b).total_cmp(&ratio(a)));
    pairs
        .into_iter()
        .filter_map(|p| ramp(analysis, p))
        .collect()
}

fn rack_grid(analysis: &Analysis) -> Option<RackGrid> {
    let inventory = analysis.inventory();
    if inventory.racks.len() < RACKS_FOR_GRID || analysis.rack_pairs.is_empty() {
        return None;
    }
    let pairs: BTreeMap<(RackId, RackId), &RackPairAnalysis> = analysis
        .rack_pairs
        .iter()
        .map(|p| ((p.from, p.to), p))
        .collect();
    let worst = analysis
        .rack_pairs
        .iter()
        .filter_map(|p| p.oversubscription.map(|e| e.value))
        .fold(1.0, f64::max);
    let stated = analysis.run.scenario.expect.oversubscription.unwrap_or(1.0);
    let cell = |from, to| rack_cell(pairs.get(&(from, to)).copied(), stated, worst);
    Some(RackGrid {
        names: inventory
            .rack_ids()
            .map(|id| rack_name(inventory, id))
            .collect(),
        rows: inventory
            .rack_ids()
            .map(|from| RackRow {
                name: rack_name(inventory, from),
                cells: inventory.rack_ids().map(|to| cell(from, to)).collect(),
            })
            .collect(),
    })
}

/// Shaded in proportion to the ratio above what was configured (1 otherwise), the worst of
/// the run deepest.
fn rack_cell(pair: Option<&RackPairAnalysis>, stated: f64, worst: f64) -> RackCell {
    let Some(pair) = pair else {
        return RackCell {
            text: String::new(),
            heat: None,
        };
    };
    match (pair.limited, pair.oversubscription) {
        (Some(false), _) => RackCell {
            text: "none".into(),
            heat: None,
        },
        (_, None) => RackCell {
            text: MISSING.into(),
            heat: None,
        },
        (_, Some(ratio)) => RackCell {
            text: format!("{:.1}", ratio.value),
            heat: (worst > stated && ratio.value > stated)
                .then(|| format!("{:.0}", (ratio.value - stated) / (worst - stated) * 42.0)),
        },
    }
}

fn ramp(analysis: &Analysis, pair: &RackPairAnalysis) -> Option<ChartView> {
    Some(ChartView {
        title: format!(
            "{} to {}",
            rack_name(analysis.inventory(), pair.from),
            rack_name(analysis.inventory(), pair.to)
        ),
        note: match pair.knee_senders {
            Some(senders) => format!("full with {}", healthy_knee(senders)),
            None => "not filled".into(),
        },
        svg: chart::ramp(analysis, pair)?,
    })
}
