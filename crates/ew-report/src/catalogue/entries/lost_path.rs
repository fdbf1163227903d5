//! A rack uses fewer paths than the others, or than expected.

use crate::catalogue::phrases::{one_direction, path_routers, path_via};
use crate::catalogue::{Entry, Headline, proof};
use crate::words::plural;
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::{Directions, LostPath, LostPathLocation, PathExpectation};

impl Entry for LostPath {
    fn headline(&self, names: &Inventory) -> Headline {
        let (used, of) = (self.used_paths, self.expected_paths);
        let in_use = match self.expectation {
            PathExpectation::OneShort => format!("{used} paths in use, one short of {of}"),
            PathExpectation::Configured => format!("{used} of {of} paths in use (expected {of})"),
            PathExpectation::OtherRacks => {
                let others = match self.location {
                    LostPathLocation::OneWay { .. } => "other direction",
                    _ => "other racks",
                };
                format!("{used} of {of} paths in use ({others} {of})")
            }
        };
        let without = path_via(&self.unused_routers);
        let without = without.map_or(String::new(), |path| format!(", not the {path}"));
        Headline::new(format!("{}: {in_use}{without}", location(self, names)))
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let seen = format!(
            "{} of {} routers seen on the paths of {}",
            self.used_paths,
            self.expected_paths,
            plural(self.traced_connections, "connection"),
        );
        let unused = (!self.unused_routers.is_empty()).then(|| {
            let routers = path_routers(names, &self.unused_routers);
            match (self.expectation, self.location) {
                (PathExpectation::OneShort, _) => {
                    format!("the addresses of the others skip {routers}")
                }
                (_, LostPathLocation::Rack { rack }) if self.directions != Directions::Tx => {
                    format!("not used towards {}: {routers}", names.rack_name(rack))
                }
                _ => format!("not used: {routers}"),
            }
        });
        let texts = std::iter::once(seen).chain(unused);
        texts
            .map(|text| proof(text, "flows.parquet: stages of workload trace"))
            .collect()
    }

    fn next_step(&self, _: &Inventory) -> String {
        match self.expectation {
            PathExpectation::OneShort => {
                "if the fabric has one more path, a spine or its links are down for all racks; state the number with \
                 `--set expect.paths=N`, so that it is compared"
            }
            PathExpectation::Configured | PathExpectation::OtherRacks => {
                "look for an uplink that is down or a route that is withdrawn on the leaf switch, and on the spine above it; if the \
                 rack has fewer uplinks by design, nothing is wrong"
            }
        }
        .into()
    }
}

fn location(found: &LostPath, names: &Inventory) -> String {
    match found.location {
        LostPathLocation::Rack { rack } => {
            format!(
                "{}{}",
                names.rack_name(rack),
                one_direction(found.directions)
            )
        }
        LostPathLocation::OneWay { from, to } => {
            format!("{} to {}", names.rack_name(from), names.rack_name(to))
        }
        LostPathLocation::BetweenTwoRacks => "between the racks".into(),
        LostPathLocation::EveryRack => "every rack".into(),
    }
}
