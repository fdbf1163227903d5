//! The rules of the house that no compiler and no linter knows. One file per rule.

mod code_map;
mod comment_width;
mod function_length;
mod import_circles;
mod layers;
mod lints;
mod manifest;
mod printing;
mod purity;
mod scripts;
mod source;
mod unsafe_code;
mod violation;
mod words;
mod workspace;

pub(crate) use workspace::Workspace;

use std::path::Path;
use violation::Violation;

/// Every violation of every rule, by file and line.
pub(crate) fn check(workspace: &Workspace) -> Vec<Violation> {
    let mut violations = workspace.unreadable.clone();
    for manifest in &workspace.manifests {
        violations.extend(layers::check(manifest));
        violations.extend(lints::check(manifest));
    }
    for source in &workspace.sources {
        violations.extend(unsafe_code::check(source));
        violations.extend(function_length::check(source));
        violations.extend(purity::check(source));
        violations.extend(printing::check(source));
        violations.extend(comment_width::check(source));
        violations.extend(words::check(source));
    }
    for doc in &workspace.docs {
        violations.extend(words::check_doc(doc));
    }
    violations.extend(import_circles::check(&workspace.sources));
    let crates: Vec<&str> = workspace
        .manifests
        .iter()
        .map(|m| m.package.as_str())
        .collect();
    violations.extend(code_map::check(workspace.architecture.as_deref(), &crates));
    let sources: Vec<&Path> = workspace.sources.iter().map(|s| s.path.as_path()).collect();
    violations.extend(scripts::check(&workspace.scripts, &sources));
    violations.sort();
    violations
}
