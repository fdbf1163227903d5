//! The scenarios that come with the binary. They are ordinary files: `scenario show NAME` prints
//! them as they are.

use super::error::nearest;

/// A built-in scenario, for `scenario list`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// What `run` takes.
    pub name: &'static str,
    /// One sentence.
    pub description: &'static str,
    /// The file with its comments.
    pub yaml: &'static str,
}

/// What `run` does when no scenario is named.
pub const DEFAULT_BUILTIN: &str = "qualify";

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../scenarios/", $name, ".yaml")))),*]
    };
}

const FILES: [(&str, &str); 20] = files![
    "qualify",
    "pair",
    "permutation",
    "cross-rack",
    "random-cross-rack",
    "mesh",
    "mesh-loaded",
    "incast",
    "outcast",
    "fan-in",
    "bisection",
    "rtt",
    "latency",
    "udp",
    "connections",
    "sweep",
    "compare-tools",
    "pods",
    "congestion",
    "flow-completion",
];

/// The built-in whose name is most like `name`, if any is like it at all.
#[must_use]
pub fn nearest_builtin(name: &str) -> Option<String> {
    nearest(name, &FILES.map(|(known, _)| known))
}

/// The YAML text of a built-in, comments included. `None` when there is none of that name.
#[must_use]
pub fn builtin(name: &str) -> Option<&'static str> {
    let (_, yaml) = FILES.iter().find(|(known, _)| *known == name)?;
    Some(yaml)
}

/// All built-ins, the default first.
#[must_use]
pub fn builtins() -> Vec<Builtin> {
    let describe = |(name, yaml): &(&'static str, &'static str)| Builtin {
        name,
        description: description(yaml),
        yaml,
    };
    FILES.iter().map(describe).collect()
}

/// The `description:` line; the built-ins' own test limits them to one line.
fn description(yaml: &'static str) -> &'static str {
    yaml.lines()
        .find_map(|line| line.strip_prefix("description:"))
        .unwrap_or_default()
        .trim()
}
