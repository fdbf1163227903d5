//! Files that appear whole or not at all.

use crate::error::{StoreError, io_error};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file under a temporary name next to its final one. Removed when dropped without
/// [`Draft::publish`].
#[derive(Debug)]
pub(crate) struct Draft {
    file: File,
    draft: PathBuf,
    path: PathBuf,
    published: bool,
}

impl Draft {
    pub(crate) fn create(path: &Path) -> Result<Self, StoreError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let draft = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
        let file = File::create(&draft).map_err(io_error("create", path))?;
        Ok(Self {
            file,
            draft,
            path: path.to_path_buf(),
            published: false,
        })
    }

    /// Gives the file its name, replacing an older one at once.
    pub(crate) fn publish(mut self) -> Result<(), StoreError> {
        self.file
            .sync_all()
            .map_err(io_error("write", &self.path))?;
        fs::rename(&self.draft, &self.path).map_err(io_error("replace", &self.path))?;
        self.published = true;
        Ok(())
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.published {
            // Nobody reads the temporary name; there is nothing else to do if it cannot be
            // removed.
            let _ = fs::remove_file(&self.draft);
        }
    }
}

/// Writes a whole file at once, replacing an older one.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let mut draft = Draft::create(path)?;
    draft.write_all(bytes).map_err(io_error("write", path))?;
    draft.publish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_or_stays() {
        let temp_dir = tempfile::TempDir::new().unwrap();
        let path = temp_dir.path().join("run.json");
        write_whole(&path, b"old").unwrap();
        let mut dropped = Draft::create(&path).unwrap();
        dropped.write_all(b"half").unwrap();
        drop(dropped);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        write_whole(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(temp_dir.path()).unwrap().count(), 1);
        let error = write_whole(&temp_dir.path().join("no/such"), b"").unwrap_err();
        assert!(error.to_string().contains("no/such"), "{error}");
    }
}
