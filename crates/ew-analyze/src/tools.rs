//! Tools side by side: what each reports of the same path, compared with our own engine's figure of
//! the same kind.

use crate::basis::shaper;
use crate::observations::{Observations, StageView};
use crate::stats::{median_estimate, scaled};
use ew_model::analysis::Estimate;
use ew_model::record::{EndRecord, FlowRecord, Reported};
use ew_model::run::Run;
use ew_model::tools::{Meaning, Standing, Statistic, ToolComparison, ToolFigure};
use ew_model::units::{format_bits_per_sec, format_bytes, format_duration_ns};
use ew_model::workload::{Tool, WorkloadKind};

/// Figures agree when even the far ends of their intervals are no further apart than this.
const ALIKE: f64 = 0.05;
/// Socket buffers of which one is greater than the other by this factor are a reason.
const BUFFERS_APART: f64 = 1.5;
/// A mean above its median by this factor is made by few.
const SKEWED: f64 = 1.25;

/// One comparison per kind of workload that an external tool carried; none in a run of the engine
/// alone.
pub(crate) fn comparisons(observations: &Observations<'_>) -> Vec<ToolComparison> {
    WorkloadKind::ALL
        .into_iter()
        .filter_map(|kind| {
            let stages = observations.stages.iter();
            let of_kind =
                stages.filter(|s| s.stage.workload.kind == kind && s.stage.sweep.is_none());
            compare(observations.run, kind, of_kind.collect())
        })
        .collect()
}

fn compare(
    run: &Run,
    kind: WorkloadKind,
    mut stages: Vec<&StageView<'_>>,
) -> Option<ToolComparison> {
    let tool_of = |stage: &StageView<'_>| stage.stage.workload.tool;
    if stages.iter().all(|stage| tool_of(stage) == Tool::Engine) {
        return None;
    }
    stages.sort_by_key(|stage| Tool::ALL.iter().position(|tool| *tool == tool_of(stage)));
    let engine = stages
        .iter()
        .copied()
        .find(|stage| tool_of(stage) == Tool::Engine);
    let figures = stages.iter().map(|stage| figure(run, stage, engine));
    Some(ToolComparison {
        kind,
        figures: figures.collect(),
    })
}

fn figure(run: &Run, stage: &StageView<'_>, engine: Option<&StageView<'_>>) -> ToolFigure {
    let workload = &stage.stage.workload;
    let is_bulk = workload.kind.is_bulk();
    let meaning = workload.meaning();
    let statistic = told_statistic(stage);
    let time_ns = statistic.and_then(|statistic| time_ns(stage, statistic));
    let reported = stage
        .measured()
        .find_map(|row| row.sender.as_ref()?.reported);
    ToolFigure {
        stage: stage.stage.name.clone(),
        tool: workload.tool,
        bits_per_sec: over_flows(stage, FlowRecord::bits_per_sec).filter(|_| is_bulk),
        transactions_per_sec: over_flows(stage, crate::latency::transactions_per_sec)
            .filter(|_| !is_bulk),
        round_trip_ns: time_ns.map(|time| scaled(&time, meaning.round_trips)),
        time_ns,
        statistic: statistic.unwrap_or(meaning.statistic).name().to_owned(),
        engines: engine
            .filter(|_| workload.tool != Tool::Engine)
            .and_then(|engine| comparable(engine, statistic)),
        standing: standing(run, stage, engine, statistic),
        meaning: in_parts(&meaning, reported),
    }
}

fn over_flows(
    stage: &StageView<'_>,
    figure: impl Fn(&FlowRecord) -> Option<f64>,
) -> Option<Estimate> {
    median_estimate(&stage.measured().filter_map(figure).collect::<Vec<_>>())
}

/// The best that all of a stage's records report: a median before a mean before the best of trials.
/// `None` for bulk.
fn told_statistic(stage: &StageView<'_>) -> Option<Statistic> {
    if stage.is_bulk() {
        return None;
    }
    [Statistic::Median, Statistic::Mean, Statistic::Least]
        .into_iter()
        .find(|statistic| {
            let mut ends = stage
                .measured()
                .filter_map(|row| row.sender.as_ref())
                .peekable();
            ends.peek().is_some() && ends.all(|end| time_of(end, *statistic).is_some())
        })
}

fn time_ns(stage: &StageView<'_>, statistic: Statistic) -> Option<Estimate> {
    over_flows(stage, |row| time_of(row.sender.as_ref()?, statistic))
}

/// One record's figure: of its distribution, else as the tool reported it.
fn time_of(end: &EndRecord, statistic: Statistic) -> Option<f64> {
    let summary = end
        .latency
        .as_ref()
        .and_then(|latency| latency.times.summary());
    let reported = end.reported.as_ref();
    let (of_all, reported) = match statistic {
        Statistic::Rate => return None,
        Statistic::Median => (summary.map(|s| s.p50_ns), reported.and_then(|t| t.p50_ns)),
        Statistic::Mean => (summary.map(|s| s.mean_ns), reported.and_then(|t| t.mean_ns)),
        Statistic::Least => (summary.map(|s| s.min_ns), reported.and_then(|t| t.min_ns)),
    };
    of_all.or(reported).map(|ns| ns as f64)
}

/// What like is compared with like by: a rate, or a tool's mean as a round trip.
fn comparable(stage: &StageView<'_>, statistic: Option<Statistic>) -> Option<Estimate> {
    match statistic {
        None if stage.is_bulk() => over_flows(stage, FlowRecord::bits_per_sec),
        None => None,
        Some(statistic) => {
            let round_trips = stage.stage.workload.meaning().round_trips;
            time_ns(stage, statistic).map(|time| scaled(&time, round_trips))
        }
    }
}

fn standing(
    run: &Run,
    stage: &StageView<'_>,
    engine: Option<&StageView<'_>>,
    statistic: Option<Statistic>,
) -> Standing {
    let open = |reason: &str| Standing::Open {
        reason: reason.to_owned(),
    };
    if stage.stage.workload.tool == Tool::Engine {
        return Standing::Reference;
    }
    let Some(engine) = engine else {
        return open("the engine was not run with this workload");
    };
    let Some(own) = comparable(stage, statistic) else {
        let reason = stage.missing.first().map(|missing| missing.reason.clone());
        return open(&reason.unwrap_or_else(|| "it reported no figure".into()));
    };
    let engines = comparable(engine, statistic).filter(|engines| engines.value > 0.0);
    let Some(engines) = engines else {
        return open("the engine has no figure");
    };
    let difference = own.value / engines.value - 1.0;
    match far_ends(&own, &engines) {
        None => open(&format!(
            "{:+.1}% against the engine; without an interval, which takes six repetitions, that is no evidence",
            difference * 100.0
        )),
        Some((low, high)) if low >= 1.0 - ALIKE && high <= 1.0 + ALIKE => {
            Standing::Agrees { difference }
        }
        Some((low, high)) if low <= 1.0 && high >= 1.0 => Standing::NotToldApart { difference },
        Some(_) => Standing::Differs {
            difference,
            reasons: reasons(run, stage, engine, statistic),
        },
    }
}

/// The lowest and the largest ratio that two intervals allow; 1 is between them where they overlap.
/// `None` without intervals.
fn far_ends(own: &Estimate, engines: &Estimate) -> Option<(f64, f64)> {
    let min = own.low? / engines.high?;
    let max = own.high? / engines.low.filter(|low| *low > 0.0)?;
    Some((min, max))
}

/// What is known to be different, from what the tools fix, were given, and report; never a guess.
fn reasons(
    run: &Run,
    stage: &StageView<'_>,
    engine: &StageView<'_>,
    statistic: Option<Statistic>,
) -> Vec<String> {
    let tool = stage.stage.workload.tool.name();
    let (own, reference) = (
        stage.stage.workload.meaning(),
        engine.stage.workload.meaning(),
    );
    let mut reasons = Vec::new();
    if own.message_bytes != reference.message_bytes {
        let (own, reference) = (own.message_bytes, reference.message_bytes);
        let sizes = [own, reference].map(format_bytes);
        reasons.push(format!("messages of {} against {}", sizes[0], sizes[1]));
    }
    if own.measures != reference.measures && own.round_trips == reference.round_trips {
        reasons.push(format!("{tool} times: {}", own.measures));
    }
    reasons.extend(saved_up(run, stage));
    // Nagle's algorithm delays nothing while only one message is under way.
    let may_hold_back = stage.is_bulk() || stage.stage.workload.outstanding > 1;
    let settings = (own.nodelay, reference.nodelay);
    if let (true, (Some(true), Some(false)) | (Some(false), Some(true))) = (may_hold_back, settings)
    {
        let (on, off) = match own.nodelay {
            Some(true) => (tool, "the engine"),
            _ => ("the engine", tool),
        };
        reasons.push(format!("{on} sends at once (TCP_NODELAY), {off} does not"));
    }
    if own.fixed_buffers_bytes != reference.fixed_buffers_bytes {
        let buffers = |meaning: &Meaning| match meaning.fixed_buffers_bytes {
            Some(bytes) => format!("fixed at {}", format_bytes(bytes)),
            None => "tuned by the kernel".into(),
        };
        let (own, reference) = (buffers(&own), buffers(&reference));
        reasons.push(format!("socket buffers {own} against {reference}"));
    }
    reasons.extend(own_buffers(stage));
    if own.counted_by != reference.counted_by {
        reasons.push(format!(
            "counted by {}, not by {}",
            own.counted_by, reference.counted_by
        ));
    }
    if statistic == Some(Statistic::Least) {
        reasons.push("the best of trials, which are means, against the min of all".into());
    }
    if statistic == Some(Statistic::Mean) {
        reasons.extend(skewed(engine));
    }
    reasons
}

/// A shaper of the sender's own, where each direction rests while the other is used.
fn saved_up(run: &Run, stage: &StageView<'_>) -> Option<String> {
    if !stage.is_bulk() || stage.stage.workload.tool != Tool::Netpipe {
        return None;
    }
    let sender = stage.rounds.first()?.flows.first()?.src;
    let (rate, kind) = shaper(run, sender)?;
    let name = run.manifest.inventory.name(sender);
    let rate = format_bits_per_sec(rate);
    Some(format!(
        "{name}'s shaper ({kind}, {rate}) saves up what it may send while the answer comes, and lets up to twice its rate through"
    ))
}

/// That a few late answers make the engine's mean, where they do.
fn skewed(engine: &StageView<'_>) -> Option<String> {
    let mean = time_ns(engine, Statistic::Mean)?.value;
    let median = time_ns(engine, Statistic::Median)?.value;
    (mean > median * SKEWED).then(|| {
        let [mean, median] = [mean, median].map(|ns| format_duration_ns(ns as u64));
        format!(
            "a few late answers make the engine's mean {mean} where its median is {median}; means of such times are no measure"
        )
    })
}

/// A receive buffer that the tool found smaller than its send buffer.
fn own_buffers(stage: &StageView<'_>) -> Option<String> {
    let reported = stage
        .measured()
        .find_map(|row| row.sender.as_ref()?.reported)?;
    let (send, receive) = (reported.send_buffer_bytes?, reported.receive_buffer_bytes?);
    let is_bulk = stage.is_bulk();
    (is_bulk && send as f64 > receive as f64 * BUFFERS_APART).then(|| {
        let (send, receive) = (format_bytes(send), format_bytes(receive));
        format!("its receive buffer was {receive} at the end, its send buffer {send}")
    })
}

fn in_parts(meaning: &Meaning, reported: Option<Reported>) -> Vec<String> {
    let reported = reported.unwrap_or_default();
    let nodelay = meaning.nodelay.map(|on| match on {
        true => "sent at once",
        false => "Nagle's algorithm on",
    });
    let buffers = match (
        meaning.fixed_buffers_bytes,
        reported.send_buffer_bytes,
        reported.receive_buffer_bytes,
    ) {
        (Some(bytes), ..) => format!("buffers fixed at {}", format_bytes(bytes)),
        (None, Some(send), Some(receive)) => format!(
            "buffers {} and {} (send, receive)",
            format_bytes(send),
            format_bytes(receive)
        ),
        _ => "buffers as the kernel tunes them".into(),
    };
    let parts = [
        Some(meaning.measures.to_owned()),
        Some(format!(
            "payload of {}",
            format_bytes(meaning.message_bytes)
        )),
        Some(format!("counted by {}", meaning.counted_by)),
        Some(format!("connection: {}", meaning.connections)),
        nodelay.map(str::to_owned),
        Some(buffers),
        own_interval(&reported),
    ];
    parts.into_iter().flatten().collect()
}

/// What a tool that repeats its test reports about the mean.
fn own_interval(reported: &Reported) -> Option<String> {
    let (tests, width_ppm) = (reported.tests?, reported.width_ppm?);
    let percent = f64::from(width_ppm) / 1e4;
    Some(format!(
        "mean of {tests} tests, its 95% interval {percent:.1}% wide as the tool reckons it"
    ))
}
