//! Which tools this host has.

use crate::process::{Cancel, run_to_end};
use crate::registry::all;
use ew_model::workload::Tool;
use ew_sys::clock::monotonic_ns;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A version is printed at once or not at all.
const VERSION_PATIENCE_NS: u64 = 2_000_000_000;
/// Where tools are when PATH is that of a non-interactive login.
const USUAL_FOLDERS: [&str; 4] = ["/usr/local/bin", "/usr/bin", "/bin", "/opt/bin"];

/// Where Debian puts lmbench: in a folder for each architecture below it.
const LMBENCH_FOLDER: &str = "/usr/lib/lmbench/bin";

/// Those of the tools that are found with all their programs, by the words of scenario files, each
/// with what it reports of its version; those that show nothing with their package's.
#[must_use]
pub fn discover(wanted: &[Tool]) -> Vec<(String, String)> {
    all()
        .filter(|tool| wanted.contains(&tool.tool()))
        .filter_map(|tool| {
            let programs = tool.tool().programs().iter();
            let paths: Option<Vec<PathBuf>> = programs.map(|name| find_program(name)).collect();
            let program = paths?.into_iter().next()?;
            let reported = match tool.version_argument() {
                Some(argument) => said_by(&program, &[argument]),
                None => package_version(&program),
            };
            let version = reported.unwrap_or_else(|| "version not reported".to_owned());
            Some((tool.tool().name().to_owned(), version))
        })
        .collect()
}

/// The program's path, from PATH and the default directories.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(USUAL_FOLDERS.iter().map(PathBuf::from))
        .chain(lmbench_folders())
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|candidate| is_executable(candidate))
}

fn lmbench_folders() -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(LMBENCH_FOLDER).into_iter().flatten();
    entries.flatten().map(|entry| entry.path())
}

pub(crate) fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// `package 1.2-3`, from the system's package manager.
fn package_version(program: &Path) -> Option<String> {
    let path = program.to_str()?;
    let by_dpkg = || {
        let owner = said_by(&find_program("dpkg-query")?, &["-S", path])?;
        let (package, _) = owner.split_once(':')?;
        let format = "${Package} ${Version}\n";
        said_by(&find_program("dpkg-query")?, &["-W", "-f", format, package])
    };
    let by_rpm = || said_by(&find_program("rpm")?, &["-qf", path]);
    by_dpkg().or_else(by_rpm)
}

/// The first line that has words; some write it to standard error.
fn said_by(program: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments);
    let deadline_ns = monotonic_ns() + VERSION_PATIENCE_NS;
    let finished = run_to_end(command, deadline_ns, &Cancel::default()).ok()?;
    let mut lines = finished
        .stdout
        .lines()
        .chain(finished.stderr.lines())
        .map(str::trim);
    lines.find(|line| !line.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_or_not() {
        assert!(find_program("sh").is_some());
        assert_eq!(find_program("no-such-program-anywhere"), None);
    }

    #[test]
    fn a_host_is_searched_for_what_is_wanted_alone() {
        assert_eq!(discover(&[]), []);
        let found = discover(&[Tool::Ping]);
        assert!(found.iter().all(|(name, _)| name == "ping"), "{found:?}");
    }
}
