//! Why there is no inventory.

use super::limits::MAX_NODES;
use super::node_set_error::NodeSetError;
use std::net::IpAddr;
use thiserror::Error;

/// Why there is no inventory.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InventoryError {
    /// A node set is wrong.
    #[error(transparent)]
    NodeSet(#[from] NodeSetError),
    /// Nothing was asked for, or what was asked for is empty.
    #[error("no hosts; name them with --hosts SET, --hosts-file FILE or --racks '@group[1-3]'")]
    NoHosts,
    /// A line of a host file is wrong.
    #[error("{location}: {problem}; {remedy}")]
    HostFile {
        /// File and line.
        location: String,
        /// What is wrong.
        problem: String,
        /// What to do.
        remedy: String,
    },
    /// A name that no host can have.
    #[error(
        "`{name}` ({location}) cannot be a host: write a name of up to 253 letters, digits and . _ - that does not begin with -, or an \
         address; before it USER@, behind it :PORT"
    )]
    InvalidName {
        /// The name.
        name: String,
        /// Where it was given.
        location: String,
    },
    /// Racks written out wrongly.
    #[error("--racks `{part}`: {problem}; write r1=n[1-4],r2=n[5-8], or groups as in @rack[1-2]")]
    InlineRack {
        /// The part that is wrong.
        part: String,
        /// What is wrong.
        problem: String,
    },
    /// A login in a set with an operator.
    #[error(
        "`{set}` has a login (`{name}`) next to one of ! & ^, which compare names as they are written; give the login with --ssh-user and \
         --ssh-port"
    )]
    LoginInOperation {
        /// The set.
        set: String,
        /// One of its names.
        name: String,
    },
    /// A host asked for that no file lists.
    #[error("host {name} is not in {files}; check the spelling, or leave out --hosts")]
    NotListed {
        /// The host.
        name: String,
        /// The host files.
        files: String,
    },
    /// A host given twice.
    #[error("host {name} is given twice, in {first} and in {second}; remove one of them")]
    DuplicateHost {
        /// The host.
        name: String,
        /// Its first location.
        first: String,
        /// The other.
        second: String,
    },
    /// Two racks of one name.
    #[error("two racks are called {name}: {first} and {second}; rename one of them")]
    DuplicateRack {
        /// The rack.
        name: String,
        /// Its first location.
        first: String,
        /// The other.
        second: String,
    },
    /// A host in two racks.
    #[error(
        "host {host} is in two racks, {first} and {second}; a host is below one leaf switch: take it out of one"
    )]
    HostInTwoRacks {
        /// The host.
        host: String,
        /// One rack.
        first: String,
        /// The other.
        second: String,
    },
    /// Hosts in none of the racks.
    #[error(
        "hosts in none of the racks {racks} ({count}): {some}; add them to a rack, or leave them out"
    )]
    HostsWithoutRack {
        /// How many.
        count: usize,
        /// The first few.
        some: String,
        /// The racks searched.
        racks: String,
    },
    /// Two hosts with one address.
    #[error(
        "hosts {first} and {second} have the same address {address}; they are one machine: leave one out"
    )]
    SameAddress {
        /// One host.
        first: String,
        /// The other.
        second: String,
        /// Their address.
        address: IpAddr,
    },
}

/// Makes sure that an inventory is no larger than a set can be.
///
/// # Errors
/// [`InventoryError::HostFile`] at this location.
pub(super) fn check_count(hosts: usize, location: &str) -> Result<(), InventoryError> {
    match hosts {
        ..=MAX_NODES => Ok(()),
        _ => Err(InventoryError::HostFile {
            location: location.to_owned(),
            problem: format!("more than {MAX_NODES} hosts"),
            remedy: "name a smaller set".into(),
        }),
    }
}
