//! `pattern: mesh` or `pattern: {mesh: {mode: loaded}}`: a bare word with defaults, or one word
//! with options.

use super::error::ScenarioError;
use super::tree::Node;
use super::values::{choice, count, only_known};
use ew_model::congestion::Aggressor;
use ew_model::pods::PodPath;
use ew_model::scenario::{MeshMode, Pattern, Pick, RackScope, Senders};

const WORDS: [&str; 12] = [
    "pair",
    "permutation",
    "paths",
    "cross-rack",
    "mesh",
    "incast",
    "outcast",
    "bisection",
    "pods",
    "fan-in",
    "congestion",
    "other-tests",
];

/// The shell loop's 5001-5003.
const DEFAULT_LANES: u32 = 3;
const MAX_PARTNERS: u32 = 1_000_000;
/// As few as distinguish a rack that sends from one that receives.
const DEFAULT_SHIFTS: u32 = 2;
const MAX_SHIFTS: u32 = 1024;
/// Streams of one host whose paths are traced.
const DEFAULT_TRACED: u32 = 96;
const MAX_TRACED: u32 = 1024;

/// Options that `--set` may name, as (option, pattern, way from the pattern to the option). The
/// last step is the option itself; a step before it applies only where the scenario already took
/// that way.
pub(super) const OPTIONS: [(&str, &str, &[&str]); 15] = [
    ("pick", "cross-rack", &["pick"]),
    ("senders", "cross-rack", &["senders"]),
    ("scope", "cross-rack", &["scope"]),
    ("lanes", "cross-rack", &["pick", "random", "lanes"]),
    ("mode", "mesh", &["mode"]),
    ("max-rounds", "mesh", &["max-rounds"]),
    (
        "shifts-at-once",
        "mesh",
        &["mode", "loaded", "shifts-at-once"],
    ),
    ("senders", "incast", &["senders"]),
    ("receivers", "outcast", &["receivers"]),
    ("receivers", "incast", &["receivers"]),
    ("shifts", "paths", &["shifts"]),
    ("path", "pods", &["path"]),
    ("aggressors", "congestion", &["aggressors"]),
    ("per-host", "other-tests", &["per-host"]),
    ("servers", "fan-in", &["servers"]),
];

/// Reads a pattern.
pub(super) fn read(node: &Node) -> Result<Pattern, ScenarioError> {
    let (word, options) = word_or_error(node, "pattern", &WORDS)?;
    match word {
        "cross-rack" => cross_rack(options),
        "mesh" => mesh(options),
        "pods" => pods(options),
        "congestion" => congestion(options),
        "other-tests" => other_tests(options),
        "incast" => incast(options),
        "paths" => paths(options),
        "fan-in" => fan_in(options),
        "outcast" => {
            if let Some(options) = options {
                only_known(options, "`outcast`", &["receivers"])?;
            }
            let receivers = options.and_then(|o| o.get("receivers"));
            Ok(Pattern::Outcast {
                receivers: receivers.map_or(Ok(None), |n| partners(n, "receivers"))?,
            })
        }
        plain => {
            if let Some(options) = options {
                only_known(options, &format!("`{plain}`, which has no options"), &[])?;
            }
            Ok(match plain {
                "pair" => Pattern::Pair,
                "permutation" => Pattern::Permutation,
                _ => Pattern::Bisection,
            })
        }
    }
}

/// The word of a bare scalar, or of a mapping with one key, and the node below the key.
pub(super) fn word(node: &Node) -> Option<(&str, Option<&Node>)> {
    if let Some(text) = node.text() {
        return Some((text, None));
    }
    match node.entries() {
        Some([entry]) => Some((&entry.key, Some(&entry.value))),
        _ => None,
    }
}

fn cross_rack(options: Option<&Node>) -> Result<Pattern, ScenarioError> {
    if let Some(options) = options {
        only_known(options, "`cross-rack`", &["pick", "senders", "scope"])?;
    }
    let option = |key| options.and_then(|o| o.get(key));
    let senders = match option("senders") {
        None => Senders::All,
        Some(node) => {
            [Senders::All, Senders::Ramp][choice(node, "value for `senders`", &["all", "ramp"])?]
        }
    };
    let scope = match option("scope") {
        None => RackScope::All,
        Some(node) => [RackScope::All, RackScope::EachPair]
            [choice(node, "value for `scope`", &["all", "each-pair"])?],
    };
    Ok(Pattern::CrossRack {
        pick: option("pick").map_or(Ok(Pick::Matching), pick)?,
        senders,
        scope,
    })
}

fn pick(node: &Node) -> Result<Pick, ScenarioError> {
    let (word, options) = word_or_error(node, "value for `pick`", &["matching", "random"])?;
    let lanes = match options {
        None => DEFAULT_LANES,
        Some(options) => {
            let known: &[&str] = if word == "random" { &["lanes"] } else { &[] };
            only_known(options, &format!("`{word}`"), known)?;
            options
                .get("lanes")
                .map_or(Ok(DEFAULT_LANES), |n| count(n, "lanes", 1..=1000))?
        }
    };
    Ok(match word {
        "random" => Pick::Random {
            lanes: u16::try_from(lanes).unwrap_or(u16::MAX),
        },
        _ => Pick::Matching,
    })
}

fn mesh(options: Option<&Node>) -> Result<Pattern, ScenarioError> {
    if let Some(options) = options {
        only_known(options, "`mesh`", &["mode", "max-rounds"])?;
    }
    let option = |key| options.and_then(|o| o.get(key));
    Ok(Pattern::Mesh {
        mode: option("mode").map_or(Ok(MeshMode::Isolated), mode)?,
        max_rounds: option("max-rounds")
            .map(|n| count(n, "max-rounds", 1..=MAX_PARTNERS))
            .transpose()?,
    })
}

fn mode(node: &Node) -> Result<MeshMode, ScenarioError> {
    let (word, options) = word_or_error(node, "mesh mode", &["isolated", "loaded"])?;
    let known: &[&str] = if word == "loaded" {
        &["shifts-at-once"]
    } else {
        &[]
    };
    if let Some(options) = options {
        only_known(options, &format!("`{word}`"), known)?;
    }
    let shifts = options.and_then(|o| o.get("shifts-at-once"));
    Ok(match word {
        "loaded" => MeshMode::Loaded {
            shifts_at_once: shifts.map_or(Ok(1), |n| count(n, "shifts-at-once", 1..=1024))?,
        },
        _ => MeshMode::Isolated,
    })
}

fn incast(options: Option<&Node>) -> Result<Pattern, ScenarioError> {
    if let Some(options) = options {
        only_known(options, "`incast`", &["senders", "receivers"])?;
    }
    let receivers = options.and_then(|o| o.get("receivers"));
    let at_once =
        receivers.map(|node| choice(node, "value for `receivers`", &["in-turn", "at-once"]));
    let senders = options.and_then(|o| o.get("senders"));
    let (senders, max_senders) = match senders.map(|node| (node, word(node))) {
        None => (None, None),
        Some((_, Some(("at-most", Some(most))))) => {
            (None, Some(count(most, "at-most", 1..=MAX_PARTNERS)?))
        }
        Some((node, _)) => (partners(node, "senders")?, None),
    };
    Ok(Pattern::Incast {
        senders,
        max_senders,
        at_once: at_once.transpose()? == Some(1),
    })
}

fn fan_in(options: Option<&Node>) -> Result<Pattern, ScenarioError> {
    if let Some(options) = options {
        only_known(options, "`fan-in`", &["servers"])?;
    }
    let servers = options.and_then(|o| o.get("servers"));
    let fewer = servers.map(|node| choice(node, "value for `servers`", &["all", "fewer"]));
    Ok(match fewer.transpose()? {
        Some(1) => Pattern::FanInFewer,
        _ => Pattern::FanIn,
    })
}

fn paths(options: Option<&Node>) -> Result<Pattern, ScenarioError> {
    if let Some(options) = options {
        only_known(options, "`paths`", &["shifts"])?;
    }
    let shifts = options.and_then(|o| o.get("shifts"));
    Ok(Pattern::Paths {
        shifts: shifts.map_or(Ok(DEFAULT_SHIFTS), |n| count(n, "shifts", 1..=MAX_SHIFTS))?,
    })
}

fn pods(options: Option<&Node>) -> Result<Pattern, ScenarioError> {
    if let Some(options) = options {
        only_known(options, "`pods`", &["path"])?;
    }
    let words = PodPath::ALL.map(PodPath::name);
    let path = options.and_then(|o| o.get("path"));
    let path = path.map(|node| choice(node, "value for `path`", &words));
    Ok(Pattern::Pods {
        path: PodPath::ALL[path.unwrap_or(Ok(0))?],
    })
}

fn congestion(options: Option<&Node>) -> Result<Pattern, ScenarioError> {
    if let Some(options) = options {
        only_known(options, "`congestion`", &["aggressors"])?;
    }
    let words = Aggressor::ALL.map(Aggressor::name);
    let aggressors = options.and_then(|o| o.get("aggressors"));
    let aggressors = aggressors.map(|node| choice(node, "value for `aggressors`", &words));
    Ok(Pattern::Congestion {
        aggressor: Aggressor::ALL[aggressors.unwrap_or(Ok(0))?],
    })
}

fn other_tests(options: Option<&Node>) -> Result<Pattern, ScenarioError> {
    if let Some(options) = options {
        only_known(options, "`other-tests`", &["per-host"])?;
    }
    let per_host = options.and_then(|o| o.get("per-host"));
    Ok(Pattern::OtherTests {
        per_host: per_host.map_or(Ok(DEFAULT_TRACED), |n| count(n, "per-host", 1..=MAX_TRACED))?,
    })
}

/// `None` for `all`, or a number.
fn partners(node: &Node, key: &str) -> Result<Option<u32>, ScenarioError> {
    if node.text() == Some("all") {
        return Ok(None);
    }
    count(node, key, 1..=MAX_PARTNERS).map(Some)
}

fn word_or_error<'a>(
    node: &'a Node,
    what: &str,
    known: &[&str],
) -> Result<(&'a str, Option<&'a Node>), ScenarioError> {
    let Some((word, options)) = word(node) else {
        return Err(ScenarioError::value(
            node.location.clone(),
            what,
            format!("{} is not one word with options", node.kind()),
            format!(
                "one of {}; options go below the word, as in `{{mesh: {{mode: loaded}}}}`",
                known.join(", ")
            ),
        ));
    };
    if known.contains(&word) {
        return Ok((word, options));
    }
    let location = match node.entries() {
        Some([entry]) => entry.key_location.clone(),
        _ => node.location.clone(),
    };
    Err(ScenarioError::unknown_word(location, word, what, known))
}
