//! Two states of a network compared, each by one run or by several. Made by `ew-analyze`, worded
//! and shown by `ew-report`, stored nowhere.

use crate::Outcome;
use crate::analysis::{KnownFraming, NicRateSource};
use crate::estimate::Estimate;
use crate::setting::Setting;
use crate::workload::Tool;
use serde::Serialize;

/// Fewer runs of a state show nothing of its spread: its difference from another one is never
/// called significant.
pub const MIN_RUNS: u32 = 3;

/// What two states have in common, and how it differs. Whoever writes it adds the sentences of
/// what is skipped here.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// What is compared with.
    #[serde(skip_serializing)]
    pub base: Side,
    /// What is compared.
    #[serde(skip_serializing)]
    pub other: Side,
    /// Whether something got worse by more than the threshold.
    pub verdict: ComparisonVerdict,
    /// The threshold: 0.05 is 5%. `None`: nobody asked.
    pub threshold: Option<f64>,
    /// Stages of both runs.
    #[serde(skip_serializing)]
    pub stages: Vec<StageComparison>,
    /// Stages of one run only, or that cannot be compared, each with the reason.
    #[serde(rename = "not_compared_details")]
    pub not_compared: Vec<NotCompared>,
    /// What else differs and may be the cause, or limits the conclusions.
    pub notes: Vec<ComparisonNote>,
}

/// A stage that is not compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum NotCompared {
    /// Only one of the runs has it.
    OnlyIn {
        /// Its name.
        stage: String,
        /// The run's id.
        run: String,
    },
    /// One of the runs has no figure of it.
    NoFigure {
        /// Its name.
        stage: String,
    },
}

/// What differs between two states besides their figures, or limits the conclusions.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum ComparisonNote {
    /// A run is not whole.
    NotWhole {
        /// Its id.
        run: String,
        /// How it ended.
        outcome: Outcome,
    },
    /// Line rates of a reference host, bits per second. `None`: neither configured nor reported.
    LineRate {
        /// Of the base run.
        base: Option<f64>,
        /// Of the other run.
        other: Option<f64>,
    },
    /// Frames look different on the link.
    Frames {
        /// In the base run.
        base: KnownFraming,
        /// In the other run.
        other: KnownFraming,
    },
    /// Versions of eastwest.
    Version {
        /// Of the base run.
        base: String,
        /// Of the other run.
        other: String,
    },
    /// Kernels of the hosts, each once. Empty: not known.
    Kernels {
        /// In the base run.
        base: Vec<String>,
        /// In the other run.
        other: Vec<String>,
    },
    /// How the hosts were reached.
    Fleet {
        /// In the base run.
        base: String,
        /// In the other run.
        other: String,
    },
    /// Hosts of one run only, by name.
    Hosts {
        /// Of the base run.
        base: Vec<String>,
        /// Of the other run.
        other: Vec<String>,
    },
    /// Random pairs may differ.
    Seeds {
        /// Of the base run.
        base: u64,
        /// Of the other run.
        other: u64,
        /// The base run's id.
        base_run: String,
    },
    /// The run-to-run spread that intervals allow for, of the first figure.
    Spread {
        /// The figure.
        metric: Metric,
        /// Its stage.
        stage: String,
        /// How much it varies.
        spread: RunSpread,
    },
    /// A figure differs between runs, and there are too few of them to conclude that of the
    /// network.
    TooFewRuns,
}

/// How a stage was measured otherwise.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum StageNote {
    /// Its name.
    Name {
        /// In the base run.
        base: String,
        /// In the other run.
        other: String,
    },
    /// Its pattern's word.
    Pattern {
        /// In the base run.
        base: String,
        /// In the other run.
        other: String,
    },
    /// What moved the bytes.
    Tool {
        /// In the base run.
        base: Tool,
        /// In the other run.
        other: Tool,
    },
    /// What was set otherwise than by default.
    Settings {
        /// In the base run.
        base: Vec<Setting>,
        /// In the other run.
        other: Vec<Setting>,
    },
    /// Length of a measurement interval.
    Window {
        /// In the base run.
        base_ns: u64,
        /// In the other run.
        other_ns: u64,
    },
    /// Number of rounds.
    Rounds {
        /// In the base run.
        base: u32,
        /// In the other run.
        other: u32,
    },
}

/// One of the two states. Figures other than `run_ids` are those of its first run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// What to call it, as asked. `None`: by its runs.
    #[serde(skip_serializing)]
    pub given_name: Option<String>,
    /// Its runs, as they were named.
    pub run_ids: Vec<String>,
    /// Its scenario.
    pub scenario: String,
    /// Wall clock at start, ns since 1970.
    pub started_unix_ns: u64,
    /// Number of hosts.
    pub hosts: u32,
    /// Line rate of a reference host.
    pub nic_bits_per_sec: Option<f64>,
    /// Where that came from.
    pub nic_rate_source: NicRateSource,
    /// Payload that this can carry.
    pub ceiling_bits_per_sec: Option<f64>,
}

/// The answer as an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComparisonVerdict {
    /// Nothing got worse by more than the threshold, or there is none.
    NotWorse,
    /// Something did, but single runs do not show whether it was the network or the moment.
    Different,
    /// Something did, over runs of both states.
    Worse,
}

/// How much the level of a metric varies from run to run of one network.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RunSpread {
    /// Standard deviation of the level's logarithm: 0.01 is 1%.
    pub deviation: f64,
    /// Degrees of freedom of the same. `None` where it is assumed, because too few runs are known.
    pub degrees: Option<u32>,
    /// Earlier runs that it was taken from, besides the compared ones.
    pub history: u32,
}

/// A stage of both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageComparison {
    /// Its name, in the base run.
    pub name: String,
    /// Pattern word.
    pub pattern: String,
    /// Workload word and tool, for example "tcp-stream (engine)".
    pub workload: String,
    /// What differs in how it was measured.
    pub notes: Vec<StageNote>,
    /// What was measured, the most informative first.
    #[serde(skip_serializing)]
    pub metrics: Vec<MetricComparison>,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Payload rate of a flow, bits per second.
    Throughput,
    /// Transactions of a flow a second.
    Transactions,
    /// Median time of a flow's transactions, ns.
    LatencyMedian,
    /// 99th percentile of the same, ns.
    LatencyP99,
    /// 99.9th percentile of the same, ns.
    LatencyP999,
    /// Median time of connecting, ns.
    ConnectMedian,
    /// Share of a flow's datagrams that came: one minus its loss.
    Delivered,
    /// Interarrival jitter of a flow's datagrams (RFC 3550, section 6.4.1), ns.
    Jitter,
}

/// One metric of a stage in both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricComparison {
    /// Which.
    pub metric: Metric,
    /// In the base run.
    pub base: Summary,
    /// In the other run.
    pub other: Summary,
    /// How the two were compared.
    pub method: Method,
    /// The run-to-run spread that the ratio's interval allows for.
    pub spread: RunSpread,
    /// Other over base with its 95% interval. Of single runs it is Hodges and Lehmann's estimate
    /// on logarithms, of several the quotient of their mean levels.
    pub ratio: Option<Estimate>,
    /// Its 95% interval when hosts are selected with replacement; only when paired by flow and with
    /// four hosts or more.
    pub ratio_over_hosts: Option<(f64, f64)>,
    /// Two-sided p-value of the test. `None` when there was too little to test, and so there is no
    /// conclusion.
    pub p_value: Option<f64>,
    /// The same, adjusted for the number of tests of this comparison.
    pub q_value: Option<f64>,
    /// What that amounts to.
    pub change: Change,
    /// Whether it differs, to the worse, and beyond the threshold.
    pub beyond_threshold: bool,
    /// Flows of both runs, the worst change first. Empty when flows are not the same.
    pub pairs: Vec<PairComparison>,
    /// Hosts of those flows, by name.
    pub hosts: Vec<HostComparison>,
}

/// A side's values of a metric: of a single run one per flow and round, of several one per run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Arithmetic mean with the interval of Student's t.
    pub mean: Estimate,
    /// Median with the interval of its order statistics.
    pub median: Estimate,
    /// Min.
    #[serde(rename = "least")]
    pub min: f64,
    /// Max.
    pub max: f64,
}

/// How two sides were compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "by")]
pub enum Method {
    /// The same flows in both runs, each by its median over rounds: Wilcoxon's signed-rank test.
    Flows {
        /// How many.
        flows: u32,
    },
    /// Different flows, each by its median over rounds: the test of Mann, Whitney and Wilcoxon.
    DifferentFlows {
        /// Of the base run.
        base: u32,
        /// Of the other run.
        other: u32,
    },
    /// Few flows, measured again and again: the test of Mann, Whitney and Wilcoxon over rounds.
    Rounds {
        /// Of the base run.
        base: u32,
        /// Of the other run.
        other: u32,
    },
    /// Several runs, each by its level: Student's t with the spread from run to run.
    Runs {
        /// Of the base state.
        base: u32,
        /// Of the other state.
        other: u32,
    },
}

/// What a difference amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Significant over [`MIN_RUNS`] runs or more of both states, to the better.
    Better,
    /// The same, to the worse.
    Worse,
    /// The runs differ by more than chance and the run-to-run spread; there are too few of them to
    /// conclude that of the network.
    Different,
    /// No significant difference: there may be a small one.
    None,
    /// Too little was measured.
    Unknown,
}

/// A flow that both runs have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairComparison {
    /// Sender of the data, or of the requests.
    pub src: String,
    /// Receiver.
    pub dst: String,
    /// Median over rounds in the base run.
    pub base: f64,
    /// The same in the other run.
    pub other: f64,
    /// Other over base.
    pub ratio: f64,
    /// Rounds in the base run.
    pub base_rounds: u32,
    /// Rounds in the other run.
    pub other_rounds: u32,
    /// Of its change against the changes of all flows, adjusted for their number. `None` with too
    /// few flows.
    pub q_value: Option<f64>,
}

/// A host of flows that both runs have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostComparison {
    /// Its name.
    pub name: String,
    /// As sender of the data, or of the requests.
    pub sending: Option<RoleComparison>,
    /// As receiver.
    pub receiving: Option<RoleComparison>,
}

/// A host at one end of its flows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RoleComparison {
    /// Other over base, median over the flows.
    pub ratio: f64,
    /// The same over that of the median host at this end. `None` with too few hosts.
    pub relative: Option<f64>,
    /// The flows.
    pub flows: u32,
    /// Of its change against the changes of all hosts, adjusted for the number of hosts and ends.
    /// `None` with too few hosts.
    pub q_value: Option<f64>,
    /// Whether hosts were asked for, and it is worse than before and than its peers, both by more
    /// than the threshold, and by more than chance.
    pub beyond_threshold: bool,
}

impl Metric {
    /// In words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Transactions => "transactions",
            Self::LatencyMedian => "median latency",
            Self::LatencyP99 => "p99 latency",
            Self::LatencyP999 => "p99.9 latency",
            Self::ConnectMedian => "median connect time",
            Self::Delivered => "delivered share",
            Self::Jitter => "jitter",
        }
    }

    /// Whether more of it is better.
    #[must_use]
    pub fn more_is_better(self) -> bool {
        matches!(
            self,
            Self::Throughput | Self::Transactions | Self::Delivered
        )
    }

    /// By how much `ratio`, other over base, is worse: 0.05 is a fall of what should be high, or a
    /// rise of what should be low, by 5% of the base. Below 0 when it is better.
    #[must_use]
    pub fn worsening(self, ratio: f64) -> f64 {
        match self.more_is_better() {
            true => 1.0 - ratio,
            false => ratio - 1.0,
        }
    }

    /// The standard deviation of its level's logarithm from run to run that is assumed where no
    /// runs show it: 1%, as links and hosts vary with time of day, temperature and neighbours. A
    /// share that is 1 but for its loss has next to none.
    #[must_use]
    pub fn assumed_run_spread(self) -> f64 {
        match self {
            Self::Delivered => 0.001,
            _ => 0.01,
        }
    }

    /// All, in the order of reports.
    pub const ALL: [Self; 8] = [
        Self::Throughput,
        Self::Delivered,
        Self::Jitter,
        Self::LatencyMedian,
        Self::LatencyP99,
        Self::LatencyP999,
        Self::ConnectMedian,
        Self::Transactions,
    ];

    /// The word of a command line and of files.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Transactions => "transactions",
            Self::LatencyMedian => "latency-median",
            Self::LatencyP99 => "latency-p99",
            Self::LatencyP999 => "latency-p999",
            Self::ConnectMedian => "connect-median",
            Self::Delivered => "delivered",
            Self::Jitter => "jitter",
        }
    }
}

impl MetricComparison {
    /// Whether there are enough runs of both states to speak of the network.
    #[must_use]
    pub fn is_replicated(&self) -> bool {
        matches!(self.method, Method::Runs { base, other } if base.min(other) >= MIN_RUNS)
    }

    /// Hosts and the ends at which they are worse beyond the threshold, where hosts were asked for:
    /// `(name, "sender", role)`.
    pub fn hosts_beyond_threshold(
        &self,
    ) -> impl Iterator<Item = (&str, &'static str, RoleComparison)> {
        let roles = self.hosts.iter().flat_map(|host| {
            let named = |role, at: Option<RoleComparison>| Some((host.name.as_str(), role, at?));
            [
                named("sender", host.sending),
                named("receiver", host.receiving),
            ]
        });
        roles.flatten().filter(|(_, _, at)| at.beyond_threshold)
    }
}
