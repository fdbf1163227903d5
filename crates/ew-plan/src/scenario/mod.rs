//! Scenario files and built-ins: YAML to [`Scenario`], with overrides from the command line.
//!
//! ```yaml
//! name: my-check
//! expect: {oversubscription: 1, nic: 10G}
//! defaults: {duration: 2s, samples: 6}
//! tests:
//!   - pattern: permutation
//!   - name: ramp
//!     pattern: {cross-rack: {senders: ramp, scope: each-pair}}
//! ```

mod builtin;
mod error;
mod file;
mod k8s_netperf;
mod overrides;
mod pattern;
mod read;
mod repeat;
mod settings;
mod sizes;
mod storage;
mod tree;
mod values;
mod workload;

pub use builtin::{Builtin, DEFAULT_BUILTIN, builtin, builtins, nearest_builtin};
pub use error::{Choices, ScenarioError, SourceLocation};
pub use file::{RoleSets, ScenarioFile};
pub use k8s_netperf::{K8sNetperfError, Translated, from_k8s_netperf};
pub use storage::StorageSettings;
pub(crate) use workload::MAX_AUTO_STREAMS;

use ew_model::Scenario;

/// Reads a scenario from YAML text, applies `overrides` (`key=value` or `TEST.key=value`, in order)
/// and checks it.
///
/// `file_name` is only used in messages. A bare key applies to every test whose workload has it;
/// `streams`, `message-size` and a bulk `workload` leave tests of requests alone as long as there
/// are bulk tests, because they are about bulk data. A bare `tool` goes to the tests whose workload
/// it has.
///
/// # Errors
/// [`ScenarioError`] with the source location, what was expected and the nearest known word.
pub fn parse(text: &str, file_name: &str, overrides: &[String]) -> Result<Scenario, ScenarioError> {
    parse_file(text, file_name, overrides).map(|file| file.scenario)
}

/// Like [`parse`], with what the file specifies about the hosts.
///
/// # Errors
/// As [`parse`].
pub fn parse_file(
    text: &str,
    file_name: &str,
    overrides: &[String],
) -> Result<ScenarioFile, ScenarioError> {
    let mut root = tree::read(text, file_name)?;
    overrides::apply(&mut root, overrides)?;
    read::scenario_file(&root)
}

#[cfg(test)]
mod tests;
