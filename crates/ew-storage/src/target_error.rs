//! What is wrong with a target, or with a job for it.

/// Blocks are whole numbers of checksum chunks (`dfs.bytes-per-checksum`).
pub(crate) const CHUNK_BYTES: u64 = 512;
/// Most replicas that HDFS keeps by default (`dfs.replication.max`).
pub(crate) const MAX_REPLICAS: u32 = 512;

/// Why a target, or a job there, cannot be as it was given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Not even a scheme.
    #[error(
        "it is no URL; write file:///PATH, hdfs://NAMENODE:PORT/DIRECTORY or s3://BUCKET/PREFIX"
    )]
    NoUrl,
    /// Another scheme than ours.
    #[error(
        "`{scheme}` is unknown; write file:///PATH, hdfs://NAMENODE:PORT/DIRECTORY or s3://BUCKET/PREFIX"
    )]
    Scheme {
        /// As given.
        scheme: String,
    },
    /// A file below nowhere.
    #[error("a path begins with a slash; write file:///mnt/share")]
    RelativePath,
    /// HDFS of nobody.
    #[error("it names no NameNode; write hdfs://HOST:PORT/DIRECTORY")]
    NoNameNode,
    /// HDFS at no port.
    #[error("`{authority}` has no number as its port; write hdfs://HOST:8020/DIRECTORY")]
    Port {
        /// Host and port, as given.
        authority: String,
    },
    /// S3 without a bucket.
    #[error("it names no bucket; write s3://BUCKET/PREFIX")]
    NoBucket,
    /// A prefix with an empty part, or one of dots.
    #[error("`{prefix}` is no prefix: leave out empty parts, `.` and `..`")]
    Prefix {
        /// As given.
        prefix: String,
    },
    /// Another setting of S3 than ours.
    #[error("`{pair}` is unknown; write ?endpoint=http://HOST:PORT&region=NAME")]
    Setting {
        /// As given.
        pair: String,
    },
    /// Blocks that HDFS does not have.
    #[error(
        "--block-size {bytes} is not a multiple of {CHUNK_BYTES} bytes; give for example 128MiB"
    )]
    BlockSize {
        /// As asked for.
        bytes: u64,
    },
    /// More replicas than HDFS keeps, or none.
    #[error("--replication {replicas} is out of range; give 1 to {MAX_REPLICAS}")]
    Replication {
        /// As asked for.
        replicas: u32,
    },
    /// A path that is a file.
    #[error("it is no directory; give the directory of a mount")]
    NoMount,
    /// A path in HDFS that is a file.
    #[error("it is no directory; give one to --target")]
    NoDirectory,
    /// Objects do not grow.
    #[error("S3 cannot append to objects; leave append out of --operations")]
    NoAppend,
}
