//! `/etc/hosts` as a list of hosts.

use super::content::HostFile;
use super::lines::{line_of, significant_lines};
use crate::inventory::host_list::ListedHost;
use crate::inventory::inventory_error::InventoryError;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;

/// An address before a name. In a plain list `10.0.0.1 10.20.0.1` is a host and its address.
pub(super) fn is_entry(line: &str) -> bool {
    let mut words = line.split_whitespace().map(str::parse::<IpAddr>);
    matches!((words.next(), words.next()), (Some(Ok(_)), Some(Err(_))))
}

/// Every host by its first name, with its first address. Loopback, link-local and multicast lines
/// are the machine's own.
pub(super) fn read(path: &Path, text: &str) -> Result<HostFile, InventoryError> {
    let mut seen = BTreeSet::new();
    let mut hosts = Vec::new();
    for (number, line) in significant_lines(text) {
        let location = line_of(path, number);
        let mut words = line.split_whitespace();
        let (address, name) = (words.next().map(str::parse::<IpAddr>), words.next());
        let (Some(Ok(address)), Some(name)) = (address, name) else {
            return Err(InventoryError::HostFile {
                location,
                problem: format!("`{line}` in a file in the format of /etc/hosts"),
                remedy: "write `address name alias...` on each line".into(),
            });
        };
        if is_of_a_host(address) && seen.insert(name.to_ascii_lowercase()) {
            hosts.push(ListedHost {
                address: Some(address),
                ..ListedHost::named(name, location)
            });
        }
    }
    Ok(HostFile {
        hosts,
        ..HostFile::default()
    })
}

fn is_of_a_host(address: IpAddr) -> bool {
    let is_link_local = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !(address.is_loopback() || address.is_multicast() || address.is_unspecified() || is_link_local)
        // `fe00::0 ip6-localnet` of Debian's own file.
        && address != IpAddr::V6(std::net::Ipv6Addr::new(0xfe00, 0, 0, 0, 0, 0, 0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debians_own_lines_are_no_hosts() {
        let text = "127.0.0.1\tlocalhost\n127.0.1.1\tme.example me\n::1 ip6-localhost\nfe00::0 ip6-localnet\n\
                    ff02::1 ip6-allnodes\n10.0.0.1 n1.example n1\n10.0.0.2 n2 # second\nfd00::2 n2\n";
        let file = read(Path::new("/etc/hosts"), text).unwrap();
        let found: Vec<String> = file
            .hosts
            .iter()
            .map(|host| format!("{} {}", host.name, host.address.unwrap()))
            .collect();
        assert_eq!(found, ["n1.example 10.0.0.1", "n2 10.0.0.2"]);
        assert!(read(Path::new("h"), "10.0.0.1 n1\nn2\n").is_err());
    }
}
