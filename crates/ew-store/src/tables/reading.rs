//! What the tables of hosts' counters have in common: of which host a reading is, and when it was
//! made.

use crate::table::{Column, int};
use std::sync::Arc;

/// Whose counters were read, and when.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) host: Arc<str>,
    pub(super) agent_ns: u64,
    pub(super) clock_offset_ns: Option<i64>,
}

/// A row of a table of readings.
pub(super) trait OfReading {
    fn reading(&self) -> &Reading;
}

pub(super) const fn host<R: OfReading>() -> Column<R> {
    Column::text("host", "which host", |r| r.reading().host.to_string())
}

pub(super) const fn agent_ns<R: OfReading>() -> Column<R> {
    let about = "when it was read, agent's monotonic clock";
    Column::int("agent_ns", about, |r| int(r.reading().agent_ns))
}

pub(super) const fn clock_offset_ns<R: OfReading>() -> Column<R> {
    let about = "last estimate of the agent's clock minus the controller's";
    Column::maybe_int("clock_offset_ns", about, |r| r.reading().clock_offset_ns)
}
