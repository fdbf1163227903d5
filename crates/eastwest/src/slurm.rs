//! `--via slurm`: a job's nodes, racks and time, from Slurm's own commands.

use crate::exit::Failure;
use crate::output;
use anyhow::{Context, anyhow};
use clap::Args;
use ew_fleet::{Slurm, SlurmOptions};
use ew_model::inventory::Inventory;
use ew_model::network::{NetworkChoice, Subnet};
use ew_model::units::format_duration_ns;
use ew_model::{Scenario, Stage};
use ew_plan::inventory::{self, GroupSources, InventoryRequest, NamedText, Roster};
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const JOB_VARIABLE: &str = "SLURM_JOB_ID";
/// Of a job's time, what is not load in a run: to bring agents up, and to end.
const NOT_LOAD: Duration = Duration::from_secs(30);
/// This host's addresses that agents are given at most.
const MAX_ADDRESSES: usize = 16;

#[derive(Debug, Args)]
#[command(next_help_heading = "Slurm")]
pub(crate) struct SlurmArgs {
    /// Slurm job to run in [default: the one that the command is part of]
    #[arg(short = 'j', long, value_name = "JOB", value_parser = parse_job)]
    job: Option<String>,
    /// Options of salloc: make a job with them, run in it, and end it; for example '-N 8 -t 20'
    #[arg(
        long,
        value_name = "OPTIONS",
        allow_hyphen_values = true,
        conflicts_with = "job"
    )]
    salloc_args: Option<String>,
    /// Ports at which this host waits for agents that dial back [default: any]
    #[arg(long, value_name = "FIRST-LAST", default_value = "0", hide_default_value = true, value_parser = crate::flag_values::parse_dial_ports)]
    dial_ports: (u16, u16),
}

/// A job that runs.
#[derive(Debug)]
struct Job {
    id: String,
    nodes: String,
    /// Until its time limit. `None`: it has none.
    left: Option<Duration>,
}

impl SlurmArgs {
    /// A flag of these that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let flags = [
            ("--job", self.job.is_some()),
            ("--salloc-args", self.salloc_args.is_some()),
            ("--dial-ports", self.dial_ports != (0, 0)),
        ];
        let given = flags.into_iter().find(|(_, given)| *given);
        given.map(|(name, _)| name)
    }

    /// The job's nodes with their addresses and racks. Makes the job first, where that is asked
    /// for.
    pub(crate) fn roster(&self) -> Result<Roster, Failure> {
        let job = self.job()?;
        let nodes = ask("scontrol", &["show", "node", "-o", &job.nodes])?;
        // Without a topology plug-in there is none, and no racks.
        let topology = ask("scontrol", &["show", "topology"]).unwrap_or_default();
        let text = NamedText {
            path: PathBuf::from("scontrol show node"),
            text: format!("{nodes}\n{}", leaf_switches(&topology)),
        };
        let request = InventoryRequest {
            host_files: vec![text],
            ..InventoryRequest::default()
        };
        inventory::build(&request, &GroupSources::default()).map_err(Failure::usage)
    }

    /// Hosts that the user names must be nodes of the job; they are reached as those.
    pub(crate) fn take_nodes(&self, roster: &mut Roster) -> Result<(), Failure> {
        let job = self.roster()?;
        for host in &mut roster.inventory.hosts {
            let mut nodes = job.inventory.hosts.iter();
            let node = nodes.find(|node| node.name.eq_ignore_ascii_case(&host.name));
            let node = node.ok_or_else(|| {
                let nodes = job.inventory.hosts.iter().map(|node| node.name.as_str());
                Failure::usage(anyhow!(
                    "host {} is no node of the job, which has {}; leave it out of --hosts and --racks",
                    host.name,
                    inventory::fold(nodes)
                ))
            })?;
            host.name.clone_from(&node.name);
            host.address = host.address.or(node.address);
        }
        roster.logins = job.logins;
        Ok(())
    }

    /// The launcher of agents on these hosts.
    pub(crate) fn launcher(
        &self,
        remote_dir: Option<&str>,
        hosts: &Inventory,
    ) -> Result<Slurm, Failure> {
        let nodes = hosts.hosts.iter().map(|host| host.name.clone());
        Ok(Slurm::new(SlurmOptions {
            job: self.job()?.id,
            binary: PathBuf::from(format!("/proc/{}/exe", std::process::id())),
            remote_dir: remote_dir.map(str::to_owned),
            dial_ports: self.dial_ports,
            addresses: own_addresses(),
            nodes: nodes.collect(),
        }))
    }

    /// Cuts the scenario to the time that the job has left for so many runs of it, and reports
    /// that.
    ///
    /// # Errors
    /// Where even the shortest plan takes longer.
    pub(crate) fn fit(
        &self,
        scenario: &mut Scenario,
        inventory: &Inventory,
        seed: u64,
        runs: usize,
    ) -> Result<(), Failure> {
        let job = self.job()?;
        let Some(left) = job.left else { return Ok(()) };
        let runs = runs as u64;
        let not_load_ns = NOT_LOAD.as_nanos() as u64 * runs;
        let left_ns = left.as_nanos() as u64;
        let usable_ns = left_ns.saturating_sub(not_load_ns);
        let planned_ns = |scenario: &Scenario| {
            let plan = ew_plan::plan(scenario, inventory, seed).map_err(Failure::usage)?;
            let stages = plan.stages.iter().map(Stage::planned_ns);
            Ok::<u64, Failure>(stages.sum::<u64>() * runs)
        };
        let whole_ns = planned_ns(scenario)?;
        if whole_ns <= usable_ns {
            return Ok(());
        }
        scenario.time_budget_ns = Some((usable_ns / runs).max(1));
        let cut_ns = planned_ns(scenario)?;
        let (id, left) = (&job.id, format_duration_ns(left_ns));
        let what = match runs {
            1 => "the plan".to_owned(),
            _ => format!("the plan over {runs} networks"),
        };
        if cut_ns > usable_ns {
            return Err(Failure::usage(anyhow!(
                "job {id} has {left} left, and {what} takes at least {} of load, and {} to begin and end; measure less (-t, --set samples=1), or \
                 give the job more time with `scontrol update JobId={id} TimeLimit=+10`",
                format_duration_ns(cut_ns),
                format_duration_ns(not_load_ns),
            )));
        }
        output::say(&format!(
            "job {id} has {left} left: {what} is cut from {} to {} of load",
            format_duration_ns(whole_ns),
            format_duration_ns(cut_ns)
        ));
        Ok(())
    }

    fn job(&self) -> Result<Job, Failure> {
        let of_environment = || std::env::var(JOB_VARIABLE).ok().filter(|id| !id.is_empty());
        let Some(id) = self.job.clone().or_else(of_environment) else {
            return match &self.salloc_args {
                Some(options) => Err(run_in_new_job(&shell_words(options)?)),
                None => Err(Failure::usage(anyhow!(
                    "which Slurm job? run this inside one (salloc, sbatch), name one with -j JOB, or make one with --salloc-args '-N 8'"
                ))),
            };
        };
        let format = "--format=%T|%N|%L";
        let shown = ask("squeue", &["--noheader", &format!("--jobs={id}"), format])?;
        Job::parse(&id, &shown).map_err(Failure::usage)
    }
}

impl Job {
    /// A line of `squeue --format=%T|%N|%L`.
    fn parse(id: &str, shown: &str) -> anyhow::Result<Self> {
        let line = shown.lines().find(|line| !line.trim().is_empty());
        let line = line
            .with_context(|| format!("Slurm has no job {id}: it is over, or is another user's"))?;
        let mut fields = line.trim().split('|');
        let mut field = || fields.next().unwrap_or_default().trim();
        let (state, nodes, left) = (field(), field(), field());
        anyhow::ensure!(
            state == "RUNNING" && !nodes.is_empty(),
            "job {id} is {state}, and only a running one has nodes; wait for it, or name another with -j"
        );
        Ok(Self {
            id: id.to_owned(),
            nodes: nodes.to_owned(),
            left: parse_time_left(left),
        })
    }
}

/// `[days-]hours:minutes:seconds`, shorter ones from the right; other words are no limit.
fn parse_time_left(text: &str) -> Option<Duration> {
    let (days, rest) = text.split_once('-').unwrap_or(("0", text));
    let parts = rest.split(':').map(str::parse::<u64>);
    let parts: Vec<u64> = parts.collect::<Result<_, _>>().ok()?;
    let seconds = parts
        .iter()
        .try_fold(0_u64, |sum, part| sum.checked_mul(60)?.checked_add(*part))?;
    let days = days.parse::<u64>().ok()?.checked_mul(24 * 3600)?;
    seconds.checked_add(days).map(Duration::from_secs)
}

/// The lines of leaf switches. Others list the same nodes again, and are no racks.
fn leaf_switches(topology: &str) -> String {
    let lines = topology.lines().filter(|line| line.contains(" Level=0 "));
    lines.map(|line| format!("{line}\n")).collect()
}

/// As a POSIX shell splits them; nothing is expanded.
fn shell_words(options: &str) -> Result<Vec<String>, Failure> {
    shlex::split(options).ok_or_else(|| {
        Failure::usage(anyhow!(
            "--salloc-args `{options}` ends inside a quotation or after a backslash; close the quotation"
        ))
    })
}

/// Becomes salloc, which starts this command again inside its job and ends the job with it, however
/// it ends. Returns only when that fails.
fn run_in_new_job(options: &[String]) -> Failure {
    let own = match std::env::current_exe() {
        Ok(own) => own,
        Err(error) => return Failure::failed(anyhow!("the binary cannot be found again: {error}")),
    };
    let mut salloc = Command::new("salloc");
    // A node that fails costs its own measurements, not the job.
    salloc.arg("--no-kill").args(options);
    salloc.arg(own).args(std::env::args_os().skip(1));
    missing(&salloc.exec(), "salloc")
}

fn missing(error: &std::io::Error, program: &str) -> Failure {
    Failure::failed(anyhow!(
        "cannot start {program}: {error}; --via slurm needs Slurm's commands on this host"
    ))
}

/// What one of Slurm's commands prints.
fn ask(program: &str, args: &[&str]) -> Result<String, Failure> {
    let mut command = Command::new(program);
    let asked = command.args(args).stdin(Stdio::null()).output();
    let asked = asked.map_err(|error| missing(&error, program))?;
    if !asked.status.success() {
        let words = String::from_utf8_lossy(&asked.stderr);
        let words = words.trim().replace('\n', "; ");
        return Err(Failure::failed(anyhow!(
            "`{program} {}` failed: {words}",
            args.join(" ")
        )));
    }
    Ok(String::from_utf8_lossy(&asked.stdout).into_owned())
}

/// Where agents may dial, besides the addresses that Slurm gives them.
fn own_addresses() -> Vec<IpAddr> {
    let facts = ew_telemetry::facts(Path::new("/"), None);
    let every = ["0.0.0.0/0", "::/0"].map(|all| all.parse::<Subnet>());
    let is_any = every.into_iter().flatten().map(NetworkChoice::Subnet);
    let of_interface = |interface| {
        let interface = std::slice::from_ref(interface);
        is_any.clone().find_map(|any| any.address_on(interface))
    };
    let interfaces = facts.interfaces.iter().filter(|interface| interface.up);
    interfaces
        .filter_map(of_interface)
        .take(MAX_ADDRESSES)
        .collect()
}

fn parse_job(text: &str) -> anyhow::Result<String> {
    let is_part = |c: char| c.is_ascii_digit() || c == '_' || c == '+';
    anyhow::ensure!(
        text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(is_part),
        "`{text}` is no job; write its number as squeue shows it, such as 4711"
    );
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_as_squeue_writes_them() {
        let seconds = |text| parse_time_left(text).map(|left| left.as_secs());
        assert_eq!(seconds("4:05"), Some(245));
        assert_eq!(seconds("1:00:00"), Some(3600));
        assert_eq!(seconds("2-01:00:01"), Some(49 * 3600 + 1));
        for none in ["UNLIMITED", "INVALID", "NOT_SET", ""] {
            assert_eq!(seconds(none), None, "{none}");
        }
    }

    #[test]
    fn options_of_salloc_are_split_as_a_shell_does() {
        let words = shell_words(r#"-N 2 --comment='two words' -J "a b" c\ d"#).unwrap();
        assert_eq!(
            words,
            ["-N", "2", "--comment=two words", "-J", "a b", "c d"]
        );
        for open in ["'a", "\"a", "a\\"] {
            assert!(shell_words(open).is_err(), "{open}");
        }
    }

    #[test]
    fn only_a_running_job_has_nodes() {
        let job = Job::parse("7", "RUNNING|n[1-4]|9:30\n").unwrap();
        assert_eq!(
            (job.nodes.as_str(), job.left),
            ("n[1-4]", Some(Duration::from_secs(570)))
        );
        let pending = Job::parse("7", "PENDING||10:00\n").unwrap_err().to_string();
        assert!(pending.contains("job 7 is PENDING"), "{pending}");
        assert!(Job::parse("7", "\n").is_err());
        for wrong in ["", "-1", "7;x", "n1"] {
            assert!(parse_job(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn racks_are_leaf_switches() {
        let topology = "SwitchName=rack1 Level=0 LinkSpeed=1 Nodes=n[1-2]\nSwitchName=spine Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=rack[1-2]\n";
        assert_eq!(leaf_switches(topology).lines().count(), 1);
        assert_eq!(leaf_switches("No topology information available"), "");
    }
}
