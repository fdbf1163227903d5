//! Tools side by side.

use super::{estimate, host};
use crate::common;
use ew_model::Workload;
use ew_model::tools::{
    CountedBy, FigureBuffers, FigureFacts, Measures, OpenReason, OwnRepetitions, Standing,
    Statistic, ToolComparison, ToolDifference, ToolFigure,
};
use ew_model::workload::{Tool, WorkloadKind};
use ew_report::{Format, TextStyle, WordedStanding, render, worded_tools};
use std::collections::BTreeSet;
use std::fmt::Write;

#[test]
fn by_every_standing_and_difference() {
    let names = common::inventory(2, 4);
    let mut text = String::new();
    for figure in worded_tools(&comparison(), &names).figures {
        let tool = figure.figure.tool.name();
        match figure.standing {
            WordedStanding::Differs { reasons, .. } => {
                writeln!(text, "# {tool} differs\n- {}", reasons.join("\n- ")).unwrap();
            }
            WordedStanding::Open { reason, .. } => {
                writeln!(text, "# {tool} is open\n{reason}").unwrap();
            }
            other => writeln!(text, "# {tool}\n{other:?}").unwrap(),
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn by_everything_that_figures_mean() {
    let names = common::inventory(2, 4);
    let mut seen = BTreeSet::new();
    let mut text = String::new();
    for kind in WorkloadKind::ALL {
        for tool in Tool::ALL.into_iter().filter(|tool| tool.has(kind)) {
            let workload = Workload {
                tool,
                ..Workload::of(kind)
            };
            let compared = ToolComparison {
                kind,
                figures: vec![figure(&workload, Standing::Reference)],
            };
            let meaning = worded_tools(&compared, &names).figures.remove(0).meaning;
            if seen.insert(meaning.clone()) {
                let (kind, tool) = (kind.name(), tool.name());
                writeln!(text, "# {kind}, {tool}\n- {}", meaning.join("\n- ")).unwrap();
            }
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn in_tables() {
    let mut analysis = common::demo();
    analysis.tools = vec![comparison()];
    let style = TextStyle {
        details: true,
        width: 200,
        ..TextStyle::default()
    };
    let text = render(&analysis, Format::Text, &style).unwrap();
    let start = text.find("Tools side by side").unwrap();
    let end = text.find("\nHosts\n").unwrap();
    insta::assert_snapshot!(text[start..end].trim_end());
}

/// A tool for each way to compare with the engine.
pub(crate) fn comparison() -> ToolComparison {
    let kind = WorkloadKind::TcpStream;
    let of = |tool, standing| {
        let workload = Workload {
            tool,
            ..Workload::of(kind)
        };
        figure(&workload, standing)
    };
    let difference = 0.123;
    let open = |details| Standing::Open { details };
    let message = Some("iperf3: error - unable to connect".into());
    ToolComparison {
        kind,
        figures: vec![
            of(Tool::Engine, Standing::Reference),
            of(Tool::Iperf3, Standing::Agrees { difference: -0.004 }),
            of(Tool::Iperf, Standing::NotToldApart { difference }),
            of(
                Tool::Netpipe,
                Standing::Differs {
                    difference,
                    details: differences(),
                },
            ),
            of(
                Tool::Qperf,
                Standing::Differs {
                    difference: -difference,
                    details: Vec::new(),
                },
            ),
            of(Tool::Nuttcp, open(OpenReason::NoEngine)),
            of(Tool::Lmbench, open(OpenReason::NoFigure { message })),
            of(Tool::Netperf, open(OpenReason::NoFigure { message: None })),
            of(Tool::Sockperf, open(OpenReason::NoEngineFigure)),
            of(Tool::Ping, open(OpenReason::NoInterval { difference })),
        ],
    }
}

fn differences() -> Vec<ToolDifference> {
    let buffers = |tool_bytes, engine_bytes| ToolDifference::Buffers {
        tool_bytes,
        engine_bytes,
    };
    vec![
        ToolDifference::MessageBytes {
            tool_bytes: 65_536,
            engine_bytes: 131_072,
        },
        ToolDifference::Measures {
            measures: Measures::ConnectUntilClosed,
        },
        ToolDifference::SavedUp {
            host: host(1, 2),
            qdisc: "tbf".into(),
            shaped_bits_per_sec: 50e6,
        },
        ToolDifference::Nodelay { tool_has_it: true },
        ToolDifference::Nodelay { tool_has_it: false },
        buffers(Some(1_048_576), None),
        buffers(None, Some(65_536)),
        ToolDifference::UnequalBuffers {
            send_bytes: 2_621_440,
            receive_bytes: 131_072,
        },
        ToolDifference::CountedBy {
            tool: CountedBy::SenderPerMessage,
            engine: CountedBy::Receiver,
        },
        ToolDifference::CountedBy {
            tool: CountedBy::Sender,
            engine: CountedBy::Client,
        },
        ToolDifference::BestOfTrials,
        ToolDifference::SkewedMean {
            mean_ns: 2_030_000,
            median_ns: 41_000,
        },
    ]
}

/// What its tool fixes and reports; netperf repeats its test.
fn figure(workload: &Workload, standing: Standing) -> ToolFigure {
    let meaning = workload.meaning();
    let is_netperf = workload.tool == Tool::Netperf;
    let buffers = match (meaning.fixed_buffers_bytes, workload.tool) {
        (Some(bytes), _) => FigureBuffers::Tool { bytes },
        (None, Tool::Iperf3) => FigureBuffers::Kernel {
            send_bytes: 87_040,
            receive_bytes: 131_072,
        },
        _ => FigureBuffers::NotReported,
    };
    let rate = workload.kind.is_bulk();
    ToolFigure {
        stage: format!("{} {}", workload.kind.name(), workload.tool.name()),
        tool: workload.tool,
        bits_per_sec: rate.then(|| estimate(94e6, 93e6, 95e6)),
        transactions_per_sec: None,
        time_ns: (meaning.statistic != Statistic::Rate).then(|| estimate(41e3, 40e3, 42e3)),
        round_trip_ns: None,
        statistic: meaning.statistic,
        facts: FigureFacts {
            measures: meaning.measures,
            message_bytes: meaning.message_bytes,
            counted_by: meaning.counted_by,
            connections: meaning.connections,
            nodelay: meaning.nodelay,
            buffers,
            repeated: is_netperf.then_some(OwnRepetitions {
                tests: 5,
                width_ppm: 21_300,
            }),
        },
        engines: Some(estimate(94e6, 93e6, 95e6)),
        standing,
    }
}
