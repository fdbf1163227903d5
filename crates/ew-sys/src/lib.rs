//! The only unsafe code: socket options, tcp_info, ethtool, namespaces, process control.
#![expect(
    unsafe_code,
    reason = "this crate is where it lives; every block has a comment why it is sound"
)]
#![deny(unsafe_op_in_unsafe_fn)]

// What a controller needs compiles for macOS, too (scripts/check-macos.sh).
pub mod clock;
pub mod disk;
pub mod process;

#[cfg(target_os = "linux")]
pub mod connection;
#[cfg(target_os = "linux")]
pub mod datagram;
#[cfg(target_os = "linux")]
pub mod epoll;
#[cfg(target_os = "linux")]
pub mod error_queue;
#[cfg(target_os = "linux")]
pub mod ethtool;
#[cfg(target_os = "linux")]
pub mod fuzzing;
#[cfg(target_os = "linux")]
mod link;
#[cfg(target_os = "linux")]
pub mod namespace;
#[cfg(target_os = "linux")]
pub mod net;
#[cfg(target_os = "linux")]
pub mod netlink;
#[cfg(target_os = "linux")]
pub mod qdisc;
#[cfg(target_os = "linux")]
pub mod sock_diag;
#[cfg(target_os = "linux")]
pub mod socket;
#[cfg(target_os = "linux")]
mod socket_option;
#[cfg(target_os = "linux")]
pub mod thread;
#[cfg(target_os = "linux")]
pub mod transfer;
#[cfg(target_os = "linux")]
pub mod zerocopy;
