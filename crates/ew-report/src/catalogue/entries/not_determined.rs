//! Below expectation, and nothing found explains it.

use crate::catalogue::phrases::{list_of, percent};
use crate::catalogue::{Entry, Headline, proof};
use crate::words::plural;
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::{FlowsUnexplained, NoCpuLeft, StageBelow, UnexplainedPair};
use ew_model::units::format_bits_per_sec;

impl Entry for FlowsUnexplained {
    fn headline(&self, names: &Inventory) -> Headline {
        let pairs = self.pairs.iter().map(|pair| pair_name(pair, names));
        Headline::new(format!(
            "{} unexplained: {}, min {:.0}% of expected; too few rounds to determine a cause",
            plural(self.flows, "flow"),
            list_of(&pairs.collect::<Vec<_>>(), self.pair_count),
            100.0 * self.worst_share,
        ))
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let pairs = self.pairs.iter().map(|pair| of_pair(pair, names));
        std::iter::once(by_host(self, names)).chain(pairs).collect()
    }

    fn next_step(&self, _: &Inventory) -> String {
        "measure each pair at least three times (`--set samples=3`): what stays is a path, what goes was a moment".into()
    }
}

fn pair_name(pair: &UnexplainedPair, names: &Inventory) -> String {
    format!("{} to {}", names.name(pair.src), names.name(pair.dst))
}

/// "by host: r1h2 12, r2h1 4".
fn by_host(found: &FlowsUnexplained, names: &Inventory) -> Evidence {
    let hosts = found.hosts.iter();
    let hosts = hosts.map(|host| format!("{} {}", names.name(host.host), host.flows));
    proof(
        format!("by host: {}", hosts.collect::<Vec<_>>().join(", ")),
        "flows.parquet: src or dst",
    )
}

fn of_pair(pair: &UnexplainedPair, names: &Inventory) -> Evidence {
    proof(
        format!(
            "{}: median {} of {} expected, {}",
            pair_name(pair, names),
            format_bits_per_sec(pair.bits_per_sec),
            format_bits_per_sec(pair.expected_bits_per_sec),
            plural(pair.flows, "flow")
        ),
        format!(
            "flows.parquet: src = {}, dst = {}",
            names.name(pair.src),
            names.name(pair.dst)
        ),
    )
}

impl Entry for StageBelow {
    fn headline(&self, _: &Inventory) -> Headline {
        let below = format!(
            "{}: {} of expected throughput",
            self.stage,
            percent(self.reached_share)
        );
        match self.cpu {
            Some(_) => Headline::new(below).because("hosts' CPUs saturated"),
            None => Headline::new(format!("{below}, cause not determined")),
        }
    }

    fn evidence(&self, _: &Inventory) -> Vec<Evidence> {
        let compared = proof(
            format!(
                "{} of what hosts and paths as measured allow (max-min), median over {}",
                percent(self.explained_share),
                plural(self.rounds, "round")
            ),
            format!("flows.parquet: stage `{}`", self.stage),
        );
        let cpu = self.cpu.as_ref().map(|cpu| without_cpu(cpu, &self.stage));
        std::iter::once(compared).chain(cpu).collect()
    }

    fn next_step(&self, names: &Inventory) -> String {
        match self.cpu {
            Some(_) => {
                "hosts that share CPUs (virtual machines, a lab) cannot all be measured at once: fewer hosts, fewer streams, or \
                 less other load on them"
            }
            None if names.racks.is_empty() => {
                "give the racks if there are any (--racks), look at CPU use and retransmits of the hosts in the report, and repeat \
                 with more streams"
            }
            None => {
                "look at CPU use and retransmits of the hosts in the report, and repeat with more streams"
            }
        }
        .into()
    }
}

fn without_cpu(found: &NoCpuLeft, stage: &str) -> Evidence {
    match found {
        NoCpuLeft::BusySenders { busy_share } => busy("sending", *busy_share, stage),
        NoCpuLeft::BusyReceivers { busy_share } => busy("receiving", *busy_share, stage),
        NoCpuLeft::Starvation {
            starved_flows,
            flows,
        } => proof(
            format!(
                "{starved_flows} of {} CPU-starved: the I/O threads waited for a CPU, or the hypervisor stole it",
                plural(*flows, "flow")
            ),
            format!(
                "flows.parquet: stage `{stage}`, tx_cpu_engine_wait_ns and rx_cpu_engine_wait_ns"
            ),
        ),
    }
}

fn busy(end: &str, share: f64, stage: &str) -> Evidence {
    proof(
        format!(
            "the {end} hosts' CPUs were {:.0}% busy: they, and not the network, are the limit",
            100.0 * share
        ),
        format!("flows.parquet: stage `{stage}`, tx_cpu_busy_ns and rx_cpu_busy_ns"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn racks_are_asked_for_where_none_are_known() {
        let below = StageBelow {
            stage: "mesh".into(),
            reached_share: 0.5,
            explained_share: 0.5,
            rounds: 6,
            cpu: None,
        };
        assert!(below.next_step(&Inventory::default()).contains("--racks"));
    }
}
