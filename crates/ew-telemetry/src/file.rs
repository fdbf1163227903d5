//! Reading small kernel files often: one open, one or few reads, one reused buffer.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Files of /proc that grow with the host (interrupts, diskstats) stay below this; more is cut.
const MAX_BYTES: usize = 4 << 20;
/// Most files fit one read of this.
const FIRST_BYTES: usize = 16 << 10;

/// A buffer for one file after the other.
#[derive(Debug, Default)]
pub(crate) struct FileBuffer {
    bytes: Vec<u8>,
}

impl FileBuffer {
    /// The file's text. `None` when it cannot be read, for whatever reason.
    pub(crate) fn read(&mut self, path: impl AsRef<Path>) -> Option<&str> {
        let mut file = File::open(path).ok()?;
        let mut filled = 0;
        loop {
            if filled == self.bytes.len() {
                self.grow()?;
            }
            match file.read(&mut self.bytes[filled..]).ok()? {
                0 => return std::str::from_utf8(&self.bytes[..filled]).ok(),
                read => filled += read,
            }
        }
    }

    /// The same for files that the kernel makes in one piece of less than 16 KiB: one read, not
    /// two.
    pub(crate) fn read_once(&mut self, path: impl AsRef<Path>) -> Option<&str> {
        if self.bytes.is_empty() {
            self.grow()?;
        }
        let filled = File::open(path).ok()?.read(&mut self.bytes).ok()?;
        std::str::from_utf8(&self.bytes[..filled]).ok()
    }

    fn grow(&mut self) -> Option<()> {
        let length = (self.bytes.len() * 2).max(FIRST_BYTES);
        self.bytes.resize(length, 0);
        (length <= MAX_BYTES).then_some(())
    }
}

/// The text of a small file, trimmed. `None` when it cannot be read.
pub(crate) fn trimmed(path: impl AsRef<Path>) -> Option<String> {
    FileBuffer::default()
        .read(path)
        .map(|text| text.trim().to_owned())
}

/// The number in a file. `None` when it cannot be read or contains something else.
pub(crate) fn number(path: impl AsRef<Path>) -> Option<u64> {
    FileBuffer::default().read(path)?.trim().parse().ok()
}

/// `proc/net/NAME` of the calling thread's network namespace: `/proc/net` itself is that of the
/// process' first thread, and `thread-self` is younger than Linux 3.17.
pub(crate) fn read_net<'buffer>(
    buffer: &'buffer mut FileBuffer,
    root: &Path,
    name: &str,
) -> Option<&'buffer str> {
    let candidates = ["proc/thread-self/net", "proc/self/net"];
    let path = candidates
        .iter()
        .map(|folder| root.join(folder).join(name))
        .find(|path| path.exists())?;
    buffer.read(path)
}
