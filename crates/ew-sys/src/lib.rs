//! The only unsafe code: socket options, tcp_info, ethtool, namespaces, process control.
#![allow(unsafe_code)]
#![deny(unsafe_op_in_unsafe_fn)]

pub mod clock;
pub mod disk;
pub mod namespace;
pub mod net;
pub mod process;
pub mod socket;
pub mod thread;
