//! What the user should know of a run itself.

use crate::words::plural;
use ew_model::analysis::{Expectation, Warning};

/// In a line.
pub(crate) fn warning(warning: &Warning) -> String {
    match warning {
        Warning::Recorded { message } => message.clone(),
        Warning::Unclean { name, message } => format!("{name}: cleanup not confirmed: {message}"),
        Warning::Skipped { tests } => format!("skipped: {tests}"),
        Warning::RoundsExcluded { rounds } => format!(
            "{} excluded: flows missing or started late",
            plural(*rounds as usize, "round")
        ),
        Warning::ThresholdMissed(checked) => format!("threshold missed: {checked}"),
        Warning::NotTested { expectation } => not_tested(*expectation).into(),
    }
}

fn not_tested(expectation: Expectation) -> &'static str {
    match expectation {
        Expectation::Oversubscription => {
            "expect.oversubscription not tested: no rack's uplinks were loaded that far; run `cross-rack` or `qualify` with --racks"
        }
        Expectation::Paths => {
            "expect.paths not tested: no connection between racks was traced; run `qualify` with --racks"
        }
        Expectation::Rtt => {
            "expect.rtt not tested: no stage measured idle round trips; run `rtt` or `qualify`"
        }
    }
}
