//! What a launcher is.

use crate::error::LaunchError;
use ew_model::Host;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// Knows the process whose standard input and output are the link to a host's agent. It starts nothing itself.
pub trait Launcher: Send + Sync {
    /// The word of `--fleet`: `local`, `lab`, `ssh`.
    fn name(&self) -> &'static str;

    /// How many hosts may be launched at once.
    fn fan_out(&self) -> usize;

    /// The process for one host. Its standard streams, process group and lifetime are set by [`crate::launch`].
    ///
    /// # Errors
    /// [`LaunchError`] when the host cannot be launched by this launcher at all.
    fn agent_command(&self, host: &Host) -> Result<AgentCommand, LaunchError>;

    /// A process that runs the POSIX shell commands which come on its standard input on one host, as root.
    ///
    /// # Errors
    /// [`LaunchError`] when the host cannot be reached by this launcher at all.
    fn root_shell(&self, host: &Host) -> Result<Command, LaunchError>;
}

/// The shell's arguments for [`Launcher::root_shell`]: root's own, or sudo's where sudo asks no question.
pub(crate) const ROOT_SHELL: [&str; 2] = [
    "-c",
    "if [ \"$(id -u)\" = 0 ]; then exec sh -s; else exec sudo -n sh -s; fi",
];

/// A process to start, and what to hand over through its standard input first.
#[derive(Debug)]
pub struct AgentCommand {
    /// The agent itself, or a client that carries its standard streams.
    pub command: Command,
    /// The binary, when the far side is the [`crate::bootstrap`] and waits for it.
    pub payload: Option<Payload>,
}

/// The bytes of the binary that is copied to every host; cheap to clone.
#[derive(Clone)]
pub struct Payload {
    bytes: Arc<[u8]>,
}

impl Payload {
    /// Takes the bytes of an executable file.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self {
            bytes: bytes.into(),
        }
    }

    /// Reads an executable file whole: for our own, `/proc/self/exe`, which is right also after the file was replaced.
    ///
    /// # Errors
    /// [`LaunchError::ReadBinary`] when it cannot be read.
    pub fn read(path: &Path) -> Result<Self, LaunchError> {
        std::fs::read(path)
            .map(Self::new)
            .map_err(|source| LaunchError::ReadBinary {
                path: path.to_path_buf(),
                source,
            })
    }

    /// The file's bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The machine it is built for, as `uname -m` says it, from `e_machine` of the ELF header (System V ABI, `elf.h`). `None` for
    /// what is not a little-endian ELF file or a machine we do not know.
    #[must_use]
    pub fn architecture(&self) -> Option<&'static str> {
        const MACHINE_OFFSET: usize = 18;
        if !self.bytes.starts_with(b"\x7fELF") {
            return None;
        }
        let field = self.bytes.get(MACHINE_OFFSET..MACHINE_OFFSET + 2)?;
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
        write!(f, "Payload({} bytes)", self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_architecture_is_recognised() {
        let own = Payload::read(Path::new("/proc/self/exe")).unwrap();
        if std::env::consts::ARCH == "x86_64" || std::env::consts::ARCH == "aarch64" {
            assert_eq!(own.architecture(), Some(std::env::consts::ARCH));
        }
        assert_eq!(Payload::new(b"#!/bin/sh\n".to_vec()).architecture(), None);
        assert_eq!(Payload::new(b"\x7fELF".to_vec()).architecture(), None);
    }

    #[test]
    fn a_binary_that_is_not_there_is_named() {
        let error = Payload::read(Path::new("/nonexistent/eastwest")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/eastwest"));
    }
}
