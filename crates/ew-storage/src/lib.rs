//! Files as a workload: what TestDFSIO does, without a JVM.
//!
//! A [`Backend`] holds files ([`FileBackend`] any mount); [`run`] is one host's part of a step: its workers take files from a
//! queue, write or read them in buffers, and note times and bytes. Content is a function of seed, file and position
//! ([`Content`]), so that a read finds a flipped byte, a swapped block and another file's bytes without a copy to compare with.

mod backend;
mod buffer;
mod call_times;
mod content;
mod error;
mod file;
mod passage;
mod progress;
mod worker;

pub use backend::{Backend, Reading, Writing, open_backend};
pub use content::{Content, Mismatch};
pub use error::{Problem, StorageError};
pub use file::FileBackend;
pub use worker::run;
