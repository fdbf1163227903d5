//! What a store of files can do.

use crate::error::StorageError;
use bytes::Bytes;
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
    fn open(&self, name: &str, order: ReadOrder) -> Result<Box<dyn Reading>, StorageError>;

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
pub enum ReadOrder {
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
