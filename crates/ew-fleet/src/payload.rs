//! The programs that are copied to hosts: without what only debuggers read, and compressed.

use crate::error::LaunchError;
use crate::greeting::{Greeting, Packing};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

/// Level 6 makes it 4% smaller and takes twice as long, while all hosts wait.
const GZIP_LEVEL: u32 = 4;
/// A release's binary has sections that begin so: agents, compressed by gzip, one a kind of machine
/// (`scripts/release.sh`). Nothing loads them, so they do not travel with the binary itself.
const AGENT_SECTION: &str = ".eastwest.agent.";
/// No agent is larger; it keeps a damaged section from filling the memory.
const MAX_AGENT_BYTES: u64 = 256 << 20;

/// What hosts can be given: one program a kind of machine.
#[derive(Clone, Debug)]
pub struct Payloads {
    /// The first one is sent where none is known to run.
    all: Arc<[Payload]>,
}

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

impl Payloads {
    /// What an eastwest binary brings: the agents of its release, and itself for its own kind of
    /// machine where there is no agent. For our own, `/proc/self/exe`, which is right also after
    /// the file was replaced.
    ///
    /// # Errors
    /// [`LaunchError::ReadBinary`] when it cannot be read, or an agent in it cannot;
    /// [`LaunchError::DynamicBinary`] when it needs libraries of the host.
    pub fn of_binary(path: &Path) -> Result<Self, LaunchError> {
        let program = read_static(path)?;
        let mut all = agents_in(&program, path)?;
        let own = architecture(&program);
        if !all.iter().any(|agent| agent.architecture() == own) {
            all.insert(0, Payload::new(program));
        }
        Ok(all.into_iter().collect())
    }

    /// The program for a machine.
    pub(crate) fn for_machine(&self, greeting: &Greeting) -> Option<&Payload> {
        let runs = |payload: &&Payload| {
            let built_for = payload.architecture();
            built_for.is_none_or(|built_for| greeting.runs(built_for))
        };
        self.all.iter().find(runs)
    }

    /// All of them; the first one is sent where none is known to run.
    pub(crate) fn all(&self) -> &[Payload] {
        &self.all
    }

    /// "x86_64 and aarch64": what they are built for.
    pub(crate) fn machines(&self) -> String {
        let machines = self.all.iter().filter_map(Payload::architecture);
        machines.collect::<Vec<_>>().join(" and ")
    }
}

/// The agents that a binary brings.
fn agents_in(program: &[u8], path: &Path) -> Result<Vec<Payload>, LaunchError> {
    let agents = Elf::parse(program).map(|elf| elf.sections(AGENT_SECTION));
    let agents = agents.unwrap_or_default().into_iter();
    let agents: io::Result<Vec<Payload>> = agents.map(Payload::packed_by_gzip).collect();
    agents.map_err(|source| LaunchError::ReadBinary {
        path: path.to_path_buf(),
        source,
    })
}

impl From<Payload> for Payloads {
    fn from(payload: Payload) -> Self {
        Self::from_iter([payload])
    }
}

impl FromIterator<Payload> for Payloads {
    fn from_iter<I: IntoIterator<Item = Payload>>(all: I) -> Self {
        Self {
            all: all.into_iter().collect(),
        }
    }
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
        Self::of(program, compressed)
    }

    /// Reads an executable file whole: for our own, `/proc/self/exe`, which is right also after the
    /// file was replaced.
    ///
    /// # Errors
    /// [`LaunchError::ReadBinary`] when it cannot be read; [`LaunchError::DynamicBinary`] when it
    /// needs libraries of the host.
    pub fn read(path: &Path) -> Result<Self, LaunchError> {
        read_static(path).map(Self::new)
    }

    /// The agents that a release's binary brings, one a kind of machine. A plain build has none.
    ///
    /// # Errors
    /// [`LaunchError::ReadBinary`] when it cannot be read, or an agent in it cannot;
    /// [`LaunchError::DynamicBinary`] when it needs libraries of the host.
    pub fn agents_in(path: &Path) -> Result<Vec<Self>, LaunchError> {
        agents_in(&read_static(path)?, path)
    }

    /// Takes a program as gzip has compressed it.
    ///
    /// # Errors
    /// What is wrong with the compressed data.
    fn packed_by_gzip(compressed: &[u8]) -> io::Result<Self> {
        let mut program = Vec::new();
        let unpacked = GzDecoder::new(compressed);
        unpacked.take(MAX_AGENT_BYTES).read_to_end(&mut program)?;
        Ok(Self::of(program, compressed.to_vec()))
    }

    fn of(program: Vec<u8>, compressed: Vec<u8>) -> Self {
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
            Packing::Unsent => &[],
        }
    }

    /// SHA-256 of the program, in hexadecimal digits, as `sha256sum` prints it.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.inner.digest
    }

    /// The machine it is built for, as `uname -m` prints it. `None` for what is not a little-endian
    /// ELF file or a machine we do not know.
    #[must_use]
    pub fn architecture(&self) -> Option<&'static str> {
        architecture(&self.inner.program)
    }
}

fn read_static(path: &Path) -> Result<Vec<u8>, LaunchError> {
    let program = std::fs::read(path).map_err(|source| LaunchError::ReadBinary {
        path: path.to_path_buf(),
        source,
    })?;
    match Elf::parse(&program).and_then(|elf| elf.interpreter()) {
        Some(interpreter) => Err(LaunchError::DynamicBinary { interpreter }),
        None => Ok(program),
    }
}

/// The machine that an ELF file is built for, as `uname -m` prints it.
fn architecture(program: &[u8]) -> Option<&'static str> {
    /// `e_machine` (System V ABI, `elf.h`).
    const MACHINE_OFFSET: usize = 18;
    if !program.starts_with(b"\x7fELF") {
        return None;
    }
    match read_u16(program, MACHINE_OFFSET)? {
        3 => Some("i686"),
        21 => Some("ppc64le"),
        40 => Some("armv7l"),
        62 => Some("x86_64"),
        183 => Some("aarch64"),
        243 => Some("riscv64"),
        _ => None,
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

/// `e_shoff`.
const SECTION_HEADERS: std::ops::Range<usize> = 0x28..0x30;
/// `e_shentsize`.
const SECTION_HEADER_BYTES: usize = 0x3a;
/// `e_shnum` and `e_shstrndx`.
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
            let kind = read_u32(file, at)?;
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

    /// What is in the sections whose names begin so.
    fn sections(&self, prefix: &str) -> Vec<&'a [u8]> {
        let count = read_u16(self.file, SECTION_COUNTS.start).unwrap_or_default();
        let names = read_u16(self.file, SECTION_COUNTS.start + 2).unwrap_or_default();
        let Some(names) = self.section(names) else {
            return Vec::new();
        };
        let wanted = (0..count).filter(|number| {
            let name = self.section_header(*number).and_then(|at| {
                let start = usize::try_from(read_u32(self.file, at)?).ok()?;
                names.get(start..)
            });
            name.is_some_and(|name| name.starts_with(prefix.as_bytes()))
        });
        wanted.filter_map(|number| self.section(number)).collect()
    }

    /// What is in a section.
    fn section(&self, number: u16) -> Option<&'a [u8]> {
        let at = self.section_header(number)?;
        let start = usize::try_from(read_u64(self.file, at.checked_add(0x18)?)?).ok()?;
        let length = usize::try_from(read_u64(self.file, at.checked_add(0x20)?)?).ok()?;
        self.file.get(start..start.checked_add(length)?)
    }

    /// Where a section's header is.
    fn section_header(&self, number: u16) -> Option<usize> {
        let table = usize::try_from(read_u64(self.file, SECTION_HEADERS.start)?).ok()?;
        let size = usize::from(read_u16(self.file, SECTION_HEADER_BYTES)?);
        table.checked_add(usize::from(number) * size)
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

fn read_u32(file: &[u8], at: usize) -> Option<u32> {
    let bytes = file.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
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

    /// As `scripts/release.sh` does it.
    #[test]
    fn a_release_brings_agents_that_do_not_travel_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let agent = {
            let mut agent = b"\x7fELF".to_vec();
            agent.resize(4096, 7);
            // Nobody's machine, so that the program itself is needed as well.
            agent[18..20].copy_from_slice(&243_u16.to_le_bytes());
            agent
        };
        let own = std::fs::read("/proc/self/exe").unwrap();
        std::fs::write(path("agent.gz"), gzip(&agent)).unwrap();
        std::fs::write(path("plain"), &own).unwrap();
        let section = format!("{AGENT_SECTION}riscv64={}", path("agent.gz").display());
        let added = Command::new("objcopy")
            .args(["--add-section", &section])
            .args([path("plain"), path("release")])
            .status();
        assert!(added.unwrap().success());
        let agents = Payload::agents_in(&path("release")).unwrap();
        assert_eq!(agents.len(), 1);
        assert_eq!(agents[0].program(), agent);
        assert!(Payload::agents_in(&path("plain")).unwrap().is_empty());
        let release = Payloads::of_binary(&path("release")).unwrap();
        let [itself, brought] = release.all() else {
            panic!("{release:?}");
        };
        assert_eq!(brought.program(), agent);
        assert_eq!(brought.architecture(), Some("riscv64"));
        assert_eq!(itself.program_bytes(), Payload::new(own).program_bytes());
        let plain = Payloads::of_binary(&path("plain")).unwrap();
        assert_eq!(plain.all().len(), 1);
        let damaged = format!("{AGENT_SECTION}riscv64={}", path("plain").display());
        let updated = Command::new("objcopy")
            .args(["--update-section", &damaged])
            .args([path("release"), path("damaged")])
            .status();
        assert!(updated.unwrap().success());
        let error = Payloads::of_binary(&path("damaged")).unwrap_err();
        assert!(error.to_string().contains("damaged"), "{error}");
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
            if let Some(elf) = Elf::parse(&bytes) {
                elf.sections(AGENT_SECTION);
            }
            let _ = Payload::new(bytes);
        }
    }
}
