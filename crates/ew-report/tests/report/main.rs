//! Views of fixed analyses and of a fixed story of events.

mod common;
mod html;
mod live;
mod reports;
