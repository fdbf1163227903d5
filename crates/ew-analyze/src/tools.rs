//! Tools side by side: what each reports of the same path, compared with our own engine's figure of
//! the same kind.

use ew_evidence::basis::shaper;
use ew_evidence::observations::{Observations, StageView};
use ew_model::analysis::Estimate;
use ew_model::record::{EndRecord, FlowRecord, Reported};
use ew_model::run::Run;
use ew_model::tools::{
    FigureBuffers, FigureFacts, Meaning, OpenReason, OwnRepetitions, Standing, Statistic,
    ToolComparison, ToolDifference, ToolFigure,
};
use ew_model::workload::{Tool, WorkloadKind};
use ew_stats::{median_estimate, scaled};

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
        statistic: statistic.unwrap_or(meaning.statistic),
        engines: engine
            .filter(|_| workload.tool != Tool::Engine)
            .and_then(|engine| comparable(engine, statistic)),
        standing: standing(run, stage, engine, statistic),
        facts: facts(&meaning, &reported.unwrap_or_default()),
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
    let open = |details| Standing::Open { details };
    if stage.stage.workload.tool == Tool::Engine {
        return Standing::Reference;
    }
    let Some(engine) = engine else {
        return open(OpenReason::NoEngine);
    };
    let Some(own) = comparable(stage, statistic) else {
        let message = stage.missing.first().map(|missing| missing.reason.clone());
        return open(OpenReason::NoFigure { message });
    };
    let engines = comparable(engine, statistic).filter(|engines| engines.value > 0.0);
    let Some(engines) = engines else {
        return open(OpenReason::NoEngineFigure);
    };
    let difference = own.value / engines.value - 1.0;
    match far_ends(&own, &engines) {
        None => open(OpenReason::NoInterval { difference }),
        Some((low, high)) if low >= 1.0 - ALIKE && high <= 1.0 + ALIKE => {
            Standing::Agrees { difference }
        }
        Some((low, high)) if low <= 1.0 && high >= 1.0 => Standing::NotToldApart { difference },
        Some(_) => Standing::Differs {
            difference,
            details: differences(run, stage, engine, statistic),
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
fn differences(
    run: &Run,
    stage: &StageView<'_>,
    engine: &StageView<'_>,
    statistic: Option<Statistic>,
) -> Vec<ToolDifference> {
    let own = stage.stage.workload.meaning();
    let reference = engine.stage.workload.meaning();
    let mut found = Vec::new();
    if own.message_bytes != reference.message_bytes {
        found.push(ToolDifference::MessageBytes {
            tool_bytes: own.message_bytes,
            engine_bytes: reference.message_bytes,
        });
    }
    if own.measures != reference.measures && own.round_trips == reference.round_trips {
        let measures = own.measures;
        found.push(ToolDifference::Measures { measures });
    }
    found.extend(saved_up(run, stage));
    // Nagle's algorithm delays nothing while only one message is under way.
    let may_hold_back = stage.is_bulk() || stage.stage.workload.outstanding > 1;
    if let (true, Some(tool_has_it), Some(engine_has_it)) =
        (may_hold_back, own.nodelay, reference.nodelay)
        && tool_has_it != engine_has_it
    {
        found.push(ToolDifference::Nodelay { tool_has_it });
    }
    if own.fixed_buffers_bytes != reference.fixed_buffers_bytes {
        found.push(ToolDifference::Buffers {
            tool_bytes: own.fixed_buffers_bytes,
            engine_bytes: reference.fixed_buffers_bytes,
        });
    }
    found.extend(unequal_buffers(stage));
    if own.counted_by != reference.counted_by {
        found.push(ToolDifference::CountedBy {
            tool: own.counted_by,
            engine: reference.counted_by,
        });
    }
    match statistic {
        Some(Statistic::Least) => found.push(ToolDifference::BestOfTrials),
        Some(Statistic::Mean) => found.extend(skewed(engine)),
        _ => {}
    }
    found
}

/// A shaper of the sender's own, where each direction rests while the other is used.
fn saved_up(run: &Run, stage: &StageView<'_>) -> Option<ToolDifference> {
    if !stage.is_bulk() || stage.stage.workload.tool != Tool::Netpipe {
        return None;
    }
    let host = stage.rounds.first()?.flows.first()?.src;
    let (shaped_bits_per_sec, kind) = shaper(run, host)?;
    Some(ToolDifference::SavedUp {
        host,
        qdisc: kind.to_owned(),
        shaped_bits_per_sec,
    })
}

/// That a few late answers make the engine's mean, where they do.
fn skewed(engine: &StageView<'_>) -> Option<ToolDifference> {
    let mean = time_ns(engine, Statistic::Mean)?.value;
    let median = time_ns(engine, Statistic::Median)?.value;
    (mean > median * SKEWED).then_some(ToolDifference::SkewedMean {
        mean_ns: mean as u64,
        median_ns: median as u64,
    })
}

/// A receive buffer that the tool found smaller than its send buffer.
fn unequal_buffers(stage: &StageView<'_>) -> Option<ToolDifference> {
    let reported = stage
        .measured()
        .find_map(|row| row.sender.as_ref()?.reported)?;
    let (send_bytes, receive_bytes) = (reported.send_buffer_bytes?, reported.receive_buffer_bytes?);
    let is_unequal = stage.is_bulk() && send_bytes as f64 > receive_bytes as f64 * BUFFERS_APART;
    is_unequal.then_some(ToolDifference::UnequalBuffers {
        send_bytes,
        receive_bytes,
    })
}

fn facts(meaning: &Meaning, reported: &Reported) -> FigureFacts {
    let buffers = (reported.send_buffer_bytes, reported.receive_buffer_bytes);
    FigureFacts {
        measures: meaning.measures,
        message_bytes: meaning.message_bytes,
        counted_by: meaning.counted_by,
        connections: meaning.connections,
        nodelay: meaning.nodelay,
        buffers: match (meaning.fixed_buffers_bytes, buffers) {
            (Some(bytes), _) => FigureBuffers::Tool { bytes },
            (None, (Some(send_bytes), Some(receive_bytes))) => FigureBuffers::Kernel {
                send_bytes,
                receive_bytes,
            },
            _ => FigureBuffers::NotReported,
        },
        repeated: reported
            .tests
            .zip(reported.width_ppm)
            .map(|(tests, width_ppm)| OwnRepetitions { tests, width_ppm }),
    }
}
