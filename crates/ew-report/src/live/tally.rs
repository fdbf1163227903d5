//! What the events so far amount to; both live views read it.

use crate::words::{host_name, one_line, plural, rate};
use ew_model::facts::InterfaceFacts;
use ew_model::network::{describe_networks, measured_networks};
use ew_model::units::format_duration_ns;
use ew_model::{FlowOutcome, FlowRecord, HostId, Inventory, Plan, RunEvent, Stage, StageIndex};
use ew_stats::median;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

const NO_FIGURES: &str = "no figures";
/// Hosts that a line about several names.
const MAX_NAMED: usize = 5;

/// The run so far.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) inventory: Inventory,
    pub(super) plan: Option<Plan>,
    pub(super) up: BTreeSet<HostId>,
    pub(super) failed: BTreeSet<HostId>,
    pub(super) lost: BTreeSet<HostId>,
    /// The data interfaces of hosts that are up, with their addresses.
    interfaces: BTreeMap<HostId, (InterfaceFacts, IpAddr)>,
    /// Launches that failed and were not reported yet.
    unreported: Vec<(HostId, String)>,
    /// Lines about failed launches that are due with the latest event: one for all hosts that
    /// failed alike.
    pub(super) failures: Vec<String>,
    stages: BTreeMap<StageIndex, StageTally>,
}

/// A stage so far; several may be under way where stages are interleaved.
#[derive(Default)]
pub(super) struct StageTally {
    rounds_done: u64,
    rates: Vec<f64>,
    /// Each flow's median time, where flows carry requests.
    times_ns: Vec<f64>,
    flows: usize,
    missing: usize,
}

impl Tally {
    pub(super) fn take(&mut self, event: &RunEvent) {
        match event {
            RunEvent::RunStarted {
                inventory, plan, ..
            } => {
                self.inventory = inventory.clone();
                self.plan = Some(plan.clone());
            }
            RunEvent::HostUp {
                host,
                facts,
                address,
                ..
            } => {
                self.up.insert(*host);
                let listed = self.inventory.hosts.get(host.index());
                let address = address.or_else(|| listed?.address);
                let own = address
                    .and_then(|address| Some((facts.interface_with(address)?.clone(), address)));
                self.interfaces.extend(own.map(|own| (*host, own)));
            }
            RunEvent::HostFailed { host, message } => {
                self.failed.insert(*host);
                self.unreported.push((*host, one_line(message)));
            }
            RunEvent::HostLost { host, .. } => {
                self.lost.insert(*host);
            }
            RunEvent::HostReturned { host } => {
                self.lost.remove(host);
            }
            RunEvent::Replanned { plan } => self.plan = Some(plan.clone()),
            RunEvent::RoundFinished { stage, records, .. } => {
                self.stages.entry(*stage).or_default().add_round(records);
            }
            _ => {}
        }
        self.report_failures(event);
    }

    /// `8 of 8 hosts up over eth0, 10.20.0.0/16, 25.0 Gb/s, MTU 9000`: the network once nobody is
    /// waited for any more.
    pub(super) fn launch_result(&self) -> String {
        let (up, all) = (self.up.len(), self.inventory.hosts.len());
        let mut words = format!("{up} of {} up", plural(all, "host"));
        let interfaces = self.interfaces.values();
        let networks = measured_networks(interfaces.map(|(own, address)| (own, *address)));
        if self.launch_is_over() && !networks.is_empty() {
            words.push_str(" over ");
            words.push_str(&one_line(&describe_networks(&networks)));
        }
        words
    }

    /// Failures are reported together once nobody is waited for any more.
    fn report_failures(&mut self, event: &RunEvent) {
        let is_over = matches!(event, RunEvent::Interrupted | RunEvent::RunFinished { .. });
        self.failures = match is_over || self.launch_is_over() {
            true => {
                let unreported = std::mem::take(&mut self.unreported);
                folded(&self.inventory, &unreported)
            }
            false => Vec::new(),
        };
    }

    /// All hosts have answered, one way or the other.
    pub(super) fn launch_is_over(&self) -> bool {
        self.up.union(&self.failed).count() >= self.inventory.hosts.len()
    }

    pub(super) fn host(&self, id: HostId) -> String {
        host_name(&self.inventory, id)
    }

    /// "up", "failed", "lost", or "launching".
    pub(super) fn host_state(&self, id: HostId) -> &'static str {
        if self.lost.contains(&id) {
            "lost"
        } else if self.failed.contains(&id) {
            "failed"
        } else if self.up.contains(&id) {
            "up"
        } else {
            "launching"
        }
    }

    /// The interface that carries a host's address.
    pub(super) fn device(&self, id: HostId) -> Option<&str> {
        let (interface, _) = self.interfaces.get(&id)?;
        Some(&interface.name)
    }

    pub(super) fn stage(&self, index: StageIndex) -> Option<&Stage> {
        self.plan.as_ref()?.stages.get(index.0 as usize)
    }

    pub(super) fn stage_name(&self, index: StageIndex) -> String {
        self.stage(index)
            .map_or_else(|| format!("stage {}", index.0), |s| one_line(&s.name))
    }

    /// `rounds, flows, planned time` of a stage.
    pub(super) fn stage_size(&self, index: StageIndex) -> String {
        self.stage(index).map_or_else(String::new, |stage| {
            let flows: usize = stage.rounds.iter().map(|r| r.flows.len()).sum();
            format!(
                "{}, {}, about {}",
                plural(stage.rounds.len(), "round"),
                plural(flows, "flow"),
                format_duration_ns(stage.planned_ns())
            )
        })
    }

    /// Rounds of a stage that are over.
    pub(super) fn rounds_done(&self, index: StageIndex) -> u64 {
        self.stages.get(&index).map_or(0, |stage| stage.rounds_done)
    }

    /// A stage's flows so far: `median 191 Mb/s, 2 of 96 missing`, or `median 48.2 µs` of requests;
    /// short, so that it fits 80 columns.
    pub(super) fn stage_result(&self, index: StageIndex) -> String {
        let result = self.stages.get(&index).map(StageTally::result);
        result.unwrap_or_else(|| NO_FIGURES.to_owned())
    }

    /// `12 hosts in 3 racks`.
    pub(super) fn size(&self) -> String {
        let hosts = plural(self.inventory.hosts.len(), "host");
        match self.inventory.racks.len() {
            0 => hosts,
            n => format!("{hosts} in {}", plural(n, "rack")),
        }
    }

    /// Planned time of all stages.
    pub(super) fn planned_ns(&self) -> u64 {
        self.plan.as_ref().map_or(0, |p| {
            p.stages
                .iter()
                .fold(0, |sum, s| sum.saturating_add(s.planned_ns()))
        })
    }
}

/// One line for all hosts whose failures are the same but for the host's name.
fn folded(inventory: &Inventory, failures: &[(HostId, String)]) -> Vec<String> {
    let mut classes: Vec<(String, Vec<(HostId, &str)>)> = Vec::new();
    for (host, message) in failures {
        let name = inventory.hosts.get(host.index()).map_or("", |h| &h.name);
        let class = without_name(message, name);
        let member = (*host, message.as_str());
        match classes.iter_mut().find(|(known, _)| *known == class) {
            Some((_, hosts)) => hosts.push(member),
            None => classes.push((class, vec![member])),
        }
    }
    let line = |(class, hosts): (String, Vec<(HostId, &str)>)| {
        let names: Vec<String> = hosts
            .iter()
            .take(MAX_NAMED)
            .map(|(host, _)| host_name(inventory, *host))
            .collect();
        let more = if hosts.len() > MAX_NAMED { ", ..." } else { "" };
        match hosts[..] {
            [(_, message)] => format!("{} did not come up: {message}", names[0]),
            _ => format!(
                "{} hosts did not come up ({}{more}): {class}",
                hosts.len(),
                names.join(", ")
            ),
        }
    };
    classes.into_iter().map(line).collect()
}

/// A message about a host with `HOST` in place of its name, and numbers that differ by try, such as
/// ports, left as they are.
fn without_name(message: &str, name: &str) -> String {
    let own = message
        .strip_prefix(&format!("{name}: "))
        .unwrap_or(message);
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || "-_".contains(c));
    let mut text = String::new();
    let mut rest = own;
    while let Some(at) = rest.find(name).filter(|_| !name.is_empty()) {
        let (before, after) = (&rest[..at], &rest[at + name.len()..]);
        let is_longer = is_part(before.chars().next_back()) || is_part(after.chars().next());
        text.push_str(before);
        text.push_str(if is_longer { name } else { "HOST" });
        rest = after;
    }
    text + rest
}

impl StageTally {
    /// Of one round alone.
    pub(super) fn of_round(records: &[FlowRecord]) -> Self {
        let mut tally = Self::default();
        tally.add_round(records);
        tally
    }

    pub(super) fn median_rate(&self) -> Option<f64> {
        median(&self.rates)
    }

    pub(super) fn median_time_ns(&self) -> Option<f64> {
        median(&self.times_ns)
    }

    pub(super) fn result(&self) -> String {
        let mut parts = Vec::new();
        if let Some(median) = median(&self.times_ns) {
            parts.push(format!("median {}", format_duration_ns(median as u64)));
        } else if let Some(median) = median(&self.rates) {
            parts.push(format!("median {}", rate(Some(median))));
        }
        if self.missing > 0 {
            parts.push(format!("{} of {} missing", self.missing, self.flows));
        }
        if parts.is_empty() {
            parts.push(NO_FIGURES.to_owned());
        }
        parts.join(", ")
    }

    fn add_round(&mut self, records: &[FlowRecord]) {
        self.rounds_done += 1;
        for record in records.iter().filter(|record| !record.is_aggressor) {
            self.flows += 1;
            let measured = record.outcome == FlowOutcome::Measured;
            self.missing += usize::from(!measured);
            let time_ns = median_time_ns(record).filter(|_| measured);
            match time_ns {
                Some(time_ns) => self.times_ns.push(time_ns),
                None => self.rates.extend(record.bits_per_sec()),
            }
        }
    }
}

/// `None` where the flow carries no requests. A tool may report another figure than the median.
fn median_time_ns(record: &FlowRecord) -> Option<f64> {
    let asking = record.sender.as_ref()?;
    let reported = asking.reported.as_ref();
    let told_ns =
        reported.and_then(|reported| reported.p50_ns.or(reported.mean_ns).or(reported.min_ns));
    let of_all = asking.latency.as_ref();
    let of_all_ns = of_all.and_then(|latency| latency.times.quantile(0.5));
    of_all_ns.or(told_ns).map(|ns| ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::inventory::Host;

    fn failures(names: &[&str], message: impl Fn(&str) -> String) -> Vec<String> {
        let hosts = names.iter().map(|name| Host {
            name: (*name).to_owned(),
            address: None,
            rack: None,
        });
        let inventory = Inventory {
            hosts: hosts.collect(),
            racks: Vec::new(),
        };
        let failed = (0..)
            .map(HostId)
            .zip(names.iter().map(|name| message(name)));
        folded(&inventory, &failed.collect::<Vec<_>>())
    }

    #[test]
    fn equal_failures_of_many_hosts_are_one_line_with_some_names() {
        let names = ["n1", "n2", "n3", "n4", "n5", "n6", "n10"];
        let lines = failures(&names, |name| {
            format!("{name}: ops@{name}: Permission denied (publickey).")
        });
        assert_eq!(
            lines,
            [
                "7 hosts did not come up (n1, n2, n3, n4, n5, ...): ops@HOST: Permission denied (publickey)."
            ]
        );
    }

    #[test]
    fn other_failures_and_names_inside_others_stay_apart() {
        let lines = failures(&["n1", "n2", "n3"], |name| match name {
            "n2" => "n2: no route to n2-gw".into(),
            _ => format!("{name}: port 22 of {name}: Connection refused"),
        });
        assert_eq!(
            lines,
            [
                "2 hosts did not come up (n1, n3): port 22 of HOST: Connection refused",
                "n2 did not come up: n2: no route to n2-gw"
            ]
        );
    }
}
