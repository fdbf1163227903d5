//! What a store of files can do.

use crate::error::StorageError;
use crate::file::FileBackend;
use crate::hdfs::{self, HdfsBackend, HdfsTarget};
use crate::s3::{S3Backend, S3Credentials, S3Target};
use crate::target_error::TargetError;
use bytes::Bytes;
use ew_model::storage::StorageJob;
use std::fmt::Debug;

/// A store of files. Names are flat: no folders in them.
pub trait Backend: Debug + Send + Sync {
    /// Makes the folder that files go to.
    ///
    /// # Errors
    /// The store's, by name.
    fn prepare(&self) -> Result<(), StorageError>;

    /// A new file, or an old one emptied.
    ///
    /// # Errors
    /// The store's, by name.
    fn create(&self, name: &str) -> Result<Box<dyn Writing>, StorageError>;

    /// A file that is there, to be written at its end.
    ///
    /// # Errors
    /// The store's, by name; [`crate::Problem::BadTarget`] where the store cannot append.
    fn append(&self, name: &str) -> Result<Box<dyn Writing>, StorageError>;

    /// A file that is there, to be read.
    ///
    /// # Errors
    /// The store's, by name.
    fn open(&self, name: &str, access: Access) -> Result<Box<dyn Reading>, StorageError>;

    /// Removes a file.
    ///
    /// # Errors
    /// The store's, by name.
    fn remove(&self, name: &str) -> Result<(), StorageError>;

    /// Names of all files in the folder.
    ///
    /// # Errors
    /// The store's, by name.
    fn list(&self) -> Result<Vec<String>, StorageError>;

    /// Removes the folder if it is empty. Somebody else's file keeps it.
    fn remove_folder(&self);

    /// What a reader of the figures must know of this store.
    fn notes(&self) -> Vec<String>;
}

/// In which order a file will be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// From start to end.
    Sequential,
    /// Anywhere.
    Random,
}

/// A file being written.
pub trait Writing: Send {
    /// Writes all of it at the end. The bytes may be kept until the store has acknowledged them;
    /// they lie on a multiple of 4096 in memory where the job is `direct`.
    ///
    /// # Errors
    /// The store's, by name.
    fn write(&mut self, bytes: Bytes) -> Result<(), StorageError>;

    /// Makes it as durable as the job asks for, and closes it.
    ///
    /// # Errors
    /// The store's, by name: data may be lost.
    fn close(self: Box<Self>) -> Result<(), StorageError>;
}

/// A file being read.
pub trait Reading: Send {
    /// Fills `bytes` from `offset` on; fewer only at the file's end.
    ///
    /// # Errors
    /// The store's, by name.
    fn read(&mut self, offset: u64, bytes: &mut [u8]) -> Result<usize, StorageError>;

    /// As [`Reading::read`], of bytes that are not verified: `bytes` is not filled where that saves
    /// a copy.
    ///
    /// # Errors
    /// The store's, by name.
    fn read_unverified(&mut self, offset: u64, bytes: &mut [u8]) -> Result<usize, StorageError> {
        self.read(offset, bytes)
    }

    /// Closes it.
    ///
    /// # Errors
    /// The store's, by name.
    fn close(self: Box<Self>) -> Result<(), StorageError>;
}

/// A target, taken apart.
enum Target<'a> {
    File(&'a str),
    Hdfs(HdfsTarget),
    S3(S3Target),
}

/// Whether a job's target is one, without checking what is there.
///
/// # Errors
/// [`crate::Problem::BadTarget`] with what there is instead.
pub fn check_target(job: &StorageJob) -> Result<(), StorageError> {
    target(job).map(|_| ())
}

/// The back end that a job's target means, with the credentials of this process's environment.
///
/// # Errors
/// [`crate::Problem::BadTarget`] with what there is instead; [`crate::Problem::NoClient`] when this
/// host cannot use it.
pub fn open_backend(job: &StorageJob) -> Result<Box<dyn Backend>, StorageError> {
    Ok(match target(job)? {
        Target::File(path) => Box::new(FileBackend::new(path.as_ref(), job)),
        Target::Hdfs(target) => Box::new(HdfsBackend::open(&target, job)?),
        Target::S3(target) => {
            let credentials = S3Credentials::from_env(&target)?;
            Box::new(S3Backend::open(&target, credentials)?)
        }
    })
}

fn target(job: &StorageJob) -> Result<Target<'_>, StorageError> {
    let target = job.target.as_str();
    parse(job, target).map_err(|error| StorageError::new("use", target, error))
}

fn parse<'a>(job: &StorageJob, target: &'a str) -> Result<Target<'a>, TargetError> {
    match target.split_once("://") {
        Some(("file", path)) if path.starts_with('/') => Ok(Target::File(path)),
        Some(("file", _)) => Err(TargetError::RelativePath),
        Some(("hdfs", rest)) => {
            hdfs::check_job(job)?;
            HdfsTarget::parse(rest).map(Target::Hdfs)
        }
        Some(("s3", rest)) => S3Target::parse(rest).map(Target::S3),
        Some((scheme, _)) => Err(TargetError::Scheme {
            scheme: scheme.to_owned(),
        }),
        None => Err(TargetError::NoUrl),
    }
}
