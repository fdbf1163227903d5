//! A rack uses fewer paths than the others, or than expected.

use crate::catalogue::phrases::{count, one_direction, path_routers};
use crate::catalogue::{Entry, Headline, proof};
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::{LostPath, LostPathLocation, PathExpectation};

impl Entry for LostPath {
    fn headline(&self, names: &Inventory) -> Headline {
        let (used, of) = (self.used_paths, self.expected_paths);
        let in_use = match self.expectation {
            PathExpectation::OneShort => format!("{used} paths in use, one short of {of}"),
            PathExpectation::Configured => format!("{used} of {of} paths in use (expected {of})"),
            PathExpectation::OtherRacks => {
                format!("{used} of {of} paths in use (other racks {of})")
            }
        };
        Headline::new(format!(
            "{}{}: {in_use}",
            location(self, names),
            one_direction(self.directions)
        ))
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let seen = format!(
            "{} of {} routers seen on the paths of {}",
            self.used_paths,
            self.expected_paths,
            count(self.traced_connections, "connection"),
        );
        let unused = (!self.unused_routers.is_empty()).then(|| {
            format!(
                "not used towards {}: {}",
                location(self, names),
                path_routers(names, &self.unused_routers)
            )
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

fn location<'a>(found: &LostPath, names: &'a Inventory) -> &'a str {
    match found.location {
        LostPathLocation::Rack { rack } => names.rack_name(rack),
        LostPathLocation::BetweenTwoRacks => "between the racks",
        LostPathLocation::EveryRack => "every rack",
    }
}
