//! One reader per kernel source: raw counters and host facts
