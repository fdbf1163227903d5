//! A run's numbers after analysis: what reports show. Made by `ew-analyze`, read by `ew-report`.

use crate::facts::InterfaceFacts;
use crate::finding::Verdict;
use crate::inventory::{HostId, Inventory, RackId};
use crate::run::RunManifest;
use serde::{Deserialize, Serialize};

/// Everything a report may show. Derived from one run and nothing else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// The run's manifest.
    pub run: RunManifest,
    /// The answer.
    pub verdict: Verdict,
    /// Per stage, in order.
    pub stages: Vec<StageAnalysis>,
    /// Per host, in inventory order.
    pub hosts: Vec<HostAnalysis>,
    /// Ordered pairs that were planned in a single-flow-per-host stage (the mesh when there is one), by (src, dst).
    pub cells: Vec<Cell>,
    /// The stage the cells come from.
    pub cells_stage: Option<String>,
    /// Ordered rack pairs.
    pub rack_pairs: Vec<RackPairAnalysis>,
    /// How the expectation was made, in words: declared or discovered capacities, MTU, efficiency.
    pub basis: Basis,
    /// What the user should know of the run itself, in order of time.
    pub warnings: Vec<String>,
}

/// A median (or a ratio of medians) with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Point estimate.
    pub value: f64,
    /// Lower end of the 95 % interval. `None` below six samples.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// How many samples it rests on.
    pub samples: u32,
}

/// What rates were held against.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Basis {
    /// Line rate taken for a healthy host. `None` when nothing was measured or stated.
    pub nic_bits_per_sec: Option<f64>,
    /// Where that came from: "stated", "link speed", "discovered: median of hosts".
    pub nic_source: String,
    /// Payload over wire bytes.
    pub efficiency: f64,
    /// How, for example "MTU 1500, IPv4, timestamps: 1448/1514".
    pub efficiency_source: String,
}

/// One stage's totals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageAnalysis {
    /// Name in the plan.
    pub name: String,
    /// Pattern word.
    pub pattern: String,
    /// Workload word and tool, for example "tcp-stream (engine)".
    pub workload: String,
    /// Rounds that ran.
    pub rounds: u32,
    /// Flows planned over all rounds.
    pub flows: u32,
    /// Flows without a figure.
    pub missing: u32,
    /// Sum of the flows' rates, median over rounds, bits per second.
    pub aggregate_bits_per_sec: Option<Estimate>,
    /// Median rate of a flow.
    pub flow_bits_per_sec: Option<Estimate>,
    /// Slowest flow.
    pub slowest_bits_per_sec: Option<f64>,
    /// Fastest flow.
    pub fastest_bits_per_sec: Option<f64>,
    /// Median of measured over expected, per flow. `None` without an expectation.
    pub of_expected: Option<f64>,
    /// Retransmitted segments, all flows.
    pub retransmits: Option<u64>,
    /// Round-trip time medians (tcp-rr stages): least, median, greatest over pairs.
    pub rtt_ns: Option<(u64, u64, u64)>,
    /// Achieved minus planned start over flows: median and 99th percentile of the absolute value, and the greatest.
    pub start_skew_ns: Option<(u64, u64, u64)>,
    /// Sum over flows, per interval, time from the first round's window.
    pub timeline: Vec<TimePoint>,
    /// For `pick: random`: draws that the stock iperf3 would have refused because the drawn server port was taken.
    pub random_collisions: Option<u32>,
}

/// One point of a stage's throughput over time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimePoint {
    /// From the stage's first window; gaps between rounds are left out of the axis' data, not of the axis.
    pub t_ns: u64,
    /// Sum over flows.
    pub bits_per_sec: f64,
}

/// Whether a host took part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "type")]
pub enum HostState {
    /// To the end.
    Alive,
    /// Lost on the way.
    Lost {
        /// How it was noticed.
        message: String,
    },
    /// Never came up.
    Failed {
        /// In the launcher's words.
        message: String,
    },
}

/// One host's figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostAnalysis {
    /// Which.
    pub host: HostId,
    /// Whether it took part.
    pub state: HostState,
    /// Rate sent when nothing but the hosts should limit (inside racks, isolated), median over flows.
    pub tx_bits_per_sec: Option<Estimate>,
    /// The same, received.
    pub rx_bits_per_sec: Option<Estimate>,
    /// Sending side against peers from the two-way model: 1.0 is typical, 0.5 is half.
    pub tx_effect: Option<f64>,
    /// Receiving side.
    pub rx_effect: Option<f64>,
    /// The interface that carries the host's address.
    pub interface: Option<InterfaceFacts>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Median idle round trip to the peers probed.
    pub idle_rtt_ns: Option<u64>,
    /// Segments it retransmitted, all stages.
    pub retransmits: Option<u64>,
    /// Clock offset error bound.
    pub clock_error_ns: Option<u64>,
    /// Connections its data port refused.
    pub strangers: u64,
    /// Busiest CPU's busy share in the busiest second, 0 to 1.
    pub busiest_cpu: Option<f64>,
}

/// One ordered pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Sender.
    pub src: HostId,
    /// Receiver.
    pub dst: HostId,
    /// Median over samples; `None` is missing, shown as "-".
    pub bits_per_sec: Option<f64>,
    /// Max-min fair expectation times protocol efficiency.
    pub expected_bits_per_sec: Option<f64>,
    /// Number of measured rounds.
    pub samples: u32,
    /// Retransmitted segments.
    pub retransmits: Option<u64>,
    /// Smoothed round-trip time under load, from `TCP_INFO`.
    pub rtt_us: Option<u32>,
    /// Why it is missing.
    pub missing: Option<String>,
}

/// One direction between two racks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RackPairAnalysis {
    /// Sending rack.
    pub from: RackId,
    /// Receiving rack.
    pub to: RackId,
    /// Per-host goodput inside the sending rack.
    pub inside_bits_per_sec: Option<Estimate>,
    /// Sum over hosts across, every host active.
    pub across_bits_per_sec: Option<Estimate>,
    /// Ratio to one. `None` when not determined.
    pub oversubscription: Option<Estimate>,
    /// Whether the path limited at all; when not, the ratio is an upper bound shown as "none found".
    pub limited: Option<bool>,
    /// Senders and aggregate rate, from the ramp.
    pub ramp: Vec<(u32, f64)>,
    /// Senders at which the uplink filled. `None` when it did not, or without a ramp.
    pub knee_senders: Option<f64>,
    /// Uplink capacity from the knee, payload bits per second.
    pub uplink_bits_per_sec: Option<f64>,
    /// Why there is no ratio.
    pub reason: Option<String>,
}

impl Analysis {
    /// The hosts as run.
    #[must_use]
    pub fn inventory(&self) -> &Inventory {
        &self.run.inventory
    }
}
