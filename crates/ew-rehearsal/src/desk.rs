//! What goes wrong with the disk of the controller's machine, and with the terminal of who watches.

use std::ops::Range;

/// What goes wrong on the controller's own machine. Times are the world's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Desk {
    /// When the disk is full.
    pub full_ns: Vec<Range<u64>>,
    /// When the disk answers nothing.
    pub disk_stalls_ns: Vec<Range<u64>>,
    /// When the terminal takes nothing (Ctrl-S, a pager).
    pub terminal_stalls_ns: Vec<Range<u64>>,
    /// What may wait for each of them, where it is not the default.
    pub max_waiting_bytes: Option<usize>,
}
