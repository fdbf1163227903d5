//! What a run is about to do to the network, shown before it does it; much of it is asked about on
//! a terminal.

use crate::exit::Failure;
use crate::output;
use anyhow::anyhow;
use ew_controller::MaxRate;
use ew_model::units::{format_bits_per_sec, format_bytes, format_duration_ns};
use ew_model::{Plan, Scenario, Stage};
use ew_plan::estimate::{estimate_stage, fills_links};
use std::io::IsTerminal;

/// More hosts than this are asked about.
const MANY_HOSTS: usize = 32;
/// More bytes than this are asked about.
const MANY_BYTES: u64 = 1 << 40;

/// What a run at a terminal may move without a question, in each of so many networks, where line
/// rates come from the hosts. `None`: everything, because it was counted or confirmed.
pub(crate) fn max_bytes(is_confirmed: bool, yes: bool, networks: usize) -> Option<u64> {
    let is_asked = !is_confirmed && !yes && is_at_terminal();
    is_asked.then(|| MANY_BYTES / networks.max(1) as u64)
}

fn is_at_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// A run in figures.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PreFlight {
    hosts: usize,
    network: String,
    peak: Peak,
    /// `None` when unknown without a line rate.
    bytes: Option<u64>,
    /// `None` when nobody can know.
    planned_ns: Option<u64>,
    /// What is connected to: `data ports 5401-5499`.
    ports: String,
}

/// The most that a host's link carries in one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Peak {
    BitsPerSec(f64),
    /// Of a line rate that is not known yet.
    Share(f64),
}

/// How long a plan's rounds take.
pub(crate) fn time_of(plan: &Plan) -> String {
    format_duration_ns(plan.stages.iter().map(Stage::planned_ns).sum())
}

/// In words, a time budget that the plan exceeds with all that may be saved.
pub(crate) fn over_budget(plan: &Plan, scenario: &Scenario) -> Option<String> {
    let budget_ns = scenario.time_budget_ns?;
    let planned_ns: u64 = plan.stages.iter().map(Stage::planned_ns).sum();
    (planned_ns > budget_ns).then(|| {
        format!(
            "the time budget of {} cannot be met: with the shortest windows and without optional tests the run takes up to {}; raise it with \
             --time-budget, or lower --samples",
            format_duration_ns(budget_ns),
            format_duration_ns(planned_ns)
        )
    })
}

impl PreFlight {
    /// Of a plan, over a network in words.
    pub(crate) fn of(
        plan: &Plan,
        hosts: usize,
        network: String,
        ports: (u16, u16),
        max_rate: Option<MaxRate>,
    ) -> Self {
        let peak = Peak::of(plan.expect.nic_bits_per_sec, max_rate);
        let rate = match peak {
            Peak::BitsPerSec(rate) => Some(rate),
            Peak::Share(_) => None,
        };
        let loads = plan.stages.iter().filter(|stage| fills_links(stage));
        let bytes = loads.map(|stage| estimate_stage(stage, rate).bytes);
        Self {
            hosts,
            network,
            peak,
            bytes: bytes.sum(),
            planned_ns: Some(plan.stages.iter().map(Stage::planned_ns).sum()),
            ports: format!("data ports {}-{}", ports.0, ports.1),
        }
    }

    /// The same in each of several networks, one after the other.
    pub(crate) fn in_networks(self, networks: usize) -> Self {
        let times = networks.max(1) as u64;
        Self {
            bytes: self.bytes.map(|bytes| bytes.saturating_mul(times)),
            planned_ns: self.planned_ns.map(|ns| ns.saturating_mul(times)),
            ..self
        }
    }

    /// Of files on storage.
    pub(crate) fn of_files(hosts: usize, network: String, bytes: u64, target: &str) -> Self {
        Self {
            hosts,
            network,
            peak: Peak::Share(1.0),
            bytes: Some(bytes),
            planned_ns: None,
            ports: format!("storage {target}"),
        }
    }

    fn words(&self) -> String {
        let Self {
            hosts,
            network,
            ports,
            ..
        } = self;
        let rate = match self.peak {
            Peak::BitsPerSec(rate) => format!(
                "up to {} per host and {} in sum",
                format_bits_per_sec(rate),
                format_bits_per_sec(rate * *hosts as f64)
            ),
            Peak::Share(share) if share < 1.0 => {
                format!("up to {:.0}% of line rate on every NIC", 100.0 * share)
            }
            Peak::Share(_) => "up to line rate on every NIC".into(),
        };
        let bytes = match self.bytes {
            Some(bytes) => format!("up to {}", format_bytes(bytes)),
            None => "bytes unknown until hosts report their line rates (--expect-nic 10G)".into(),
        };
        let time = match self.planned_ns {
            Some(planned_ns) => format!("estimated time {}", format_duration_ns(planned_ns)),
            None => "as long as that takes".into(),
        };
        format!("{hosts} hosts, network: {network}; {time}; {rate}, {bytes}; {ports}")
    }

    fn is_much(&self) -> bool {
        self.hosts > MANY_HOSTS || self.bytes.is_some_and(|bytes| bytes > MANY_BYTES)
    }

    /// Prints it on stderr unless quiet, and asks where it is much and somebody sits at a terminal
    /// who has not given `--yes`. Returns whether the answer was yes.
    ///
    /// # Errors
    /// A usage failure when the answer is no.
    pub(crate) fn confirm(&self, yes: bool, quiet: bool) -> Result<bool, Failure> {
        let is_asked = self.is_much() && !yes && is_at_terminal();
        if !quiet || is_asked {
            output::say(&format!("pre-flight: {}", self.words()));
        }
        if !is_asked {
            return Ok(false);
        }
        output::say("Start? [y/N]");
        let mut answer = String::new();
        // No answer is a no.
        let _ = std::io::stdin().read_line(&mut answer);
        match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Ok(true),
            _ => Err(Failure::usage(anyhow!(
                "not started: it was not confirmed; --yes starts without the question"
            ))),
        }
    }
}

impl Peak {
    fn of(nic_bits_per_sec: Option<f64>, max_rate: Option<MaxRate>) -> Self {
        match (nic_bits_per_sec, max_rate) {
            (Some(nic), None) => Self::BitsPerSec(nic),
            (Some(nic), Some(MaxRate::Share(share))) => Self::BitsPerSec(share * nic),
            (Some(nic), Some(MaxRate::BitsPerSec(rate))) => Self::BitsPerSec(rate.min(nic)),
            (None, Some(MaxRate::BitsPerSec(rate))) => Self::BitsPerSec(rate),
            (None, Some(MaxRate::Share(share))) => Self::Share(share),
            (None, None) => Self::Share(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_hosts_and_many_bytes_are_much() {
        let small = PreFlight {
            hosts: 32,
            network: "10.20.0.0/16".into(),
            peak: Peak::BitsPerSec(10e9),
            bytes: Some(MANY_BYTES),
            planned_ns: Some(120_000_000_000),
            ports: "data ports 5401-5499".into(),
        };
        assert!(!small.is_much());
        assert_eq!(
            small.words(),
            "32 hosts, network: 10.20.0.0/16; estimated time 2 min 0 s; up to 10.0 Gb/s per host and 320 Gb/s in sum, up to 1.00 TiB; data \
             ports 5401-5499"
        );
        let two = small.clone().in_networks(2);
        assert!(two.is_much() && !small.clone().in_networks(0).is_much());
        assert!(two.words().contains("estimated time 4 min 0 s"));
        assert!(two.words().contains("up to 2.00 TiB"), "{}", two.words());
        let many_bytes = PreFlight {
            bytes: Some(MANY_BYTES + 1),
            ..small.clone()
        };
        let many_hosts = PreFlight {
            hosts: 33,
            bytes: None,
            ..small
        };
        assert!(many_bytes.is_much() && many_hosts.is_much());
        assert!(many_hosts.words().contains("--expect-nic"));
    }

    #[test]
    fn a_budget_that_cannot_be_met_is_reported_with_the_min() {
        let text = "name: t\ntime-budget: 1s\ntests: [{pattern: mesh, duration: 2s, warm-up: 0, gap: 10ms}]\n";
        let scenario = ew_plan::scenario::parse(text, "t", &[]).unwrap();
        let host = |name: &str| ew_model::Host {
            name: name.into(),
            address: None,
            rack: None,
        };
        let inventory = ew_model::Inventory {
            hosts: ["a", "b"].map(host).to_vec(),
            racks: Vec::new(),
        };
        let plan = ew_plan::plan(&scenario, &inventory, 1).unwrap();
        let words = over_budget(&plan, &scenario).unwrap();
        assert!(words.contains("budget of 1.00 s cannot be met"), "{words}");
        assert!(words.contains(&time_of(&plan)), "{words}");
        let enough = Scenario {
            time_budget_ns: Some(60_000_000_000),
            ..scenario
        };
        assert_eq!(over_budget(&plan, &enough), None);
    }

    #[test]
    fn a_limit_is_the_peak() {
        let (share, rate) = (Some(MaxRate::Share(0.1)), Some(MaxRate::BitsPerSec(2e9)));
        for (nic, limit, peak) in [
            (Some(10e9), share, Peak::BitsPerSec(1e9)),
            (Some(10e9), rate, Peak::BitsPerSec(2e9)),
            (Some(1e9), rate, Peak::BitsPerSec(1e9)),
            (None, rate, Peak::BitsPerSec(2e9)),
            (None, share, Peak::Share(0.1)),
        ] {
            assert_eq!(Peak::of(nic, limit), peak, "{nic:?} {limit:?}");
        }
        let files = PreFlight {
            peak: Peak::Share(0.1),
            ..PreFlight::of_files(2, "eth0".into(), 1 << 30, "hdfs://nn/")
        };
        assert_eq!(
            files.words(),
            "2 hosts, network: eth0; as long as that takes; up to 10% of line rate on every NIC, up to 1.00 GiB; storage hdfs://nn/"
        );
    }
}
