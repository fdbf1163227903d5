//! `file://`: any mount.

use crate::backend::{Backend, ReadOrder, Reading, Writing};
use crate::buffer::ALIGNMENT;
use crate::error::{Problem, StorageError, of_system};
use crate::target_error::TargetError;
use bytes::Bytes;
use ew_model::storage::StorageJob;
use ew_sys::disk;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Folder below the target that stores the files, and nothing but them.
const FOLDER: &str = "eastwest-dfsio";

/// Files of a folder.
#[derive(Debug)]
pub struct FileBackend {
    target: PathBuf,
    folder: PathBuf,
    direct: bool,
    sync: bool,
    drop_cache: bool,
}

impl FileBackend {
    /// Files below `target`, which must be there: a mount that is missing must not become a folder
    /// on the root disk.
    #[must_use]
    pub fn new(target: &Path, job: &StorageJob) -> Self {
        Self {
            target: target.to_owned(),
            folder: target.join(FOLDER),
            direct: job.direct,
            sync: job.sync,
            drop_cache: job.drop_cache,
        }
    }

    fn path(&self, name: &str) -> (PathBuf, String) {
        let path = self.folder.join(name);
        let shown = path.display().to_string();
        (path, shown)
    }

    fn direct(&self, file: &File, shown: &str) -> Result<(), StorageError> {
        if !self.direct {
            return Ok(());
        }
        disk::set_direct(file, true).map_err(|error| refused(error, "open", shown, true))
    }

    fn writing(&self, file: File, name: String) -> Result<Box<dyn Writing>, StorageError> {
        self.direct(&file, &name)?;
        Ok(Box::new(WritingFile {
            file,
            name,
            direct: self.direct,
            sync: self.sync,
        }))
    }
}

impl Backend for FileBackend {
    fn prepare(&self) -> Result<(), StorageError> {
        let target = self.target.display().to_string();
        if !fs::metadata(&self.target)
            .map_err(of_system("use", &target))?
            .is_dir()
        {
            return Err(StorageError::new("use", target, TargetError::NoMount));
        }
        let folder = self.folder.display().to_string();
        match fs::create_dir(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(of_system("create", &folder)(error))
            }
            _ => Ok(()),
        }
    }

    fn create(&self, name: &str) -> Result<Box<dyn Writing>, StorageError> {
        let (path, shown) = self.path(name);
        let file = File::create(path).map_err(of_system("create", &shown))?;
        self.writing(file, shown)
    }

    fn append(&self, name: &str) -> Result<Box<dyn Writing>, StorageError> {
        let (path, shown) = self.path(name);
        let file = OpenOptions::new().append(true).open(path);
        self.writing(file.map_err(of_system("open", &shown))?, shown)
    }

    fn open(&self, name: &str, _access: ReadOrder) -> Result<Box<dyn Reading>, StorageError> {
        let (path, name) = self.path(name);
        let file = File::open(path).map_err(of_system("open", &name))?;
        if self.drop_cache {
            // Only what is on disk can be dropped. A file system that cannot sync a file opened for
            // reading is read as it is.
            let _ = file.sync_data();
            disk::drop_cache(&file).map_err(of_system("drop the page cache of", &name))?;
        }
        self.direct(&file, &name)?;
        Ok(Box::new(ReadingFile {
            file,
            name,
            direct: self.direct,
        }))
    }

    fn remove(&self, name: &str) -> Result<(), StorageError> {
        let (path, shown) = self.path(name);
        fs::remove_file(path).map_err(of_system("remove", &shown))
    }

    fn list(&self) -> Result<Vec<String>, StorageError> {
        let shown = self.folder.display().to_string();
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(of_system("list", &shown))?,
        };
        let names = entries.map(|entry| {
            let entry = entry.map_err(of_system("list", &shown))?;
            Ok(entry.file_name().to_string_lossy().into_owned())
        });
        names.collect()
    }

    fn remove_folder(&self) {
        // Another host's files, or somebody else's: they stay.
        let _ = fs::remove_dir(&self.folder);
    }

    fn notes(&self) -> Vec<String> {
        let cache = match (self.direct, self.drop_cache) {
            (true, _) => "page cache: bypassed (O_DIRECT)",
            (false, true) => "page cache: dropped on the client before each read (posix_fadvise)",
            (false, false) => "page cache: warm, reads may not reach the storage",
        };
        let sync = match self.sync {
            true => "writes: fsync before close",
            false => "writes: no fsync, data may still be in the page cache after close",
        };
        vec![cache.into(), sync.into()]
    }
}

struct WritingFile {
    file: File,
    name: String,
    direct: bool,
    sync: bool,
}

impl Writing for WritingFile {
    fn write(&mut self, bytes: Bytes) -> Result<(), StorageError> {
        if self.direct && !bytes.len().is_multiple_of(ALIGNMENT) {
            // Only the file's end may have such a length.
            disk::set_direct(&self.file, false)
                .map_err(|error| refused(error, "write", &self.name, true))?;
            self.direct = false;
        }
        let written = self.file.write_all(&bytes);
        written.map_err(|error| refused(error, "write", &self.name, self.direct))
    }

    fn close(self: Box<Self>) -> Result<(), StorageError> {
        if self.sync {
            self.file
                .sync_all()
                .map_err(of_system("fsync", &self.name))?;
        }
        // NFS reports a full disk or an exceeded quota here, and dropping a file swallows it.
        disk::close(self.file).map_err(of_system("close", &self.name))
    }
}

struct ReadingFile {
    file: File,
    name: String,
    direct: bool,
}

impl Reading for ReadingFile {
    fn read(&mut self, offset: u64, bytes: &mut [u8]) -> Result<usize, StorageError> {
        if self.direct && !bytes.len().is_multiple_of(ALIGNMENT) {
            disk::set_direct(&self.file, false)
                .map_err(|error| refused(error, "read", &self.name, true))?;
            self.direct = false;
        }
        let mut done = 0;
        while done < bytes.len() {
            match self.file.read_at(&mut bytes[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(length) => done += length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(refused(error, "read", &self.name, self.direct)),
            }
        }
        Ok(done)
    }

    fn close(self: Box<Self>) -> Result<(), StorageError> {
        disk::close(self.file).map_err(of_system("close", &self.name))
    }
}

/// `EINVAL` of a direct file means that the file system wants other sizes, or cannot do it.
fn refused(error: io::Error, call: &'static str, name: &str, direct: bool) -> StorageError {
    if direct && error.kind() == io::ErrorKind::InvalidInput {
        return StorageError::new(call, name, Problem::NoDirect);
    }
    of_system(call, name)(error)
}
