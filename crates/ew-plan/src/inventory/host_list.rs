//! Plain host files: one name a line, as `nodes.rack1` of the shell loops people use.

use super::groups::GroupSources;
use super::inventory_error::{InventoryError, check_count};
use super::nodeset::NodeSet;
use super::syntax::Blanks;
use ew_model::inventory::Login;
use std::net::IpAddr;
use std::path::Path;

/// A host of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListedHost {
    pub(super) name: String,
    /// Where data flows go, if the file specifies.
    pub(super) address: Option<IpAddr>,
    pub(super) login: Login,
    /// Its rack, if the file specifies.
    pub(super) rack: Option<String>,
    /// For errors: `FILE, line N`.
    pub(super) location: String,
}

impl ListedHost {
    /// A host of which only the name is known.
    pub(super) fn named(name: &str, location: String) -> Self {
        Self {
            name: name.to_owned(),
            address: None,
            login: Login::default(),
            rack: None,
            location,
        }
    }

    /// From `user@host:port`.
    pub(super) fn of_login(text: &str, location: String) -> Self {
        let (name, login) = split_login(text);
        Self {
            login,
            ..Self::named(&name, location)
        }
    }

    /// A host that a launcher connects to at `target`; an address there is also where data goes.
    pub(super) fn reached_at(name: &str, target: &str, location: String) -> Self {
        let mut host = Self::named(name, location);
        if target != name {
            host.address = target.parse().ok();
            host.login.target = Some(target.to_owned());
        }
        host
    }
}

/// Reads a plain host file: `name`, `name address` or node sets on a line; `#` begins a comment,
/// blank lines do nothing.
///
/// # Errors
/// [`InventoryError`] with file and line.
pub(super) fn parse_host_list(
    path: &Path,
    text: &str,
    sources: &GroupSources,
) -> Result<Vec<ListedHost>, InventoryError> {
    let mut hosts = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let content = line.split('#').next().unwrap_or("").trim();
        let location = format!("{}, line {number}", path.display());
        let (set, address) = split_address(content, &location)?;
        let names =
            NodeSet::parse_in_place(set, sources, Blanks::Separator, Some(&location))?.names();
        if address.is_some() && names.len() != 1 {
            return Err(InventoryError::HostFile {
                location,
                problem: format!("one address for `{set}`, which is {} hosts", names.len()),
                remedy: "write each host with its address on a line of its own".into(),
            });
        }
        check_count(hosts.len() + names.len(), &location)?;
        hosts.extend(names.iter().map(|name| ListedHost {
            address,
            ..ListedHost::of_login(name, location.clone())
        }));
    }
    Ok(hosts)
}

/// The rack a file means: `nodes.rack1` is `rack1`, `rack1.txt` is `rack1`, `rack1` is
/// `rack1`.
#[must_use]
pub fn rack_name_of_file(path: &Path) -> String {
    const PLAIN_EXTENSIONS: [&str; 6] = ["txt", "list", "lst", "hosts", "nodes", "conf"];
    let part = |part: Option<&std::ffi::OsStr>| {
        part.map(|p| p.to_string_lossy().into_owned())
            .filter(|p| !p.is_empty())
    };
    let extension = part(path.extension());
    match extension {
        Some(extension) if !PLAIN_EXTENSIONS.contains(&extension.as_str()) => extension,
        Some(_) => part(path.file_stem()).unwrap_or_default(),
        None => part(path.file_name()).unwrap_or_default(),
    }
}

/// Separates `name address`.
fn split_address<'a>(
    content: &'a str,
    location: &str,
) -> Result<(&'a str, Option<IpAddr>), InventoryError> {
    let words: Vec<&str> = content.split_whitespace().collect();
    let addresses: Vec<Option<IpAddr>> = words.iter().map(|w| w.parse().ok()).collect();
    let error = |problem: String, remedy: &str| InventoryError::HostFile {
        location: location.to_owned(),
        problem,
        remedy: remedy.to_owned(),
    };
    let is_digits = |text: &&str| {
        text.contains('.') && text.chars().all(|c: char| c.is_ascii_digit() || c == '.')
    };
    let is_address = |text: &str| text.parse::<IpAddr>().is_ok();
    let mut digits = words.iter().flat_map(|w| w.split(',')).filter(is_digits);
    if let Some(wrong) = digits.find(|text| !is_address(text)) {
        return Err(error(
            format!("`{wrong}` is no address"),
            "write an IPv4 address as 10.0.0.1",
        ));
    }
    let is_row = |word: &&str| {
        let parts = || word.split(',');
        !word.contains('[') && parts().any(is_address) && !parts().all(is_address)
    };
    if words.iter().any(is_row) {
        return Err(error(
            format!("`{content}` has names and addresses between commas, as CSV has"),
            "write `name address` on each line, without a header",
        ));
    }
    match (words.as_slice(), addresses.as_slice()) {
        ([name, _], [_, Some(address)]) => Ok((name, Some(*address))),
        ([_, _, third, ..], [_, Some(_), ..]) => Err(error(
            format!("unknown third column `{third}`"),
            "write `name address` on each line, or choose the network with --network CIDR or --interface NAME",
        )),
        (_, [None, .., Some(_)]) => Err(error(
            format!("`{content}` has several names for one address"),
            "write each host with its address on a line of its own",
        )),
        _ => Ok((content, None)),
    }
}

/// `user@host:port`, each part but the host optional. An IPv6 address has no port here.
pub(super) fn split_login(text: &str) -> (String, Login) {
    let (user, rest) = match text.rsplit_once('@') {
        Some((user, rest)) => (Some(user.to_owned()), rest),
        None => (None, text),
    };
    let (name, port) = match rest.split_once(':') {
        Some((name, port)) if !name.is_empty() => match port.parse::<u16>() {
            Ok(port) if port > 0 => (name, Some(port)),
            _ => (rest, None),
        },
        _ => (rest, None),
    };
    let login = Login {
        target: None,
        user,
        port,
    };
    (name.to_owned(), login)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<ListedHost>, InventoryError> {
        parse_host_list(Path::new("nodes.rack1"), text, &GroupSources::default())
    }

    #[test]
    fn lines() {
        let text = "# rack 1\r\nhost102.my.company.com\r\n\nhost[104,106] # two\nb a\nn1 10.0.0.1\nn2\tfd00::2\n";
        let hosts = parse(text).unwrap();
        let names: Vec<&str> = hosts.iter().map(|h| h.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "host102.my.company.com",
                "host104",
                "host106",
                "a",
                "b",
                "n1",
                "n2"
            ]
        );
        assert_eq!(hosts[5].address, Some("10.0.0.1".parse().unwrap()));
        assert_eq!(hosts[1].location, "nodes.rack1, line 4");
        let by_address = parse("10.0.0.1\n10.0.0.2 10.0.0.3\n").unwrap();
        assert_eq!(by_address.len(), 2);
        assert_eq!(by_address[1].address, Some("10.0.0.3".parse().unwrap()));
        let logins = parse("ops@n[1-2]:2222\n").unwrap();
        assert_eq!((&*logins[1].name, logins[1].login.port), ("n2", Some(2222)));
    }

    #[test]
    fn mistakes_name_the_line() {
        for (text, word) in [
            ("ok\nn[1-2] 10.0.0.1\n", "2 hosts"),
            ("ok\nn1 10.0.0.1 eth1\n", "third column `eth1`"),
            ("ok\na b 10.0.0.1\n", "several"),
            ("host,ip\nn1,10.0.0.1\n", "CSV"),
            ("ok\nn1 999.0.0.1\n", "`999.0.0.1` is no address"),
            ("ok\nn[1-2\n", "bracket"),
            ("n[1-9]\nn[1-1000000]\nn[1-1000000]\n", "more than 1000000"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains("line 2") && error.contains(word), "{error}");
        }
    }

    #[test]
    fn rack_names() {
        let name = |path: &str| rack_name_of_file(Path::new(path));
        assert_eq!(name("/x/nodes.rack1"), "rack1");
        assert_eq!(name("rack1.txt"), "rack1");
        assert_eq!(name("rack1"), "rack1");
        assert_eq!(name(".rack1"), ".rack1");
    }

    #[test]
    fn logins_are_split() {
        let split = |text| {
            let (name, login) = split_login(text);
            (name, login.user, login.port)
        };
        assert_eq!(split("n1"), ("n1".into(), None, None));
        assert_eq!(
            split("ops@n1:2222"),
            ("n1".into(), Some("ops".into()), Some(2222))
        );
        assert_eq!(split("fd00::2"), ("fd00::2".into(), None, None));
        assert_eq!(split("n1:0"), ("n1:0".into(), None, None));
    }
}
