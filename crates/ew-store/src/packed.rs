//! Events of large runs, compressed: of a thousand hosts, samples and flows name the same counters
//! again and again.
//!
//! A packed line is `{"packed":"..."}`: lines of `events.jsonl`, compressed by gzip, in base64.
//! Small runs have none, so that their events are read as they are.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};

/// From so many hosts on, events are packed.
pub(crate) const LARGE_RUN_HOSTS: usize = 128;
/// Samples wait for each other until they are so many bytes.
const FULL_BYTES: usize = 1 << 20;
/// Or for so long.
const FULL_NS: u64 = 1_000_000_000;
/// Fewer bytes are written as they are.
const MIN_PACKED_BYTES: usize = 64 * 1024;
/// So are more, so that a short line never becomes all of the memory.
const MAX_PACKED_BYTES: usize = 64 << 20;
/// The events of 1,000 hosts of 128 CPUs take 40% of what the fastest level leaves of them.
const LEVEL: Compression = Compression::new(4);
/// How a packed line begins.
const START: &[u8] = b"{\"packed\":";

/// Samples that wait to be written together.
#[derive(Debug, Default)]
pub(crate) struct Pack {
    lines: Vec<u8>,
    begun_ns: u64,
}

#[derive(Deserialize, Serialize)]
struct Packed<'a> {
    packed: &'a str,
}

impl Pack {
    /// Takes a whole line.
    pub(crate) fn push(&mut self, at_ns: u64, line: &[u8]) {
        if self.lines.is_empty() {
            self.begun_ns = at_ns;
        }
        self.lines.extend_from_slice(line);
    }

    /// Whether what waits is to be written.
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        self.is_full() || now_ns.saturating_sub(self.begun_ns) >= FULL_NS
    }

    /// Whether no more may wait.
    pub(crate) fn is_full(&self) -> bool {
        self.lines.len() >= FULL_BYTES
    }

    /// What waits as it is to be written. Empty when nothing waits.
    pub(crate) fn to_write(&self) -> io::Result<Vec<u8>> {
        packed(&self.lines)
    }

    pub(crate) fn clear(&mut self) {
        self.lines.clear();
    }
}

/// Whole lines in one; as they are where they are short or very long.
pub(crate) fn packed(lines: &[u8]) -> io::Result<Vec<u8>> {
    if !(MIN_PACKED_BYTES..=MAX_PACKED_BYTES).contains(&lines.len()) {
        return Ok(lines.to_vec());
    }
    let mut gzip = GzEncoder::new(Vec::new(), LEVEL);
    gzip.write_all(lines)?;
    let packed = STANDARD.encode(gzip.finish()?);
    let mut line = serde_json::to_vec(&Packed { packed: &packed })?;
    line.push(b'\n');
    Ok(line)
}

/// The lines of `events.jsonl`, with the packed ones as they were.
#[must_use]
pub fn plain_lines(file: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(file.len());
    for line in file.split_inclusive(|byte| *byte == b'\n') {
        match unpacked(line) {
            Some(lines) => plain.extend(lines),
            None => plain.extend_from_slice(line),
        }
    }
    plain
}

/// The lines in a packed line; `None` for any other line, and a damaged one.
pub(crate) fn unpacked(line: &[u8]) -> Option<Vec<u8>> {
    if !line.starts_with(START) {
        return None;
    }
    let Packed { packed } = serde_json::from_slice(line).ok()?;
    let gzip = STANDARD.decode(packed).ok()?;
    let mut lines = Vec::new();
    let mut decoder = GzDecoder::new(gzip.as_slice()).take(MAX_PACKED_BYTES as u64);
    decoder.read_to_end(&mut lines).ok()?;
    Some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_lines_stay_as_they_are_and_many_become_one_short_one() {
        let mut pack = Pack::default();
        pack.push(5, b"{}\n");
        assert!(!pack.is_due(FULL_NS) && pack.is_due(FULL_NS + 5));
        assert_eq!(pack.to_write().unwrap(), b"{}\n");
        assert_eq!(unpacked(b"{}\n"), None);
        let line = format!("{{\"at_ns\":1,\"event\":\"{}\"}}\n", "x".repeat(1000));
        while !pack.is_full() {
            pack.push(6, line.as_bytes());
        }
        let packed = pack.to_write().unwrap();
        assert!(packed.len() < FULL_BYTES / 20 && packed.ends_with(b"}\n"));
        assert_eq!(unpacked(&packed), Some(pack.lines.clone()));
        assert_eq!(unpacked(&packed[..packed.len() / 2]), None, "torn");
        pack.clear();
        assert_eq!(pack.to_write().unwrap(), b"");
    }
}
