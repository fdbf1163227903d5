//! What is wrong with the NameNode's hosts file, or with the lease next to it.

use std::time::Duration;

/// From the refresh to the last node's new state.
pub(crate) const STATE_LIMIT: Duration = Duration::from_secs(60);

/// Why the NameNode's hosts file, or the lease next to it, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HostsFileError {
    /// The lease cannot be read.
    #[error(
        "it is damaged ({0}); put the nodes back by hand: edit the hosts file, run `hdfs dfsadmin -refreshNodes`, remove this file"
    )]
    Damaged(#[source] serde_json::Error),
    /// There is a lease.
    #[error(
        "DataNodes may still be in maintenance from a run that ended early (process {pid}); run `eastwest storage restore --dfs-hosts {hosts_file}` first"
    )]
    Taken {
        /// That of the run.
        pid: u32,
        /// As given.
        hosts_file: String,
    },
    /// The hosts file is something else.
    #[error("it has {bytes} bytes, which is no hosts file; check --dfs-hosts")]
    Long {
        /// Its length.
        bytes: u64,
    },
    /// The hosts file has another form.
    #[error(
        "it is no JSON hosts file: set dfs.namenode.hosts.provider.classname to CombinedHostFileManager, and give the file of dfs.hosts"
    )]
    Form,
    /// The hosts file is not the NameNode's.
    #[error(
        "the NameNode did not follow it within {} s for {}; check that it is the file of dfs.hosts, and that dfs.namenode.hosts.provider.classname is CombinedHostFileManager",
        STATE_LIMIT.as_secs(),
        nodes.join(", ")
    )]
    NotFollowed {
        /// Whose state is another one.
        nodes: Vec<String>,
    },
}
