//! `sizes`: the message sizes of a sweep. A list (`[1, 64, 1k]`), a range of powers of two
//! (`1-8M`), or NetPIPE's series (`1-8M~3` or `{from: 1, to: 8M, perturbation: 3}`), in which every
//! power of two has a neighbour below and above.

use super::error::ScenarioError;
use super::tree::{Content, Node};
use super::values::{count, only_known, required, size, text};
use ew_model::units;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

const KEYS: [&str; 3] = ["from", "to", "perturbation"];
/// NetPIPE's own (`-p 3`).
const DEFAULT_PERTURBATION: u64 = 3;
const MAX_PERTURBATION: u64 = 1024;
/// Each size is a stage of its own.
const MAX_SIZES: usize = 200;

/// The sizes, ascending, each once. Empty without a node.
pub(super) fn read(
    node: Option<&Node>,
    bounds: RangeInclusive<u64>,
) -> Result<Vec<u64>, ScenarioError> {
    let Some(node) = node else {
        return Ok(Vec::new());
    };
    let sizes = match &node.content {
        Content::Mapping(_) => series_of(node, bounds)?,
        Content::Sequence(items) => items
            .iter()
            .map(|item| size(item, "sizes", bounds.clone()))
            .collect::<Result<_, _>>()?,
        _ => in_short(node, bounds)?,
    };
    if sizes.is_empty() || sizes.len() > MAX_SIZES {
        return Err(ScenarioError::value(
            node.location.clone(),
            "sizes",
            format!("there are {}", sizes.len()),
            format!("1 to {MAX_SIZES}"),
        ));
    }
    Ok(sizes.into_iter().collect())
}

fn series_of(node: &Node, bounds: RangeInclusive<u64>) -> Result<BTreeSet<u64>, ScenarioError> {
    only_known(node, "`sizes`", &KEYS)?;
    let end = |key| {
        let node = required(node, "`sizes`", key, "`sizes: {from: 1, to: 8M}`")?;
        size(node, key, bounds.clone())
    };
    let (from, to) = (end("from")?, end("to")?);
    let perturbation = match node.get("perturbation") {
        Some(node) => count(node, "perturbation", 0..=MAX_PERTURBATION)?,
        None => DEFAULT_PERTURBATION,
    };
    if from > to {
        return Err(ScenarioError::value(
            node.location.clone(),
            "sizes",
            "`from` is greater than `to`",
            "the smallest size first",
        ));
    }
    Ok(series(from, to, perturbation))
}

/// Sizes and ranges with commas between them.
fn in_short(node: &Node, bounds: RangeInclusive<u64>) -> Result<BTreeSet<u64>, ScenarioError> {
    let word = text(node, "sizes")?;
    let mut sizes = BTreeSet::new();
    for part in word.split(',').map(str::trim) {
        let Some((from, to, perturbation)) = range(part) else {
            return Err(ScenarioError::value(
                node.location.clone(),
                "sizes",
                format!("`{part}` is neither a size nor a range"),
                "sizes such as 1,64,1k, or a range such as 1-8M or 1-8M~3",
            ));
        };
        for end in [from, to] {
            let end = Node::scalar(&end.to_string(), node.location.clone());
            size(&end, "sizes", bounds.clone())?;
        }
        sizes.extend(series(from, to, perturbation));
    }
    Ok(sizes)
}

/// `64`, `1-8M` or `1-8M~3`.
fn range(part: &str) -> Option<(u64, u64, u64)> {
    let (ends, perturbation) = part.split_once('~').unwrap_or((part, "0"));
    let perturbation = perturbation.trim().parse().ok()?;
    let (from, to) = ends.split_once('-').unwrap_or((ends, ends));
    let bytes = |text: &str| units::parse_bytes(text.trim()).ok();
    let (from, to) = (bytes(from)?, bytes(to)?);
    (from <= to && perturbation <= MAX_PERTURBATION).then_some((from, to, perturbation))
}

/// Both ends, the powers of two between them, and the neighbours of these; none outside the ends.
fn series(from: u64, to: u64, perturbation: u64) -> BTreeSet<u64> {
    let mut sizes = BTreeSet::from([from, to]);
    let powers = (0..u64::BITS).map(|exponent| 1u64 << exponent);
    for power in powers.filter(|power| (from..=to).contains(power)) {
        sizes.insert(power);
        // As NetPIPE does it: below that the neighbours would not be near.
        if perturbation > 0 && power > perturbation {
            let near = [power - perturbation, power.saturating_add(perturbation)];
            sizes.extend(near.into_iter().filter(|near| (from..=to).contains(near)));
        }
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::super::{ScenarioError, parse};

    fn sizes(value: &str) -> Result<Vec<u64>, ScenarioError> {
        let text = format!("name: a\ntests:\n  - {{pattern: pair, sizes: {value}}}\n");
        let scenario = parse(&text, "my.yaml", &[])?;
        Ok(scenario.tests[0].sizes.clone())
    }

    #[test]
    fn netpipes_series_has_neighbours() {
        let expected = [1, 2, 4, 5, 7, 8, 11, 13, 16];
        assert_eq!(sizes("{from: 1, to: 16}").unwrap(), expected);
        assert_eq!(sizes("1-16~3").unwrap(), expected);
        let all = sizes("{from: 1, to: 8M, perturbation: 3}").unwrap();
        assert_eq!((all.first(), all.last()), (Some(&1), Some(&(8 << 20))));
        assert!(all.contains(&65_533) && all.contains(&65_536) && all.contains(&65_539));
        assert!(all.is_sorted());
    }

    #[test]
    fn lists_and_ranges_mix() {
        assert_eq!(sizes("[1k, 64, 1, 64]").unwrap(), [1, 64, 1024]);
        assert_eq!(sizes("'1448,1-4,9000'").unwrap(), [1, 2, 4, 1448, 9000]);
        assert_eq!(sizes("100-300").unwrap(), [100, 128, 256, 300]);
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let reported = |value: &str, words: &str| {
            let message = sizes(value).unwrap_err().to_string();
            assert!(message.starts_with("my.yaml:3:"), "{message}");
            assert!(message.contains(words), "{message}");
        };
        reported("many", "`many` is neither a size nor a range");
        reported("8-1", "`8-1` is neither a size nor a range");
        reported("[1, 65M]", "expected 1 B to 64.0 MiB");
        reported("1-128M", "does not fit");
        reported("{from: 1}", "has no `to`");
        reported("{from: 9, to: 8}", "the smallest size first");
        reported("[]", "expected 1 to 200");
        reported("64, message-size: 64", "there are `sizes`, too");
    }
}
