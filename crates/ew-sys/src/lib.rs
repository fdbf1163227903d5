//! The only unsafe code: socket options, tcp_info, ethtool, namespaces, process control.
#![expect(
    unsafe_code,
    reason = "this crate is where it lives; every block says why it is sound"
)]
#![deny(unsafe_op_in_unsafe_fn)]

pub mod clock;
pub mod connection;
pub mod datagram;
pub mod disk;
pub mod epoll;
pub mod error_queue;
pub mod ethtool;
mod link;
pub mod namespace;
pub mod net;
pub mod netlink;
pub mod process;
pub mod qdisc;
pub mod sock_diag;
pub mod socket;
pub mod thread;
pub mod transfer;
pub mod zerocopy;
