//! The disk of the controller's machine: what it takes, and when it is full.

use crate::world::World;
use ew_store::EventsFile;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// `events.jsonl` on a simulated disk.
#[derive(Clone, Debug)]
pub(crate) struct SimulatedFile {
    world: Arc<World>,
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl SimulatedFile {
    pub(crate) fn new(world: &Arc<World>) -> Self {
        Self {
            world: Arc::clone(world),
            bytes: Arc::default(),
        }
    }

    /// What is on the disk.
    pub(crate) fn take(&self) -> Vec<u8> {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut bytes)
    }
}

impl EventsFile for SimulatedFile {
    /// A full disk takes the part that still fits (write(2)).
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let now_ns = self.world.now_ns();
        let mut is_full = self.world.drawn.desk.full_ns.iter();
        let mut file = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        if is_full.any(|span| span.contains(&now_ns)) {
            file.extend_from_slice(&bytes[..bytes.len() / 2]);
            return Err(io::ErrorKind::StorageFull.into());
        }
        file.extend_from_slice(bytes);
        Ok(())
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        let mut file = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        file.truncate(bytes as usize);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}
