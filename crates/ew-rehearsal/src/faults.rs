//! What may go wrong on a host and on the way to it.

/// One fault of one host. Times are the world's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The agent's process is killed; its link ends with it.
    Dies {
        /// When.
        at_ns: u64,
    },
    /// The host loses its power: nothing comes from it any more, and nothing says so.
    LosesPower {
        /// When.
        at_ns: u64,
    },
    /// The agent's process is stopped and goes on later (`SIGSTOP`, a live migration).
    Sleeps {
        /// When.
        at_ns: u64,
        /// For how long.
        for_ns: u64,
    },
    /// The whole host stands still and goes on later, its clock with it (a suspended virtual
    /// machine).
    Suspends {
        /// When.
        at_ns: u64,
        /// For how long.
        for_ns: u64,
    },
    /// The link ends, which both ends notice.
    Cut {
        /// When.
        at_ns: u64,
    },
    /// What the agent sends is lost from now on, and nothing says so.
    Mutes {
        /// When.
        at_ns: u64,
    },
    /// What the controller sends is lost from now on, and nothing says so.
    Deafens {
        /// When.
        at_ns: u64,
    },
    /// The link takes nothing for a while.
    Stalls {
        /// When.
        at_ns: u64,
        /// For how long.
        for_ns: u64,
    },
    /// Launches fail.
    Refuses {
        /// The first so many; `u32::MAX`: all.
        times: u32,
    },
    /// A launch takes much longer.
    LaunchesSlowly {
        /// So long.
        for_ns: u64,
    },
    /// The agent sends a frame twice.
    Repeats {
        /// Which: the first after this time.
        at_ns: u64,
    },
    /// A frame of the agent's has other bytes than it should.
    Garbles {
        /// Which: the first after this time.
        at_ns: u64,
    },
    /// The agent sends a frame many times.
    Floods {
        /// Which: the first after this time.
        at_ns: u64,
        /// So often.
        times: usize,
    },
    /// The agent reports no round any more.
    Forgets {
        /// From when on.
        at_ns: u64,
    },
    /// Nobody reaches the host's data port.
    Blocks,
}

/// Kinds of faults, without their times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`Fault::Dies`].
    Dies,
    /// [`Fault::LosesPower`].
    LosesPower,
    /// [`Fault::Sleeps`].
    Sleeps,
    /// [`Fault::Suspends`].
    Suspends,
    /// [`Fault::Cut`].
    Cut,
    /// [`Fault::Mutes`].
    Mutes,
    /// [`Fault::Deafens`].
    Deafens,
    /// [`Fault::Stalls`].
    Stalls,
    /// [`Fault::Refuses`].
    Refuses,
    /// [`Fault::LaunchesSlowly`].
    LaunchesSlowly,
    /// [`Fault::Repeats`].
    Repeats,
    /// [`Fault::Garbles`].
    Garbles,
    /// [`Fault::Floods`].
    Floods,
    /// [`Fault::Forgets`].
    Forgets,
    /// [`Fault::Blocks`].
    Blocks,
}

impl Fault {
    /// When the agent's process is stopped, and for how long.
    pub(crate) fn stopped_ns(&self) -> Option<(u64, u64)> {
        match *self {
            Self::Sleeps { at_ns, for_ns } | Self::Suspends { at_ns, for_ns } => {
                Some((at_ns, for_ns))
            }
            _ => None,
        }
    }

    /// From when on one of the two ends hears nothing of the other, for good or until the host is
    /// launched anew.
    pub(crate) fn silent_ns(&self) -> Option<u64> {
        match *self {
            Self::Dies { at_ns }
            | Self::LosesPower { at_ns }
            | Self::Cut { at_ns }
            | Self::Mutes { at_ns }
            | Self::Deafens { at_ns } => Some(at_ns),
            _ => None,
        }
    }
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Dies,
        Self::LosesPower,
        Self::Sleeps,
        Self::Suspends,
        Self::Cut,
        Self::Mutes,
        Self::Deafens,
        Self::Stalls,
        Self::Refuses,
        Self::LaunchesSlowly,
        Self::Repeats,
        Self::Garbles,
        Self::Floods,
        Self::Forgets,
        Self::Blocks,
    ];
}
