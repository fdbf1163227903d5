//! Reading small kernel files often: one open, one or few reads, one reused buffer.

use std::borrow::Cow;
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
            if filled == self.bytes.len() && !self.grow() {
                return std::str::from_utf8(whole_lines(&self.bytes)).ok();
            }
            match file.read(&mut self.bytes[filled..]).ok()? {
                0 => return std::str::from_utf8(&self.bytes[..filled]).ok(),
                read => filled += read,
            }
        }
    }

    /// The same for files that the kernel makes in one piece of less than 16 KiB: one read, not
    /// two. Processes' names may be any bytes, also letters cut in two.
    pub(crate) fn read_once(&mut self, path: impl AsRef<Path>) -> Option<Cow<'_, str>> {
        if self.bytes.is_empty() {
            self.grow();
        }
        let filled = File::open(path).ok()?.read(&mut self.bytes).ok()?;
        Some(String::from_utf8_lossy(&self.bytes[..filled]))
    }

    /// Whether there is more space now.
    fn grow(&mut self) -> bool {
        let before = self.bytes.len();
        self.bytes
            .resize((before * 2).clamp(FIRST_BYTES, MAX_BYTES), 0);
        self.bytes.len() > before
    }
}

/// Without a last line that is cut: part of a number is another number.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    &bytes[..end.map_or(0, |end| end + 1)]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_above_the_bound_is_cut_after_a_line_every_time() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let line = "0123456789\n";
        std::fs::write(file.path(), line.repeat(MAX_BYTES / line.len() + 9)).unwrap();
        let mut buffer = FileBuffer::default();
        for _ in 0..2 {
            let text = buffer.read(file.path()).unwrap();
            assert_eq!(text, line.repeat(MAX_BYTES / line.len()));
            assert_eq!(buffer.bytes.len(), MAX_BYTES);
        }
    }
}
