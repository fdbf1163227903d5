//! Signs that a host has other work than the run's. Pods are none: on a node of Kubernetes they are
//! always there.

use std::collections::BTreeSet;
use std::path::Path;

/// Files that close a host to ordinary users (nologin(5)) or end it (shutdown(8)): it is being
/// worked on.
const CLOSED: [(&str, &str); 3] = [
    ("etc/nologin", "logins are closed"),
    ("run/nologin", "logins are closed"),
    ("run/systemd/shutdown/scheduled", "a shutdown is scheduled"),
];
/// Where OpenPBS and Torque keep a node's jobs; one is `JOB.SERVER.JB`. Listed for root only.
const PBS_JOBS: [&str; 3] = [
    "var/spool/pbs/mom_priv/jobs",
    "var/spool/torque/mom_priv/jobs",
    "var/spool/PBS/mom_priv/jobs",
];

/// What else the host does, each in words: jobs of Slurm, PBS, LSF, Grid Engine and `HTCondor` but
/// those this process is part of, and maintenance. Sees what is visible below `root`.
#[must_use]
pub fn other_work(root: &Path, own_jobs: &[String]) -> Vec<String> {
    let closed = CLOSED.iter().find(|(file, _)| root.join(file).exists());
    let closed = closed.map(|(file, words)| format!("{words} (/{file})"));
    let mut jobs = jobs_of_processes(root);
    jobs.extend(pbs_jobs(root));
    let others = jobs.into_iter().filter(|job| !own_jobs.contains(&job.id));
    closed
        .into_iter()
        .chain(others.map(|job| {
            format!("{} job {}", job.system, job.id)
                .trim_end()
                .to_owned()
        }))
        .collect()
}

/// A job of a batch system.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Job {
    system: &'static str,
    /// Empty where nothing shows it.
    id: String,
}

impl Job {
    fn new(system: &'static str, id: &str) -> Self {
        Self {
            system,
            id: id.to_owned(),
        }
    }
}

fn jobs_of_processes(root: &Path) -> BTreeSet<Job> {
    let Ok(processes) = std::fs::read_dir(root.join("proc")) else {
        return BTreeSet::new();
    };
    let job = |process: &Path| {
        let name = std::fs::read_to_string(process.join("comm")).ok()?;
        let command = std::fs::read(process.join("cmdline")).ok()?;
        job_of(name.trim_end(), &String::from_utf8_lossy(&command))
    };
    let processes = processes.flatten().map(|process| process.path());
    processes.filter_map(|process| job(&process)).collect()
}

/// The job that a process belongs to: what batch systems run for each of theirs, and no daemon that
/// waits for one.
fn job_of(name: &str, command: &str) -> Option<Job> {
    match name {
        // `slurmstepd: [JOB.STEP]`
        "slurmstepd" => {
            let (_, step) = command.split_once('[')?;
            numbered("Slurm", step.split(['.', ']']).next()?)
        }
        // `sge_shepherd-JOB`, with the name cut to 15 bytes.
        _ if name.starts_with("sge_shepherd") => {
            let (_, id) = command.split_once("sge_shepherd-")?;
            numbered("Grid Engine", id.split([' ', '\0']).next()?)
        }
        // One for each job; its arguments do not show which.
        "condor_starter" => Some(Job::new("HTCondor", "")),
        _ => job_of_script(command),
    }
}

/// The shell of a job has its script as an argument: `.../mom_priv/jobs/JOB.SERVER.SC` of PBS,
/// `.../.lsbatch/TIME.JOB` of LSF.
fn job_of_script(command: &str) -> Option<Job> {
    command.split('\0').find_map(|argument| {
        if let Some((_, file)) = argument.split_once("/mom_priv/jobs/") {
            return file.strip_suffix(".SC").map(|id| Job::new("PBS", id));
        }
        let (_, file) = argument.split_once("/.lsbatch/")?;
        let (_, id) = file.split_once('.')?;
        numbered("LSF", id)
    })
}

fn numbered(system: &'static str, id: &str) -> Option<Job> {
    let is_number = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| Job::new(system, id))
}

fn pbs_jobs(root: &Path) -> BTreeSet<Job> {
    let folders = PBS_JOBS
        .iter()
        .map(|folder| std::fs::read_dir(root.join(folder)));
    let files = folders.flatten().flatten().flatten();
    let job = |file: std::fs::DirEntry| {
        let name = file.file_name().into_string().ok()?;
        name.strip_suffix(".JB").map(|id| Job::new("PBS", id))
    };
    files.filter_map(job).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn process(root: &TempDir, pid: &str, name: &str, command: &str) {
        let dir = root.path().join("proc").join(pid);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("comm"), format!("{name}\n")).unwrap();
        std::fs::write(dir.join("cmdline"), command).unwrap();
    }

    #[test]
    fn jobs_of_others_and_maintenance_are_seen() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(other_work(root.path(), &[]), Vec::<String>::new());
        process(&root, "10", "slurmstepd", "slurmstepd: [77.batch]\0");
        process(&root, "11", "slurmstepd", "slurmstepd: [77.0]\0");
        process(&root, "12", "slurmstepd", "slurmstepd: [78.extern]\0");
        process(&root, "13", "bash", "slurmstepd: [79.0]\0");
        process(&root, "14", "slurmstepd", "slurmstepd: [?]\0");
        assert_eq!(other_work(root.path(), &["77".into()]), ["Slurm job 78"]);
        std::fs::create_dir_all(root.path().join("run")).unwrap();
        std::fs::write(root.path().join("run/nologin"), "").unwrap();
        assert_eq!(
            other_work(root.path(), &[]),
            [
                "logins are closed (/run/nologin)",
                "Slurm job 77",
                "Slurm job 78"
            ]
        );
    }

    #[test]
    fn every_batch_systems_jobs_are_seen_and_their_daemons_are_none() {
        let root = tempfile::tempdir().unwrap();
        for (pid, daemon) in [
            ("1", "pbs_mom"),
            ("2", "sbatchd"),
            ("3", "condor_startd"),
            ("4", "sge_execd"),
            ("5", "kubelet"),
        ] {
            process(&root, pid, daemon, &format!("/usr/sbin/{daemon}\0"));
        }
        assert_eq!(other_work(root.path(), &[]), Vec::<String>::new());
        process(
            &root,
            "10",
            "bash",
            "-bash\0/var/spool/pbs/mom_priv/jobs/12.head.SC\0",
        );
        process(
            &root,
            "11",
            "sh",
            "/bin/sh\0/home/u/.lsbatch/1700000000.345\0",
        );
        process(&root, "12", "sge_shepherd-67", "sge_shepherd-678 -bg\0");
        process(&root, "13", "condor_starter", "condor_starter\0-f\0");
        process(&root, "14", "vi", "vi\0/home/u/.lsbatch/notes\0");
        let jobs = root.path().join("var/spool/pbs/mom_priv/jobs");
        std::fs::create_dir_all(&jobs).unwrap();
        for file in ["12.head.JB", "13.head.JB", "13.head.TK"] {
            std::fs::write(jobs.join(file), "").unwrap();
        }
        assert_eq!(
            other_work(root.path(), &["13.head".into()]),
            [
                "Grid Engine job 678",
                "HTCondor job",
                "LSF job 345",
                "PBS job 12.head"
            ]
        );
        std::fs::create_dir_all(root.path().join("run/systemd/shutdown")).unwrap();
        std::fs::write(root.path().join("run/systemd/shutdown/scheduled"), "").unwrap();
        let work = other_work(root.path(), &[]);
        assert_eq!(
            work[0],
            "a shutdown is scheduled (/run/systemd/shutdown/scheduled)"
        );
    }
}
