//! Two runs held against each other. Made by `ew-analyze`, shown by `ew-report`, stored nowhere.

use crate::analysis::Estimate;
use serde::Serialize;

/// What two runs have in common, and how it differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// What is compared with.
    pub base: Side,
    /// What is compared.
    pub other: Side,
    /// The answer in one sentence.
    pub sentence: String,
    /// Whether something got worse by more than the threshold.
    pub verdict: ComparisonVerdict,
    /// The threshold: 0.05 is 5 %. `None`: nobody asked.
    pub threshold: Option<f64>,
    /// Stages of both runs.
    pub stages: Vec<StageComparison>,
    /// Stages of one run only, or that cannot be compared, each with the reason.
    pub not_compared: Vec<String>,
    /// What else differs and may be the cause, or limits what can be said.
    pub remarks: Vec<String>,
}

/// One of the two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// What to call it.
    pub name: String,
    /// The run.
    pub run_id: String,
    /// Its scenario.
    pub scenario: String,
    /// Wall clock at start, ns since 1970.
    pub started_unix_ns: u64,
    /// Number of hosts.
    pub hosts: u32,
    /// Line rate of a reference host.
    pub nic_bits_per_sec: Option<f64>,
    /// Where that came from.
    pub nic_source: String,
    /// Payload that this can carry.
    pub ceiling_bits_per_sec: Option<f64>,
}

/// The answer as an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComparisonVerdict {
    /// Nothing got worse by more than the threshold, or there is none.
    NotWorse,
    /// Something did.
    Worse,
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
    /// What differs in how it was measured, in words.
    pub remarks: Vec<String>,
    /// What was measured, the most informative first.
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
    /// Other over base with its 95 % interval: Hodges and Lehmann's estimate on logarithms.
    pub ratio: Option<Estimate>,
    /// Its 95 % interval when hosts are drawn with replacement; only when paired by flow and with
    /// four hosts or more.
    pub ratio_over_hosts: Option<(f64, f64)>,
    /// Two-sided p-value of the test. `None` when there was too little to test.
    pub p_value: Option<f64>,
    /// The same, adjusted for the number of tests of this comparison.
    pub q_value: Option<f64>,
    /// What that amounts to.
    pub change: Change,
    /// Whether it is worse, significant, and beyond the threshold.
    pub beyond_threshold: bool,
    /// Why nothing can be said.
    pub reason: Option<String>,
    /// Flows of both runs, the worst change first. Empty when flows are not the same.
    pub pairs: Vec<PairComparison>,
    /// Hosts of those flows, by name.
    pub hosts: Vec<HostComparison>,
}

/// One run's values of a metric: one per flow and round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Arithmetic mean with the interval of Student's t.
    pub mean: Estimate,
    /// Median with the interval of its order statistics.
    pub median: Estimate,
    /// Least.
    pub least: f64,
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
}

/// What a difference amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Significant, to the better.
    Better,
    /// Significant, to the worse.
    Worse,
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
    /// Of the test over rounds, adjusted for the number of flows. `None` when there were too few
    /// rounds.
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
    /// The flows.
    pub flows: u32,
    /// Of the test over repetitions, adjusted for the number of hosts and ends. `None` when there
    /// were too few repetitions.
    pub q_value: Option<f64>,
    /// Whether hosts were asked for, and it is worse, significant, and beyond the threshold.
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
    /// rise of what should be low, by 5 % of the base. Below 0 when it is better.
    #[must_use]
    pub fn worsening(self, ratio: f64) -> f64 {
        match self.more_is_better() {
            true => 1.0 - ratio,
            false => ratio - 1.0,
        }
    }
}

impl MetricComparison {
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
