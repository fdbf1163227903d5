//! `s3://`: any server of the S3 API.

use crate::backend::{Backend, ReadOrder, Reading, Writing};
use crate::client_error::{ClientError, in_words};
use crate::error::{Problem, StorageError};
use crate::pieces::Pieces;
use crate::target_error::TargetError;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientOptions, GetOptions, GetRange, MultipartUpload, ObjectStore,
    ObjectStoreExt, PutPayload, RetryConfig,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Folder below the target that stores the objects, and nothing but them.
const FOLDER: &str = "eastwest-dfsio";
/// Parts of a multipart upload; S3 wants at least 5 MiB, and at most 10,000 parts of an object.
const PART_BYTES: usize = 16 << 20;
/// Threads that drive the requests of all of a host's workers.
const IO_THREADS: usize = 2;
/// A request that fails with 5xx, or whose connection fails, is repeated this often ...
const MAX_RETRIES: usize = 5;
/// ... within this time.
const RETRY_LIMIT: Duration = Duration::from_secs(30);
/// A server that sends nothing for so long is lost. An object may take longer, and so may a part
/// on its way to a slow server: 16 MiB of it at 140 kB/s.
const SILENCE_LIMIT: Duration = Duration::from_secs(120);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
const DEFAULT_REGION: &str = "us-east-1";

/// `s3://BUCKET/PREFIX?endpoint=URL&region=NAME`, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Target {
    bucket: String,
    prefix: Path,
    endpoint: Option<String>,
    region: Option<String>,
}

impl S3Target {
    /// What is behind `s3://`.
    ///
    /// # Errors
    /// [`TargetError`], with what there is instead.
    pub fn parse(rest: &str) -> Result<Self, TargetError> {
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (bucket, prefix) = path.split_once('/').unwrap_or((path, ""));
        if bucket.is_empty() {
            return Err(TargetError::NoBucket);
        }
        let as_it_is = Path::parse(prefix).map_err(|_| TargetError::Prefix {
            prefix: prefix.into(),
        })?;
        let mut target = Self {
            bucket: bucket.into(),
            prefix: as_it_is,
            endpoint: None,
            region: None,
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("endpoint", url))
                    if url.starts_with("http://") || url.starts_with("https://") =>
                {
                    target.endpoint = Some(url.into());
                }
                Some(("region", name)) => target.region = Some(name.into()),
                _ => {
                    let pair = pair.to_owned();
                    return Err(TargetError::Setting { pair });
                }
            }
        }
        Ok(target)
    }
}

/// Who signs the requests.
#[derive(Clone)]
pub struct S3Credentials {
    /// `AWS_ACCESS_KEY_ID`.
    pub key: String,
    /// `AWS_SECRET_ACCESS_KEY`.
    pub secret: String,
    /// `AWS_SESSION_TOKEN`, of credentials that end.
    pub token: Option<String>,
}

impl S3Credentials {
    /// Those of this process's environment.
    ///
    /// # Errors
    /// [`Problem::NoClient`] where there are none.
    pub fn from_env(target: &S3Target) -> Result<Self, StorageError> {
        let variable = |variable: &'static str| {
            std::env::var(variable).map_err(|_| {
                let name = format!("s3://{}", target.bucket);
                StorageError::new("use", name, ClientError::NoCredentials { variable })
            })
        };
        Ok(Self {
            key: variable("AWS_ACCESS_KEY_ID")?,
            secret: variable("AWS_SECRET_ACCESS_KEY")?,
            token: std::env::var("AWS_SESSION_TOKEN").ok(),
        })
    }
}

impl std::fmt::Debug for S3Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("S3Credentials(..)")
    }
}

/// Objects below a prefix.
#[derive(Debug)]
pub struct S3Backend {
    store: Arc<AmazonS3>,
    runtime: Arc<Runtime>,
    folder: Path,
    shown: String,
}

impl S3Backend {
    /// Endpoint and region are those of the target, else of the environment (`AWS_ENDPOINT_URL`,
    /// `AWS_REGION`).
    ///
    /// # Errors
    /// [`Problem::NoClient`] when the endpoint is none.
    pub fn open(target: &S3Target, credentials: S3Credentials) -> Result<Self, StorageError> {
        let shown = format!("s3://{}", target.bucket);
        let bad = |error: ClientError| StorageError::new("use", shown.clone(), error);
        // Another part of the process may have chosen one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let of_env = |name: &str| std::env::var(name).ok();
        let region = target.region.clone().or_else(|| of_env("AWS_REGION"));
        let endpoint = target
            .endpoint
            .clone()
            .or_else(|| of_env("AWS_ENDPOINT_URL"));
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&target.bucket)
            .with_access_key_id(credentials.key)
            .with_secret_access_key(credentials.secret)
            .with_region(region.unwrap_or_else(|| DEFAULT_REGION.into()))
            .with_virtual_hosted_style_request(false)
            .with_client_options(patience())
            .with_retry(retries())
            // Some servers of the S3 API cannot remove many at once (Alibaba's, Google's).
            .with_disable_bulk_delete(true);
        if let Some(token) = credentials.token {
            builder = builder.with_token(token);
        }
        if let Some(endpoint) = endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        let store = builder.build();
        let store = store.map_err(|error| bad(ClientError::S3(Box::new(error))))?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(IO_THREADS)
            .thread_name("s3")
            .enable_all()
            .build()
            .map_err(|error| bad(ClientError::Threads(error)))?;
        Ok(Self {
            store: Arc::new(store),
            runtime: Arc::new(runtime),
            folder: target.prefix.clone().join(FOLDER),
            shown,
        })
    }

    fn path(&self, name: &str) -> (Path, String) {
        let path = self.folder.clone().join(name);
        let shown = format!("{}/{path}", self.shown);
        (path, shown)
    }
}

impl Backend for S3Backend {
    fn prepare(&self) -> Result<(), StorageError> {
        // That the bucket is there and may be used is better known before thousands of workers
        // fail.
        self.list().map(|_| ())
    }

    fn create(&self, name: &str) -> Result<Box<dyn Writing>, StorageError> {
        let (path, shown) = self.path(name);
        Ok(Box::new(WritingObject {
            store: Arc::clone(&self.store),
            runtime: Arc::clone(&self.runtime),
            path,
            name: shown,
            part: Vec::new(),
            part_bytes: 0,
            upload: None,
            is_whole: false,
        }))
    }

    fn append(&self, name: &str) -> Result<Box<dyn Writing>, StorageError> {
        let (_, shown) = self.path(name);
        Err(StorageError::new("append to", shown, TargetError::NoAppend))
    }

    fn open(&self, name: &str, order: ReadOrder) -> Result<Box<dyn Reading>, StorageError> {
        let (path, name) = self.path(name);
        let stream = match order {
            ReadOrder::Random => {
                let head = self.runtime.block_on(self.store.head(&path));
                head.map_err(of_store("open", &name))?;
                None
            }
            ReadOrder::Sequential => {
                let got = self
                    .runtime
                    .block_on(self.store.get_opts(&path, GetOptions::default()));
                Some(got.map_err(of_store("open", &name))?.into_stream())
            }
        };
        Ok(Box::new(ReadingObject {
            store: Arc::clone(&self.store),
            runtime: Arc::clone(&self.runtime),
            path,
            name,
            stream,
            pieces: Pieces::default(),
        }))
    }

    fn remove(&self, name: &str) -> Result<(), StorageError> {
        let (path, shown) = self.path(name);
        let removed = self.runtime.block_on(self.store.delete(&path));
        removed.map_err(of_store("remove", &shown))
    }

    fn list(&self) -> Result<Vec<String>, StorageError> {
        let shown = format!("{}/{}", self.shown, self.folder);
        let listed = self
            .runtime
            .block_on(self.store.list_with_delimiter(Some(&self.folder)));
        let objects = listed.map_err(of_store("list", &shown))?.objects;
        let names = objects.iter().filter_map(|o| o.location.filename());
        Ok(names.map(str::to_owned).collect())
    }

    fn remove_folder(&self) {
        // A prefix is gone with its last object.
    }

    fn notes(&self) -> Vec<String> {
        vec![format!(
            "S3: path style, parts of {} MiB, sequential reads in one GET per object, failed requests retried up to {MAX_RETRIES} times within {} s",
            PART_BYTES >> 20,
            RETRY_LIMIT.as_secs()
        )]
    }
}

struct WritingObject {
    store: Arc<AmazonS3>,
    runtime: Arc<Runtime>,
    path: Path,
    name: String,
    /// In pieces as they were written.
    part: Vec<Bytes>,
    part_bytes: usize,
    upload: Option<Box<dyn MultipartUpload>>,
    is_whole: bool,
}

impl WritingObject {
    fn send_part(&mut self) -> Result<(), StorageError> {
        let part = self.take_part();
        if self.upload.is_none() {
            let begun = self.runtime.block_on(self.store.put_multipart(&self.path));
            self.upload = Some(begun.map_err(of_store("write", &self.name))?);
        }
        let Some(upload) = &mut self.upload else {
            return Ok(());
        };
        let sent = self.runtime.block_on(upload.put_part(part));
        sent.map_err(of_store("write", &self.name))
    }

    fn take_part(&mut self) -> PutPayload {
        self.part_bytes = 0;
        self.part.drain(..).collect()
    }
}

impl Writing for WritingObject {
    fn write(&mut self, mut bytes: Bytes) -> Result<(), StorageError> {
        while !bytes.is_empty() {
            let missing = (PART_BYTES - self.part_bytes).min(bytes.len());
            self.part.push(bytes.split_to(missing));
            self.part_bytes += missing;
            if self.part_bytes == PART_BYTES {
                self.send_part()?;
            }
        }
        Ok(())
    }

    fn close(mut self: Box<Self>) -> Result<(), StorageError> {
        if self.upload.is_some() && !self.part.is_empty() {
            self.send_part()?;
        }
        let last = self.take_part();
        match &mut self.upload {
            Some(upload) => self.runtime.block_on(upload.complete()).map(|_| ()),
            None => self
                .runtime
                .block_on(self.store.put(&self.path, last))
                .map(|_| ()),
        }
        .map_err(of_store("close", &self.name))?;
        self.is_whole = true;
        Ok(())
    }
}

/// Parts of an upload that never ends are kept, and paid for, until somebody removes them.
impl Drop for WritingObject {
    fn drop(&mut self) {
        if let (Some(upload), false) = (&mut self.upload, self.is_whole) {
            // The server may be why it is not whole.
            let _ = self.runtime.block_on(upload.abort());
        }
    }
}

struct ReadingObject {
    store: Arc<AmazonS3>,
    runtime: Arc<Runtime>,
    path: Path,
    name: String,
    /// Of the whole object. `None`: each read is a request.
    stream: Option<BoxStream<'static, object_store::Result<Bytes>>>,
    pieces: Pieces,
}

impl Reading for ReadingObject {
    fn read(&mut self, offset: u64, bytes: &mut [u8]) -> Result<usize, StorageError> {
        let Some(stream) = &mut self.stream else {
            let options = GetOptions {
                range: Some(GetRange::Bounded(offset..offset + bytes.len() as u64)),
                ..GetOptions::default()
            };
            let (store, path) = (&self.store, &self.path);
            let got = self
                .runtime
                .block_on(async { store.get_opts(path, options).await?.bytes().await });
            let got = got.map_err(of_store("read", &self.name))?;
            let length = got.len().min(bytes.len());
            bytes[..length].copy_from_slice(&got[..length]);
            return Ok(length);
        };
        self.pieces.fill(bytes, || {
            let next = self.runtime.block_on(stream.next()).transpose();
            next.map_err(of_store("read", &self.name))
        })
    }

    fn close(self: Box<Self>) -> Result<(), StorageError> {
        Ok(())
    }
}

/// The library's own limit of 30 s is one on whole objects.
fn patience() -> ClientOptions {
    ClientOptions::new()
        .with_allow_http(true)
        .with_timeout_disabled()
        .with_read_timeout(SILENCE_LIMIT)
}

fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: FIRST_PAUSE,
            max_backoff: LONGEST_PAUSE,
            base: 2.0,
        },
        max_retries: MAX_RETRIES,
        retry_timeout: RETRY_LIMIT,
    }
}

/// For `map_err`: the store's error of a call on an object.
fn of_store(call: &'static str, name: &str) -> impl FnOnce(object_store::Error) -> StorageError {
    let name = name.to_owned();
    move |error| {
        let words = in_words(&error);
        let problem = match &error {
            object_store::Error::NotFound { .. } => Problem::NotFound,
            // Some requests' refusals come as any other answer, with the status in their words.
            _ if is_refused(&error, &words) => Problem::Other(format!(
                "access denied; check the credentials and the bucket's policy ({words})"
            )),
            _ if words.contains("503 Service Unavailable") || words.contains("SlowDown") => {
                Problem::Other(format!(
                    "the server is overloaded (503), also {MAX_RETRIES} times later; choose fewer workers ({words})"
                ))
            }
            _ => Problem::Other(words),
        };
        StorageError::new(call, name, problem)
    }
}

fn is_refused(error: &object_store::Error, words: &str) -> bool {
    let is_named = matches!(
        error,
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. }
    );
    is_named || words.contains("403 Forbidden") || words.contains("401 Unauthorized")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_taken_apart() {
        let target =
            S3Target::parse("bench/a/b/?endpoint=http://127.0.0.1:9000&region=eu").unwrap();
        assert_eq!(
            (target.bucket.as_str(), target.prefix.as_ref()),
            ("bench", "a/b")
        );
        assert_eq!(target.endpoint.as_deref(), Some("http://127.0.0.1:9000"));
        assert_eq!(target.region.as_deref(), Some("eu"));
        assert!(S3Target::parse("bench").unwrap().prefix.as_ref().is_empty());
        let odd = S3Target::parse("bench/~bob/50%").unwrap();
        assert_eq!(odd.prefix.as_ref(), "~bob/50%");
        for bad in [
            "",
            "/x",
            "b/a//c",
            "b/../c",
            "b?endpoint=127.0.0.1",
            "b?nonsense",
        ] {
            assert!(S3Target::parse(bad).is_err(), "{bad}");
        }
    }
}
