//! One host, now: what limits it, who does it, and the figures.
//!
//! [`Observer`] turns readings into [`View`]s: rates, shares and a verdict. It is pure: readings
//! come in as values, with their times. [`text`] and [`Screen`] show a view and decide nothing.

mod counted;
mod cpu;
mod network;
mod observer;
mod screen;
mod storage;
mod table;
mod tables;
mod text;
mod verdict;
mod view;

pub use observer::Observer;
pub use screen::{Screen, Wish};
pub use text::text;
pub use view::{
    CoreView, CpuView, DiskView, FlowView, HostLimit, HostVerdict, InterfaceView, InterruptView,
    LimitedBy, MemoryView, PortView, ProcessView, ProtocolView, QdiscView, RemoteView, View, Who,
};
