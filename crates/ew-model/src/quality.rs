//! Whether the flows of a round ran together: what a controller repeats a round by, and what an
//! analysis leaves out.

use crate::record::FlowRecord;

/// A round is void when more than this share of its flows is missing, or late.
pub const VOID_SHARE: f64 = 0.10;
/// A flow is late when an end started this share of the window after its time.
pub const LATE_SHARE: f64 = 0.10;

/// Whether an end of a flow started too late for its rate to be one next to the others.
#[must_use]
pub fn is_late(row: &FlowRecord) -> bool {
    let ends = [&row.sender, &row.receiver].into_iter().flatten();
    ends.filter(|end| end.window_ns > 0)
        .any(|end| end.start_skew_ns.unsigned_abs() as f64 > LATE_SHARE * end.window_ns as f64)
}

/// Share of a round's rows that are late; 0 of none.
#[must_use]
pub fn late_share<'r>(rows: impl IntoIterator<Item = &'r FlowRecord>) -> f64 {
    let (mut late, mut all) = (0_u32, 0_u32);
    for row in rows {
        late += u32::from(is_late(row));
        all += 1;
    }
    f64::from(late) / f64::from(all.max(1))
}
