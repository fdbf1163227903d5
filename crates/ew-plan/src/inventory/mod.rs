//! Where hosts and racks come from: node sets, ClusterShell groups, host files.
