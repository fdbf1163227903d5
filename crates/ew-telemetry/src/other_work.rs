//! Signs that a host has other work than the run's.

use std::collections::BTreeSet;
use std::path::Path;

/// Files that close a host to ordinary users (nologin(5)): it is being worked on.
const CLOSED: [&str; 2] = ["etc/nologin", "run/nologin"];
/// The process that Slurm has on a node for every step; its command line is `slurmstepd:
/// [JOB.STEP]`.
const STEP_PROCESS: &str = "slurmstepd";

/// What else the host does, each in words: jobs of Slurm but the one this process is part of, and
/// maintenance. Sees what is visible below `root`.
#[must_use]
pub fn other_work(root: &Path, own_job: Option<&str>) -> Vec<String> {
    let closed = CLOSED.iter().find(|file| root.join(file).exists());
    let closed = closed.map(|file| format!("logins are closed (/{file})"));
    let jobs = slurm_jobs(root);
    let others = jobs.iter().filter(|job| Some(job.as_str()) != own_job);
    closed
        .into_iter()
        .chain(others.map(|job| format!("Slurm job {job}")))
        .collect()
}

fn slurm_jobs(root: &Path) -> BTreeSet<String> {
    let Ok(processes) = std::fs::read_dir(root.join("proc")) else {
        return BTreeSet::new();
    };
    let job = |process: &Path| {
        let name = std::fs::read_to_string(process.join("comm")).ok()?;
        if name.trim_end() != STEP_PROCESS {
            return None;
        }
        let command = std::fs::read_to_string(process.join("cmdline")).ok()?;
        let (_, step) = command.split_once('[')?;
        let job = step.split(['.', ']']).next()?;
        let is_number = !job.is_empty() && job.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| job.to_owned())
    };
    let processes = processes.flatten().map(|process| process.path());
    processes.filter_map(|process| job(&process)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_of_others_and_maintenance_are_seen() {
        let root = tempfile::tempdir().unwrap();
        let process = |pid: &str, name: &str, command: &str| {
            let dir = root.path().join("proc").join(pid);
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(dir.join("comm"), format!("{name}\n")).unwrap();
            std::fs::write(dir.join("cmdline"), command).unwrap();
        };
        assert_eq!(other_work(root.path(), None), Vec::<String>::new());
        process("10", "slurmstepd", "slurmstepd: [77.batch]\0");
        process("11", "slurmstepd", "slurmstepd: [77.0]\0");
        process("12", "slurmstepd", "slurmstepd: [78.extern]\0");
        process("13", "bash", "slurmstepd: [79.0]\0");
        process("14", "slurmstepd", "slurmstepd: [?]\0");
        assert_eq!(other_work(root.path(), Some("77")), ["Slurm job 78"]);
        std::fs::create_dir_all(root.path().join("run")).unwrap();
        std::fs::write(root.path().join("run/nologin"), "").unwrap();
        assert_eq!(
            other_work(root.path(), None),
            [
                "logins are closed (/run/nologin)",
                "Slurm job 77",
                "Slurm job 78"
            ]
        );
    }
}
