//! What the user should know of a run itself.

use super::phrases::count;
use ew_model::analysis::Warning;

/// In a line.
pub(crate) fn warning(warning: &Warning) -> String {
    match warning {
        Warning::Recorded { message } => message.clone(),
        Warning::Unclean { name, message } => format!("{name}: cleanup not confirmed: {message}"),
        Warning::Skipped { tests } => format!("skipped: {tests}"),
        Warning::RoundsExcluded { rounds } => format!(
            "{} excluded: flows missing or started late",
            count(*rounds as usize, "round")
        ),
        Warning::ThresholdMissed(checked) => format!("threshold missed: {checked}"),
    }
}
