//! What a scenario file is read into.

use super::storage::StorageSettings;
use ew_model::Scenario;

/// A scenario file, read: the scenario and what the file specifies about the hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioFile {
    /// What to run.
    pub scenario: Scenario,
    /// The `racks:` key: node sets or groups, one per rack or folded (`@mc_rack[1-3]`), as
    /// `--racks` takes them. Empty when the file names none. Not expanded here.
    pub racks: Vec<String>,
    /// The `roles:` key. Not expanded here.
    pub roles: Option<RoleSets>,
    /// The `storage:` key: files in place of flows; the scenario then has no tests.
    pub storage: Option<StorageSettings>,
}

/// Clients and servers as node sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleSets {
    /// As `--clients` takes it.
    pub clients: String,
    /// As `--servers` takes it.
    pub servers: String,
}
