//! What a run is about to do to the network, said before it does it; much of it is asked about on a
//! terminal.

use crate::exit::Failure;
use crate::output;
use anyhow::anyhow;
use ew_model::units::{format_bits_per_sec, format_bytes, format_duration_ns};
use ew_model::{Plan, Stage};
use ew_plan::estimate::{estimate_stage, fills_links};
use std::io::IsTerminal;

/// More hosts than this are asked about.
const MANY_HOSTS: usize = 32;
/// More bytes than this are asked about.
const MANY_BYTES: u64 = 1 << 40;

/// A run in figures.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PreFlight {
    hosts: usize,
    network: String,
    nic_bits_per_sec: Option<f64>,
    /// `None` when unknown without a line rate.
    bytes: Option<u64>,
    planned_ns: u64,
    ports: (u16, u16),
}

/// How long a plan's rounds take.
pub(crate) fn time_of(plan: &Plan) -> String {
    format_duration_ns(plan.stages.iter().map(Stage::planned_ns).sum())
}

impl PreFlight {
    /// Of a plan, over a network in words.
    pub(crate) fn of(plan: &Plan, hosts: usize, network: String, ports: (u16, u16)) -> Self {
        let nic_bits_per_sec = plan.expect.nic_bits_per_sec;
        let loads = plan.stages.iter().filter(|stage| fills_links(stage));
        let bytes = loads.map(|stage| estimate_stage(stage, nic_bits_per_sec).bytes);
        Self {
            hosts,
            network,
            nic_bits_per_sec,
            bytes: bytes.sum(),
            planned_ns: plan.stages.iter().map(Stage::planned_ns).sum(),
            ports,
        }
    }

    fn words(&self) -> String {
        let Self { hosts, network, .. } = self;
        let rate = match self.nic_bits_per_sec {
            Some(nic) => format!(
                "up to {} per host and {} in sum",
                format_bits_per_sec(nic),
                format_bits_per_sec(nic * *hosts as f64)
            ),
            None => "up to line rate on every NIC".into(),
        };
        let bytes = match self.bytes {
            Some(bytes) => format!("up to {}", format_bytes(bytes)),
            None => "bytes unknown without a line rate (--expect-nic 10G)".into(),
        };
        let time = format_duration_ns(self.planned_ns);
        let (first, last) = self.ports;
        format!(
            "{hosts} hosts, network: {network}; estimated time {time}; {rate}, {bytes}; data ports {first}-{last}"
        )
    }

    fn is_much(&self) -> bool {
        self.hosts > MANY_HOSTS || self.bytes.is_some_and(|bytes| bytes > MANY_BYTES)
    }

    /// Says it on stderr unless quiet, and asks where it is much and somebody sits at a terminal
    /// who has not said `--yes`.
    ///
    /// # Errors
    /// A usage failure when the answer is no.
    pub(crate) fn confirm(&self, yes: bool, quiet: bool) -> Result<(), Failure> {
        let is_asked = self.is_much()
            && !yes
            && std::io::stdin().is_terminal()
            && std::io::stderr().is_terminal();
        if !quiet || is_asked {
            output::say(&format!("pre-flight: {}", self.words()));
        }
        if !is_asked {
            return Ok(());
        }
        output::say("Start? [y/N]");
        let mut answer = String::new();
        // No answer is a no.
        let _ = std::io::stdin().read_line(&mut answer);
        match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(Failure::usage(anyhow!(
                "not started: it was not confirmed; --yes starts without the question"
            ))),
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
            nic_bits_per_sec: Some(10e9),
            bytes: Some(MANY_BYTES),
            planned_ns: 120_000_000_000,
            ports: (5401, 5499),
        };
        assert!(!small.is_much());
        assert_eq!(
            small.words(),
            "32 hosts, network: 10.20.0.0/16; estimated time 2 min 0 s; up to 10.0 Gb/s per host and 320 Gb/s in sum, up to 1.00 TiB; data \
             ports 5401-5499"
        );
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
}
