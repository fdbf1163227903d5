//! The tree understood: every key known, every value in bounds.

use super::ScenarioFile;
use super::error::{Place, ScenarioError};
use super::pattern;
use super::tree::{Content, Node};
use ew_model::scenario::{Direction, Expect, Scenario, Test};
use ew_model::units::{self, UnitError, format_bytes, format_duration_ns};
use ew_model::workload::{Tool, Workload, WorkloadKind};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// Keys at the top of a file.
pub(super) const ROOT_KEYS: [&str; 7] = [
    "name",
    "description",
    "expect",
    "time-budget",
    "racks",
    "defaults",
    "tests",
];

/// Keys below `expect`.
pub(super) const EXPECT_KEYS: [&str; 3] = ["oversubscription", "nic", "rtt"];

/// Keys that a test and `defaults` share.
pub(super) const SETTING_KEYS: [&str; 10] = [
    "duration",
    "warm-up",
    "gap",
    "samples",
    "streams",
    "message-size",
    "workload",
    "tool",
    "direction",
    "optional",
];

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;
const HOUR: u64 = 3600 * SECOND;
const MIB: u64 = 1 << 20;

const DEFAULT_DURATION_NS: u64 = 2 * SECOND;
const DEFAULT_WARM_UP_NS: u64 = 300 * MS;
const DEFAULT_GAP_NS: u64 = 200 * MS;
/// Six samples are the least that give a 95 % interval of a median.
const DEFAULT_SAMPLES: u32 = 6;
const DEFAULT_STREAM_BYTES: u64 = 128 * 1024;
const DEFAULT_RR_BYTES: u64 = 64;
/// iperf3 refuses more parallel streams (MAX_STREAMS) and longer writes over TCP (MAX_BLOCKSIZE) than these.
const IPERF3_MAX_STREAMS: u32 = 128;
const IPERF3_MAX_BYTES: u64 = MIB;
const MAX_TESTS: usize = 100;

/// Reads the whole file.
pub(super) fn scenario_file(root: &Node) -> Result<ScenarioFile, ScenarioError> {
    only_known(root, "the scenario", &ROOT_KEYS)?;
    let scenario = Scenario {
        name: scenario_name(root)?,
        description: text_or_empty(root, "description")?,
        expect: expect(root)?,
        tests: tests(root)?,
        time_budget_ns: duration(root.get("time-budget"), "time-budget", SECOND..=720 * HOUR)?,
    };
    Ok(ScenarioFile {
        scenario,
        racks: racks(root)?,
    })
}

/// The word a test's workload has, before anything is checked: overrides need it.
pub(super) fn workload_word<'a>(root: &'a Node, test: &'a Node) -> &'a str {
    let own = test.get("workload");
    own.or_else(|| root.get("defaults")?.get("workload"))
        .and_then(Node::text)
        .unwrap_or("tcp-stream")
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
            node.place.clone(),
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
    only_known(node, "`expect`", &EXPECT_KEYS)?;
    let rate = |text: &str| units::parse_bits_per_sec(text);
    Ok(Expect {
        oversubscription: node.get("oversubscription").map(ratio).transpose()?,
        nic_bits_per_sec: quantity(node.get("nic"), "nic", rate)?,
        rtt_ns: duration(node.get("rtt"), "rtt", 1000..=60 * SECOND)?,
    })
}

/// `4`, `2.5` or `4:1`.
fn ratio(node: &Node) -> Result<f64, ScenarioError> {
    let word = text(node, "oversubscription")?;
    let number = word.strip_suffix(":1").unwrap_or(word).trim();
    match number.parse::<f64>() {
        Ok(value) if (1.0..=1000.0).contains(&value) => Ok(value),
        _ => Err(ScenarioError::value(
            node.place.clone(),
            "oversubscription",
            format!("`{word}` is not a ratio to one"),
            "1 (nothing blocks) to 1000, such as 1, 2.5 or 4:1",
        )),
    }
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
            node.place.clone(),
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
    if let Some(defaults) = root.get("defaults") {
        only_known(defaults, "`defaults`", &SETTING_KEYS)?;
    }
    let mut names = BTreeSet::new();
    let mut tests = Vec::with_capacity(items.len());
    for item in items {
        let test = test(item, root.get("defaults"))?;
        if !names.insert(test.name.clone()) {
            return Err(ScenarioError::value(
                item.place.clone(),
                "name",
                format!("two tests are called `{}`", test.name),
                "a name of its own for each test",
            ));
        }
        tests.push(test);
    }
    Ok(tests)
}

fn test(node: &Node, defaults: Option<&Node>) -> Result<Test, ScenarioError> {
    let known: Vec<&str> = ["name", "pattern"]
        .into_iter()
        .chain(SETTING_KEYS)
        .collect();
    only_known(node, "a test", &known)?;
    let pattern_node = required(node, "the test", "pattern", "`pattern: mesh`")?;
    let pattern = pattern::read(pattern_node)?;
    let settings = Settings {
        test: node,
        defaults,
    };
    Ok(Test {
        name: own_name(node)?.unwrap_or_else(|| pattern.name().into()),
        pattern,
        workload: settings.workload()?,
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
        samples: settings
            .count("samples", 1..=1000)?
            .unwrap_or(DEFAULT_SAMPLES),
        optional: settings.optional()?,
    })
}

fn own_name(node: &Node) -> Result<Option<String>, ScenarioError> {
    let Some(node) = node.get("name") else {
        return Ok(None);
    };
    let name = text(node, "name")?.trim();
    if name.is_empty() || name.chars().count() > 64 || name.chars().any(char::is_control) {
        return Err(ScenarioError::value(
            node.place.clone(),
            "name",
            "not a test's name",
            "1 to 64 printable characters",
        ));
    }
    Ok(Some(name.into()))
}

/// A test's own keys, with `defaults` behind them.
struct Settings<'a> {
    test: &'a Node,
    defaults: Option<&'a Node>,
}

impl<'a> Settings<'a> {
    fn find(&self, key: &str) -> Option<&'a Node> {
        self.test
            .get(key)
            .or_else(|| self.defaults.and_then(|d| d.get(key)))
    }

    fn duration(
        &self,
        key: &str,
        bounds: RangeInclusive<u64>,
    ) -> Result<Option<u64>, ScenarioError> {
        duration(self.find(key), key, bounds)
    }

    fn count(&self, key: &str, bounds: RangeInclusive<u32>) -> Result<Option<u32>, ScenarioError> {
        self.find(key)
            .map(|node| count(node, key, bounds))
            .transpose()
    }

    fn optional(&self) -> Result<bool, ScenarioError> {
        let Some(node) = self.find("optional") else {
            return Ok(false);
        };
        Ok(choice(node, "value for `optional`", &["true", "false"])? == 0)
    }

    fn direction(&self) -> Result<Direction, ScenarioError> {
        let Some(node) = self.find("direction") else {
            return Ok(Direction::Forward);
        };
        const ALL: [Direction; 3] = [Direction::Forward, Direction::Reverse, Direction::Both];
        Ok(ALL[choice(node, "direction", &["forward", "reverse", "both"])?])
    }

    fn workload(&self) -> Result<Workload, ScenarioError> {
        let kind = match self.find("workload") {
            None => WorkloadKind::TcpStream,
            Some(node) => [WorkloadKind::TcpStream, WorkloadKind::TcpRr]
                [choice(node, "workload", &["tcp-stream", "tcp-rr"])?],
        };
        let tool = match self.find("tool") {
            None => Tool::Engine,
            Some(node) => {
                [Tool::Engine, Tool::Iperf3][choice(node, "tool", &["engine", "iperf3"])?]
            }
        };
        let workload = Workload {
            streams: self.count("streams", 1..=1024)?.unwrap_or(1),
            message_bytes: self.message_bytes(kind)?,
            tool,
            ..Workload::of(kind)
        };
        self.check_tool(&workload)?;
        Ok(workload)
    }

    /// A default meant for bulk data is not one for requests: tcp-rr takes the test's own size, or 64 bytes.
    fn message_bytes(&self, kind: WorkloadKind) -> Result<u64, ScenarioError> {
        let default_is_for_rr = self
            .defaults
            .and_then(|d| d.get("workload"))
            .and_then(Node::text)
            == Some("tcp-rr");
        let node = match kind {
            _ if kind.is_bulk() || default_is_for_rr => self.find("message-size"),
            _ => self.test.get("message-size"),
        };
        let (default, most) = match kind {
            WorkloadKind::TcpStream => (DEFAULT_STREAM_BYTES, 64 * MIB),
            _ => (DEFAULT_RR_BYTES, MIB),
        };
        let Some(bytes) = quantity(node, "message-size", units::parse_bytes)? else {
            return Ok(default);
        };
        match node {
            Some(node) if bytes > most => Err(ScenarioError::value(
                node.place.clone(),
                "message-size",
                format!("{} is too much for {}", format_bytes(bytes), kind.name()),
                format!("1 B to {}", format_bytes(most)),
            )),
            _ => Ok(bytes),
        }
    }

    fn check_tool(&self, workload: &Workload) -> Result<(), ScenarioError> {
        if workload.tool == Tool::Engine {
            return Ok(());
        }
        let place = |key| {
            self.find(key)
                .map_or(self.test.place.clone(), |n| n.place.clone())
        };
        if workload.kind == WorkloadKind::TcpRr {
            return Err(ScenarioError::value(
                place("tool"),
                "tool",
                "iperf3 has no request/response test",
                "`tool: engine` for `workload: tcp-rr`",
            ));
        }
        if workload.streams > IPERF3_MAX_STREAMS {
            return Err(ScenarioError::value(
                place("streams"),
                "streams",
                format!("iperf3 does not run {} streams", workload.streams),
                format!("1 to {IPERF3_MAX_STREAMS} with `tool: iperf3`"),
            ));
        }
        if workload.message_bytes > IPERF3_MAX_BYTES {
            return Err(ScenarioError::value(
                place("message-size"),
                "message-size",
                format!(
                    "iperf3 does not write {} at once",
                    format_bytes(workload.message_bytes)
                ),
                format!(
                    "at most {} with `tool: iperf3`",
                    format_bytes(IPERF3_MAX_BYTES)
                ),
            ));
        }
        Ok(())
    }
}

/// Refuses anything but a mapping of the known keys.
pub(super) fn only_known(node: &Node, inside: &str, known: &[&str]) -> Result<(), ScenarioError> {
    let Some(entries) = node.entries() else {
        return Err(ScenarioError::value(
            node.place.clone(),
            inside,
            format!("{} is not a mapping", node.kind()),
            format!("`key: value` lines; known keys: {}", known.join(", ")),
        ));
    };
    match entries.iter().find(|e| !known.contains(&e.key.as_str())) {
        None => Ok(()),
        Some(entry) => Err(ScenarioError::unknown_key(
            entry.key_place.clone(),
            &entry.key,
            inside,
            known,
        )),
    }
}

/// The index of a word in its choices.
pub(super) fn choice(node: &Node, what: &str, known: &[&str]) -> Result<usize, ScenarioError> {
    let word = text(node, what)?;
    known
        .iter()
        .position(|k| *k == word)
        .ok_or_else(|| ScenarioError::unknown_word(node.place.clone(), word, what, known))
}

/// A whole number in bounds.
pub(super) fn count(
    node: &Node,
    key: &str,
    bounds: RangeInclusive<u32>,
) -> Result<u32, ScenarioError> {
    let word = text(node, key)?;
    match word.parse::<u32>() {
        Ok(value) if bounds.contains(&value) => Ok(value),
        _ => Err(ScenarioError::value(
            node.place.clone(),
            key,
            format!("`{word}` does not fit"),
            format!("a whole number from {} to {}", bounds.start(), bounds.end()),
        )),
    }
}

/// A scalar's text.
pub(super) fn text<'a>(node: &'a Node, key: &str) -> Result<&'a str, ScenarioError> {
    node.text().ok_or_else(|| {
        let problem = format!("{} is not a single value", node.kind());
        ScenarioError::value(node.place.clone(), key, problem, "one word or number")
    })
}

fn text_or_empty(root: &Node, key: &str) -> Result<String, ScenarioError> {
    match root.get(key) {
        None => Ok(String::new()),
        Some(node) if matches!(node.content, Content::Nothing) => Ok(String::new()),
        Some(node) => Ok(text(node, key)?.trim().into()),
    }
}

fn required<'a>(
    node: &'a Node,
    inside: &str,
    key: &str,
    example: &str,
) -> Result<&'a Node, ScenarioError> {
    node.get(key).ok_or_else(|| ScenarioError::Missing {
        place: node.place.clone(),
        inside: inside.into(),
        key: key.into(),
        example: example.into(),
    })
}

fn duration(
    node: Option<&Node>,
    key: &str,
    bounds: RangeInclusive<u64>,
) -> Result<Option<u64>, ScenarioError> {
    let ns = quantity(node, key, units::parse_duration_ns)?;
    match (ns, node) {
        (Some(ns), Some(node)) if !bounds.contains(&ns) => Err(ScenarioError::value(
            node.place.clone(),
            key,
            format!("{} does not fit", format_duration_ns(ns)),
            format!(
                "{} to {}",
                format_duration_ns(*bounds.start()),
                format_duration_ns(*bounds.end())
            ),
        )),
        _ => Ok(ns),
    }
}

fn quantity<T>(
    node: Option<&Node>,
    key: &str,
    parse: impl Fn(&str) -> Result<T, UnitError>,
) -> Result<Option<T>, ScenarioError> {
    let Some(node) = node else { return Ok(None) };
    let word = text(node, key)?;
    parse(word)
        .map(Some)
        .map_err(|error| unit_error(node.place.clone(), key, &error))
}

fn unit_error(place: Place, key: &str, error: &UnitError) -> ScenarioError {
    let problem = format!("`{}` is not a {}", error.input, error.what);
    ScenarioError::value(place, key, problem, format!("one like {}", error.example))
}
