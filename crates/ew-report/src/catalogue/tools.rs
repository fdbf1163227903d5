//! Tools side by side: what their figures mean, and why they differ from the engine's.

use ew_model::Inventory;
use ew_model::tools::{
    Connections, CountedBy, FigureBuffers, FigureFacts, Measures, OpenReason, OwnRepetitions,
    Standing, Statistic, ToolComparison, ToolDifference, ToolFigure,
};
use ew_model::units::{format_bits_per_sec, format_bytes, format_duration_ns};
use ew_model::workload::{Tool, WorkloadKind};
use schemars::JsonSchema;
use serde::Serialize;

/// One question to several tools, as the JSON report holds it.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
#[schemars(rename = "ToolComparison")]
pub struct WordedToolComparison {
    /// What the flows carried.
    pub kind: WorkloadKind,
    /// Our own engine first.
    pub figures: Vec<WordedToolFigure>,
}

/// One tool's answer, with what a person reads of it.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
#[schemars(rename = "ToolFigure")]
pub struct WordedToolFigure {
    /// As figures.
    #[serde(flatten)]
    pub figure: ToolFigure,
    /// What exactly is measured, in parts: what, by whom, connections, message, buffers.
    pub meaning: Vec<String>,
    /// How it compares with the engine's figure.
    pub standing: WordedStanding,
}

/// How a tool's figure compares with the engine's, with the reasons in words.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", tag = "type")]
#[schemars(rename = "Standing")]
pub enum WordedStanding {
    /// It is the engine's.
    Reference,
    /// Even the far ends of their intervals are within 5% of each other.
    Agrees {
        /// Tool over engine less 1.
        difference: f64,
    },
    /// The intervals overlap, but are too wide to conclude that the figures agree.
    NotToldApart {
        /// Tool over engine less 1.
        difference: f64,
    },
    /// The intervals do not overlap.
    Differs {
        /// Tool over engine less 1.
        difference: f64,
        /// What is known to be different; empty when nothing is.
        reasons: Vec<String>,
        /// The same as facts.
        details: Vec<ToolDifference>,
    },
    /// There is nothing to compare it with, no figure, or no interval.
    Open {
        /// Why.
        reason: String,
        /// The same as a fact.
        details: OpenReason,
    },
}

/// The comparison with its sentences.
#[must_use]
pub fn worded_tools(comparison: &ToolComparison, names: &Inventory) -> WordedToolComparison {
    let worded = |figure: &ToolFigure| WordedToolFigure {
        figure: figure.clone(),
        meaning: meaning(&figure.facts),
        standing: worded_standing(figure, names),
    };
    WordedToolComparison {
        kind: comparison.kind,
        figures: comparison.figures.iter().map(worded).collect(),
    }
}

fn worded_standing(figure: &ToolFigure, names: &Inventory) -> WordedStanding {
    match figure.standing.clone() {
        Standing::Reference => WordedStanding::Reference,
        Standing::Agrees { difference } => WordedStanding::Agrees { difference },
        Standing::NotToldApart { difference } => WordedStanding::NotToldApart { difference },
        Standing::Differs {
            difference,
            details,
        } => WordedStanding::Differs {
            difference,
            reasons: differences(figure.tool, &details, names),
            details,
        },
        Standing::Open { details } => WordedStanding::Open {
            reason: open_reason(&details),
            details,
        },
    }
}

/// "median", "best of trials".
pub(crate) fn statistic(statistic: Statistic) -> &'static str {
    match statistic {
        Statistic::Rate => "rate",
        Statistic::Median => "median",
        Statistic::Mean => "mean",
        Statistic::Least => "best of trials",
    }
}

/// Why there is no comparison.
pub(crate) fn open_reason(reason: &OpenReason) -> String {
    match reason {
        OpenReason::NoEngine => "the engine was not run with this workload".into(),
        OpenReason::NoFigure { message: None } => "it reported no figure".into(),
        OpenReason::NoFigure {
            message: Some(message),
        } => message.clone(),
        OpenReason::NoEngineFigure => "the engine has no figure".into(),
        OpenReason::NoInterval { difference } => format!(
            "{:+.1}% against the engine; without an interval, which takes six repetitions, that is no evidence",
            difference * 100.0
        ),
    }
}

/// What is known to be different, each in words.
pub(crate) fn differences(tool: Tool, found: &[ToolDifference], names: &Inventory) -> Vec<String> {
    let words = |one: &ToolDifference| difference(tool, one, names);
    found.iter().map(words).collect()
}

fn difference(tool: Tool, found: &ToolDifference, names: &Inventory) -> String {
    let tool = tool.name();
    match found {
        ToolDifference::MessageBytes {
            tool_bytes,
            engine_bytes,
        } => {
            let [own, engines] = [*tool_bytes, *engine_bytes].map(format_bytes);
            format!("messages of {own} against {engines}")
        }
        ToolDifference::Measures { measures } => format!("{tool} times: {}", measured(*measures)),
        ToolDifference::SavedUp {
            host,
            qdisc,
            shaped_bits_per_sec,
        } => format!(
            "{}'s shaper ({qdisc}, {}) saves up what it may send while the answer comes, and lets up to twice its rate through",
            names.name(*host),
            format_bits_per_sec(*shaped_bits_per_sec)
        ),
        ToolDifference::Nodelay { tool_has_it } => {
            let (on, off) = match tool_has_it {
                true => (tool, "the engine"),
                false => ("the engine", tool),
            };
            format!("{on} sends at once (TCP_NODELAY), {off} does not")
        }
        ToolDifference::Buffers {
            tool_bytes,
            engine_bytes,
        } => {
            let [own, engines] = [*tool_bytes, *engine_bytes].map(fixed_buffers);
            format!("socket buffers {own} against {engines}")
        }
        ToolDifference::UnequalBuffers {
            send_bytes,
            receive_bytes,
        } => {
            let [send, receive] = [*send_bytes, *receive_bytes].map(format_bytes);
            format!("its receive buffer was {receive} at the end, its send buffer {send}")
        }
        ToolDifference::CountedBy { tool, engine } => {
            format!("counted by {}, not by {}", counter(*tool), counter(*engine))
        }
        ToolDifference::BestOfTrials => {
            "the best of trials, which are means, against the min of all".into()
        }
        ToolDifference::SkewedMean { mean_ns, median_ns } => format!(
            "a few late answers make the engine's mean {} where its median is {}; means of such times are no measure",
            format_duration_ns(*mean_ns),
            format_duration_ns(*median_ns)
        ),
    }
}

fn fixed_buffers(bytes: Option<u64>) -> String {
    bytes.map_or("tuned by the kernel".into(), |bytes| {
        format!("fixed at {}", format_bytes(bytes))
    })
}

/// What a figure is a figure of, in parts.
pub(crate) fn meaning(facts: &FigureFacts) -> Vec<String> {
    let nodelay = facts.nodelay.map(|on| match on {
        true => "sent at once",
        false => "Nagle's algorithm on",
    });
    let parts = [
        Some(measured(facts.measures).to_owned()),
        Some(format!("payload of {}", format_bytes(facts.message_bytes))),
        Some(format!("counted by {}", counter(facts.counted_by))),
        Some(format!("connection: {}", connections(facts.connections))),
        nodelay.map(str::to_owned),
        Some(buffers(facts.buffers)),
        facts.repeated.map(own_interval),
    ];
    parts.into_iter().flatten().collect()
}

fn measured(measures: Measures) -> &'static str {
    match measures {
        Measures::OneWayPayload => "payload, one way",
        Measures::MessageOverHalfRoundTrip => {
            "a message over half of its round trip, the best of trials; each direction rests half of the time"
        }
        Measures::RoundTrip => "round trip",
        Measures::HalfRoundTrip => "half of a round trip",
        Measures::EchoToTimestamp => {
            "round trip, answered by the kernel, up to its time stamp of the answer"
        }
        Measures::EchoToProcess => "round trip, answered by the kernel, up to the process",
        Measures::Completion => {
            "completion of a message: from its arrival to the answer to its end"
        }
        Measures::SynRoundTrip => "round trip of a SYN that reached the peer",
        Measures::ConnectAndClose => {
            "a new socket, connect and close, nothing sent: one round trip"
        }
        Measures::ConnectAndRequest => {
            "connect, ask, answer: two round trips; the close, a reset, and the socket, which connects again, are not in it"
        }
        Measures::ConnectUntilClosed => {
            "a new socket, connect, ask, answer: two round trips; then until the peer has closed, too, and close"
        }
    }
}

fn counter(counted_by: CountedBy) -> &'static str {
    match counted_by {
        CountedBy::Client => "the client",
        CountedBy::Sender => "the sender",
        CountedBy::SenderPerMessage => "the sender, as time per message",
        CountedBy::Receiver => "the receiver",
    }
}

fn connections(connections: Connections) -> &'static str {
    match connections {
        Connections::None => "none",
        Connections::OneKept => "one, kept",
        Connections::OneSocketKept => "one socket, kept",
        Connections::PerTransaction => "one per transaction",
        Connections::PerHop => "one per hop, reset",
    }
}

fn buffers(buffers: FigureBuffers) -> String {
    match buffers {
        FigureBuffers::Tool { bytes } => format!("buffers fixed at {}", format_bytes(bytes)),
        FigureBuffers::Kernel {
            send_bytes,
            receive_bytes,
        } => format!(
            "buffers {} and {} (send, receive)",
            format_bytes(send_bytes),
            format_bytes(receive_bytes)
        ),
        FigureBuffers::NotReported => "buffers as the kernel tunes them".into(),
    }
}

/// What a tool that repeats its test reports about the mean.
fn own_interval(repeated: OwnRepetitions) -> String {
    let percent = f64::from(repeated.width_ppm) / 1e4;
    format!(
        "mean of {} tests, its 95% interval {percent:.1}% wide as the tool reckons it",
        repeated.tests
    )
}
