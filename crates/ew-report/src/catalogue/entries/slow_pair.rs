//! Pairs that are slow although their hosts are not.

use crate::catalogue::phrases::list_of;
use crate::catalogue::{Entry, Headline, proof};
use crate::words::plural;
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::{PairRate, SlowPair, SlowPairs};
use ew_model::units::format_bits_per_sec;

impl Entry for SlowPair {
    fn headline(&self, names: &Inventory) -> Headline {
        let (rate, expected) = (self.pair.bits_per_sec, self.expected_bits_per_sec);
        let but = match self.is_distinguished {
            true => "both hosts faster with other peers",
            false => "client, server and path not distinguished with so few peers",
        };
        Headline::new(format!(
            "{}: {:.0}% of expected ({} vs {}), {but}",
            name(&self.pair, names),
            100.0 * rate / expected,
            format_bits_per_sec(rate),
            format_bits_per_sec(expected),
        ))
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        vec![measured(&self.pair, names)]
    }

    fn next_step(&self, _: &Inventory) -> String {
        match self.is_distinguished {
            true => {
                "run the pair again with several streams (`--set streams=8`): if their rates spread, a hash puts connections on a \
                 bad path; then compare per-member counters of the LAG or ECMP group"
            }
            false => "run a mesh, or these two hosts with others, to distinguish the sides",
        }
        .into()
    }
}

impl Entry for SlowPairs {
    fn headline(&self, names: &Inventory) -> Headline {
        let pairs = self.pairs.iter().map(|pair| name(pair, names));
        let pairs: Vec<String> = pairs.collect();
        let slowest = self.pairs.first();
        let slowest = slowest.map_or(String::new(), |pair| format_bits_per_sec(pair.bits_per_sec));
        Headline::new(format!(
            "{} slow, their hosts not: {}; min {slowest} (expected {})",
            plural(self.count, "pair"),
            list_of(&pairs, self.count),
            format_bits_per_sec(self.expected_bits_per_sec),
        ))
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let pairs = self.pairs.iter();
        pairs.map(|pair| measured(pair, names)).collect()
    }

    fn next_step(&self, _: &Inventory) -> String {
        "look whether the slow pairs share a leaf, a spine or a LAG: per-member counters and hashing first; without racks, give \
         them with --racks"
            .into()
    }
}

fn name(pair: &PairRate, names: &Inventory) -> String {
    format!("{} to {}", names.name(pair.src), names.name(pair.dst))
}

fn measured(pair: &PairRate, names: &Inventory) -> Evidence {
    proof(
        format!(
            "{}: {} in {}",
            name(pair, names),
            format_bits_per_sec(pair.bits_per_sec),
            plural(pair.rounds, "round"),
        ),
        format!(
            "flows.parquet: src = {}, dst = {}",
            names.name(pair.src),
            names.name(pair.dst)
        ),
    )
}
