//! What is wrong with a description of a lab or with a fault, and how to write it.

use ew_model::topology::TopologyError;
use ew_model::units::UnitError;

/// The faults there are.
const WORDS: &str = "of a host: nic=RATE, tx=RATE, rx=RATE, loss=PERCENT, cpu-quota=PERCENT, receive-buffer=SIZE, send-buffer=SIZE, \
                     mtu=BYTES, congestion-control=cubic|bbr, flow-cap=RATE, bucket=RATE/SIZE, neighbour=RATE, cpu-hog=PERCENT, \
                     disk-writer=on, link-down, link-up; of a rack, pod or path: uplink=RATE, up=RATE, down=RATE, loss=PERCENT, \
                     up-loss=PERCENT, down-loss=PERCENT, black-hole=up|down|both, withdrawn=up|down|both, weight=NUMBER, link-down, \
                     link-up; of a rack: background=RACK:RATE";

/// Why a part of a lab, or a fault, cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    /// The file cannot be read as a lab.
    #[error("{0}")]
    Syntax(String),
    /// A value that means nothing.
    #[error(transparent)]
    Value(#[from] UnitError),
    /// A word that is none of the possible ones.
    #[error("`{word}` is not one of {}", quoted(.words))]
    Word {
        /// As given.
        word: String,
        /// What is possible.
        words: &'static [&'static str],
    },
    /// No network.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// A name that could not be a directory's, an interface's and a host's.
    #[error(
        "`{name}` cannot name a {what}: use a lower-case letter, then letters, digits and `-`, at most 32"
    )]
    Name {
        /// As given.
        name: String,
        /// Of what: a lab, a rack, a pod.
        what: &'static str,
    },
    /// A name that nothing has.
    #[error("there is no {what} `{name}`{known}")]
    Unknown {
        /// What it should name.
        what: &'static str,
        /// As given.
        name: String,
        /// `; the hosts are ...`, or nothing.
        known: String,
    },
    /// More than a lab carries.
    #[error("`{owner}` has {count} {what}; at most {max} are possible")]
    TooMany {
        /// The lab, rack, pod or host.
        owner: String,
        /// Of what.
        what: &'static str,
        /// How many.
        count: usize,
        /// How many there may be.
        max: usize,
    },
    /// A rate that a lab does not carry.
    #[error("{what} of {bits_per_sec} b/s is out of range: the lab carries 1M to 400G")]
    Rate {
        /// Of what.
        what: &'static str,
        /// As given.
        bits_per_sec: u64,
    },
    /// Another value out of range.
    #[error("{0}")]
    Range(&'static str),
    /// A setting that is missing, or of which there are too many.
    #[error("{owner}: {rule}")]
    Setting {
        /// Which part.
        owner: String,
        /// What is wrong, and what would be right.
        rule: &'static str,
    },
    /// No such fault.
    #[error("`{word}` is not a fault; use {WORDS}")]
    NoFault {
        /// As given.
        word: String,
    },
    /// A fault of something else.
    #[error("this belongs to {0}")]
    BelongsTo(&'static str),
}

impl Problem {
    /// The lab, rack, host or pod it is about, where that is known.
    pub(crate) fn owner(&self) -> Option<&str> {
        match self {
            Self::Topology(error) => Some(&error.subject),
            Self::Name { name, .. } => Some(name),
            Self::TooMany { owner, .. } | Self::Setting { owner, .. } => Some(owner),
            _ => None,
        }
    }
}

fn quoted(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}

/// A value that is no `what`.
pub(crate) fn unreadable(input: &str, what: &'static str, example: &'static str) -> Problem {
    let input = input.into();
    Problem::Value(UnitError {
        input,
        what,
        example,
    })
}
