//! Controller-agent messages, framing, both session state machines and the clock-offset estimator: sans-IO.

pub mod message;
