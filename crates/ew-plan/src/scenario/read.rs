//! The tree understood: every key known, every value in bounds.

use super::error::ScenarioError;
use super::file::{RoleSets, ScenarioFile};
use super::pattern;
use super::repeat;
use super::settings::Settings;
use super::storage;
use super::tree::{Content, Node};
use super::values::{choice, count, duration, only_known, quantity, required, text, text_or_empty};
use super::workload;
use ew_model::scenario::{Expect, Pattern, Scenario, Test};
use ew_model::threshold::{Metric, Threshold};
use ew_model::units;
use ew_model::workload::WorkloadKind;
use std::collections::BTreeSet;

/// Keys at the top of a file.
pub(super) const ROOT_KEYS: [&str; 10] = [
    "name",
    "description",
    "expect",
    "time-budget",
    "order",
    "racks",
    "roles",
    "defaults",
    "tests",
    "storage",
];

/// Parallel paths that a rack may be expected to have: more than the widest group of a switch.
const MAX_PATHS: u32 = 1024;
/// Keys below `expect`.
pub(super) const EXPECT_KEYS: [&str; 5] = ["oversubscription", "nic", "rtt", "paths", "pod-loss"];

/// Keys that a test and `defaults` share, without those of the workload.
const COURSE_KEYS: [&str; 9] = [
    "duration",
    "warm-up",
    "gap",
    "samples",
    "sizes",
    "direction",
    "optional",
    "required",
    "interleaved",
];

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;
const HOUR: u64 = 3600 * SECOND;

const DEFAULT_DURATION_NS: u64 = 2 * SECOND;
const DEFAULT_WARM_UP_NS: u64 = 300 * MS;
const DEFAULT_GAP_NS: u64 = 200 * MS;
const MAX_TESTS: usize = 100;

/// Reads the whole file.
pub(super) fn scenario_file(root: &Node) -> Result<ScenarioFile, ScenarioError> {
    only_known(root, "the scenario", &ROOT_KEYS)?;
    let storage = storage::read(root)?;
    let scenario = Scenario {
        name: scenario_name(root)?,
        description: text_or_empty(root, "description")?,
        expect: expect(root)?,
        tests: match storage {
            Some(_) => Vec::new(),
            None => tests(root)?,
        },
        time_budget_ns: duration(root.get("time-budget"), "time-budget", SECOND..=720 * HOUR)?,
        random_order: random_order(root)?,
        // Sets of names, until hosts are known.
        roles: None,
        thresholds: thresholds(root)?,
    };
    Ok(ScenarioFile {
        scenario,
        racks: racks(root)?,
        roles: roles(root)?,
        storage,
    })
}

/// `roles: {clients: SET, servers: SET}`.
fn roles(root: &Node) -> Result<Option<RoleSets>, ScenarioError> {
    let Some(node) = root.get("roles") else {
        return Ok(None);
    };
    only_known(node, "`roles`", &["clients", "servers"])?;
    let set = |key| {
        let example = "`roles: {clients: 'c[1-4]', servers: 'dn[1-8]'}`";
        required(node, "`roles`", key, example).and_then(|node| text(node, key).map(str::to_owned))
    };
    Ok(Some(RoleSets {
        clients: set("clients")?,
        servers: set("servers")?,
    }))
}

/// Keys that a test and `defaults` share.
pub(super) fn setting_keys() -> Vec<&'static str> {
    COURSE_KEYS.into_iter().chain(workload::keys()).collect()
}

/// The name a test goes by: its own, or its pattern's word.
pub(super) fn test_name(test: &Node) -> Option<&str> {
    match test.get("name") {
        Some(name) => name.text(),
        None => pattern::word(test.get("pattern")?).map(|(word, _)| word),
    }
}

fn scenario_name(root: &Node) -> Result<String, ScenarioError> {
    let node = required(root, "the scenario", "name", "`name: my-check`")?;
    let name = text(node, "name")?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(fits) || name.starts_with('.') {
        return Err(ScenarioError::value(
            node.location.clone(),
            "name",
            format!("`{name}` cannot be part of a directory's name"),
            "1 to 64 letters, digits, `-`, `_` or `.`, such as `my-check`",
        ));
    }
    Ok(name.into())
}

fn expect(root: &Node) -> Result<Expect, ScenarioError> {
    let Some(node) = root.get("expect") else {
        return Ok(Expect::default());
    };
    only_expected(node)?;
    let rate = |text: &str| units::parse_bits_per_sec(text);
    Ok(Expect {
        oversubscription: node.get("oversubscription").map(ratio).transpose()?,
        nic_bits_per_sec: quantity(node.get("nic"), "nic", rate)?,
        rtt_ns: duration(node.get("rtt"), "rtt", 1000..=60 * SECOND)?,
        paths: node
            .get("paths")
            .map(|node| count(node, "paths", 1..=MAX_PATHS))
            .transpose()?,
        pod_loss: node.get("pod-loss").map(pod_loss).transpose()?,
    })
}

/// What is expected of the network, or a metric with its bound.
fn only_expected(node: &Node) -> Result<(), ScenarioError> {
    let is_metric = |key: &str| Threshold::key(key).is_some();
    let entries = node.entries().unwrap_or_default();
    match entries
        .iter()
        .find(|entry| !is_metric(&entry.key) && !EXPECT_KEYS.contains(&entry.key.as_str()))
    {
        None if node.entries().is_some() => Ok(()),
        None => only_known(node, "`expect`", &EXPECT_KEYS),
        Some(entry) => {
            let location = entry.key_location.clone();
            Err(ScenarioError::unknown_key(
                location,
                &entry.key,
                "`expect`",
                &expect_keys(),
            ))
        }
    }
}

/// Everything that `expect` may have.
pub(super) fn expect_keys() -> Vec<&'static str> {
    let metrics = Metric::ALL.into_iter().map(Metric::name);
    EXPECT_KEYS.into_iter().chain(metrics).collect()
}

/// `expect: {rtt.p99: "<300us", "incast/loss": "<1%"}`.
fn thresholds(root: &Node) -> Result<Vec<Threshold>, ScenarioError> {
    let entries = root
        .get("expect")
        .and_then(Node::entries)
        .unwrap_or_default();
    let mut thresholds = Vec::new();
    for entry in entries {
        let Some((stage, metric)) = Threshold::key(&entry.key) else {
            continue;
        };
        let bound = text(&entry.value, &entry.key)?;
        let threshold = Threshold::parse(stage, metric, bound).map_err(|error| {
            let location = entry.value.location.clone();
            let expected = "a bound, such as `<300us`, `>0.9*nic` or `<0.01%`";
            ScenarioError::value(location, &entry.key, error.to_string(), expected)
        })?;
        thresholds.push(threshold);
    }
    Ok(thresholds)
}

/// `10%`, or `10` as k8s-netperf's `--tcp-tolerance` has it.
fn pod_loss(node: &Node) -> Result<f64, ScenarioError> {
    let word = text(node, "pod-loss")?;
    let number = word.strip_suffix('%').unwrap_or(word).trim();
    match number.parse::<f64>() {
        Ok(percent) if (0.0..100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err(ScenarioError::value(
            node.location.clone(),
            "pod-loss",
            format!("`{word}` is no percentage of goodput"),
            "0% to below 100%, such as 10%",
        )),
    }
}

/// `4`, `2.5` or `4:1`.
fn ratio(node: &Node) -> Result<f64, ScenarioError> {
    let word = text(node, "oversubscription")?;
    let number = word.strip_suffix(":1").unwrap_or(word).trim();
    match number.parse::<f64>() {
        Ok(value) if (1.0..=1000.0).contains(&value) => Ok(value),
        _ => Err(ScenarioError::value(
            node.location.clone(),
            "oversubscription",
            format!("`{word}` is not a ratio to one"),
            "1 (nothing blocks) to 1000, such as 1, 2.5 or 4:1",
        )),
    }
}

/// `order: random`, or as written.
fn random_order(root: &Node) -> Result<bool, ScenarioError> {
    let Some(node) = root.get("order") else {
        return Ok(false);
    };
    Ok(choice(node, "value for `order`", &["as-written", "random"])? == 1)
}

/// `racks: "@mc_rack[1-3]"` or a list of such.
fn racks(root: &Node) -> Result<Vec<String>, ScenarioError> {
    let Some(node) = root.get("racks") else {
        return Ok(Vec::new());
    };
    let items = match &node.content {
        Content::Nothing => return Ok(Vec::new()),
        Content::Sequence(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    items
        .iter()
        .map(|item| text(item, "racks").map(Into::into))
        .collect()
}

fn tests(root: &Node) -> Result<Vec<Test>, ScenarioError> {
    let node = required(root, "the scenario", "tests", "`tests: [{pattern: mesh}]`")?;
    let bad = |problem: String| {
        let expected = format!("a list of 1 to {MAX_TESTS} tests, such as `- pattern: mesh`");
        Err(ScenarioError::value(
            node.location.clone(),
            "tests",
            problem,
            expected,
        ))
    };
    let Content::Sequence(items) = &node.content else {
        return bad(format!("{} is not a list", node.kind()));
    };
    if items.is_empty() || items.len() > MAX_TESTS {
        return bad(format!("the list has {} tests", items.len()));
    }
    let defaults = root.get("defaults");
    if let Some(defaults) = defaults {
        only_known(defaults, "`defaults`", &setting_keys())?;
    }
    let mut names = BTreeSet::new();
    let mut tests = Vec::with_capacity(items.len());
    for item in items {
        let test = test(item, defaults)?;
        if !names.insert(test.name.clone()) {
            return Err(ScenarioError::value(
                item.location.clone(),
                "name",
                format!("two tests are called `{}`", test.name),
                "a name of its own for each test",
            ));
        }
        tests.push(test);
    }
    if let Some(defaults) = defaults {
        workload::check_defaults(defaults, &tests)?;
    }
    Ok(tests)
}

fn test(node: &Node, defaults: Option<&Node>) -> Result<Test, ScenarioError> {
    let known: Vec<&str> = ["name", "pattern"]
        .into_iter()
        .chain(setting_keys())
        .collect();
    only_known(node, "a test", &known)?;
    let pattern_node = required(node, "the test", "pattern", "`pattern: mesh`")?;
    let pattern = pattern::read(pattern_node)?;
    let settings = Settings {
        test: node,
        defaults,
    };
    let (workload, sizes) = workload::read(&settings)?;
    if matches!(pattern, Pattern::OtherTests { .. }) && workload.kind != WorkloadKind::Trace {
        let problem = format!(
            "it traces streams of other tests, and does not carry {}",
            workload.kind.name()
        );
        let location = pattern_node.location.clone();
        return Err(ScenarioError::value(
            location,
            "pattern",
            problem,
            "`workload: trace` with `pattern: other-tests`",
        ));
    }
    let (samples, auto) = repeat::read(settings.find("samples"))?;
    Ok(Test {
        name: own_name(node)?.unwrap_or_else(|| pattern.name().into()),
        pattern,
        workload,
        direction: settings.direction()?,
        duration_ns: settings
            .duration("duration", 10 * MS..=24 * HOUR)?
            .unwrap_or(DEFAULT_DURATION_NS),
        warm_up_ns: settings
            .duration("warm-up", 0..=HOUR)?
            .unwrap_or(DEFAULT_WARM_UP_NS),
        gap_ns: settings
            .duration("gap", 10 * MS..=HOUR)?
            .unwrap_or(DEFAULT_GAP_NS),
        samples,
        auto,
        sizes,
        optional: settings.switch("optional")?,
        required: settings.switch("required")?,
        interleaved: settings.switch("interleaved")?,
    })
}

fn own_name(node: &Node) -> Result<Option<String>, ScenarioError> {
    let Some(node) = node.get("name") else {
        return Ok(None);
    };
    let name = text(node, "name")?.trim();
    if name.is_empty() || name.chars().count() > 64 || name.chars().any(char::is_control) {
        return Err(ScenarioError::value(
            node.location.clone(),
            "name",
            "not a test's name",
            "1 to 64 printable characters",
        ));
    }
    Ok(Some(name.into()))
}
