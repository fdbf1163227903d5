//! `hdfs://`: a NameNode and its DataNodes, without a JVM.

use crate::backend::{Backend, ReadOrder, Reading, Writing};
use crate::client_error::ClientError;
use crate::error::{Problem, StorageError};
use crate::hdfs_user::hdfs_user;
use crate::pieces::Pieces;
use crate::target_error::{CHUNK_BYTES, MAX_REPLICAS, TargetError};
use bytes::Bytes;
use ew_model::storage::StorageJob;
use futures_util::StreamExt;
use hdfs_native::file::{FileReader, FileWriter};
use hdfs_native::{Client, ClientBuilder, HdfsError, WriteOptions};
use std::future::poll_fn;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread::available_parallelism;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// Folder below the target that stores the files, and nothing but them.
const FOLDER: &str = "eastwest-dfsio";
/// Threads that drive the connections and compute the checksums of all of a host's workers, at
/// most. No more than workers: what two threads of one file do is mostly to wake each other.
const MAX_IO_THREADS: usize = 8;
/// A NameNode that answers later is taken for one that does not.
const NAME_NODE_LIMIT: Duration = Duration::from_secs(30);
/// As the previous; longer than hdfs-native waits for a DataNode before it tries the next one (60
/// s).
const DATA_NODE_LIMIT: Duration = Duration::from_secs(90);
/// How long a DataNode's report to the NameNode may take after its acknowledgement.
const AFTER_WAKE: Duration = Duration::from_millis(5);
/// Packets of 64 KiB that are handed to a worker at once, as many as are there: each time wakes it.
const PACKETS_AT_ONCE: usize = 16;
/// As many times that are read ahead of a worker.
const TIMES_AHEAD: usize = 4;

/// `hdfs://NAMENODE:PORT/DIRECTORY`, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HdfsTarget {
    /// Host and port, or the name of a nameservice.
    authority: String,
    has_port: bool,
    /// From the root on, without a slash at its end; empty is the root.
    directory: String,
}

impl HdfsTarget {
    /// NameNode and directory: the URL without `hdfs://`.
    ///
    /// # Errors
    /// [`TargetError`], with what there is instead.
    pub fn parse(rest: &str) -> Result<Self, TargetError> {
        let (authority, directory) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.is_empty() {
            return Err(TargetError::NoNameNode);
        }
        let port = authority.rsplit_once(':').map(|(_, port)| port);
        if port.is_some_and(|port| port.parse::<u16>().is_err()) {
            let authority = authority.to_owned();
            return Err(TargetError::Port { authority });
        }
        let directory = directory.trim_matches('/');
        Ok(Self {
            authority: authority.into(),
            has_port: port.is_some(),
            directory: match directory {
                "" => String::new(),
                named => format!("/{named}"),
            },
        })
    }

    /// Host and port of the NameNode. `None`: it is a nameservice, which only Hadoop's own files
    /// explain.
    #[must_use]
    pub fn name_node(&self) -> Option<&str> {
        self.has_port.then_some(self.authority.as_str())
    }

    /// Folder of the test files.
    pub(crate) fn folder(&self) -> String {
        format!("{}/{FOLDER}", self.directory)
    }
}

/// Whether HDFS could take files of this job.
///
/// # Errors
/// [`TargetError`], with what there is instead.
pub(crate) fn check_job(job: &StorageJob) -> Result<(), TargetError> {
    match (job.block_bytes, job.replication) {
        (Some(bytes), _) if bytes == 0 || bytes % CHUNK_BYTES != 0 => {
            Err(TargetError::BlockSize { bytes })
        }
        (_, Some(replicas)) if !(1..=MAX_REPLICAS).contains(&replicas) => {
            Err(TargetError::Replication { replicas })
        }
        _ => Ok(()),
    }
}

/// Files of a directory in HDFS.
#[derive(Debug)]
pub struct HdfsBackend {
    hdfs: Arc<Hdfs>,
    target: String,
    folder: String,
    replication: Option<u32>,
    block_bytes: Option<u64>,
}

impl HdfsBackend {
    /// Replication and block size are the job's, else the NameNode's defaults.
    ///
    /// # Errors
    /// [`Problem::NoClient`] when no client can be made of it.
    pub fn open(target: &HdfsTarget, job: &StorageJob) -> Result<Self, StorageError> {
        let url = format!("hdfs://{}", target.authority);
        let bad = |error: ClientError| StorageError::new("use", url.clone(), error);
        let cpus = available_parallelism().map_or(1, usize::from);
        let threads = cpus.min(job.parallel as usize);
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads.clamp(1, MAX_IO_THREADS))
            .thread_name("hdfs")
            .enable_all()
            .build()
            .map_err(|error| bad(ClientError::Threads(error)))?;
        // The static binary cannot load libgssapi: a NameNode that wants Kerberos refuses in its
        // own words.
        let mut settings = vec![("hadoop.security.authentication", "simple")];
        if target.has_port {
            // There is no other NameNode to try.
            settings.push(("dfs.client.failover.max.attempts", "0"));
        }
        let client = ClientBuilder::new()
            .with_url(&url)
            .with_config(settings)
            .with_user(hdfs_user().map_err(bad)?)
            .with_io_runtime(runtime.handle().clone())
            .build()
            .map_err(|error| bad(ClientError::Hdfs(Box::new(error))))?;
        Ok(Self {
            hdfs: Arc::new(Hdfs {
                client,
                runtime,
                url,
            }),
            target: target.directory.clone(),
            folder: target.folder(),
            replication: job.replication,
            block_bytes: job.block_bytes,
        })
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    fn writing(&self, writer: FileWriter, path: String) -> Box<dyn Writing> {
        Box::new(WritingFile {
            hdfs: Arc::clone(&self.hdfs),
            writer,
            path,
        })
    }
}

impl Backend for HdfsBackend {
    fn prepare(&self) -> Result<(), StorageError> {
        let target = match self.target.as_str() {
            "" => "/",
            named => named,
        };
        let client = &self.hdfs.client;
        let status = self.hdfs.ask("use", target, client.get_file_info(target))?;
        if !status.isdir {
            let problem = Problem::BadTarget(TargetError::NoDirectory);
            return Err(self.hdfs.error("use", target, problem));
        }
        let made = client.mkdirs(&self.folder, 0o755, false);
        self.hdfs.ask("create", &self.folder, made)
    }

    fn create(&self, name: &str) -> Result<Box<dyn Writing>, StorageError> {
        let path = self.path(name);
        let mut options = WriteOptions::default().overwrite(true).create_parent(false);
        options.replication = self.replication;
        options.block_size = self.block_bytes;
        let created = self.hdfs.client.create(&path, &options);
        let writer = self.hdfs.ask("create", &path, created)?;
        Ok(self.writing(writer, path))
    }

    fn append(&self, name: &str) -> Result<Box<dyn Writing>, StorageError> {
        let path = self.path(name);
        let opened = self.hdfs.client.append(&path);
        let writer = self.hdfs.ask("append to", &path, opened)?;
        Ok(self.writing(writer, path))
    }

    fn open(&self, name: &str, order: ReadOrder) -> Result<Box<dyn Reading>, StorageError> {
        let path = self.path(name);
        let opened = self.hdfs.client.read(&path);
        let reader = self.hdfs.ask("open", &path, opened)?;
        let whole = || self.hdfs.ahead(&reader);
        Ok(Box::new(ReadingFile {
            hdfs: Arc::clone(&self.hdfs),
            stream: (order == ReadOrder::Sequential).then(whole),
            reader,
            path,
            pieces: Pieces::default(),
        }))
    }

    fn remove(&self, name: &str) -> Result<(), StorageError> {
        let path = self.path(name);
        let removed = self.hdfs.client.delete(&path, false);
        match self.hdfs.ask("remove", &path, removed)? {
            true => Ok(()),
            false => Err(self.hdfs.error("remove", &path, Problem::NotFound)),
        }
    }

    fn list(&self) -> Result<Vec<String>, StorageError> {
        let listed = self.hdfs.client.list_status(&self.folder, false);
        match self.hdfs.ask("list", &self.folder, listed) {
            Ok(found) => {
                let names = found.iter().filter_map(|file| file.path.rsplit('/').next());
                Ok(names.map(str::to_owned).collect())
            }
            Err(error) if error.is_not_found() => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn remove_folder(&self) {
        // Refused where another host's files are left, or somebody else's.
        let removed = self.hdfs.client.delete(&self.folder, false);
        let _ = self.hdfs.ask("remove", &self.folder, removed);
    }

    fn notes(&self) -> Vec<String> {
        let replicas = self.replication;
        let replicas = replicas.map_or("default".into(), |count| count.to_string());
        let block = self.block_bytes;
        let block = block.map_or("default".into(), ew_model::units::format_whole_bytes);
        vec![
            format!(
                "HDFS: replication {replicas}, block size {block}; checksums verified by the client"
            ),
            "writes: acknowledged by all DataNodes of the pipeline, each block synced to their disks at its end; reads may come from their page cache".into(),
        ]
    }
}

/// A client and the threads that drive it. Workers block on it.
#[derive(Debug)]
struct Hdfs {
    client: Client,
    runtime: Runtime,
    url: String,
}

impl Hdfs {
    /// Of the NameNode.
    fn ask<T>(
        &self,
        call: &'static str,
        path: &str,
        answer: impl Future<Output = hdfs_native::Result<T>>,
    ) -> Result<T, StorageError> {
        self.wait(call, path, NAME_NODE_LIMIT, answer)
    }

    /// Of DataNodes, and of the NameNode where blocks begin and end.
    fn transfer<T>(
        &self,
        call: &'static str,
        path: &str,
        answer: impl Future<Output = hdfs_native::Result<T>>,
    ) -> Result<T, StorageError> {
        self.wait(call, path, DATA_NODE_LIMIT, answer)
    }

    /// A peer that breaks the protocol makes the client panic: one file is lost then, and not the
    /// agent.
    fn wait<T>(
        &self,
        call: &'static str,
        path: &str,
        limit: Duration,
        answer: impl Future<Output = hdfs_native::Result<T>>,
    ) -> Result<T, StorageError> {
        let waiting = || {
            self.runtime
                .block_on(async { timeout(limit, answer).await })
        };
        let problem = match catch_unwind(AssertUnwindSafe(waiting)) {
            Ok(Ok(Ok(value))) => return Ok(value),
            Ok(Ok(Err(error))) => Problem::from(error),
            Ok(Err(_)) => Problem::NoAnswer {
                seconds: limit.as_secs(),
            },
            Err(_) => Problem::Other(
                "the answer is not of HDFS's protocol; check host and port of --target".into(),
            ),
        };
        Err(self.error(call, path, problem))
    }

    /// The whole file, whose next packets come while the last ones are used.
    fn ahead(&self, reader: &FileReader) -> Ahead {
        let stream = reader.read_range_stream(0, reader.file_length());
        let mut stream = stream.boxed().ready_chunks(PACKETS_AT_ONCE);
        let (ready, packets) = mpsc::channel(TIMES_AHEAD);
        let pump = async move {
            while let Some(packets) = stream.next().await {
                if ready.send(packets).await.is_err() {
                    break;
                }
            }
        };
        Ahead {
            here: Vec::new().into_iter(),
            packets,
            pump: self.runtime.spawn(pump),
        }
    }

    fn error(&self, call: &'static str, path: &str, problem: Problem) -> StorageError {
        StorageError::new(call, format!("{}{path}", self.url), problem)
    }
}

type Packets = Vec<hdfs_native::Result<Bytes>>;

/// A file's packets, read ahead. When it is dropped, the reading ends with the next packet.
struct Ahead {
    /// For these nobody waits.
    here: std::vec::IntoIter<hdfs_native::Result<Bytes>>,
    packets: mpsc::Receiver<Packets>,
    pump: JoinHandle<()>,
}

impl Ahead {
    fn next_piece(&mut self, hdfs: &Hdfs, path: &str) -> Result<Option<Bytes>, StorageError> {
        match self.here.next() {
            Some(Ok(packet)) => Ok(Some(packet)),
            Some(Err(error)) => Err(hdfs.error("read", path, error.into())),
            None => hdfs.transfer("read", path, self.next()),
        }
    }

    /// `None` at the file's end. Panics where the client did.
    async fn next(&mut self) -> hdfs_native::Result<Option<Bytes>> {
        let packets = self.packets.recv().await;
        if packets.is_none()
            && let Err(error) = (&mut self.pump).await
            && let Ok(panic) = error.try_into_panic()
        {
            resume_unwind(panic);
        }
        self.here = packets.unwrap_or_default().into_iter();
        self.here.next().transpose()
    }
}

/// Polls a future only a while after it could go on.
///
/// Once the last packet of a file is acknowledged, hdfs-native asks the NameNode to complete the
/// file, which has to know of the block from the DataNode by then, or the client waits 500 ms
/// (`COMPLETE_RETRY_DELAY_MS`). The DataNode reports as it acknowledges, so a client that is as
/// fast as this one loses that race with most files.
async fn unhurried<T>(pause: Duration, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        let mut has_looked = false;
        let value = poll_fn(|context| match has_looked {
            true => Poll::Ready(None),
            false => {
                has_looked = true;
                future.as_mut().poll(context).map(Some)
            }
        });
        match value.await {
            Some(value) => return value,
            None => sleep(pause).await,
        }
    }
}

struct WritingFile {
    hdfs: Arc<Hdfs>,
    writer: FileWriter,
    path: String,
}

impl Writing for WritingFile {
    fn write(&mut self, bytes: Bytes) -> Result<(), StorageError> {
        let written = self.writer.write_bytes(bytes);
        let written = self.hdfs.transfer("write", &self.path, written);
        written.map(|_| ())
    }

    fn close(mut self: Box<Self>) -> Result<(), StorageError> {
        let closed = unhurried(AFTER_WAKE, self.writer.close());
        self.hdfs.transfer("close", &self.path, closed)
    }
}

struct ReadingFile {
    hdfs: Arc<Hdfs>,
    reader: FileReader,
    path: String,
    /// Of the whole file. `None`: each read is a request.
    stream: Option<Ahead>,
    pieces: Pieces,
}

impl ReadingFile {
    /// By a request of its own.
    fn read_there(&self, offset: u64, bytes: &mut [u8]) -> Result<usize, StorageError> {
        let left = (self.reader.file_length() as u64).saturating_sub(offset);
        let length = left.min(bytes.len() as u64) as usize;
        let read = self
            .reader
            .read_range_buf(&mut bytes[..length], offset as usize);
        self.hdfs.transfer("read", &self.path, read)?;
        Ok(length)
    }
}

impl Reading for ReadingFile {
    fn read(&mut self, offset: u64, bytes: &mut [u8]) -> Result<usize, StorageError> {
        match &mut self.stream {
            Some(stream) => {
                let next = || stream.next_piece(&self.hdfs, &self.path);
                self.pieces.fill(bytes, next)
            }
            None => self.read_there(offset, bytes),
        }
    }

    fn read_unverified(&mut self, offset: u64, bytes: &mut [u8]) -> Result<usize, StorageError> {
        match &mut self.stream {
            Some(stream) => {
                let next = || stream.next_piece(&self.hdfs, &self.path);
                self.pieces.discard(bytes.len(), next)
            }
            None => self.read_there(offset, bytes),
        }
    }

    fn close(self: Box<Self>) -> Result<(), StorageError> {
        Ok(())
    }
}

impl From<HdfsError> for Problem {
    fn from(error: HdfsError) -> Self {
        match error {
            HdfsError::FileNotFound(_) => Self::NotFound,
            HdfsError::IOError(error) if error.kind() == ErrorKind::ConnectionRefused => {
                Self::Refused
            }
            HdfsError::IOError(error) if is_closed(error.kind()) => Self::Closed,
            HdfsError::RPCError(class, words) | HdfsError::FatalRPCError(class, words) => {
                of_java(&class, &words)
            }
            HdfsError::InvalidRPCResponse(_) => Self::Other(
                "the answer is not of HDFS's protocol; check host and port of --target".into(),
            ),
            HdfsError::DataTransferError(words) => Self::Other(of_data_nodes(&words)),
            // The NameNode has not heard of the last block.
            HdfsError::OperationFailed(words) if words.contains("complete file in time") => {
                Self::BlockNotYet
            }
            HdfsError::ChecksumError => Self::Other(
                "wrong checksum: the bytes on the DataNode's disk are not those written".into(),
            ),
            other => Self::Other(other.to_string()),
        }
    }
}

fn is_closed(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConnectionAborted
            | ErrorKind::ConnectionReset
            | ErrorKind::BrokenPipe
            | ErrorKind::UnexpectedEof
    )
}

/// An exception of the NameNode: its class, and its message, which may go on with a stack trace.
pub(crate) fn of_java(class: &str, words: &str) -> Problem {
    let name = class.rsplit('.').next().unwrap_or(class);
    let line = words.lines().next().unwrap_or("").trim();
    match name {
        "FileNotFoundException" => Problem::NotFound,
        "SafeModeException" => Problem::SafeMode,
        "StandbyException" => Problem::Standby,
        "NotReplicatedYetException" => Problem::BlockNotYet,
        "DSQuotaExceededException" | "NSQuotaExceededException" | "QuotaExceededException" => {
            Problem::QuotaExceeded
        }
        // Both a user without rights and a cluster with Kerberos.
        "AccessControlException" if line.contains("SIMPLE authentication is not enabled") => {
            Problem::Kerberos
        }
        "AccessControlException" => Problem::Denied(line.to_owned()),
        _ if line.contains("could only be written to") => Problem::NoDataNode(line.to_owned()),
        _ => Problem::Other(format!("{line} ({name})")),
    }
}

/// hdfs-native prints its whole record of each DataNode; their addresses are enough.
fn of_data_nodes(words: &str) -> String {
    let of_pipeline = ["closed while waiting for ack", "All nodes failed for write"];
    if of_pipeline.iter().any(|part| words.contains(part)) {
        return "a DataNode of the pipeline ended the connection: it is down, or its disk is full; see its log".into();
    }
    if !words.starts_with("All DataNodes failed") {
        return words.to_owned();
    }
    let parts = words.split("ip_addr: \"").skip(1);
    let addresses: Vec<&str> = parts.filter_map(|part| part.split('"').next()).collect();
    match addresses.is_empty() {
        true => "no DataNode that is in service stores the block".into(),
        false => format!(
            "no DataNode that stores the block gave its bytes ({}); see their logs",
            addresses.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It is polled when it is made, and a while after each wake.
    #[tokio::test]
    async fn who_is_unhurried_gets_the_same_later() {
        let (sent, received) = tokio::sync::oneshot::channel();
        let began = std::time::Instant::now();
        tokio::spawn(async { sent.send(7) });
        let pause = Duration::from_millis(30);
        assert_eq!(unhurried(pause, received).await, Ok(7));
        assert!(began.elapsed() >= pause);
        assert_eq!(unhurried(Duration::MAX, async { 8 }).await, 8);
    }

    #[test]
    fn targets_are_taken_apart() {
        let target = HdfsTarget::parse("nn:8020/a/b/").unwrap();
        assert_eq!(target.name_node(), Some("nn:8020"));
        assert_eq!(target.directory, "/a/b");
        assert_eq!(HdfsTarget::parse("nn:8020").unwrap().directory, "");
        assert_eq!(HdfsTarget::parse("cluster1/x").unwrap().name_node(), None);
        assert_eq!(HdfsTarget::parse("/x"), Err(TargetError::NoNameNode));
        let refused = HdfsTarget::parse("nn:x/").unwrap_err();
        assert!(refused.to_string().contains("port"), "{refused}");
    }

    #[test]
    fn exceptions_become_problems_with_a_remedy() {
        let words = |class: &str, text: &str| of_java(class, text).to_string();
        let safe = words(
            "org.apache.hadoop.hdfs.server.namenode.SafeModeException",
            "Cannot create directory /x. Name node is in safe mode.\nmore",
        );
        assert!(safe.contains("safe mode") && safe.contains("dfsadmin -safemode leave"));
        let denied = words(
            "org.apache.hadoop.security.AccessControlException",
            "Permission denied: user=alice, access=WRITE, inode=\"/x\":root:root:drwx\n\tat java",
        );
        assert!(denied.contains("user=alice") && !denied.contains("at java"));
        let full = words(
            "java.io.IOException",
            "File /x could only be written to 0 of the 1 minReplication nodes.",
        );
        assert!(full.contains("space") && full.contains("0 of the 1"));
    }

    #[test]
    fn data_nodes_are_named_by_their_addresses() {
        let words = "All DataNodes failed: [DatanodeInfoProto { id: X { ip_addr: \"198.18.2.10\", p: 1 } }, Y { ip_addr: \"198.18.2.11\" }]";
        assert!(of_data_nodes(words).contains("(198.18.2.10, 198.18.2.11)"));
        let full = of_data_nodes("Datanode connection closed while waiting for ack");
        assert!(full.contains("its disk is full"), "{full}");
    }
}
