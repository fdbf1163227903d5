//! What something is taken for, by colour and icon.

use ew_model::finding::{Severity, VerdictStatus};

/// What something is taken for, by colour and icon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Bad,
    Part,
    Open,
}

impl Tone {
    pub(crate) fn of_status(status: VerdictStatus) -> Self {
        match status {
            VerdictStatus::NothingWrong => Self::Good,
            VerdictStatus::Worse => Self::Bad,
            VerdictStatus::AsExpected | VerdictStatus::Partial => Self::Part,
            VerdictStatus::NotDetermined => Self::Open,
        }
    }

    pub(crate) fn of_severity(severity: Severity) -> Self {
        match severity {
            Severity::Fault => Self::Bad,
            Severity::Notice => Self::Part,
            Severity::Info => Self::Open,
        }
    }

    /// The word that style sheets and icons have for it.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Part => "part",
            Self::Open => "open",
        }
    }
}
