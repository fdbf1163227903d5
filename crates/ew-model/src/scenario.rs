//! What the user wants to know: tests, each a pattern plus a workload, and what to compare the
//! result against.

use crate::congestion::Aggressor;
use crate::pods::PodPath;
use crate::threshold::Threshold;
use crate::workload::Workload;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A scenario, fully defaulted: what a YAML file or a built-in name becomes.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Scenario {
    /// Short name, used in the run directory's name.
    pub name: String,
    /// One sentence for `scenario list`.
    pub description: String,
    /// What the user states about the network; all optional.
    pub expect: Expect,
    /// Tests in order; each becomes one or more stages of the plan.
    pub tests: Vec<Test>,
    /// Optional tests (see [`Test::optional`]) are dropped, last first, while the estimate exceeds
    /// this.
    pub time_budget_ns: Option<u64>,
    /// Whether the tests are interleaved, one repetition each, in a random order, from the seed,
    /// for every pass, instead of running one after the other.
    #[serde(default)]
    pub random_order: bool,
    /// Two sets of hosts that patterns run between. `None`: all hosts are clients and servers.
    #[serde(default)]
    pub roles: Option<Roles>,
    /// Bounds of metrics below `expect:`, in the user's order.
    #[serde(default)]
    pub thresholds: Vec<Threshold>,
}

/// Clients and servers by name, each in the user's order, none in both.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Roles {
    /// Hosts that open connections.
    pub clients: Vec<String>,
    /// Hosts that accept them.
    pub servers: Vec<String>,
}

/// The configured expectation a run is compared with; findings worse than it lead to exit code 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Expect {
    /// Highest acceptable oversubscription, for example 1.0 or 4.0 (to one).
    pub oversubscription: Option<f64>,
    /// Every host's line rate.
    pub nic_bits_per_sec: Option<f64>,
    /// Highest acceptable idle round-trip time, median.
    pub rtt_ns: Option<u64>,
    /// Parallel paths of every rack.
    #[serde(default)]
    pub paths: Option<u32>,
    /// Highest acceptable loss of TCP goodput of pods on different nodes against hostNetwork: 0.1
    /// is 10% below.
    #[serde(default)]
    pub pod_loss: Option<f64>,
}

/// One test: who talks to whom, what is carried, how long and how often.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Test {
    /// Stage name in reports, unique in the scenario.
    pub name: String,
    /// Who talks to whom.
    pub pattern: Pattern,
    /// What a flow carries.
    pub workload: Workload,
    /// Direction of the data against the pattern's client -> server relation.
    pub direction: Direction,
    /// Window length D.
    pub duration_ns: u64,
    /// Time between the common start and the window.
    pub warm_up_ns: u64,
    /// Pause between rounds, in which the next round's flows connect.
    pub gap_ns: u64,
    /// How often each round is repeated (matchings are selected anew); at least 6 give a 95%
    /// interval. With `auto`, how often at most.
    pub samples: u32,
    /// Repeat only until the figures have converged. `None`: repeat `samples` times.
    #[serde(default)]
    pub auto: Option<AutoSamples>,
    /// One stage for each of these sizes in place of the workload's own. Empty: no sweep.
    #[serde(default)]
    pub sizes: Vec<u64>,
    /// May be dropped when the time budget is short.
    pub optional: bool,
    /// Without the racks that it needs the run is refused; other tests are dropped then.
    #[serde(default)]
    pub required: bool,
    /// Takes part in passes with the tests next to it that do, too: the first repetition of each,
    /// the second of each, and so on, so that what changes with time touches all of them alike.
    #[serde(default)]
    pub interleaved: bool,
}

/// When a stage was repeated often enough (`samples: auto`). All repetitions have the flows of the
/// first one, because only the same flow can converge.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct AutoSamples {
    /// Asked width of every figure's 95% interval over its median: 0.05 is a width of 5% from end
    /// to end, as netperf's `-I 95,5` has it.
    pub width: f64,
    /// Repetitions before the figures are checked. Fewer than six have no interval.
    pub at_least: u32,
    /// Repetitions after which the stage ends whether or not its figures have converged.
    pub at_most: u32,
    /// No repetition is ordered that would end later than this; the first `at_least` run in any
    /// case. `None`: no such bound.
    pub budget_ns: Option<u64>,
}

/// Who talks to whom.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Hosts taken two by two in the order given.
    Pair,
    /// A seeded cyclic matching inside each rack (of all hosts when there are no racks): every host
    /// sends to one other and receives from one other.
    Permutation,
    /// Every host sends to one host, the same ones in each repetition: in its own round for every
    /// shift of the racks against each other (of the hosts, without racks). Every other repetition
    /// has the pairs the other way.
    Paths {
        /// Shifts. At least two are needed to distinguish the sending end from the receiving one.
        shifts: u32,
    },
    /// Every host sends to a host of another rack.
    CrossRack {
        /// How targets are chosen.
        pick: Pick,
        /// How many hosts of each rack send at once.
        senders: Senders,
        /// Which racks are active at once.
        scope: RackScope,
    },
    /// Every ordered pair of hosts.
    Mesh {
        /// One partner at a time, or shifts.
        mode: MeshMode,
        /// Upper bound on rounds; the mesh is then a sample of pairs. `None` for the whole mesh.
        max_rounds: Option<u32>,
    },
    /// N senders to one receiver, the receivers one after the other, one per rack (one in all
    /// without racks).
    Incast {
        /// N; `None` for all other hosts.
        senders: Option<u32>,
        /// Upper bound on N where `senders` is `None`. `None` for no bound.
        #[serde(default)]
        max_senders: Option<u32>,
        /// All receivers at once, the senders shared out among them, instead of one after the
        /// other.
        #[serde(default)]
        at_once: bool,
    },
    /// One sender to N receivers, the senders one after the other, one per rack.
    Outcast {
        /// N; `None` for all other hosts.
        receivers: Option<u32>,
    },
    /// One half of the hosts against the other, both directions at once: by racks when there are
    /// racks.
    Bisection,
    /// Nodes and pods of a Kubernetes cluster, whose agents are named as [`crate::pods`] has it.
    /// The same two nodes meet in the same repetition whatever the path.
    Pods {
        /// Between whom, and through what.
        path: PodPath,
    },
    /// Every client to every server at once, N:M; needs [`Roles`].
    FanIn,
    /// Every client to all servers at once, then to one less each time, down to one; needs
    /// [`Roles`].
    FanInFewer,
    /// A fifth of the hosts, the victims, in a cross-rack circle, while the others are in their
    /// way. Both are the same hosts in all tests of a run.
    Congestion {
        /// What the others do.
        aggressor: Aggressor,
    },
    /// Streams of the run's other TCP tests, to trace their paths: as many of each test, all at
    /// once.
    OtherTests {
        /// Streams that one host traces, at most.
        per_host: u32,
    },
}

/// How cross-rack targets are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pick {
    /// Seeded perfect matchings: nobody shares a target.
    Matching,
    /// Each client selects a random target and one of `lanes` server ports for itself, forward then
    /// reverse, never itself: the shell loop people use. Collisions happen and are part of the
    /// plan.
    Random {
        /// Server ports to select from (the loop's 5001-5003 is 3).
        lanes: u16,
    },
}

/// How many hosts of each rack send at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Senders {
    /// All of them.
    All,
    /// One round with 1 sender a rack, one with 2, and so on to all: the knee is the uplink's
    /// capacity.
    Ramp,
}

/// Which racks are active at once in a cross-rack test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RackScope {
    /// All racks together, every host sending.
    All,
    /// Rack pairs in disjoint rounds, both directions of a pair at once: per-pair figures.
    EachPair,
}

/// How a mesh is cut into rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeshMode {
    /// Circle method, both directions of a pair at once, no uplink loaded above its assumed
    /// capacity.
    Isolated,
    /// Cyclic shifts, K of them at once, every host sending.
    Loaded {
        /// K.
        shifts_at_once: u32,
    },
}

/// Direction of the data against the pattern's client -> server relation (the client always
/// connects).
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Client sends.
    Forward,
    /// Server sends.
    Reverse,
    /// Both at once, on connections of their own.
    Both,
}

impl Pattern {
    /// The word used in scenario files and reports.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Pair => "pair",
            Self::Permutation => "permutation",
            Self::Paths { .. } => "paths",
            Self::CrossRack { .. } => "cross-rack",
            Self::Mesh { .. } => "mesh",
            Self::Incast { .. } => "incast",
            Self::Outcast { .. } => "outcast",
            Self::Bisection => "bisection",
            Self::Pods { .. } => "pods",
            Self::FanIn | Self::FanInFewer => "fan-in",
            Self::Congestion { .. } => "congestion",
            Self::OtherTests { .. } => "other-tests",
        }
    }
}
