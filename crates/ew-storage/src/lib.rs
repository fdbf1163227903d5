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
mod s3;
mod worker;

pub use backend::{Access, Backend, Reading, Writing, check_target, open_backend};
pub use content::{Content, Mismatch};
pub use error::{Problem, StorageError};
pub use file::FileBackend;
pub use s3::{S3Backend, S3Credentials, S3Target};
pub use worker::run;
