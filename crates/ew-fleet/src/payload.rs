//! The binary that is copied to hosts: without what only debuggers read, and compressed.

use crate::error::LaunchError;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// zlib's own default: level 9 makes it less than 1% smaller and takes twice as long.
const GZIP_LEVEL: u32 = 6;

/// A program ready to be sent; cheap to clone.
#[derive(Clone)]
pub struct Payload {
    inner: Arc<Inner>,
}

struct Inner {
    program: Vec<u8>,
    compressed: Vec<u8>,
    digest: String,
}

/// How the payload travels, as the host's script asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// gzip's format: the host has gzip.
    Gzip,
    /// As it is.
    Plain,
    /// Not at all: the host has kept it.
    Kept,
}

impl Payload {
    /// Takes the bytes of an executable file, drops what is not loaded, and compresses the rest.
    #[must_use]
    pub fn new(mut program: Vec<u8>) -> Self {
        if let Some(elf) = Elf::parse(&program) {
            let loaded_bytes = elf.loaded_bytes();
            strip(&mut program, loaded_bytes);
        }
        let compressed = gzip(&program);
        let digest = Sha256::digest(&program);
        let digest = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Self {
            inner: Arc::new(Inner {
                program,
                compressed,
                digest,
            }),
        }
    }

    /// Reads an executable file whole: for our own, `/proc/self/exe`, which is right also after the
    /// file was replaced.
    ///
    /// # Errors
    /// [`LaunchError::ReadBinary`] when it cannot be read; [`LaunchError::DynamicBinary`] when it
    /// needs libraries of the host.
    pub fn read(path: &Path) -> Result<Self, LaunchError> {
        let program = std::fs::read(path).map_err(|source| LaunchError::ReadBinary {
            path: path.to_path_buf(),
            source,
        })?;
        if let Some(interpreter) = Elf::parse(&program).and_then(|elf| elf.interpreter()) {
            return Err(LaunchError::DynamicBinary { interpreter });
        }
        Ok(Self::new(program))
    }

    /// The program as it runs on the host.
    #[must_use]
    pub fn program(&self) -> &[u8] {
        &self.inner.program
    }

    /// Its length.
    #[must_use]
    pub fn program_bytes(&self) -> usize {
        self.inner.program.len()
    }

    /// What travels to a host with gzip.
    #[must_use]
    pub fn compressed(&self) -> &[u8] {
        &self.inner.compressed
    }

    /// What is sent where the host asks for this packing.
    pub(crate) fn packed(&self, packing: Packing) -> &[u8] {
        match packing {
            Packing::Gzip => &self.inner.compressed,
            Packing::Plain => &self.inner.program,
            Packing::Kept => &[],
        }
    }

    /// SHA-256 of the program, in hexadecimal digits, as `sha256sum` prints it.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.inner.digest
    }

    /// The machine it is built for, as `uname -m` says it. `None` for what is not a little-endian
    /// ELF file or a machine we do not know.
    #[must_use]
    pub fn architecture(&self) -> Option<&'static str> {
        /// `e_machine` (System V ABI, `elf.h`).
        const MACHINE_OFFSET: usize = 18;
        let program = &self.inner.program;
        if !program.starts_with(b"\x7fELF") {
            return None;
        }
        let field = program.get(MACHINE_OFFSET..MACHINE_OFFSET + 2)?;
        match u16::from_le_bytes([field[0], field[1]]) {
            3 => Some("i686"),
            21 => Some("ppc64le"),
            40 => Some("armv7l"),
            62 => Some("x86_64"),
            183 => Some("aarch64"),
            243 => Some("riscv64"),
            _ => None,
        }
    }
}

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (program, compressed) = (self.program_bytes(), self.compressed().len());
        write!(f, "Payload({program} bytes, {compressed} compressed)")
    }
}

fn gzip(program: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL));
    // Writing to memory cannot fail.
    let _ = encoder.write_all(program);
    encoder.finish().unwrap_or_default()
}

/// Program headers of a 64-bit little-endian ELF file (System V ABI).
struct Elf<'a> {
    file: &'a [u8],
    /// `p_type`, `p_offset` and `p_filesz` of each segment.
    segments: Vec<(u32, u64, u64)>,
}

const SECTION_HEADERS: std::ops::Range<usize> = 0x28..0x30;
const SECTION_COUNTS: std::ops::Range<usize> = 0x3c..0x40;

impl<'a> Elf<'a> {
    /// `None` for anything else.
    fn parse(file: &'a [u8]) -> Option<Self> {
        const CLASS_64_LITTLE_ENDIAN: &[u8] = b"\x7fELF\x02\x01";
        if !file.starts_with(CLASS_64_LITTLE_ENDIAN) {
            return None;
        }
        let table = usize::try_from(read_u64(file, 0x20)?).ok()?;
        let size = usize::from(read_u16(file, 0x36)?);
        let count = usize::from(read_u16(file, 0x38)?);
        let segment = |number: usize| {
            let at = table.checked_add(number * size)?;
            let kind = file.get(at..at.checked_add(4)?)?.try_into().ok()?;
            let kind = u32::from_le_bytes(kind);
            Some((kind, read_u64(file, at + 8)?, read_u64(file, at + 32)?))
        };
        let segments = (0..count).map(segment).collect::<Option<Vec<_>>>()?;
        Some(Self { file, segments })
    }

    /// The loader that the kernel would start first, for a dynamically linked program.
    fn interpreter(&self) -> Option<String> {
        const INTERPRETER: u32 = 3;
        let (_, offset, length) = *self
            .segments
            .iter()
            .find(|(kind, ..)| *kind == INTERPRETER)?;
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(usize::try_from(length).ok()?)?;
        let name = String::from_utf8_lossy(self.file.get(start..end)?).into_owned();
        Some(name.trim_end_matches('\0').to_owned())
    }

    /// Where the last segment ends: behind it are symbols, debug information and section headers.
    fn loaded_bytes(&self) -> usize {
        let end = |(_, offset, length): &(u32, u64, u64)| offset.saturating_add(*length);
        let last = self.segments.iter().map(end).max().unwrap_or(u64::MAX);
        usize::try_from(last).unwrap_or(usize::MAX)
    }
}

/// Cuts an ELF file behind its last segment, and takes the section headers that are gone out of its
/// header.
fn strip(program: &mut Vec<u8>, loaded_bytes: usize) {
    if loaded_bytes < SECTION_COUNTS.end || loaded_bytes >= program.len() {
        return;
    }
    program.truncate(loaded_bytes);
    program[SECTION_HEADERS].fill(0);
    program[SECTION_COUNTS].fill(0);
}

fn read_u16(file: &[u8], at: usize) -> Option<u16> {
    let bytes = file.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(bytes.try_into().ok()?))
}

fn read_u64(file: &[u8], at: usize) -> Option<u64> {
    let bytes = file.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    #[test]
    fn our_own_program_runs_without_what_was_cut_off() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        let payload = Payload::new(own.clone());
        assert!(payload.program_bytes() < own.len());
        assert!(payload.compressed().len() < payload.program_bytes());
        if std::env::consts::ARCH == "x86_64" || std::env::consts::ARCH == "aarch64" {
            assert_eq!(payload.architecture(), Some(std::env::consts::ARCH));
        }
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("program");
        std::fs::write(&program, payload.packed(Packing::Plain)).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        let listed = Command::new(&program).arg("--list").output().unwrap();
        assert!(String::from_utf8_lossy(&listed.stdout).contains("our_own_program_runs"));
        let sum = Command::new("sha256sum").arg(&program).output().unwrap();
        assert!(String::from_utf8_lossy(&sum.stdout).starts_with(payload.digest()));
    }

    #[test]
    fn a_program_that_needs_libraries_is_refused() {
        let dynamic = ["/bin/ls", "/usr/bin/ls", "/bin/sh"]
            .into_iter()
            .find(|path| {
                let file = std::fs::read(path).unwrap_or_default();
                Elf::parse(&file).is_some_and(|elf| elf.interpreter().is_some())
            });
        let Some(dynamic) = dynamic else { return };
        let error = Payload::read(Path::new(dynamic)).unwrap_err().to_string();
        assert!(
            error.contains("ld-linux") || error.contains("ld-musl"),
            "{error}"
        );
    }

    #[test]
    fn what_is_no_program_is_sent_as_it_is() {
        let script = Payload::new(b"#!/bin/sh\n".to_vec());
        assert_eq!(script.packed(Packing::Plain), b"#!/bin/sh\n");
        assert_eq!(script.architecture(), None);
        assert_eq!(Payload::new(b"\x7fELF".to_vec()).architecture(), None);
        let error = Payload::read(Path::new("/nonexistent/eastwest")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/eastwest"));
    }

    proptest! {
        #[test]
        fn no_header_makes_it_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let magic = b"\x7fELF\x02\x01";
            if bytes.len() >= magic.len() {
                bytes[..magic.len()].copy_from_slice(magic);
            }
            let _ = Payload::new(bytes);
        }
    }
}
