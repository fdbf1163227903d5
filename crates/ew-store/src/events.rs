//! `events.jsonl`, line by line.

use crate::EVENTS_FILE;
use crate::error::{StoreError, io_error};
use crate::packed::{LARGE_RUN_HOSTS, Pack, packed, unpacked};
use crate::upgrade::upgraded;
use ew_model::{RecordedEvent, RunEvent};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs::{File, TryLockError};
use std::io::{self, BufRead, BufReader, Cursor, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Where events are appended: a file, or what a simulation has in its place.
pub trait EventsFile: Debug + Send {
    /// Appends all of the bytes.
    ///
    /// # Errors
    /// The system's; some of the bytes may be there then.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Cuts it to so many bytes.
    ///
    /// # Errors
    /// The system's.
    fn truncate(&mut self, bytes: u64) -> io::Result<()>;

    /// Returns when all is on the disk.
    ///
    /// # Errors
    /// The system's.
    fn sync(&mut self) -> io::Result<()>;
}

impl EventsFile for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)?;
        self.seek(SeekFrom::Start(bytes)).map(drop)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

/// Appends events. Holds a lock, so that others see that the run is still being written; the kernel
/// drops it with the process.
#[derive(Debug)]
pub struct EventWriter {
    file: Box<dyn EventsFile>,
    path: PathBuf,
    written_bytes: u64,
    /// Whether events are packed.
    is_large_run: bool,
    /// Those that wait.
    samples: Pack,
}

impl EventWriter {
    /// Of a run of so many hosts.
    pub(crate) fn create(directory: &Path, hosts: usize) -> Result<Self, StoreError> {
        let path = directory.join(EVENTS_FILE);
        let file = File::create_new(&path).map_err(io_error("create", &path))?;
        // A file system without locks only costs the sign that the run is still being written.
        let _ = file.try_lock();
        Ok(Self::new(Box::new(file), path, hosts))
    }

    /// Of a run of so many hosts, into a file that is empty. The path is for errors.
    #[must_use]
    pub fn new(file: Box<dyn EventsFile>, path: PathBuf, hosts: usize) -> Self {
        Self {
            file,
            path,
            written_bytes: 0,
            is_large_run: hosts >= LARGE_RUN_HOSTS,
            samples: Pack::default(),
        }
    }

    /// Appends one event; it is in the file when this returns, but for samples of large runs, which
    /// wait for other samples or events for up to a second. Live-only events are passed over.
    ///
    /// # Errors
    /// [`StoreError::Io`], for example when the disk is full; the events before it stay readable.
    pub fn append(&mut self, event: &RecordedEvent) -> Result<(), StoreError> {
        if event.event.is_live_only() {
            return Ok(());
        }
        let mut line = serde_json::to_vec(event).map_err(|source| StoreError::Json {
            path: self.path.clone(),
            source,
        })?;
        line.push(b'\n');
        if !self.is_large_run {
            return self.write(&line);
        }
        if matches!(event.event, RunEvent::HostSampled { .. }) {
            return self.append_sample(event.at_ns, &line);
        }
        self.write_samples()?;
        let line = packed(&line).map_err(io_error("pack events for", &self.path))?;
        self.write(&line)
    }

    /// It waits. A full disk shows when no more may wait, and with the next other event.
    fn append_sample(&mut self, at_ns: u64, line: &[u8]) -> Result<(), StoreError> {
        if self.samples.is_full() {
            self.write_samples()?;
        }
        self.samples.push(at_ns, line);
        if self.samples.is_due(at_ns) {
            let _ = self.write_samples();
        }
        Ok(())
    }

    /// Writes the samples that wait; what cannot be written waits on.
    fn write_samples(&mut self) -> Result<(), StoreError> {
        let lines = self.samples.to_write();
        self.write(&lines.map_err(io_error("pack events for", &self.path))?)?;
        self.samples.clear();
        Ok(())
    }

    fn write(&mut self, lines: &[u8]) -> Result<(), StoreError> {
        if let Err(source) = self.file.append(lines) {
            // A torn line in the middle would make all that follows unreadable.
            let _ = self.file.truncate(self.written_bytes);
            return Err(io_error("write", &self.path)(source));
        }
        self.written_bytes += lines.len() as u64;
        Ok(())
    }

    /// What the events take so far.
    #[must_use]
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    pub(crate) fn sync(&mut self) -> Result<(), StoreError> {
        self.write_samples()?;
        self.file.sync().map_err(io_error("write", &self.path))
    }
}

/// Whether another process is still writing this run.
pub(crate) fn is_being_written(directory: &Path) -> bool {
    File::open(directory.join(EVENTS_FILE))
        .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Reads events back; what it cannot use is reported in warnings.
#[derive(Debug)]
pub(crate) struct EventReader {
    path: PathBuf,
    input: BufReader<File>,
    line: Vec<u8>,
    number: u64,
    /// Of a packed line, and how much of it is read.
    unpacked: Cursor<Vec<u8>>,
    unknown: BTreeMap<String, u64>,
    torn: bool,
}

impl EventReader {
    pub(crate) fn open(directory: &Path) -> Result<Self, StoreError> {
        let path = directory.join(EVENTS_FILE);
        let file = File::open(&path).map_err(io_error("read", &path))?;
        Ok(Self {
            path,
            input: BufReader::with_capacity(1 << 16, file),
            line: Vec::new(),
            number: 0,
            unpacked: Cursor::default(),
            unknown: BTreeMap::new(),
            torn: false,
        })
    }

    /// The next event this version knows; `None` at the end or at a torn last line.
    pub(crate) fn next(&mut self) -> Result<Option<RecordedEvent>, StoreError> {
        loop {
            if !self.read_line()? {
                return Ok(None);
            }
            if let Some(lines) = unpacked(&self.line) {
                self.unpacked = Cursor::new(lines);
                continue;
            }
            let source = match serde_json::from_slice(&self.line) {
                Ok(event) => return Ok(Some(event)),
                Err(source) => source,
            };
            if let Some(event) = upgraded(&self.line) {
                return Ok(Some(event));
            }
            if let Some(kind) = unknown_kind(&self.line, &source) {
                *self.unknown.entry(kind).or_default() += 1;
                continue;
            }
            let failed = io_error("read", &self.path);
            if self.input.fill_buf().map_err(failed)?.is_empty() {
                self.torn = true;
                return Ok(None);
            }
            return Err(StoreError::BadEvent {
                path: self.path.clone(),
                line: self.number,
                source,
            });
        }
    }

    /// The next line, of the packed ones first. False at the end.
    fn read_line(&mut self) -> Result<bool, StoreError> {
        self.line.clear();
        let unpacked = self.unpacked.read_until(b'\n', &mut self.line);
        if unpacked.map_err(io_error("read", &self.path))? > 0 {
            return Ok(true);
        }
        self.number += 1;
        let length = self.input.read_until(b'\n', &mut self.line);
        Ok(length.map_err(io_error("read", &self.path))? > 0)
    }

    /// What the user should know of the reading, after the end.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = self
            .unknown
            .iter()
            .map(|(kind, count)| {
                format!(
                    "{count} events of a kind this eastwest does not know (`{kind}`) were passed over: a newer version wrote this run"
                )
            })
            .collect();
        if self.torn {
            warnings.push(format!(
                "the run was cut short while line {} of {EVENTS_FILE} was written: everything before it is here",
                self.number
            ));
        }
        warnings
    }
}

/// The kind of a whole event of a newer version, when that is why it could not be read.
fn unknown_kind(line: &[u8], error: &serde_json::Error) -> Option<String> {
    #[derive(Deserialize)]
    struct Line {
        event: Tagged,
    }
    #[derive(Deserialize)]
    struct Tagged {
        r#type: String,
    }
    let kind = serde_json::from_slice::<Line>(line).ok()?.event.r#type;
    let unknown = format!("unknown variant `{kind}`");
    error.to_string().contains(&unknown).then_some(kind)
}
