//! One file's way through a step: open, bytes, close, each with its time.

use crate::backend::{Backend, ReadOrder, Writing};
use crate::buffer::{AlignedBuffer, BufferPool};
use crate::call_times::CallTimes;
use crate::content::Content;
use crate::error::{Problem, StorageError};
use crate::progress::Progress;
use ew_model::storage::{FileOutcome, FileRecord, StorageOperation, StorageOrder};
use ew_sys::clock;
use std::sync::atomic::{AtomicBool, Ordering};

/// A file whose store gives no next block in time is written again from its start so often.
const MAX_REWRITES: u32 = 5;
/// Before the first of them; each later one waits twice as long. Both as Hadoop's own client waits
/// for a block.
const FIRST_PAUSE_NS: u64 = 400_000_000;
/// Most characters of an error that travel.
const MAX_ERROR_CHARS: usize = 400;

/// What one worker has seen so far.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) files: Vec<FileRecord>,
    pub(crate) calls: CallTimes,
    pub(crate) progress: Progress,
    pub(crate) content_ns: u64,
    /// Times that a file was written again from its start.
    pub(crate) rewrites: u32,
}

/// A worker: one file at a time.
pub(crate) struct Worker<'a> {
    pub(crate) number: u32,
    pub(crate) order: &'a StorageOrder,
    pub(crate) backend: &'a dyn Backend,
    pub(crate) cancelled: &'a AtomicBool,
    /// Read into.
    pub(crate) buffer: AlignedBuffer,
    /// Written from.
    pub(crate) pool: BufferPool,
    pub(crate) tally: Tally,
}

/// Why a file is not done.
enum Stop {
    Failed(StorageError),
    Corrupt { offset: u64, found: String },
    Cancelled,
}

impl From<StorageError> for Stop {
    fn from(error: StorageError) -> Self {
        Self::Failed(error)
    }
}

/// The name of a file, as TestDFSIO has it.
pub(crate) fn file_name(file: u32) -> String {
    format!("{NAME_PREFIX}{file}")
}

/// With what names of test files begin.
pub(crate) const NAME_PREFIX: &str = "test_io_";

impl Worker<'_> {
    /// Takes a file through the step and notes it.
    pub(crate) fn pass(&mut self, file: u32) {
        let mut record = FileRecord {
            file,
            worker: self.number,
            start_ns: self.now_ns(),
            open_ns: None,
            first_byte_ns: None,
            io_ns: None,
            close_ns: None,
            bytes: 0,
            outcome: FileOutcome::Done,
        };
        let passed = match self.order.operation {
            StorageOperation::Write => self.write(&mut record, 0),
            StorageOperation::Append => self.write(&mut record, self.order.present_bytes),
            StorageOperation::Read => self.read(&mut record),
            StorageOperation::RandomRead => self.read_randomly(&mut record),
            StorageOperation::Clean => self.remove(&mut record, &file_name(file)),
        };
        if let Err(stop) = passed {
            record.outcome = outcome(&stop);
            if self.order.operation == StorageOperation::Write {
                // A part of a file must not be read later, nor fill the disk. The clean step
                // reports what stays.
                let _ = self.backend.remove(&file_name(file));
            }
        }
        self.tally.files.push(record);
    }

    /// A file is written again from its start where its store reports that this may help. Its time
    /// goes on meanwhile; its bytes count once.
    fn write(&mut self, record: &mut FileRecord, present_bytes: u64) -> Result<(), Stop> {
        let mut opened_ns = None;
        let mut pause_ns = FIRST_PAUSE_NS;
        for _ in 0..MAX_REWRITES {
            let progress = self.tally.progress.clone();
            match self.write_once(record, present_bytes, &mut opened_ns) {
                Err(Stop::Failed(error))
                    if error.is_passing() && self.order.operation == StorageOperation::Write =>
                {
                    self.tally.progress = progress;
                    self.tally.rewrites += 1;
                    record.bytes = 0;
                    clock::sleep_until_ns(clock::monotonic_ns() + pause_ns);
                    pause_ns *= 2;
                }
                ended => return ended,
            }
        }
        self.write_once(record, present_bytes, &mut opened_ns)
    }

    /// `opened_ns` is when the first open ended.
    fn write_once(
        &mut self,
        record: &mut FileRecord,
        present_bytes: u64,
        opened_ns: &mut Option<u64>,
    ) -> Result<(), Stop> {
        let name = file_name(record.file);
        let began_ns = clock::monotonic_ns();
        let mut writing = match self.order.operation {
            StorageOperation::Append => self.backend.append(&name)?,
            _ => self.backend.create(&name)?,
        };
        let opened_ns = *opened_ns.get_or_insert_with(clock::monotonic_ns);
        record
            .open_ns
            .get_or_insert(opened_ns.saturating_sub(began_ns));
        let written = self.write_all(record, writing.as_mut(), present_bytes, opened_ns);
        let done_ns = clock::monotonic_ns();
        record.io_ns = Some(done_ns - opened_ns);
        // What is not whole needs no fsync: it is removed.
        written?;
        writing.close()?;
        record.close_ns = Some(clock::monotonic_ns() - done_ns);
        Ok(())
    }

    fn write_all(
        &mut self,
        record: &mut FileRecord,
        writing: &mut dyn Writing,
        present_bytes: u64,
        opened_ns: u64,
    ) -> Result<(), Stop> {
        let content = Content::new(self.order.job.seed, record.file);
        let file_bytes = self.order.job.file_bytes;
        while record.bytes < file_bytes {
            self.check_cancelled()?;
            let length = self.order.job.buffer_bytes.min(file_bytes - record.bytes);
            let before_ns = clock::monotonic_ns();
            let mut buffer = self.pool.take();
            content.fill(present_bytes + record.bytes, buffer.bytes(length as usize));
            let bytes = self.pool.lend(buffer, length as usize);
            let from_ns = clock::monotonic_ns();
            self.tally.content_ns += from_ns - before_ns;
            writing.write(bytes)?;
            self.note_call(record, from_ns, opened_ns, length);
        }
        Ok(())
    }

    fn read(&mut self, record: &mut FileRecord) -> Result<(), Stop> {
        let present_bytes = self.order.present_bytes;
        let buffer_bytes = self.order.job.buffer_bytes;
        let blocks = present_bytes.div_ceil(buffer_bytes);
        let ranges = (0..blocks).map(|block| {
            let offset = block * buffer_bytes;
            (offset, buffer_bytes.min(present_bytes - offset))
        });
        self.read_at(record, ranges)
    }

    /// As many whole buffers as the file has, at random offsets, from the seed; some are read
    /// twice, some never.
    fn read_randomly(&mut self, record: &mut FileRecord) -> Result<(), Stop> {
        let present_bytes = self.order.present_bytes;
        let buffer_bytes = self.order.job.buffer_bytes.min(present_bytes).max(1);
        let blocks = present_bytes / buffer_bytes;
        let draws = Content::new(
            self.order.job.seed ^ u64::from(self.order.step),
            record.file,
        );
        let ranges = (0..blocks).map(move |turn| {
            let mut drawn = [0; 8];
            draws.fill(turn * 8, &mut drawn);
            (
                u64::from_le_bytes(drawn) % blocks * buffer_bytes,
                buffer_bytes,
            )
        });
        self.read_at(record, ranges)
    }

    fn read_at(
        &mut self,
        record: &mut FileRecord,
        ranges: impl Iterator<Item = (u64, u64)>,
    ) -> Result<(), Stop> {
        let name = file_name(record.file);
        let content = Content::new(self.order.job.seed, record.file);
        let access = match self.order.operation {
            StorageOperation::RandomRead => ReadOrder::Random,
            _ => ReadOrder::Sequential,
        };
        let began_ns = clock::monotonic_ns();
        let mut reading = self.backend.open(&name, access)?;
        let opened_ns = clock::monotonic_ns();
        record.open_ns = Some(opened_ns - began_ns);
        for (offset, length) in ranges {
            self.check_cancelled()?;
            let from_ns = clock::monotonic_ns();
            let bytes = self.buffer.bytes(length as usize);
            let found = match self.order.job.verify {
                true => reading.read(offset, bytes)?,
                false => reading.read_unverified(offset, bytes)?,
            };
            self.note_call(record, from_ns, opened_ns, found as u64);
            if found as u64 != length {
                let problem = Problem::Short {
                    found: offset + found as u64,
                    expected: self.order.present_bytes,
                };
                return Err(StorageError::new("read", name, problem).into());
            }
            self.verify(&content, offset, found)?;
        }
        let done_ns = clock::monotonic_ns();
        record.io_ns = Some(done_ns - opened_ns);
        reading.close()?;
        record.close_ns = Some(clock::monotonic_ns() - done_ns);
        Ok(())
    }

    fn verify(&mut self, content: &Content, offset: u64, length: usize) -> Result<(), Stop> {
        if !self.order.job.verify {
            return Ok(());
        }
        let before_ns = clock::monotonic_ns();
        let checked = content.check(offset, self.buffer.bytes(length));
        self.tally.content_ns += clock::monotonic_ns() - before_ns;
        checked.map_err(|mismatch| Stop::Corrupt {
            offset: mismatch.offset,
            found: mismatch.found,
        })
    }

    /// Removes a file; one that is gone already is gone.
    fn remove(&mut self, record: &mut FileRecord, name: &str) -> Result<(), Stop> {
        let began_ns = clock::monotonic_ns();
        let removed = self.backend.remove(name);
        record.io_ns = Some(clock::monotonic_ns() - began_ns);
        match removed {
            Err(error) if !error.is_not_found() => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn note_call(&mut self, record: &mut FileRecord, from_ns: u64, opened_ns: u64, bytes: u64) {
        let to_ns = clock::monotonic_ns();
        record.first_byte_ns.get_or_insert(to_ns - opened_ns);
        record.bytes += bytes;
        self.tally.calls.add(to_ns - from_ns);
        let start_ns = self.order.start_ns;
        let since = |at_ns: u64| at_ns.saturating_sub(start_ns);
        self.tally.progress.add(since(from_ns), since(to_ns), bytes);
    }

    fn check_cancelled(&self) -> Result<(), Stop> {
        match self.cancelled.load(Ordering::Relaxed) {
            true => Err(Stop::Cancelled),
            false => Ok(()),
        }
    }

    fn now_ns(&self) -> u64 {
        clock::monotonic_ns().saturating_sub(self.order.start_ns)
    }
}

fn outcome(stop: &Stop) -> FileOutcome {
    match stop {
        Stop::Failed(error) => FileOutcome::Failed {
            error: short(&error.to_string()),
        },
        Stop::Corrupt { offset, found } => FileOutcome::Corrupt {
            offset: *offset,
            found: short(found),
        },
        Stop::Cancelled => FileOutcome::Cancelled,
    }
}

/// Bounded, because thousands of files may fail in one report.
pub(crate) fn short(words: &str) -> String {
    words.chars().take(MAX_ERROR_CHARS).collect()
}
