//! A rack's uplinks, or a pod's, carry less than its hosts could send or receive.

use crate::catalogue::phrases::{directions, rack_list, ratio};
use crate::catalogue::{Entry, Headline, proof};
use crate::words::plural;
use ew_model::Inventory;
use ew_model::RackId;
use ew_model::finding::Evidence;
use ew_model::finding::details::{
    Directions, Oversubscribed, OversubscribedPods, PodLimit, UplinkLimit, UplinkRivals,
};
use ew_model::units::format_bits_per_sec;

impl Entry for Oversubscribed {
    fn headline(&self, names: &Inventory) -> Headline {
        let against = self.configured.map_or(String::new(), |configured| {
            format!(" (expected {configured:.1}:1)")
        });
        let others = match self.is_unlike_others {
            true => ", other racks not",
            false => "",
        };
        let ratio = ratio(&self.ratio);
        let what = match self.one_way() {
            Some((from, to)) => format!(
                "{} to {}: oversubscribed {ratio}",
                names.rack_name(from),
                names.rack_name(to)
            ),
            None => format!(
                "{}: oversubscribed {ratio} {}",
                who(self, names),
                directions(self.directions)
            ),
        };
        Headline::new(format!("{what}{against}{others}"))
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let of = |limit: &UplinkLimit| {
            let rivals = limit
                .rivals
                .as_ref()
                .map(|rivals| not_distinguished(rivals, names));
            std::iter::once(carried(limit, names)).chain(rivals)
        };
        self.limits.iter().flat_map(of).collect()
    }

    fn next_step(&self, _: &Inventory) -> String {
        if self.is_unexpected {
            "if not intended: compare the number and speed of uplinks that are up on the leaf switches with the design, then \
             per-member counters of their ECMP or LAG groups"
                .into()
        } else {
            "nothing to do while jobs are placed with this in mind".into()
        }
    }
}

impl Entry for OversubscribedPods {
    fn headline(&self, names: &Inventory) -> Headline {
        let ratio = ratio(&self.ratio);
        let way = directions(self.directions);
        Headline::new(match self.pods.as_slice() {
            [from, to] if self.is_one_way => {
                format!(
                    "{} to {}: oversubscribed {ratio}",
                    pod(names, from),
                    pod(names, to)
                )
            }
            [one] => format!("{}: oversubscribed {ratio} {way}", pod(names, one)),
            [one, other] => {
                format!(
                    "{} and {}: oversubscribed {ratio} {way}",
                    pod(names, one),
                    pod(names, other)
                )
            }
            many => format!("{} pods: oversubscribed {ratio} {way}", many.len()),
        })
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let of = |limit: &PodLimit| carried_to_rest(limit, names);
        self.limits.iter().map(of).collect()
    }

    fn next_step(&self, _: &Inventory) -> String {
        "if not intended: compare the number and speed of links that are up between the pod's spines and the tier above with the design; \
         place jobs inside one pod meanwhile"
            .into()
    }
}

/// "pod of rack1 and rack2".
fn pod(names: &Inventory, racks: &[RackId]) -> String {
    format!("pod of {}", rack_list(names, racks))
}

fn carried_to_rest(limit: &PodLimit, names: &Inventory) -> Evidence {
    let hosts: usize = (limit.racks.iter())
        .map(|rack| names.hosts_in(*rack).len())
        .sum();
    let stage = limit.stage.as_ref();
    let stage = stage.map_or(String::new(), |stage| format!(", stage `{stage}`"));
    proof(
        format!(
            "{} {}: links to the other racks carry {} of payload, its {} {} at the rate of their class ({})",
            pod(names, &limit.racks),
            directions(limit.direction),
            format_bits_per_sec(limit.capacity_bits_per_sec),
            plural(hosts, "host"),
            format_bits_per_sec(limit.hosts_bits_per_sec),
            plural(limit.rounds, "round"),
        ),
        format!("flows.parquet: src_rack and dst_rack of different pods{stage}"),
    )
}

/// "rack2", "rack1 and rack2", "all 6 racks", "39 of 40 racks".
fn who(found: &Oversubscribed, names: &Inventory) -> String {
    let all = names.racks.len();
    match found.racks.as_slice() {
        racks if racks.len() == 1 || all == 2 => rack_list(names, racks),
        racks if racks.len() == all => format!("all {all} racks"),
        racks => format!("{} of {all} racks", racks.len()),
    }
}

fn carried(limit: &UplinkLimit, names: &Inventory) -> Evidence {
    let name = names.rack_name(limit.rack);
    let column = match limit.direction {
        Directions::Rx => "dst_rack",
        _ => "src_rack",
    };
    let stage = limit.stage.as_ref();
    let stage = stage.map_or(String::new(), |stage| format!(", stage `{stage}`"));
    proof(
        format!(
            "{name} {}: uplinks carry {} of payload, its {} {} at the rate of their class ({})",
            directions(limit.direction),
            format_bits_per_sec(limit.capacity_bits_per_sec),
            plural(names.hosts_in(limit.rack).len(), "host"),
            format_bits_per_sec(limit.hosts_bits_per_sec),
            plural(limit.rounds, "round"),
        ),
        format!("flows.parquet: {column} = {name}{stage}"),
    )
}

fn not_distinguished(rivals: &UplinkRivals, names: &Inventory) -> Evidence {
    proof(
        format!(
            "not distinguished from {}: these uplinks would explain the same flows",
            rack_list(names, &rivals.racks)
        ),
        format!(
            "flows.parquet: {} explained of {}",
            rivals.explained,
            plural(rivals.touched, "flow")
        ),
    )
}
