//! What a job's target means.

use crate::backend::Backend;
use crate::error::StorageError;
use crate::file::FileBackend;
use crate::hdfs::{self, HdfsBackend, HdfsTarget};
use crate::s3::{S3Backend, S3Credentials, S3Target};
use crate::target_error::TargetError;
use ew_model::storage::StorageJob;

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
