//! What real hosts, kernels and neighbours do to a measurement next to the network's capacities.

use serde::{Deserialize, Serialize};

/// How far a run is from the fluid network. The default is a quiet cluster of real machines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Noise {
    /// Scale of all that follows, except drift and starvation. 0: the fluid network itself, 1:
    /// quiet, 3: rough.
    pub level: f64,
    /// Log-scale spread of what TCP streams get of a shared FIFO queue (Student's t with 4 degrees
    /// of freedom).
    pub fifo_spread: f64,
    /// The same of a fair queue.
    pub fair_spread: f64,
    /// Share of streams on a shared FIFO queue that a timeout limits to a quarter of their weight.
    pub timeout_share: f64,
    /// Spread of a level that all flows of a round have in common, downwards.
    pub round_spread: f64,
    /// Spread of what each flow loses to itself, downwards.
    pub flow_spread: f64,
    /// Share of flows that lose 10 to 70% for no reason that is recorded.
    pub hiccup_share: f64,
    /// Spread of 100 ms intervals within a window.
    pub interval_spread: f64,
    /// The level over the run.
    pub drift: Drift,
    /// Hosts that lack CPU time.
    pub starvation: Starvation,
    /// CPU time per payload byte at each end, ns. It bounds what one stream carries on one core.
    pub cpu_ns_per_byte: f64,
    /// Buffer of a switch port.
    pub port_buffer_bytes: u64,
    /// Time that both hosts' stacks add to a round trip.
    pub stack_ns: u64,
    /// Share of flows without a figure, for no reason of the network.
    pub missing_share: f64,
}

/// How the level moves over the run, as the share lost at its lowest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Drift {
    /// It does not.
    #[default]
    None,
    /// Steadily downwards from full to this share less.
    Falling(f64),
    /// Steadily upwards to full.
    Rising(f64),
    /// At once, half-way through the run.
    Step(f64),
    /// There and back, three times in a run.
    Wave(f64),
}

/// Episodes in which all hosts wait for a CPU, as on an overbooked machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Starvation {
    /// Share of rounds in which threads wait for 0.2 to 1.1 of the window.
    pub round_share: f64,
    /// Most that a flow loses of its rate for each window of waiting.
    #[serde(rename = "most_lost")]
    pub max_lost: f64,
    /// Share of the wait that a hypervisor reports as stolen.
    pub steal_share: f64,
    /// Start skew per window of waiting, ns, in the middle.
    pub skew_ns: u64,
    /// Share of flows that are missing per window of waiting.
    pub missing_share: f64,
}

impl Default for Noise {
    fn default() -> Self {
        Self {
            level: 1.0,
            fifo_spread: 0.22,
            fair_spread: 0.02,
            timeout_share: 0.03,
            round_spread: 0.004,
            flow_spread: 0.012,
            hiccup_share: 0.01,
            interval_spread: 0.02,
            drift: Drift::None,
            starvation: Starvation::default(),
            cpu_ns_per_byte: 0.25,
            port_buffer_bytes: 512 * 1024,
            stack_ns: 30_000,
            missing_share: 0.0,
        }
    }
}

impl Noise {
    /// The fluid network itself: every run of a topology and plan is alike but for the hashes.
    #[must_use]
    pub fn none() -> Self {
        Self {
            level: 0.0,
            ..Self::default()
        }
    }

    /// Everything three times as far.
    #[must_use]
    pub fn rough() -> Self {
        Self {
            level: 3.0,
            ..Self::default()
        }
    }

    /// A machine with too many hosts on it: 40% of rounds starve, and what that does is recorded.
    #[must_use]
    pub fn starved() -> Self {
        Self {
            starvation: Starvation {
                round_share: 0.4,
                max_lost: 0.45,
                steal_share: 0.2,
                skew_ns: 150_000_000,
                missing_share: 0.1,
            },
            ..Self::default()
        }
    }
}

impl Drift {
    /// Level at this part of the run, 0 to 1; 1 is full.
    pub(crate) fn level(self, part: f64) -> f64 {
        match self {
            Self::None => 1.0,
            Self::Falling(share) => 1.0 - share * part,
            Self::Rising(share) => 1.0 - share * (1.0 - part),
            Self::Step(share) if part < 0.5 => 1.0 - 0.0 * share,
            Self::Step(share) => 1.0 - share,
            Self::Wave(share) => 1.0 - share * (3.0 * std::f64::consts::PI * part).sin().powi(2),
        }
    }
}
