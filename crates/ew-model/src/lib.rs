//! The nouns of eastwest and nothing else: no I/O, no clock, no runtime.
//!
//! Every other crate speaks in these types. Units end names (`_ns`, `_bytes`, `_bits_per_sec`);
//! what was not measured is `None`, never 0. Types that cross the control link must stay readable
//! by postcard: no `skip_serializing_if`, no `untagged`, no `flatten`.

pub mod analysis;
pub mod barrier;
pub mod bounds;
pub mod ceiling;
pub mod claim;
pub mod comparison;
pub mod completion;
pub mod congestion;
pub mod content;
mod estimate;
pub mod event;
pub mod facts;
pub mod finding;
pub mod inventory;
pub mod latency;
pub mod limit;
pub mod network;
mod place;
pub mod plan;
pub mod pods;
pub mod ports;
pub mod quality;
pub mod record;
pub mod run;
pub mod scenario;
pub mod setting;
pub mod sizes;
pub mod storage;
mod subnet;
pub mod sweep;
pub mod telemetry;
pub mod threshold;
pub mod tools;
pub mod topology;
pub mod trend;
mod tunnel;
pub mod units;
pub mod workload;

pub use analysis::Analysis;
pub use event::{RecordedEvent, RunEvent};
pub use facts::HostFacts;
pub use finding::{Cause, Finding, Severity, Subject, Verdict};
pub use inventory::{Host, HostId, Inventory, Rack, RackId};
pub use place::{FlowId, RoundIndex, StageIndex};
pub use plan::{Flow, Plan, Round, Stage};
pub use record::{FlowOutcome, FlowRecord, TcpInfo};
pub use run::{Outcome, Run, RunManifest};
pub use scenario::{Pattern, Scenario, Test};
pub use setting::Setting;
pub use storage::StorageStep;
pub use topology::Topology;
pub use workload::{Tool, Workload, WorkloadKind};
