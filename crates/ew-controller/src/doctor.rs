//! What would stop a run, before it does.

use crate::job::LaunchOptions;
use crate::members::{Members, State};
use crate::ports::{self, Answer, Checks, PEERS_CHECKED};
use crate::survey::wait_until_launched;
use ew_fleet::Launcher;
use ew_model::facts::{HostFacts, InterfaceFacts};
use ew_model::inventory::{HostId, Inventory};
use ew_model::units;
use ew_model::workload::Tool;
use ew_proto::message::PortAnswer;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The agent needs little; logs of a tool may need more.
const MIN_FREE_BYTES: u64 = 64 * 1024 * 1024;
/// Sockets, pipes and files of an agent besides its flows.
const SPARE_OPEN_FILES: u64 = 64;
/// Wall clocks that differ more make logs hard to join; measurements do not use them.
const MAX_WALL_CLOCK_NS: u64 = 1_000_000_000;
/// TCP_INFO with delivery rate and limited times needs Linux 4.9.
const MIN_KERNEL: (u32, u32) = (4, 9);

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckState {
    /// There was nothing to check, or the host does not report it.
    Unknown,
    /// Fine.
    Ok,
    /// A run works, but its result may be worse or less clear.
    Warning,
    /// A run cannot use this host or path.
    Failed,
}

/// One line of the doctor's report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The host's name, or `all hosts`.
    pub subject: String,
    /// What was checked: `ssh`, `data ports`, `mtu`, ...
    pub name: &'static str,
    /// How it came out.
    pub state: CheckState,
    /// What was found.
    pub found: String,
    /// What to do; empty when all is well.
    pub remedy: String,
}

/// All checks, in inventory order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DoctorReport {
    /// One line each.
    pub checks: Vec<Check>,
}

impl DoctorReport {
    /// The worst state.
    #[must_use]
    pub fn worst(&self) -> CheckState {
        self.checks
            .iter()
            .map(|check| check.state)
            .max()
            .unwrap_or(CheckState::Ok)
    }

    /// How many checks passed, of those that found something to check.
    #[must_use]
    pub fn passed(&self) -> (usize, usize) {
        let known = |state: CheckState| state != CheckState::Unknown;
        let count = |is: &dyn Fn(CheckState) -> bool| {
            let checks = self.checks.iter();
            checks.filter(|check| is(check.state)).count()
        };
        (count(&|state| state == CheckState::Ok), count(&known))
    }

    fn add(&mut self, subject: &str, name: &'static str, verdict: Verdict) {
        let (state, found, remedy) = match verdict {
            Verdict::Unknown(found) => (CheckState::Unknown, found, String::new()),
            Verdict::Ok(found) => (CheckState::Ok, found, String::new()),
            Verdict::Warning(found, remedy) => (CheckState::Warning, found, remedy),
            Verdict::Failed(found, remedy) => (CheckState::Failed, found, remedy),
        };
        self.checks.push(Check {
            subject: subject.to_owned(),
            name,
            state,
            found,
            remedy,
        });
    }
}

enum Verdict {
    Unknown(String),
    Ok(String),
    Warning(String, String),
    Failed(String, String),
}

/// Launches agents on the resolved hosts of `inventory`, checks each and between them, and takes
/// them down again.
///
/// # Errors
/// When the controller itself cannot start; of the kind `Interrupted` when the user asked to stop.
pub async fn doctor(
    inventory: &Inventory,
    launcher: Arc<dyn Launcher>,
    options: LaunchOptions,
) -> std::io::Result<DoctorReport> {
    let launcher_name = launcher.name();
    let mut members = Members::of_process(inventory, launcher, options)?;
    members.look_for(Tool::external().collect());
    for id in inventory.host_ids() {
        members.launch(id);
    }
    let examined = examine(&mut members, launcher_name).await;
    members.tear_down().await;
    let mut report = examined.ok_or(std::io::ErrorKind::Interrupted)?;
    for (host, reason) in &members.unclean {
        let remedy = "find a left-over eastwest process on the host and end it".to_owned();
        report.add(host, "clean end", Verdict::Failed(reason.clone(), remedy));
    }
    Ok(report)
}

/// `None`: the user asked to stop.
async fn examine(members: &mut Members, launcher: &'static str) -> Option<DoctorReport> {
    if wait_until_launched(members).await {
        return None;
    }
    let mut report = DoctorReport::default();
    let inventory = &members.inventory().clone();
    for id in inventory.host_ids() {
        check_launch(&mut report, inventory, members, id, launcher);
    }
    let facts = facts(members);
    for (id, facts) in &facts {
        check_host(
            &mut report,
            inventory.name(*id),
            facts,
            inventory.hosts.len(),
        );
    }
    check_clocks(&mut report, inventory, members);
    check_alike(&mut report, inventory, &facts);
    check_data_ports(&mut report, inventory, members).await?;
    Some(report)
}

fn facts(members: &Members) -> BTreeMap<HostId, HostFacts> {
    let facts_of = |id: HostId| match &members.get(id)?.state {
        State::Up { facts, .. } => Some((id, facts.as_ref().clone())),
        State::Launching | State::Down { .. } => None,
    };
    members.alive().into_iter().filter_map(facts_of).collect()
}

fn check_clocks(report: &mut DoctorReport, inventory: &Inventory, members: &Members) {
    for id in members.alive() {
        if let Some(State::Up {
            facts,
            wall_clock_off_ns,
            ..
        }) = members.get(id).map(|m| &m.state)
        {
            report.add(
                inventory.name(id),
                "clock",
                check_clock(facts, *wall_clock_off_ns),
            );
        }
    }
}

fn check_launch(
    report: &mut DoctorReport,
    inventory: &Inventory,
    members: &Members,
    id: HostId,
    launcher: &'static str,
) {
    let verdict = match members.get(id).map(|member| &member.state) {
        Some(State::Up { .. }) => {
            Verdict::Ok("agent copied, started and answered; directory is writable".into())
        }
        Some(State::Down { message }) => Verdict::Failed(
            message.clone(),
            format!(
                "try `ssh {} true` by hand; see --ssh-config, --ssh-user and --remote-dir",
                inventory.name(id)
            ),
        ),
        Some(State::Launching) | None => {
            Verdict::Failed("not finished".into(), "run the doctor again".into())
        }
    };
    report.add(inventory.name(id), launcher, verdict);
}

fn check_host(report: &mut DoctorReport, name: &str, facts: &HostFacts, hosts: usize) {
    report.add(name, "kernel", check_kernel(&facts.kernel));
    report.add(
        name,
        "free disk",
        check_free_disk(facts.work_dir_free_bytes),
    );
    report.add(
        name,
        "open files",
        check_open_files(facts.open_files_limit, hosts),
    );
    report.add(name, "tools", check_tools(facts));
}

fn check_kernel(release: &str) -> Verdict {
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(str::parse::<u32>);
    let version = (
        numbers.next().and_then(Result::ok),
        numbers.next().and_then(Result::ok),
    );
    match version {
        (Some(major), Some(minor)) if (major, minor) < MIN_KERNEL => Verdict::Warning(
            format!("Linux {release}"),
            "TCP_INFO lacks the limited-by times before Linux 4.9; findings will have fewer causes"
                .into(),
        ),
        _ => Verdict::Ok(format!("Linux {release}")),
    }
}

fn check_free_disk(free_bytes: Option<u64>) -> Verdict {
    match free_bytes {
        Some(free) if free < MIN_FREE_BYTES => Verdict::Warning(
            format!("{} free", units::format_bytes(free)),
            "free some space there, or set another directory with --remote-dir".into(),
        ),
        Some(free) => Verdict::Ok(format!("{} free", units::format_bytes(free))),
        None => Verdict::Unknown("not known".into()),
    }
}

fn check_open_files(limit: Option<u64>, hosts: usize) -> Verdict {
    let needed = 2 * hosts as u64 + SPARE_OPEN_FILES;
    match limit {
        Some(limit) if limit < needed => Verdict::Failed(
            format!("limit {limit}, a mesh over {hosts} hosts needs {needed}"),
            "raise `nofile` in /etc/security/limits.conf or the sshd unit's LimitNOFILE".into(),
        ),
        Some(limit) => Verdict::Ok(format!("limit {limit}")),
        None => Verdict::Unknown("limit not known".into()),
    }
}

/// A tool is needed only where it is asked for.
fn check_tools(facts: &HostFacts) -> Verdict {
    let versions: Vec<&str> = facts
        .tools
        .iter()
        .map(|(_, version)| version.as_str())
        .collect();
    Verdict::Ok(if versions.is_empty() {
        "none of the external tools (only `--tool` needs them)".into()
    } else {
        versions.join(", ")
    })
}

fn check_clock(facts: &HostFacts, off_ns: u64) -> Verdict {
    let remedy =
        "start chrony or systemd-timesyncd; measurements use their own clock estimate, logs do not";
    if off_ns > MAX_WALL_CLOCK_NS {
        let found = format!(
            "wall clock differs by {}",
            units::format_duration_ns(off_ns)
        );
        return Verdict::Warning(found, remedy.into());
    }
    match facts.clock_synchronised {
        Some(false) => {
            Verdict::Warning("the kernel reports: not synchronised".into(), remedy.into())
        }
        Some(true) => Verdict::Ok("synchronised".into()),
        None => Verdict::Unknown("not known".into()),
    }
}

/// Hosts whose link speed or MTU is unlike the most common one.
fn check_alike(
    report: &mut DoctorReport,
    inventory: &Inventory,
    facts: &BTreeMap<HostId, HostFacts>,
) {
    let interface = |id: &HostId, facts: &HostFacts| -> Option<InterfaceFacts> {
        facts.interface_with(inventory.host(*id).address?).cloned()
    };
    let interfaces: BTreeMap<HostId, InterfaceFacts> = facts
        .iter()
        .filter_map(|(id, facts)| Some((*id, interface(id, facts)?)))
        .collect();
    let mtu = |i: &InterfaceFacts| i.mtu_bytes.map(u64::from);
    check_property(
        report,
        inventory,
        &interfaces,
        "mtu",
        &mtu,
        &|v| v.to_string(),
        "set the same MTU on every host (ip link set DEV mtu N) and on the switch ports",
    );
    let speed = |i: &InterfaceFacts| i.speed_bits_per_sec.map(|speed| speed as u64);
    check_property(
        report,
        inventory,
        &interfaces,
        "link speed",
        &speed,
        &|v| units::format_bits_per_sec(v as f64),
        "check `ethtool DEV`, the cable, the transceiver and the switch port",
    );
}

fn check_property(
    report: &mut DoctorReport,
    inventory: &Inventory,
    interfaces: &BTreeMap<HostId, InterfaceFacts>,
    name: &'static str,
    property: &dyn Fn(&InterfaceFacts) -> Option<u64>,
    show: &dyn Fn(u64) -> String,
    remedy: &str,
) {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for value in interfaces.values().filter_map(property) {
        *counts.entry(value).or_default() += 1;
    }
    let Some((&typical, &count)) = counts.iter().max_by_key(|(_, count)| **count) else {
        let found = match interfaces.is_empty() {
            true => "no host to check",
            false => "not known (virtual interfaces)",
        };
        report.add("all hosts", name, Verdict::Unknown(found.into()));
        return;
    };
    report.add(
        "all hosts",
        name,
        Verdict::Ok(format!("{} on {count} host(s)", show(typical))),
    );
    for (id, interface) in interfaces {
        if let Some(value) = property(interface).filter(|value| *value != typical) {
            let found = format!(
                "{} has {}, most have {}",
                interface.name,
                show(value),
                show(typical)
            );
            report.add(
                inventory.name(*id),
                name,
                Verdict::Warning(found, remedy.to_owned()),
            );
        }
    }
}

/// Every host tries the data ports of a few others: a sample that finds a closed host or a closed
/// direction. `None`: the user asked to stop.
async fn check_data_ports(
    report: &mut DoctorReport,
    inventory: &Inventory,
    members: &mut Members,
) -> Option<()> {
    let alive = members.alive();
    let positions = alive.iter().enumerate();
    let checks = positions.map(|(position, id)| (*id, peers_of(position, &alive)));
    let checks: Checks = checks.filter(|(_, peers)| !peers.is_empty()).collect();
    let answers = ports::ask(members, &checks, true, None).await?;
    for (host, answer) in answers {
        let name = inventory.name(host);
        match answer {
            Answer::Checked(answers) => {
                let peers = checks.get(&host).map_or(&[][..], Vec::as_slice);
                add_port_checks(report, inventory, host, peers, &answers);
            }
            Answer::Lost(reason) => {
                let remedy = "see the line above for this host".to_owned();
                report.add(name, "agent", Verdict::Failed(reason, remedy));
            }
            Answer::Silence => {
                let remedy =
                    "a firewall may drop connections silently; allow the ports of --data-ports";
                let verdict = Verdict::Failed("no answer".into(), remedy.into());
                report.add(name, "data ports", verdict);
            }
        }
    }
    Some(())
}

/// The neighbours at distances 1, half and a third of the fleet: near, far and in between.
fn peers_of(position: usize, alive: &[HostId]) -> Vec<HostId> {
    let count = alive.len();
    let distances = [1, count / 2, count / 3];
    let peers: BTreeSet<HostId> = distances
        .iter()
        .filter(|distance| *distance % count.max(1) != 0)
        .map(|distance| alive[(position + distance) % count])
        .collect();
    peers.into_iter().take(PEERS_CHECKED).collect()
}

fn add_port_checks(
    report: &mut DoctorReport,
    inventory: &Inventory,
    host: HostId,
    peers: &[HostId],
    answers: &[PortAnswer],
) {
    let failures = peers
        .iter()
        .zip(answers)
        .filter_map(|(peer, answer)| Some((peer, answer.error()?)));
    let mut failed = false;
    for (peer, error) in failures {
        failed = true;
        let found = format!("to {}: {error}", inventory.name(*peer));
        let remedy = format!(
            "allow TCP and UDP to the data ports on {} (--data-ports), and check routing between the two",
            inventory.name(*peer)
        );
        report.add(
            inventory.name(host),
            "data ports",
            Verdict::Failed(found, remedy),
        );
    }
    if !failed {
        let names: Vec<&str> = peers.iter().map(|peer| inventory.name(*peer)).collect();
        let found = format!("reaches {}", names.join(", "));
        report.add(inventory.name(host), "data ports", Verdict::Ok(found));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::puppets::Puppets;
    use ew_proto::controller_session::ControllerEvent;

    #[tokio::test(start_paused = true)]
    async fn a_report_that_the_user_cut_short_is_none() {
        let mut puppets = Puppets::up(2);
        puppets.interrupts.try_send(()).unwrap();
        assert_eq!(examine(&mut puppets.members, "ssh").await, None);
        let answers = vec![PortAnswer::Reached {
            round_trip_ns: None,
        }];
        for host in [HostId(0), HostId(1)] {
            let answers = answers.clone();
            puppets.say_of(host, ControllerEvent::PortsChecked { answers });
        }
        let report = examine(&mut puppets.members, "ssh").await.unwrap();
        let ports = |check: &&Check| check.name == "data ports" && check.state == CheckState::Ok;
        assert_eq!(report.checks.iter().filter(ports).count(), 2, "{report:?}");
    }
}
