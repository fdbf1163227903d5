//! `samples: 6`, `samples: auto` or
//! `samples: {auto: {width: 5%, at-least: 6, at-most: 30, budget: 60s}}`.

use super::error::ScenarioError;
use super::tree::Node;
use super::values::{count, duration, only_known, text};
use ew_model::scenario::AutoSamples;

/// Six samples are the minimum that gives a 95% interval of a median.
const DEFAULT_SAMPLES: u32 = 6;
const MAX_SAMPLES: u32 = 1000;
const DEFAULT_AT_MOST: u32 = 30;
/// A width of 5%, as with netperf's `-I`.
const DEFAULT_WIDTH: f64 = 0.05;
const SECOND: u64 = 1_000_000_000;
const DEFAULT_BUDGET_NS: u64 = 60 * SECOND;
const AUTO_KEYS: [&str; 4] = ["width", "at-least", "at-most", "budget"];

/// How often at most, and when that is often enough.
pub(super) fn read(node: Option<&Node>) -> Result<(u32, Option<AutoSamples>), ScenarioError> {
    let Some(node) = node else {
        return Ok((DEFAULT_SAMPLES, None));
    };
    if node.text() == Some("auto") {
        let auto = auto(None)?;
        return Ok((auto.at_most, Some(auto)));
    }
    if node.entries().is_none() {
        return Ok((samples(node, "samples")?, None));
    }
    only_known(node, "`samples`", &["auto"])?;
    let auto = auto(node.get("auto"))?;
    Ok((auto.at_most, Some(auto)))
}

fn auto(node: Option<&Node>) -> Result<AutoSamples, ScenarioError> {
    if let Some(node) = node {
        only_known(node, "`auto`", &AUTO_KEYS)?;
    }
    let find = |key| node.and_then(|node| node.get(key));
    let stated = |key| find(key).map(|node| samples(node, key)).transpose();
    let at_least = stated("at-least")?;
    let at_most = stated("at-most")?;
    let budget_ns = duration(find("budget"), "budget", SECOND..=24 * 3600 * SECOND)?;
    let auto = AutoSamples {
        width: find("width").map_or(Ok(DEFAULT_WIDTH), |node| width(node, "width"))?,
        at_least: at_least.unwrap_or(DEFAULT_SAMPLES.min(at_most.unwrap_or(DEFAULT_SAMPLES))),
        at_most: at_most.unwrap_or(DEFAULT_AT_MOST.max(at_least.unwrap_or(DEFAULT_AT_MOST))),
        budget_ns: Some(budget_ns.unwrap_or(DEFAULT_BUDGET_NS)),
    };
    match find("at-most").or(node) {
        Some(node) if auto.at_least > auto.at_most => Err(ScenarioError::value(
            node.location.clone(),
            "at-most",
            format!(
                "{} is less than `at-least: {}`",
                auto.at_most, auto.at_least
            ),
            "as many or more",
        )),
        _ => Ok(auto),
    }
}

fn samples(node: &Node, key: &str) -> Result<u32, ScenarioError> {
    count(node, key, 1..=MAX_SAMPLES).map_err(|error| match (key, node.text()) {
        // The other thing that could have been meant.
        ("samples", Some(word)) if word.parse::<f64>().is_err() => ScenarioError::value(
            node.location.clone(),
            key,
            format!("`{word}` is no number"),
            format!("a whole number from 1 to {MAX_SAMPLES}, or auto"),
        ),
        _ => error,
    })
}

/// `5%` or `0.05`, as a share.
pub(super) fn width(node: &Node, key: &str) -> Result<f64, ScenarioError> {
    let word = text(node, key)?;
    let share = match word.strip_suffix('%') {
        Some(number) => number.trim().parse::<f64>().map(|number| number / 100.0),
        None => word.trim().parse(),
    };
    match share {
        Ok(share) if (0.001..=1.0).contains(&share) => Ok(share),
        _ => Err(ScenarioError::value(
            node.location.clone(),
            key,
            format!("`{word}` is not a width that fits"),
            "0.1% to 100% of the figure, such as 5%",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ScenarioError, parse};
    use ew_model::scenario::{AutoSamples, Test};

    fn test(samples: &str) -> Result<Test, ScenarioError> {
        let text = format!("name: a\ntests:\n  - {{pattern: pair, samples: {samples}}}\n");
        let scenario = parse(&text, "my.yaml", &[])?;
        Ok(scenario.tests[0].clone())
    }

    #[test]
    fn auto_has_bounds_whatever_is_stated() {
        let auto = |samples: &str| test(samples).unwrap().auto.unwrap();
        let typical = AutoSamples {
            width: 0.05,
            at_least: 6,
            at_most: 30,
            budget_ns: Some(60_000_000_000),
        };
        assert_eq!(auto("auto"), typical);
        assert_eq!(auto("{auto: }"), typical);
        let stated = auto("{auto: {width: 2%, at-least: 8, at-most: 9, budget: 5m}}");
        assert_eq!(
            (stated.width, stated.at_least, stated.at_most),
            (0.02, 8, 9)
        );
        assert_eq!(stated.budget_ns, Some(300_000_000_000));
        let few = auto("{auto: {at-most: 3}}");
        assert_eq!((few.at_least, few.at_most), (3, 3));
        let many = auto("{auto: {at-least: 50}}");
        assert_eq!((many.at_least, many.at_most), (50, 50));
        assert_eq!(test("auto").unwrap().samples, 30);
        assert_eq!(test("9").unwrap().auto, None);
    }

    #[test]
    fn overrides_have_the_short_and_the_whole_form() {
        let text = "name: a\ntests: [{pattern: pair, samples: 2}]\n";
        let auto = |value: &str| {
            let overrides = [format!("samples={value}")];
            parse(text, "my.yaml", &overrides).unwrap().tests[0].auto
        };
        assert_eq!(auto("auto").unwrap().at_most, 30);
        assert_eq!(auto("{auto: {at-most: 12}}").unwrap().at_most, 12);
        assert_eq!(auto("4"), None);
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let reported = |samples: &str, words: &str| {
            let message = test(samples).unwrap_err().to_string();
            assert!(message.starts_with("my.yaml:3:"), "{message}");
            assert!(message.contains(words), "{message}");
        };
        reported(
            "often",
            "`often` is no number; expected a whole number from 1 to 1000, or auto",
        );
        reported("0", "a whole number from 1 to 1000");
        reported("{auto: {width: 0}}", "0.1% to 100%");
        reported(
            "{auto: {at-least: 9, at-most: 7}}",
            "7 is less than `at-least: 9`",
        );
        reported("{auto: {witdh: 3%}}", "did you mean `width`?");
    }
}
