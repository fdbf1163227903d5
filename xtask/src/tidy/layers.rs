//! Who may depend on whom: the arrows of the data flow, and where large dependencies live.

use super::manifest::{Dependency, Manifest};
use super::violation::Violation;

/// Per crate, what it may use of ours. What is not listed may use nothing of ours. The binary may
/// use everything.
const ARROWS: &[(&str, &[&str])] = &[
    ("ew-plan", &["ew-model"]),
    ("ew-proto", &["ew-model"]),
    ("ew-sys", &["ew-model"]),
    ("ew-engine", &["ew-model", "ew-proto", "ew-sys"]),
    ("ew-iperf3", &["ew-model", "ew-sys"]),
    ("ew-tools", &["ew-model", "ew-proto", "ew-sys"]),
    ("ew-telemetry", &["ew-model", "ew-sys"]),
    ("ew-storage", &["ew-model", "ew-sys"]),
    (
        "ew-agent",
        &[
            "ew-engine",
            "ew-iperf3",
            "ew-model",
            "ew-proto",
            "ew-storage",
            "ew-sys",
            "ew-telemetry",
            "ew-tools",
        ],
    ),
    ("ew-fleet", &["ew-model", "ew-proto", "ew-sys"]),
    ("ew-kubernetes", &["ew-model"]),
    (
        "ew-controller",
        &[
            "ew-analyze",
            "ew-analyze-storage",
            "ew-fleet",
            "ew-model",
            "ew-plan",
            "ew-proto",
            "ew-report",
            "ew-storage",
            "ew-store",
            "ew-sys",
        ],
    ),
    ("ew-sim", &["ew-model", "ew-plan", "ew-report"]),
    (
        "ew-rehearsal",
        &[
            "ew-agent",
            "ew-controller",
            "ew-fleet",
            "ew-model",
            "ew-plan",
            "ew-proto",
            "ew-sim",
            "ew-store",
        ],
    ),
    ("ew-store", &["ew-model"]),
    ("ew-stats", &["ew-model"]),
    ("ew-evidence", &["ew-model", "ew-plan", "ew-stats"]),
    (
        "ew-fit",
        &["ew-evidence", "ew-model", "ew-plan", "ew-stats"],
    ),
    (
        "ew-analyze",
        &["ew-evidence", "ew-fit", "ew-model", "ew-plan", "ew-stats"],
    ),
    (
        "ew-analyze-storage",
        &["ew-evidence", "ew-model", "ew-stats"],
    ),
    ("ew-report", &["ew-analyze-storage", "ew-model", "ew-stats"]),
    ("ew-lab", &["ew-model", "ew-sys"]),
    ("ew-top", &["ew-model"]),
    ("eastwest-agent", &["ew-agent", "ew-proto", "ew-sys"]),
];

const BINARY: &str = "eastwest";

/// Crates in which nothing may wait on a runtime.
const WITHOUT_TOKIO: &[&str] = &[
    "ew-model",
    "ew-plan",
    "ew-proto",
    "ew-sim",
    "ew-engine",
    "ew-stats",
    "ew-evidence",
    "ew-fit",
    "ew-analyze",
    "ew-analyze-storage",
];

/// Violations of one manifest. Tests (dev-dependencies) may use whatever of ours they want.
pub(crate) fn check(manifest: &Manifest) -> Vec<Violation> {
    let shipped = manifest.dependencies.iter().filter(|d| !d.is_dev);
    let mut violations: Vec<_> = shipped.filter_map(|d| check_arrow(manifest, d)).collect();
    violations.extend(
        manifest
            .dependencies
            .iter()
            .filter_map(|d| check_tokio(manifest, d)),
    );
    violations.extend(
        manifest
            .dependencies
            .iter()
            .filter_map(|d| check_parquet(manifest, d)),
    );
    violations
}

fn check_arrow(manifest: &Manifest, dependency: &Dependency) -> Option<Violation> {
    let (user, used) = (manifest.package.as_str(), dependency.name.as_str());
    if !used.starts_with("ew-") || user == BINARY {
        return None;
    }
    let allowed = ARROWS
        .iter()
        .find(|(name, _)| *name == user)
        .map_or(&[][..], |(_, uses)| uses);
    if allowed.contains(&used) {
        return None;
    }
    Some(Violation::new(
        &manifest.path,
        dependency.line,
        format!("{user} may not use {used}"),
        format!(
            "move what is needed to a crate both may use ({user} may use: {}), or pass it in; if the design has changed, \
             change ARCHITECTURE.md and the table in xtask/src/tidy/layers.rs together",
            if allowed.is_empty() {
                "none of ours".into()
            } else {
                allowed.join(", ")
            }
        ),
    ))
}

fn check_tokio(manifest: &Manifest, dependency: &Dependency) -> Option<Violation> {
    let user = manifest.package.as_str();
    let is_tokio = dependency.name == "tokio" || dependency.name.starts_with("tokio-");
    (is_tokio && WITHOUT_TOKIO.contains(&user)).then(|| {
        Violation::new(
            &manifest.path,
            dependency.line,
            format!("{user} may not use {}", dependency.name),
            "keep it free of a runtime: threads in the engine, arguments in the pure crates; drive it from ew-agent or \
             ew-controller",
        )
    })
}

fn check_parquet(manifest: &Manifest, dependency: &Dependency) -> Option<Violation> {
    let user = manifest.package.as_str();
    let is_parquet = matches!(dependency.name.as_str(), "parquet" | "arrow");
    (is_parquet && user != "ew-store").then(|| {
        Violation::new(
            &manifest.path,
            dependency.line,
            format!("{user} may not use {}", dependency.name),
            "ask ew-store, the only crate that knows how a run is stored",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(package: &str, dependencies: &str) -> Vec<usize> {
        let text = format!("[package]\nname = \"{package}\"\n{dependencies}");
        let manifest = Manifest::parse("Cargo.toml".into(), &text);
        check(&manifest).iter().map(|v| v.line).collect()
    }

    #[test]
    fn arrows_of_the_table_pass() {
        assert!(lines("ew-agent", "[dependencies]\new-engine.workspace = true\n").is_empty());
        assert!(lines("eastwest", "[dependencies]\new-lab.workspace = true\n").is_empty());
        assert!(lines("ew-fleet", "[dev-dependencies]\new-lab.workspace = true\n").is_empty());
    }

    #[test]
    fn other_arrows_fail_where_they_stand() {
        assert_eq!(
            lines("ew-model", "[dependencies]\new-plan.workspace = true\n"),
            [4]
        );
        assert_eq!(
            lines("ew-fleet", "[dependencies]\n\new-lab.workspace = true\n"),
            [5]
        );
        assert_eq!(
            lines("ew-report", "[dependencies]\new-store.workspace = true\n"),
            [4]
        );
        assert_eq!(
            lines("ew-new", "[dependencies]\new-model.workspace = true\n"),
            [4]
        );
    }

    #[test]
    fn a_runtime_and_parquet_stay_in_their_rooms() {
        assert_eq!(
            lines("ew-engine", "[dependencies]\ntokio.workspace = true\n"),
            [4]
        );
        assert_eq!(
            lines("ew-proto", "[dependencies]\ntokio-util.workspace = true\n"),
            [4]
        );
        assert!(lines("ew-agent", "[dependencies]\ntokio.workspace = true\n").is_empty());
        assert_eq!(
            lines("ew-report", "[dependencies]\nparquet.workspace = true\n"),
            [4]
        );
        assert!(lines("ew-store", "[dependencies]\nparquet.workspace = true\n").is_empty());
    }
}
