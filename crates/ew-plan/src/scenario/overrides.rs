//! `--set key=value` and `--set TEST.key=value`: the tree is changed before it is understood, so
//! that an override is checked like anything in the file, and errors name the override.

use super::error::{ScenarioError, SourceLocation, did_you_mean, nearest};
use super::pattern::{self, OPTIONS};
use super::read::{EXPECT_KEYS, expect_keys, setting_keys, test_name};
use super::tree::{Content, Node, value_of};
use super::workload::{kind_before_checks, kind_by_name, takes, tool_by_name};
use ew_model::threshold::Threshold;
use ew_model::workload::WorkloadKind;

/// Keys of the scenario itself that can be set.
const ROOT_KEYS: [&str; 4] = ["name", "description", "time-budget", "racks"];

/// Settings about bulk data: a bare one leaves tests of requests alone when there are others.
const BULK_KEYS: [&str; 2] = ["streams", "message-size"];

/// Applies all overrides in order.
pub(super) fn apply(root: &mut Node, overrides: &[String]) -> Result<(), ScenarioError> {
    overrides.iter().try_for_each(|text| apply_one(root, text))
}

fn apply_one(root: &mut Node, text: &str) -> Result<(), ScenarioError> {
    let Some((key, value)) = text.split_once('=') else {
        return Err(problem(text, "not of the form `key=value`"));
    };
    let (key, value) = (key.trim(), value.trim());
    let value = value_of(value, &SourceLocation::Override(text.into()))?;
    if let Some(field) = key.strip_prefix("expect.") {
        if !EXPECT_KEYS.contains(&field) && Threshold::key(field).is_none() {
            return Err(unknown(text, key));
        }
        if root.get("expect").is_none() {
            let location = SourceLocation::Override(text.into());
            root.set("expect", Node::mapping(Vec::new(), location));
        }
        if let Some(expect) = root.get_mut("expect") {
            expect.set(field, value);
        }
        return Ok(());
    }
    if ROOT_KEYS.contains(&key) {
        root.set(key, value);
        return Ok(());
    }
    match key.rsplit_once('.') {
        None => set_in_all(root, key, &value, text),
        Some((test, key)) => set_in_one(root, test, key, value, text),
    }
}

fn set_in_all(root: &mut Node, key: &str, value: &Node, text: &str) -> Result<(), ScenarioError> {
    if setting_keys().contains(&key) {
        let meant = meant_tests(root, key, value);
        for (test, is_meant) in tests_mut(root).iter_mut().zip(meant) {
            if is_meant {
                test.set(key, value.clone());
            }
        }
        return Ok(());
    }
    if !is_option(key) {
        return Err(unknown(text, key));
    }
    let mut used = false;
    for test in tests_mut(root) {
        used |= set_option(test, key, value);
    }
    if used {
        return Ok(());
    }
    let message = format!("no test here has the option `{key}`");
    Err(problem(text, &message))
}

/// Which tests a bare setting is meant for: those whose workload has it, bulk ones when it is about
/// bulk data, and of a tool those whose workload the tool has. When that leaves none it is for all,
/// and the reader reports what is wrong with it.
fn meant_tests(root: &Node, key: &str, value: &Node) -> Vec<bool> {
    let kinds = tests(root)
        .iter()
        .map(|test| kind_before_checks(root, test));
    let kinds: Vec<WorkloadKind> = kinds.collect();
    let is_bulk_workload = || {
        let kind = value.text().and_then(kind_by_name);
        key == "workload" && kind.is_some_and(WorkloadKind::is_bulk)
    };
    let is_about_bulk = BULK_KEYS.contains(&key) || is_bulk_workload();
    let spare_requests = is_about_bulk && kinds.iter().any(|kind| kind.is_bulk());
    let tool = value.text().and_then(tool_by_name);
    let is_meant = |kind: &WorkloadKind| match tool {
        Some(tool) if key == "tool" => tool.has(*kind),
        _ => takes(*kind, key) && (kind.is_bulk() || !spare_requests),
    };
    let meant: Vec<bool> = kinds.iter().map(is_meant).collect();
    if meant.contains(&true) {
        meant
    } else {
        vec![true; meant.len()]
    }
}

fn set_in_one(
    root: &mut Node,
    name: &str,
    key: &str,
    value: Node,
    text: &str,
) -> Result<(), ScenarioError> {
    let is_setting = setting_keys().contains(&key);
    if !is_setting && !is_option(key) && key != "pattern" {
        return Err(unknown(text, key));
    }
    let names: Vec<String> = tests(root)
        .iter()
        .filter_map(|test| test_name(test).map(Into::into))
        .collect();
    let mut found = tests_mut(root)
        .iter_mut()
        .filter(|test| test_name(test) == Some(name));
    let Some(test) = found.next() else {
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        let near = did_you_mean(nearest(name, &known).as_deref());
        let known = known.join(", ");
        return Err(problem(
            text,
            &format!("no test is called `{name}`{near}; tests: {known}"),
        ));
    };
    if is_setting || key == "pattern" {
        test.set(key, value);
    } else if !set_option(test, key, &value) {
        let message = format!("the pattern of `{name}` has no option `{key}`");
        return Err(problem(text, &message));
    }
    Ok(())
}

/// Sets a pattern's option where the pattern has it; returns whether it has.
fn set_option(test: &mut Node, option: &str, value: &Node) -> bool {
    let Some(node) = test.get_mut("pattern") else {
        return false;
    };
    let Some(word) = pattern::word(node).map(|(word, _)| word.to_string()) else {
        return false;
    };
    let Some((_, _, way)) = OPTIONS
        .iter()
        .find(|(name, pattern, _)| *name == option && *pattern == word)
    else {
        return false;
    };
    let Some((last, steps)) = way.split_last() else {
        return false;
    };
    let Some(mut at) = descend(node, &word) else {
        return false;
    };
    for step in steps {
        match descend(at, step) {
            Some(next) => at = next,
            None => return false,
        }
    }
    at.set(last, value.clone());
    true
}

/// One step down; a bare word that is the step becomes a mapping of it.
fn descend<'a>(node: &'a mut Node, step: &str) -> Option<&'a mut Node> {
    if node.text() == Some(step) {
        let below = Node::mapping(Vec::new(), node.location.clone());
        node.content = Content::Mapping(Vec::new());
        node.set(step, below);
    }
    node.get_mut(step)
}

fn tests(root: &Node) -> &[Node] {
    match root.get("tests").map(|node| &node.content) {
        Some(Content::Sequence(items)) => items,
        _ => &[],
    }
}

fn tests_mut(root: &mut Node) -> &mut [Node] {
    match root.get_mut("tests").map(|node| &mut node.content) {
        Some(Content::Sequence(items)) => items,
        _ => &mut [],
    }
}

fn is_option(key: &str) -> bool {
    OPTIONS.iter().any(|(name, _, _)| *name == key)
}

fn unknown(text: &str, key: &str) -> ScenarioError {
    let inside = "--set";
    let expects = expect_keys().into_iter().map(|k| format!("expect.{k}"));
    let expects: Vec<String> = expects.collect();
    let mut known: Vec<&str> = setting_keys();
    known.extend(ROOT_KEYS);
    known.extend(expects.iter().map(String::as_str));
    for (option, _, _) in OPTIONS {
        if !known.contains(&option) {
            known.push(option);
        }
    }
    ScenarioError::unknown_key(SourceLocation::Override(text.into()), key, inside, &known)
}

fn problem(text: &str, problem: &str) -> ScenarioError {
    ScenarioError::Override {
        text: text.into(),
        problem: problem.into(),
    }
}
