//! What is in a host file, whatever its shape.

use crate::inventory::host_list::ListedHost;
use std::collections::BTreeMap;

/// The content of a host file.
#[derive(Debug, Default)]
pub(in crate::inventory) struct HostFile {
    /// In the file's order, each once.
    pub(in crate::inventory) hosts: Vec<ListedHost>,
    /// Groups of host names.
    pub(in crate::inventory) groups: BTreeMap<String, Vec<String>>,
    /// Whether it describes a cluster, of which a run may use a part.
    pub(in crate::inventory) is_catalogue: bool,
}

/// For errors: what a host file may be.
pub(super) const KNOWN_SHAPES: &str = "one host a line, an Ansible inventory (INI, YAML or JSON), an MPI hostfile, /etc/hosts, Slurm's \
     node or topology lines, `kubectl get nodes -o json`, or JSON as in docs/guide/hosts.md";
