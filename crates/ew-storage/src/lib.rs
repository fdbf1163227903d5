//! Files as a workload: what TestDFSIO does, without a JVM.
//!
//! A [`Backend`] stores files ([`FileBackend`] any mount, [`HdfsBackend`] HDFS, [`S3Backend`] any
//! server of the S3 API); [`run`] is one host's part of a step: its workers take files from a
//! queue, write or read them in buffers, and note times and bytes. Content is a function of seed,
//! file and position ([`Content`]), so that a read finds a flipped byte, a swapped block and
//! another file's bytes without a copy to compare with.

mod backend;
mod buffer;
mod call_times;
mod client_error;
mod content;
mod error;
mod file;
pub mod fuzzing;
mod hdfs;
mod hdfs_user;
mod hosts_file_error;
mod maintenance;
mod name_node;
mod passage;
mod pieces;
mod progress;
mod protobuf;
mod s3;
mod target;
mod target_error;
mod worker;

pub use backend::{Backend, ReadOrder, Reading, Writing};
pub use client_error::ClientError;
pub use content::{Content, Mismatch};
pub use error::{Problem, StorageError};
pub use file::FileBackend;
pub use hdfs::{HdfsBackend, HdfsTarget};
pub use hosts_file_error::HostsFileError;
pub use maintenance::{Lease, Maintenance};
pub use name_node::NameNode;
pub use s3::{S3Backend, S3Credentials, S3Target};
pub use target::{check_target, open_backend};
pub use target_error::TargetError;
pub use worker::run;
