//! Names, lists and numbers as sentences need them.

use ew_model::analysis::Estimate;
use ew_model::finding::details::{Directions, OwnAndPeers, PathLocation, PathRouter};
use ew_model::{HostId, Inventory, RackId};

/// Names a sentence lists before it says "and N more".
const MAX_NAMES: usize = 6;

/// "a", "a and b", "a, b and 4 more".
pub(in crate::catalogue) fn list(names: &[String]) -> String {
    let shown = if names.len() > MAX_NAMES {
        MAX_NAMES - 1
    } else {
        names.len()
    };
    let more = names.len() - shown;
    match (&names[..shown], more) {
        ([], _) => String::new(),
        ([one], 0) => one.clone(),
        ([first @ .., last], 0) => format!("{} and {last}", first.join(", ")),
        (some, more) => format!("{} and {more} more", some.join(", ")),
    }
}

/// The hosts' names as a list.
pub(in crate::catalogue) fn host_list(
    inventory: &Inventory,
    hosts: impl Iterator<Item = HostId>,
) -> String {
    list(
        &hosts
            .map(|host| inventory.name(host).to_owned())
            .collect::<Vec<_>>(),
    )
}

/// The racks' names as a list.
pub(in crate::catalogue) fn rack_list(names: &Inventory, racks: &[RackId]) -> String {
    let named = racks.iter().map(|rack| names.rack_name(*rack).to_owned());
    list(&named.collect::<Vec<_>>())
}

/// "TX", "RX", "in both directions".
pub(in crate::catalogue) fn directions(which: Directions) -> &'static str {
    match which {
        Directions::Tx => "TX",
        Directions::Rx => "RX",
        Directions::Both => "in both directions",
    }
}

/// "4.0:1 (3.9–4.1)"; "4.0:1" without an interval, or with one that shows the same at both ends.
pub(in crate::catalogue) fn ratio(estimate: &Estimate) -> String {
    let one = |ratio: f64| format!("{ratio:.1}");
    let value = one(estimate.value);
    match (estimate.low.map(one), estimate.high.map(one)) {
        (Some(low), Some(high)) if low != value || high != value => {
            format!("{value}:1 ({low}–{high})")
        }
        _ => format!("{value}:1"),
    }
}

/// "37%", "0.4%".
pub(in crate::catalogue) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent.abs() < 10.0 && percent != 0.0 {
        true => format!("{percent:.1}%"),
        false => format!("{percent:.0}%"),
    }
}

/// ", its peers' 3%", or nothing.
pub(in crate::catalogue) fn next_to_peers(
    figure: &OwnAndPeers,
    words: impl Fn(f64) -> String,
) -> String {
    figure.peers.map_or(String::new(), |peers| {
        format!(", its peers' {}", words(peers))
    })
}

/// The same as [`list`] of `all` names, of which these are the first: at least as many as it shows.
pub(in crate::catalogue) fn list_of(first: &[String], all: usize) -> String {
    if all <= MAX_NAMES {
        return list(first);
    }
    let shown = &first[..first.len().min(MAX_NAMES - 1)];
    format!("{} and {} more", shown.join(", "), all - shown.len())
}

/// " TX", " RX", or nothing for both.
pub(in crate::catalogue) fn one_direction(which: Directions) -> &'static str {
    match which {
        Directions::Tx => " TX",
        Directions::Rx => " RX",
        Directions::Both => "",
    }
}

/// "rack2 TX", "rack2 TX or rack1 RX (not distinguished)".
pub(in crate::catalogue) fn path_locations(
    names: &Inventory,
    locations: &[PathLocation],
) -> String {
    let location = |location: &PathLocation| match location {
        PathLocation::Rack { rack, directions } => {
            format!("{}{}", names.rack_name(*rack), one_direction(*directions))
        }
        PathLocation::Pod { racks, directions } => {
            let racks = rack_list(names, racks);
            format!("pod of {racks}{}", one_direction(*directions))
        }
        PathLocation::EveryRack => "every rack (a spine)".to_owned(),
    };
    let all: Vec<String> = locations.iter().map(location).collect();
    match all.len() {
        1 => all.concat(),
        _ => format!("{} (not distinguished)", all.join(" or ")),
    }
}

/// "path via 10.1.0.1 and 1 more"; nothing where no router is known.
pub(in crate::catalogue) fn path_via(routers: &[PathRouter]) -> Option<String> {
    let first = routers.first()?.router;
    let more = match routers.len() {
        1 => String::new(),
        several => format!(" and {} more", several - 1),
    };
    Some(format!("path via {first}{more}"))
}

/// "10.1.0.1 (from rack1) and 10.2.0.1 (from rack2)".
pub(in crate::catalogue) fn path_routers(names: &Inventory, routers: &[PathRouter]) -> String {
    let router = |PathRouter { from, router }: &PathRouter| {
        let rack = names.rack_name(*from);
        format!("{router} (from {rack})")
    };
    list(&routers.iter().map(router).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_told_where_it_says_something() {
        let estimate = |low, high| Estimate {
            value: 4.0,
            low,
            high,
            samples: 8,
        };
        assert_eq!(ratio(&estimate(Some(3.9), Some(4.1))), "4.0:1 (3.9–4.1)");
        assert_eq!(ratio(&estimate(Some(3.99), Some(4.01))), "4.0:1");
        assert_eq!(ratio(&estimate(None, None)), "4.0:1");
    }

    #[test]
    fn lists_fold() {
        let names: Vec<String> = (1..=8).map(|i| format!("h{i}")).collect();
        assert_eq!(list(&names[..1]), "h1");
        assert_eq!(list(&names[..3]), "h1, h2 and h3");
        assert_eq!(list(&names[..6]), "h1, h2, h3, h4, h5 and h6");
        assert_eq!(list(&names), "h1, h2, h3, h4, h5 and 3 more");
        for (first, all) in [(1, 1), (6, 6), (7, 7), (8, 8)] {
            assert_eq!(list_of(&names[..first], all), list(&names[..all]));
        }
        assert_eq!(list_of(&names, 90), "h1, h2, h3, h4, h5 and 85 more");
    }

    #[test]
    fn small_shares_have_a_decimal() {
        assert_eq!(percent(0.374), "37%");
        assert_eq!(percent(0.0042), "0.4%");
        assert_eq!(percent(0.0), "0%");
    }
}
