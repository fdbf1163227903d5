//! Which tools this host has.

use crate::process::{Cancel, run_to_end};
use crate::tool::all;
use ew_sys::clock::monotonic_ns;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A version is printed at once or not at all.
const VERSION_PATIENCE_NS: u64 = 2_000_000_000;
/// Where tools are when PATH is that of a non-interactive login.
const USUAL_FOLDERS: [&str; 4] = ["/usr/local/bin", "/usr/bin", "/bin", "/opt/bin"];

/// The tools found, with the first line of what they say of their version.
#[must_use]
pub fn discover() -> Vec<(String, String)> {
    all()
        .filter_map(|tool| {
            let version = version_line(&find_program(tool.program())?)?;
            Some((tool.program().to_owned(), version))
        })
        .collect()
}

/// The program's path, from PATH and the usual folders.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(USUAL_FOLDERS.iter().map(PathBuf::from))
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|candidate| is_executable(candidate))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

fn version_line(program: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command.arg("--version");
    let deadline_ns = monotonic_ns() + VERSION_PATIENCE_NS;
    let finished = run_to_end(command, deadline_ns, &Cancel::default()).ok()?;
    let line = finished.stdout.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_or_not() {
        assert!(find_program("sh").is_some());
        assert_eq!(find_program("no-such-program-anywhere"), None);
    }
}
