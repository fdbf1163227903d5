//! The built binary, end to end: on loopback, and in labs with real sshd.

mod common;
mod lab_accuracy;
mod lab_failures;
mod lab_ssh;
mod local;
