//! `/etc/hosts`, for resolving names without the C library.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// Reads the format of `/etc/hosts`: `address name alias...` a line, `#` begins a comment. Names
/// are given in lower case; the first line that names a host counts, as in the C library. Lines
/// that begin with no address are passed over.
#[must_use]
pub fn parse_hosts_file(text: &str) -> BTreeMap<String, IpAddr> {
    let mut addresses = BTreeMap::new();
    for line in text.lines() {
        let content = line.split('#').next().unwrap_or("");
        let mut words = content.split_whitespace();
        let Some(address) = words.next().and_then(|word| word.parse::<IpAddr>().ok()) else {
            continue;
        };
        for name in words {
            addresses
                .entry(name.to_ascii_lowercase())
                .or_insert(address);
        }
    }
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_aliases() {
        let text = "127.0.0.1 localhost\n# 10.0.0.9 old\n10.0.0.1\tHost1.my.company.com host1 # rack 1\n\
                    fd00::2 host2\n10.0.0.2 host2\nnonsense line\n10.0.0.3\n";
        let addresses = parse_hosts_file(text);
        assert_eq!(addresses.len(), 4);
        assert_eq!(addresses["host1"].to_string(), "10.0.0.1");
        assert_eq!(addresses["host1.my.company.com"].to_string(), "10.0.0.1");
        assert_eq!(addresses["host2"].to_string(), "fd00::2");
    }
}
