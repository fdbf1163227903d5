//! The run directory: manifest, events, Parquet tables; versioned format.
//!
//! - `run.json`: the manifest ([`ew_model::RunManifest`]), written at the start with outcome
//!   `unfinished`, replaced at the end.
//! - `events.jsonl`: one [`ew_model::RecordedEvent`] a line, the source of truth, written while it
//!   happens; of large runs many in a compressed line.
//! - `flows.parquet`, `intervals.parquet`, `hosts.parquet`, `counters.parquet`, `traffic.parquet`:
//!   the same numbers as tables ([`describe_tables`]), written at the end.
//! - `findings.json` and reports: what was derived, written after the analysis.
//!
//! A run that was cut short is read up to the cut. No file is ever half-written under its own name,
//! except that the last line of `events.jsonl` may be torn.

mod draft;
mod error;
mod events;
mod fold;
mod id;
mod packed;
mod runs;
mod table;
mod tables;
mod thinned;
mod unknown;
mod upgrade;
mod writer;

pub use error::StoreError;
pub use events::{EventWriter, EventsFile};
pub use fold::{load, load_manifest};
pub use id::{make_run_id, plan_hash};
pub use packed::plain_lines;
pub use runs::{Listing, PruneRule, RunSummary, list, prune, resolve};
pub use table::ColumnDescription;
pub use tables::{TableDescription, describe_tables};
pub use writer::{RunWriter, add_barriers, write_file, write_findings};

/// Layout version of the run directories this crate writes. It reads this and all older ones.
/// Version 2 keeps whole distributions of times where 1 kept a few percentiles; version 3 packs the
/// events of large runs.
pub const FORMAT_VERSION: u32 = 3;

/// The manifest's file name.
pub const MANIFEST_FILE: &str = "run.json";
/// The events' file name.
pub const EVENTS_FILE: &str = "events.jsonl";
/// The verdict's file name.
pub const FINDINGS_FILE: &str = "findings.json";
