//! MPI hostfiles: Open MPI's `n1 slots=4 max_slots=8`, MPICH's `n1:4`.

use super::content::HostFile;
use super::lines::{line_of, significant_lines};
use crate::inventory::groups::GroupSources;
use crate::inventory::host_list::{ListedHost, parse_host_list};
use crate::inventory::inventory_error::{InventoryError, check_count};
use std::collections::BTreeSet;
use std::path::Path;

/// The highest number behind `name:` that is a count of processes: privileged ports, but for ssh's
/// own, are no ports of sshd.
const MAX_PROCESSES: u16 = 1024;
const SSH_PORT: u16 = 22;

/// Whether a line has a word that only an MPI hostfile has.
pub(super) fn is_entry(line: &str) -> bool {
    line.split_whitespace().skip(1).any(is_slots) || process_count(line).is_some()
}

/// Reads the hosts; how many processes each may have is of no matter here, and a host named again
/// is the same host.
pub(super) fn read(
    path: &Path,
    text: &str,
    sources: &GroupSources,
) -> Result<HostFile, InventoryError> {
    let mut seen = BTreeSet::new();
    let mut hosts: Vec<ListedHost> = Vec::new();
    for (number, line) in significant_lines(text) {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or("");
        if let Some(word) = words.find(|word| !is_slots(word)) {
            return Err(InventoryError::HostFile {
                location: line_of(path, number),
                problem: format!("`{word}` in an MPI hostfile"),
                remedy: "write `name slots=N` on each line, or a plain list without slots".into(),
            });
        }
        let name = match process_count(name) {
            Some((name, _)) => name,
            None => name,
        };
        let found = parse_host_list(path, name, sources)?;
        let location = line_of(path, number);
        check_count(hosts.len() + found.len(), &location)?;
        hosts.extend(
            found
                .into_iter()
                .map(|host| ListedHost {
                    location: location.clone(),
                    ..host
                })
                .filter(|host| seen.insert(host.name.to_ascii_lowercase())),
        );
    }
    Ok(HostFile {
        hosts,
        ..HostFile::default()
    })
}

fn is_slots(word: &str) -> bool {
    let key = word.split('=').next().unwrap_or("");
    let keys = ["slots", "max_slots", "max-slots", "cpus", "count", "np"];
    word.contains('=') && keys.contains(&key)
}

/// `n1:4` of MPICH and Intel MPI.
fn process_count(line: &str) -> Option<(&str, u16)> {
    let (name, count) = line.split_once(':')?;
    let count: u16 = count.parse().ok()?;
    let is_count = count <= MAX_PROCESSES && count != SSH_PORT;
    (is_count && !name.is_empty()).then_some((name, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let file = read(Path::new("hostfile"), text, &GroupSources::default()).unwrap();
        file.hosts.into_iter().map(|host| host.name).collect()
    }

    #[test]
    fn both_dialects() {
        let text = "# mpirun\nn1 slots=4\nn2 slots=4 max_slots=8\nn1 slots=2\n";
        assert_eq!(names(text), ["n1", "n2"]);
        assert_eq!(names("n1:16\nn2:16\n"), ["n1", "n2"]);
        assert!(is_entry("n1:4") && !is_entry("n1:2222") && !is_entry("n1:22"));
        assert!(!is_entry("fd00::2"));
        let wrong = read(
            Path::new("hostfile"),
            "n1 slots=4\nn2 slots=4 fast\n",
            &GroupSources::default(),
        );
        assert!(wrong.unwrap_err().to_string().contains("line 2: `fast`"));
    }
}
