//! Where hosts and racks come from: node sets, ClusterShell groups, host files of every shape
//! (`host_file`).
//!
//! The way through: text is cut into operands (`syntax`), each operand becomes a set of nodes
//! (`nodeset`), groups are looked up in their sources (`groups`, fed by `group_files` and
//! `upcall`), sets are written folded (`folding`), and `build` makes the [`ew_model::Inventory`] of
//! it all. Results are those of ClusterShell's `nodeset`, with these deliberate differences, each
//! of which would otherwise load hosts nobody meant:
//!
//! | Text | ClusterShell | here |
//! | --- | --- | --- |
//! | `@nosuch` | the empty set | an error with the names that are near |
//! | `n1 n2` | one node whose name contains a blank | an error (groups and host files: two nodes) |
//! | `n1[9-10]` | `n19` to `n110`, 92 nodes | an error that shows both readings |
//! | `n[1-2-3]` | `n[-2-3]` | an error |
//! | `@a` that leads back to `@a` | an error about recursion | an error with the cycle |
//! | more than [`MAX_NODES`] nodes | memory runs out | an error |

mod build;
mod folding;
mod group_files;
mod groups;
mod groups_error;
mod host_file;
mod host_list;
mod hosts_file;
mod index;
mod inventory_error;
mod limits;
mod mask;
mod node_set_error;
mod nodeset;
mod rack_list;
mod ranges;
mod syntax;
mod upcall;

pub use build::{InventoryRequest, Roster, apply_addresses, build, check_addresses};
pub(crate) use group_files::fuzzed_config;
pub use groups::{GroupEnvironment, GroupSources};
pub use groups_error::GroupsError;
pub use host_file::NamedText;
pub use host_list::rack_name_of_file;
pub use hosts_file::parse_hosts_file;
pub use inventory_error::InventoryError;
pub use limits::MAX_NODES;
pub use node_set_error::NodeSetError;
pub use nodeset::{NodeSet, count, expand, fold};
