//! The tools people trust: what they are called, what they can carry, how they take part, what
//! their figures mean.

mod carry;
mod comparison;
mod install;
mod meaning;
mod packages;
mod servers;

pub use carry::Refusal;
pub use comparison::{
    FigureBuffers, FigureFacts, OpenReason, OwnRepetitions, Standing, ToolComparison,
    ToolDifference, ToolFigure,
};
pub use install::{Installation, installation};
pub use meaning::{Connections, CountedBy, Meaning, Measures, Statistic};
pub use packages::{Distribution, Package};
pub use servers::ServerPorts;
