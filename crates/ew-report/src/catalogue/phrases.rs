//! Names, lists and numbers as sentences need them.

use ew_model::analysis::Estimate;
use ew_model::finding::details::Directions;
use ew_model::{HostId, Inventory, RackId};

/// Names a sentence lists before it says "and N more".
const MOST_NAMES: usize = 6;

/// "a", "a and b", "a, b and 4 more".
pub(in crate::catalogue) fn list(names: &[String]) -> String {
    let shown = if names.len() > MOST_NAMES {
        MOST_NAMES - 1
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

/// "1 flow", "3 flows".
pub(in crate::catalogue) fn count(n: usize, noun: &str) -> String {
    if n == 1 {
        format!("1 {noun}")
    } else {
        format!("{n} {noun}s")
    }
}

/// The same as [`list`] of `all` names, of which these are the first: at least as many as it shows.
pub(in crate::catalogue) fn list_of(first: &[String], all: usize) -> String {
    if all <= MOST_NAMES {
        return list(first);
    }
    let shown = &first[..first.len().min(MOST_NAMES - 1)];
    format!("{} and {} more", shown.join(", "), all - shown.len())
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
}
