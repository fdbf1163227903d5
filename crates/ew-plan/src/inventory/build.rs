//! From what the user gave to the inventory.

use super::groups::GroupSources;
use super::host_file::{HostFile, NamedText, read_host_file};
use super::host_list::{ListedHost, rack_name_of_file, split_login};
use super::inventory_error::{InventoryError, check_count};
use super::nodeset::{GroupName, NodeSet, group_names};
use super::rack_list::{InlineRack, parse_racks};
use ew_model::inventory::Login;
use ew_model::{Host, Inventory, Rack, RackId};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// How many hosts an error names at most.
const MAX_NAMED: usize = 5;

/// What was asked for on the command line or in the scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InventoryRequest {
    /// `--hosts SET`. May be omitted when host files or racks are given.
    pub hosts: Option<String>,
    /// `--hosts-file FILE`, each with its contents. Several files without `racks` are one rack
    /// each.
    pub host_files: Vec<NamedText>,
    /// `--racks`: sets of groups, such as `@mc_rack[1-3]` or `@racks:*`, each of which is a rack;
    /// or racks as they are, `r1=n[1-4],r2=n[5-8]`.
    pub racks: Vec<String>,
}

/// Who takes part, and how they are reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roster {
    /// Hosts and racks.
    pub inventory: Inventory,
    /// By host name; hosts without any are not there.
    pub logins: BTreeMap<String, Login>,
}

/// A rack and all hosts known to be in it, asked for or not.
struct RackMembers {
    name: String,
    /// For errors: the group or file.
    location: String,
    hosts: Vec<String>,
}

/// Makes the inventory: hosts in the order given, racks in the order named. A rack none of whose
/// hosts take part is skipped. Addresses are filled in where a host file states them or the name
/// is an address; see [`apply_addresses`].
///
/// # Errors
/// [`InventoryError`] when a set or file is wrong, a host is given twice, or is not in exactly one
/// rack.
pub fn build(request: &InventoryRequest, sources: &GroupSources) -> Result<Roster, InventoryError> {
    let files = request
        .host_files
        .iter()
        .map(|file| read_host_file(file, sources))
        .collect::<Result<Vec<_>, _>>()?;
    let of_files = groups_of_files(request, &files);
    let sources = of_files.as_ref().unwrap_or(sources);
    let racks = if request.racks.is_empty() {
        racks_of_files(request, &files)?
    } else {
        racks_as_asked(&request.racks, sources)?
    };
    let hosts = chosen_hosts(request, sources, files, &racks)?;
    if hosts.is_empty() {
        return Err(no_hosts(request));
    }
    for host in &hosts {
        check_name(host)?;
    }
    let logins = hosts
        .iter()
        .filter(|host| host.login != Login::default())
        .map(|host| (host.name.clone(), host.login.clone()))
        .collect();
    Ok(Roster {
        inventory: place_in_racks(hosts, &racks)?,
        logins,
    })
}

fn no_hosts(request: &InventoryRequest) -> InventoryError {
    if request.hosts.is_some() || request.host_files.is_empty() {
        return InventoryError::NoHosts;
    }
    InventoryError::HostFile {
        location: names_of_files(request),
        problem: "no hosts in it".into(),
        remedy: "write one host a line".into(),
    }
}

/// Groups that host files define, in place of ClusterShell's.
fn groups_of_files(request: &InventoryRequest, files: &[HostFile]) -> Option<GroupSources> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, members) in files.iter().flat_map(|file| &file.groups) {
        groups
            .entry(name.clone())
            .or_default()
            .extend(members.iter().cloned());
    }
    (!groups.is_empty()).then(|| GroupSources::of_names(&groups, &names_of_files(request)))
}

fn names_of_files(request: &InventoryRequest) -> String {
    let paths = request.host_files.iter().map(|file| file.path.display());
    paths
        .map(|path| path.to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

/// Fills in addresses of hosts that have none, by name in lower case (see
/// [`super::parse_hosts_file`]). Gives back the names that are still without one.
pub fn apply_addresses(
    inventory: &mut Inventory,
    addresses: &BTreeMap<String, IpAddr>,
) -> Vec<String> {
    let mut unresolved = Vec::new();
    for host in &mut inventory.hosts {
        if host.address.is_none() {
            host.address = addresses.get(&host.name.to_ascii_lowercase()).copied();
        }
        if host.address.is_none() {
            unresolved.push(host.name.clone());
        }
    }
    unresolved
}

/// Makes sure that no two hosts have the same address. Hosts without an address are passed over.
///
/// # Errors
/// [`InventoryError::SameAddress`] with the first two found.
pub fn check_addresses(inventory: &Inventory) -> Result<(), InventoryError> {
    let mut seen: BTreeMap<IpAddr, &str> = BTreeMap::new();
    for host in &inventory.hosts {
        let Some(address) = host.address else {
            continue;
        };
        if let Some(first) = seen.insert(address, &host.name) {
            return Err(InventoryError::SameAddress {
                first: first.to_owned(),
                second: host.name.clone(),
                address,
            });
        }
    }
    Ok(())
}

/// Racks that the files name; without any, several files are a rack each.
fn racks_of_files(
    request: &InventoryRequest,
    files: &[HostFile],
) -> Result<Vec<RackMembers>, InventoryError> {
    let listed = || files.iter().flat_map(|file| &file.hosts);
    if listed().any(|host| host.rack.is_some()) {
        let mut racks: Vec<RackMembers> = Vec::new();
        for host in listed() {
            let Some(name) = &host.rack else { continue };
            match racks.iter_mut().find(|rack| rack.name == *name) {
                Some(rack) => rack.hosts.push(host.name.clone()),
                None => racks.push(RackMembers {
                    name: name.clone(),
                    location: host.location.clone(),
                    hosts: vec![host.name.clone()],
                }),
            }
        }
        return Ok(racks);
    }
    if files.len() < 2 {
        return Ok(Vec::new());
    }
    let racks = request
        .host_files
        .iter()
        .zip(files)
        .map(|(file, listed)| RackMembers {
            name: rack_name_of_file(&file.path),
            location: file.path.display().to_string(),
            hosts: listed.hosts.iter().map(|h| h.name.clone()).collect(),
        })
        .collect();
    with_unique_names(racks)
}

/// Racks of `--racks`: written out, or by their groups.
fn racks_as_asked(
    sets: &[String],
    sources: &GroupSources,
) -> Result<Vec<RackMembers>, InventoryError> {
    let mut racks = Vec::new();
    let mut groups: Vec<GroupName> = Vec::new();
    for set in sets {
        if let Some(inline) = parse_racks(set)? {
            for InlineRack { name, set } in inline {
                racks.push(RackMembers {
                    hosts: NodeSet::parse(&set, sources)?.names(),
                    location: format!("--racks {name}={set}"),
                    name,
                });
                check_count(racks.iter().map(|rack| rack.hosts.len()).sum(), "--racks")?;
            }
            continue;
        }
        for group in group_names(set, sources)? {
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
    }
    for GroupName { source, group } in groups {
        let location = format!("@{source}:{group}");
        racks.push(RackMembers {
            hosts: NodeSet::parse(&location, sources)?.names(),
            name: group,
            location,
        });
        check_count(racks.iter().map(|rack| rack.hosts.len()).sum(), "--racks")?;
    }
    with_unique_names(racks)
}

fn with_unique_names(racks: Vec<RackMembers>) -> Result<Vec<RackMembers>, InventoryError> {
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for rack in &racks {
        if let Some(first) = seen.insert(&rack.name, &rack.location) {
            return Err(InventoryError::DuplicateRack {
                name: rack.name.clone(),
                first: first.to_owned(),
                second: rack.location.clone(),
            });
        }
    }
    Ok(racks)
}

/// The hosts that take part: those given, or all of the racks when none are given. Of files that
/// describe a cluster, those of `--hosts`.
fn chosen_hosts(
    request: &InventoryRequest,
    sources: &GroupSources,
    files: Vec<HostFile>,
    racks: &[RackMembers],
) -> Result<Vec<ListedHost>, InventoryError> {
    let is_choice = files.iter().any(|file| file.is_catalogue);
    let mut hosts: Vec<ListedHost> = Vec::new();
    if let Some(set) = &request.hosts {
        let names = NodeSet::parse(set, sources)?.names();
        if let Some(name) = names.iter().find(|name| name.contains('@'))
            && set.contains(['!', '&', '^'])
        {
            let (set, name) = (set.clone(), name.clone());
            return Err(InventoryError::LoginInOperation { set, name });
        }
        hosts.extend(names.iter().map(|name| listed(name, "--hosts")));
    }
    let of_files = files.into_iter().flat_map(|file| file.hosts);
    if is_choice && request.hosts.is_some() {
        return choose(hosts, of_files.collect(), request);
    }
    hosts.extend(of_files);
    if request.hosts.is_none() && request.host_files.is_empty() {
        for rack in racks {
            // A name that comes again is in two racks, which is reported when hosts are placed.
            hosts.extend(rack.hosts.iter().map(|name| listed(name, &rack.location)));
        }
        let mut seen = BTreeSet::new();
        hosts.retain(|host| seen.insert(key(&host.name)));
        return Ok(hosts);
    }
    check_duplicates(&hosts)?;
    Ok(hosts)
}

/// Those of `listed` that are asked for, in the order asked.
fn choose(
    asked: Vec<ListedHost>,
    listed: Vec<ListedHost>,
    request: &InventoryRequest,
) -> Result<Vec<ListedHost>, InventoryError> {
    check_duplicates(&asked)?;
    check_duplicates(&listed)?;
    let mut by_name: BTreeMap<String, ListedHost> = listed
        .into_iter()
        .map(|host| (key(&host.name), host))
        .collect();
    let take = |host: ListedHost| {
        by_name
            .remove(&key(&host.name))
            .ok_or_else(|| InventoryError::NotListed {
                name: host.name.clone(),
                files: names_of_files(request),
            })
    };
    asked.into_iter().map(take).collect()
}

fn listed(name: &str, location: &str) -> ListedHost {
    ListedHost::of_login(name, location.to_owned())
}

/// Host names are the same in capitals (RFC 4343).
fn key(name: &str) -> String {
    name.to_ascii_lowercase()
}

fn check_duplicates(hosts: &[ListedHost]) -> Result<(), InventoryError> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for host in hosts {
        if let Some(first) = seen.insert(key(&host.name), &host.location) {
            return Err(InventoryError::DuplicateHost {
                name: host.name.clone(),
                first: first.to_owned(),
                second: host.location.clone(),
            });
        }
    }
    Ok(())
}

/// Names go to ssh and into files, so anything that is more than a name is refused.
fn check_name(host: &ListedHost) -> Result<(), InventoryError> {
    let is_name = |name: &str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let is_plain = !name.starts_with('-') && name.chars().all(allowed);
        let length = (1..=253).contains(&name.len());
        length && (is_plain || name.parse::<IpAddr>().is_ok())
    };
    let is_user = |user: &String| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._-+$\\@".contains(c);
        !user.is_empty() && !user.starts_with('-') && user.chars().all(allowed)
    };
    let Login { target, user, .. } = &host.login;
    let wrong = match (target, user) {
        (Some(target), _) if !is_name(target) => Some(target),
        (_, Some(user)) if !is_user(user) => Some(user),
        _ if !is_name(&host.name) => Some(&host.name),
        _ => None,
    };
    wrong.map_or(Ok(()), |name| {
        Err(InventoryError::InvalidName {
            name: name.clone(),
            location: host.location.clone(),
        })
    })
}

fn place_in_racks(
    hosts: Vec<ListedHost>,
    racks: &[RackMembers],
) -> Result<Inventory, InventoryError> {
    let mut racks_of_host: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, rack) in racks.iter().enumerate() {
        for host in &rack.hosts {
            let name = key(&split_login(host).0);
            racks_of_host.entry(name).or_default().push(index);
        }
    }
    let mut homeless = Vec::new();
    let mut placed: Vec<(ListedHost, Option<usize>)> = Vec::new();
    for host in hosts {
        let rack = match racks_of_host.get(&key(&host.name)).map(Vec::as_slice) {
            Some([rack]) => Some(*rack),
            Some([first, second, ..]) => {
                return Err(InventoryError::HostInTwoRacks {
                    host: host.name,
                    first: racks[*first].name.clone(),
                    second: racks[*second].name.clone(),
                });
            }
            _ => {
                homeless.push(host.name.clone());
                None
            }
        };
        placed.push((host, rack));
    }
    if !racks.is_empty() && !homeless.is_empty() {
        return Err(without_rack(&homeless, racks));
    }
    Ok(number(placed, racks))
}

/// Numbers the racks with a host, in their order.
fn number(placed: Vec<(ListedHost, Option<usize>)>, racks: &[RackMembers]) -> Inventory {
    let mut inventory = Inventory::default();
    let mut ids: BTreeMap<usize, RackId> = BTreeMap::new();
    for (index, rack) in racks.iter().enumerate() {
        if placed.iter().any(|(_, of)| *of == Some(index)) {
            ids.insert(index, RackId(inventory.racks.len() as u32));
            inventory.racks.push(Rack {
                name: rack.name.clone(),
            });
        }
    }
    for (host, rack) in placed {
        inventory.hosts.push(Host {
            address: host.address.or_else(|| host.name.parse().ok()),
            name: host.name,
            rack: rack.and_then(|index| ids.get(&index).copied()),
        });
    }
    inventory
}

fn without_rack(homeless: &[String], racks: &[RackMembers]) -> InventoryError {
    let mut some = homeless[..homeless.len().min(MAX_NAMED)].join(", ");
    if homeless.len() > MAX_NAMED {
        some.push_str(", ...");
    }
    InventoryError::HostsWithoutRack {
        count: homeless.len(),
        some,
        racks: super::nodeset::fold(racks.iter().map(|r| &r.name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    const GROUPS: &str = "mc_rack1: h[101-103]\nmc_rack2 :h[201-203]\nmc_rack3: h[301-302] h101\nall: @mc_rack[1-2]\n";

    fn sources() -> GroupSources {
        GroupSources::from_flat("local", GROUPS, "groups").unwrap()
    }

    fn request(hosts: Option<&str>, racks: &[&str], files: &[(&str, &str)]) -> InventoryRequest {
        InventoryRequest {
            hosts: hosts.map(str::to_owned),
            racks: racks.iter().map(|r| (*r).to_owned()).collect(),
            host_files: files
                .iter()
                .map(|(path, text)| NamedText {
                    path: PathBuf::from(path),
                    text: (*text).to_owned(),
                })
                .collect(),
        }
    }

    fn made(request: &InventoryRequest) -> Result<String, InventoryError> {
        let inventory = build(request, &sources())?.inventory;
        Ok(inventory
            .host_ids()
            .map(|id| match inventory.rack_of(id) {
                Some(rack) => format!("{}/{}", inventory.name(id), inventory.rack_name(rack)),
                None => inventory.name(id).to_owned(),
            })
            .collect::<Vec<_>>()
            .join(" "))
    }

    #[test]
    fn hosts_alone() {
        let hosts = made(&request(Some("h[3,1],h1"), &[], &[])).unwrap();
        assert_eq!(hosts, "h1 h3");
        assert_eq!(
            made(&request(None, &[], &[("nodes.rack1", "b\na\n")])).unwrap(),
            "b a"
        );
    }

    #[test]
    fn racks_are_groups() {
        assert_eq!(
            made(&request(None, &["@mc_rack[1-2]"], &[])).unwrap(),
            "h101/mc_rack1 h102/mc_rack1 h103/mc_rack1 h201/mc_rack2 h202/mc_rack2 h203/mc_rack2"
        );
        assert_eq!(
            made(&request(Some("h[102,201]"), &["@local:*!@mc_rack3"], &[])).unwrap(),
            "h102/mc_rack1 h201/mc_rack2"
        );
        let inventory = build(
            &request(Some("h202"), &["@mc_rack2", "@mc_rack1"], &[]),
            &sources(),
        )
        .unwrap()
        .inventory;
        assert_eq!(inventory.racks.len(), 1, "a rack without hosts is skipped");
    }

    #[test]
    fn files_are_racks() {
        let files = [
            ("x/nodes.rack1", "a1\na2 10.0.0.2\n"),
            ("x/nodes.rack2", "b[1-2]\n"),
        ];
        assert_eq!(
            made(&request(None, &[], &files)).unwrap(),
            "a1/rack1 a2/rack1 b1/rack2 b2/rack2"
        );
        let same = [("x/nodes.rack1", "a1"), ("y/nodes.rack1", "a2")];
        let error = made(&request(None, &[], &same)).unwrap_err();
        assert!(
            matches!(error, InventoryError::DuplicateRack { .. }),
            "{error}"
        );
    }

    #[test]
    fn contradictions_are_named() {
        let two_racks = made(&request(None, &["@mc_rack[1,3]"], &[])).unwrap_err();
        assert!(
            matches!(&two_racks, InventoryError::HostInTwoRacks { host, .. } if host == "h101"),
            "{two_racks}"
        );
        let homeless = made(&request(Some("h[101-102],x[1-9]"), &["@mc_rack1"], &[])).unwrap_err();
        assert!(
            matches!(&homeless, InventoryError::HostsWithoutRack { count: 9, some, .. } if some.starts_with("x1, x2")),
            "{homeless}"
        );
        let files = [("nodes.r1", "a\n"), ("nodes.r2", "b\na\n")];
        let twice = made(&request(None, &[], &files)).unwrap_err().to_string();
        assert!(
            twice.contains("nodes.r1, line 1") && twice.contains("nodes.r2, line 2"),
            "{twice}"
        );
        assert!(matches!(
            made(&request(Some("a"), &[], &[("f", "a")])),
            Err(InventoryError::DuplicateHost { .. })
        ));
        for (hosts, racks) in [(None, None), (Some(""), None), (Some("h1!h1"), None)] {
            let racks: Vec<&str> = racks.into_iter().collect();
            assert_eq!(
                made(&request(hosts, &racks, &[])),
                Err(InventoryError::NoHosts)
            );
        }
    }

    #[test]
    fn racks_written_out() {
        let inline = "r1=h[101-102],h9,R2=@mc_rack2";
        assert_eq!(
            made(&request(None, &[inline], &[])).unwrap(),
            "h9/r1 h101/r1 h102/r1 h201/R2 h202/R2 h203/R2"
        );
        assert_eq!(
            made(&request(Some("H101,h201"), &[inline], &[])).unwrap(),
            "H101/r1 h201/R2"
        );
        let mixed = ["@mc_rack1", "x=h201"];
        assert_eq!(
            made(&request(Some("h101,h201"), &mixed, &[])).unwrap(),
            "h101/mc_rack1 h201/x"
        );
    }

    #[test]
    fn logins_and_choices() {
        let roster = build(&request(Some("ops@n[1-2]:2222,n3"), &[], &[]), &sources()).unwrap();
        let mut names: Vec<&str> = roster.inventory.hosts.iter().map(|h| &*h.name).collect();
        names.sort_unstable();
        assert_eq!(names, ["n1", "n2", "n3"]);
        assert_eq!(roster.logins.len(), 2);
        assert_eq!(roster.logins["n2"].port, Some(2222));
        let inventory = [(
            "inv",
            "[rack1]\nn1\nn2\n[rack2]\nn3 ansible_user=ops\n[other]\nbmc\n",
        )];
        assert_eq!(
            made(&request(Some("@rack2,N1"), &[], &inventory)).unwrap(),
            "n1/rack1 n3/rack2"
        );
        assert_eq!(
            made(&request(
                Some("@all!@other,@other!bmc"),
                &["@rack[1-2]"],
                &inventory
            ))
            .unwrap(),
            "n1/rack1 n2/rack1 n3/rack2"
        );
        for (hosts, word) in [
            ("x", "not in inv"),
            ("@rack3", "@rack1"),
            ("n1,N1", "twice"),
        ] {
            let error = made(&request(Some(hosts), &[], &inventory))
                .unwrap_err()
                .to_string();
            assert!(error.contains(word), "{error}");
        }
        for wrong in ["ops@n1!n2", "n1:x", "n1:99999", "o;p@n1", "@"] {
            assert!(made(&request(Some(wrong), &[], &[])).is_err(), "{wrong}");
        }
    }

    #[test]
    fn racks_that_are_not_groups_point_at_the_spot() {
        for (set, offset) in [("@mc_rack1,h5", 10), ("@mc_rack1,@mc_rak2", 10), ("h1", 0)] {
            match made(&request(None, &[set], &[])) {
                Err(InventoryError::NodeSet(error)) => assert_eq!(error.offset, offset, "{error}"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn names_that_would_be_options_are_refused() {
        for name in ["-oProxyCommand=x", "a;b", "n[-2-2]x*"] {
            assert!(made(&request(Some(name), &[], &[])).is_err(), "{name}");
        }
        assert!(matches!(
            made(&request(Some("-oX"), &[], &[])),
            Err(InventoryError::InvalidName { .. })
        ));
    }

    #[test]
    fn addresses() {
        let mut inventory = build(
            &request(None, &[], &[("f", "a 10.0.0.1\n10.0.0.2\nC\nd\n")]),
            &GroupSources::default(),
        )
        .unwrap()
        .inventory;
        let known = super::super::parse_hosts_file("10.0.0.3 c\n");
        assert_eq!(apply_addresses(&mut inventory, &known), ["d"]);
        assert_eq!(check_addresses(&inventory), Ok(()));
        inventory.hosts[3].address = inventory.hosts[0].address;
        let error = check_addresses(&inventory).unwrap_err().to_string();
        assert!(
            error.contains("a and d") && error.contains("10.0.0.1"),
            "{error}"
        );
    }
}
