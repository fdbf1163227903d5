//! Exit codes, documented in `docs/reference/exit-codes.md` and `--help`.

use std::process::ExitCode;

/// How the program ends when a command could not do its work.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The user's input is wrong: code 2.
    Usage(anyhow::Error),
    /// The work could not be done: code 4.
    Failed(anyhow::Error),
    /// Ctrl-C, SIGTERM or SIGHUP: code 130.
    Interrupted,
}

/// What a command's success amounts to.
pub(crate) type Outcome = Result<ExitCode, Failure>;

/// Findings worse than the configured expectation.
pub(crate) const WORSE: u8 = 1;
/// Hosts or host pairs are missing.
pub(crate) const PARTIAL: u8 = 3;
const USAGE: u8 = 2;
const FAILED: u8 = 4;
const INTERRUPTED: u8 = 130;

impl Failure {
    /// Wrong input, in the error's own words.
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self::Usage(error.into())
    }

    /// Work that could not be done, in the error's own words.
    pub(crate) fn failed(error: impl Into<anyhow::Error>) -> Self {
        Self::Failed(error.into())
    }

    /// The documented exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => USAGE,
            Self::Failed(_) => FAILED,
            Self::Interrupted => INTERRUPTED,
        }
    }

    /// The message, with every cause.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Usage(error) | Self::Failed(error) => with_causes(error),
            Self::Interrupted => "interrupted".into(),
        }
    }
}

/// An error's words and those of its causes; of causes that are in the words already, nothing.
fn with_causes(error: &anyhow::Error) -> String {
    let mut message = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !message.contains(&cause) {
            message.push_str(": ");
            message.push_str(&cause);
        }
    }
    message
}

/// The exit code of work that could not all be done, of a command that still has something to show.
pub(crate) fn failed() -> ExitCode {
    ExitCode::from(FAILED)
}

/// The exit code of an interrupted command that still has something to show.
pub(crate) fn interrupted() -> ExitCode {
    ExitCode::from(INTERRUPTED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context, anyhow};

    #[test]
    fn a_cause_is_shown_once() {
        let cause = || anyhow!("Not a directory (os error 20)");
        let plain = Err::<(), _>(cause()).context("cannot read `x`");
        let whole = Err::<(), _>(cause()).context("no x: Not a directory (os error 20)");
        assert_eq!(
            Failure::usage(plain.unwrap_err()).message(),
            "cannot read `x`: Not a directory (os error 20)"
        );
        assert_eq!(
            Failure::failed(whole.unwrap_err()).message(),
            "no x: Not a directory (os error 20)"
        );
    }
}
