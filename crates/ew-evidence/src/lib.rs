//! What a run shows before anything is concluded: rates and times by round (`observations`), how
//! well they were measured (`quality`), what hosts counted meanwhile (`telemetry`), what they are
//! compared with (`basis`), and from when on a difference counts (`criteria`).
//!
//! Pure: a [`Run`](ew_model::Run) goes in; no clock, no socket, no file.

pub mod basis;
pub mod criteria;
pub mod observations;
mod pace;
pub mod quality;
pub mod telemetry;

pub use pace::flow_pace;
