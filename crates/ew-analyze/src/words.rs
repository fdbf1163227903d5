//! Names, lists and numbers as sentences need them.

use ew_model::analysis::Estimate;
use ew_model::finding::Quantity;
use ew_model::{HostId, Inventory};

/// Names a sentence lists before it says "and N more".
const MOST_NAMES: usize = 6;

/// "a", "a and b", "a, b and 4 more".
pub(crate) fn list(names: &[String]) -> String {
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
pub(crate) fn host_list(inventory: &Inventory, hosts: impl Iterator<Item = HostId>) -> String {
    list(
        &hosts
            .map(|host| inventory.name(host).to_owned())
            .collect::<Vec<_>>(),
    )
}

/// An estimate with a unit.
pub(crate) fn quantity(estimate: &Estimate, unit: &str) -> Quantity {
    Quantity {
        value: estimate.value,
        low: estimate.low,
        high: estimate.high,
        unit: unit.into(),
    }
}

/// A single number with a unit.
pub(crate) fn plain(value: f64, unit: &str) -> Quantity {
    Quantity {
        value,
        low: None,
        high: None,
        unit: unit.into(),
    }
}

/// "1 flow", "3 flows".
pub(crate) fn count(n: usize, noun: &str) -> String {
    if n == 1 {
        format!("1 {noun}")
    } else {
        format!("{n} {noun}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_fold() {
        let names: Vec<String> = (1..=8).map(|i| format!("h{i}")).collect();
        assert_eq!(list(&names[..1]), "h1");
        assert_eq!(list(&names[..3]), "h1, h2 and h3");
        assert_eq!(list(&names[..6]), "h1, h2, h3, h4, h5 and h6");
        assert_eq!(list(&names), "h1, h2, h3, h4, h5 and 3 more");
    }
}
