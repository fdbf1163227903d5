//! Parallel paths between racks: how many, what hashing costs, and one that is narrow.

use crate::catalogue::phrases::{list, one_direction, percent};
use crate::catalogue::{Entry, Headline, proof};
use crate::words::plural;
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::{
    HashingCost, NarrowPath, NumberOfPaths, PathsByRates, PathsByRouters, RateInterval,
};
use ew_model::units::format_bits_per_sec;

const SEVERAL_CONNECTIONS: &str = "capacity needs several connections per host (`--set streams=8`); what single connections get is the price \
     of hashing";

impl Entry for PathsByRouters {
    fn headline(&self, _: &Inventory) -> Headline {
        let cost = cost(self.hashing.as_ref(), self.paths);
        Headline::new(format!("{} parallel paths per rack: {cost}", self.paths))
    }

    fn evidence(&self, _: &Inventory) -> Vec<Evidence> {
        vec![proof(
            format!(
                "routers met by {} traced",
                plural(self.traced_connections, "connection")
            ),
            "flows.parquet: stages of workload trace",
        )]
    }

    fn next_step(&self, _: &Inventory) -> String {
        SEVERAL_CONNECTIONS.into()
    }
}

impl Entry for PathsByRates {
    fn headline(&self, _: &Inventory) -> Headline {
        let numbers: Vec<usize> = self.numbers.iter().map(|number| number.paths).collect();
        Headline::new(format!(
            "{} parallel paths per rack, {} each, {} together: {}",
            either(&numbers),
            range(&self.each),
            range(&self.total),
            cost(self.hashing.as_ref(), self.paths),
        ))
    }

    fn evidence(&self, _: &Inventory) -> Vec<Evidence> {
        let likely = |number: &NumberOfPaths| {
            let probability = percent(number.probability);
            format!("{} ({probability})", number.paths)
        };
        let posterior = list(&self.numbers.iter().map(likely).collect::<Vec<_>>());
        vec![proof(
            format!("posterior of the number of paths: {posterior}"),
            "flows.parquet: cross-rack flows, by round",
        )]
    }

    fn next_step(&self, _: &Inventory) -> String {
        SEVERAL_CONNECTIONS.into()
    }
}

impl Entry for NarrowPath {
    fn headline(&self, names: &Inventory) -> Headline {
        let racks = self.racks.iter().map(|rack| names.rack_name(*rack));
        let racks: Vec<&str> = racks.collect();
        let which = match racks.len() {
            1 => one_direction(self.directions),
            _ => " (not distinguished)",
        };
        Headline::new(format!(
            "{}{which}: one of {} uplink paths at {} (others {}), 1 of {} connections affected",
            racks.join(" or "),
            either(&self.likely_paths),
            format_bits_per_sec(self.bits_per_sec),
            format_bits_per_sec(self.others_bits_per_sec),
            self.paths,
        ))
    }

    fn evidence(&self, _: &Inventory) -> Vec<Evidence> {
        vec![proof(
            format!(
                "explains {} of {} flows in {} rounds",
                self.explained, self.touched, self.rounds
            ),
            "flows.parquet: cross-rack flows, by round",
        )]
    }

    fn next_step(&self, _: &Inventory) -> String {
        "compare speed, errors and bytes of each member of the rack's uplinks (ECMP or LAG) on the leaf switch"
            .into()
    }
}

/// "single flows get 81% of the capacity because paths are hashed (expected for 4 paths: 84%)".
/// Without a test of single flows, that they collide.
fn cost(of_hashing: Option<&HashingCost>, paths: usize) -> String {
    match of_hashing {
        Some(cost) => format!(
            "single flows get {} of the capacity because paths are hashed (expected for {paths} paths: {})",
            percent(cost.measured_share),
            percent(cost.expected_share),
        ),
        None => "single flows share paths by hash (expected)".into(),
    }
}

/// "4", "4 or 6".
fn either(numbers: &[usize]) -> String {
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    numbers.join(" or ")
}

/// "45.0 Mb/s to 52.0 Mb/s".
fn range(interval: &RateInterval) -> String {
    let low = format_bits_per_sec(interval.low_bits_per_sec);
    let high = format_bits_per_sec(interval.high_bits_per_sec);
    format!("{low} to {high}")
}
