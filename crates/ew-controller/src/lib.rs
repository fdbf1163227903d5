//! Plan, launch, drive, collect, analyse, tear down. Emits one stream of [`ew_model::RunEvent`]s
//! that the recorder and every live view consume; prints nothing itself.
//!
//! [`run`] is the main flow. Below it, one task per agent (`member`) owns a link and its session;
//! `members` is the only module where their fleet_events meet; `drive` walks through the plan and
//! `stage` runs a batch of rounds over them.

mod abort;
mod alarm;
mod busy_links;
mod claim;
mod command;
mod doctor;
mod drive;
mod first_rounds;
mod fleet_event;
mod follow;
pub mod fuzzing;
mod host_limits;
mod job;
mod journal;
mod launch;
mod load;
mod losses;
mod max_rate;
mod member;
mod members;
mod merge;
mod missing_tools;
mod orders;
mod outside;
mod ports;
mod queue;
mod recorder;
mod rehearse;
mod repair;
mod repeat;
mod resolve;
mod retransmits;
mod round_trips;
mod run;
mod run_error;
mod silence;
mod stage;
mod storage;
mod survey;
mod watch;

pub use abort::AbortLimits;
pub use doctor::{Check, CheckState, DoctorReport, doctor};
pub use ew_proto::message::ServicePorts;
pub use job::{Job, LaunchOptions, RelayChoice};
pub use journal::max_waiting_bytes;
pub use launch::sub_inventory;
pub use max_rate::MaxRate;
pub use orders::{Detour, Detours};
pub use rehearse::{Pauses, Rehearsed, Surroundings, rehearse};
pub use resolve::{AddressChoice, ResolveError, resolve};
pub use run::{Finished, StoredRun, run, run_storage};
pub use run_error::RunError;
pub use storage::{DiskTask, StorageTask};
pub use survey::{NoAnswer, run_as_root_on, survey};
pub use watch::{Watched, watch};
