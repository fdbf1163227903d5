//! What the fuzz targets run, and the tests that replay their inputs: each panics when a promise is
//! broken and returns otherwise.
//!
//! Where an input has parts, a zero byte is between them.

use crate::inventory::{
    GroupSources, InventoryRequest, MAX_NODES, NamedText, NodeSet, build, fuzzed_config,
    parse_hosts_file,
};
use crate::scenario;
use ew_model::pods::PodPath;
use std::collections::BTreeSet;

/// A text of a few bytes may name [`MAX_NODES`] nodes, and so take this much whatever its length:
/// names, and several sets of them with up to eight numbers in a name, of 32 bytes each.
pub const NODES_BYTES: usize = MAX_NODES * 2048;

/// Groups for sets that name some.
const GROUPS: &str = "r1: n[1-4]\nr2: n[5-8]\nall: @r1,@r2\ncircle: @circle\n";

/// A node set: written folded, it is the same set.
pub fn node_set(data: &[u8]) {
    let (Ok(text), Ok(sources)) = (
        std::str::from_utf8(data),
        GroupSources::from_flat("fuzz", GROUPS, "fuzz"),
    ) else {
        return;
    };
    let Ok(set) = NodeSet::parse(text, &sources) else {
        return;
    };
    let names = set.names();
    assert_eq!(names.len(), set.len());
    assert!(names.len() <= MAX_NODES);
    let again = NodeSet::from_names(&names).names();
    let unique: BTreeSet<&String> = names.iter().collect();
    assert_eq!(unique, again.iter().collect());
    if let Ok(folded) = NodeSet::parse(&set.to_string(), &sources) {
        assert_eq!(unique, folded.names().iter().collect());
    }
}

/// A file of groups: flat, YAML, or groups.conf. All its groups are looked up.
pub fn groups(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut sources = GroupSources::default();
    let _ = sources.add_yaml(text, "groups.yaml");
    let _ = sources.add_flat("flat", text, "groups");
    let names: Vec<String> = sources
        .source_names()
        .into_iter()
        .map(str::to_owned)
        .collect();
    for name in names {
        let _ = NodeSet::parse(&format!("@{name}:*"), &sources);
    }
    fuzzed_config(text);
}

/// A host file of any shape, the set of hosts chosen from it, and its racks.
pub fn host_file(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut parts = text.split('\0');
    let file = NamedText {
        path: "hosts.rack1".into(),
        text: parts.next().unwrap_or_default().to_owned(),
    };
    let _ = parse_hosts_file(&file.text);
    let request = InventoryRequest {
        host_files: vec![file],
        hosts: parts.next().map(str::to_owned),
        racks: parts.map(str::to_owned).collect(),
    };
    let Ok(roster) = build(&request, &GroupSources::default()) else {
        return;
    };
    let hosts = &roster.inventory.hosts;
    let names: BTreeSet<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names.len(), hosts.len(), "a host is there twice");
    assert!(roster.logins.keys().all(|name| names.contains(&**name)));
}

/// A scenario file with overrides, and k8s-netperf's configuration: what the latter becomes can be
/// read.
pub fn scenario(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut parts = text.split('\0').map(str::to_owned);
    let file = parts.next().unwrap_or_default();
    let overrides: Vec<String> = parts.collect();
    if let Ok(read) = scenario::parse_file(&file, "fuzz.yaml", &overrides) {
        assert_eq!(read.storage.is_some(), read.scenario.tests.is_empty());
        let tests = &read.scenario.tests;
        let names: BTreeSet<&str> = tests.iter().map(|test| test.name.as_str()).collect();
        assert_eq!(names.len(), tests.len(), "two tests have one name");
    }
    if let Ok(translated) = scenario::from_k8s_netperf(&file, "fuzz.yaml", &PodPath::ALL) {
        let _ = scenario::parse_file(&translated.yaml, "translated.yaml", &[]);
    }
}
