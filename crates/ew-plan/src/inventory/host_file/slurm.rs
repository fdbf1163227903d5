//! Slurm's own lines: `NodeName=` of slurm.conf and `scontrol show node -o`, `SwitchName=` of
//! topology.conf and `scontrol show topology`.

use super::content::HostFile;
use super::lines::{line_of, significant_lines};
use crate::inventory::groups::GroupSources;
use crate::inventory::host_list::ListedHost;
use crate::inventory::inventory_error::{InventoryError, check_count};
use crate::inventory::nodeset::NodeSet;
use std::collections::BTreeMap;
use std::path::Path;

/// Whether a line defines nodes or a switch.
pub(super) fn is_definition(line: &str) -> bool {
    line.starts_with("NodeName=") || line.starts_with("SwitchName=")
}

/// Nodes in order, below the leaf switches as racks. Without `NodeName` lines, the nodes are those
/// of the switches.
pub(super) fn read(path: &Path, text: &str) -> Result<HostFile, InventoryError> {
    let joined = text.replace("\\\n", " ");
    let mut nodes: Vec<ListedHost> = Vec::new();
    let mut below_switch: Vec<(String, Vec<ListedHost>)> = Vec::new();
    let mut count = 0;
    for (number, line) in significant_lines(&joined) {
        let location = line_of(path, number);
        let fields = fields(line);
        if let Some(names) = fields.get("NodeName").filter(|name| **name != "DEFAULT") {
            let target = fields.get("NodeAddr").or(fields.get("NodeHostname"));
            nodes.extend(nodes_of(names, target.copied(), &location)?);
            check_count(nodes.len(), &location)?;
        } else if let (Some(switch), Some(names)) = (fields.get("SwitchName"), fields.get("Nodes"))
            && !fields.contains_key("Switches")
        {
            let below = nodes_of(names, None, &location)?;
            count += below.len();
            check_count(count, &location)?;
            below_switch.push(((*switch).to_owned(), below));
        }
    }
    let mut file = HostFile::default();
    let mut rack_of: BTreeMap<String, String> = BTreeMap::new();
    for (switch, hosts) in &below_switch {
        let names = hosts.iter().map(|host| host.name.clone()).collect();
        file.groups.insert(switch.clone(), names);
        rack_of.extend(hosts.iter().map(|h| (h.name.clone(), switch.clone())));
    }
    if nodes.is_empty() {
        nodes = below_switch
            .into_iter()
            .flat_map(|(_, hosts)| hosts)
            .collect();
    }
    file.hosts = nodes
        .into_iter()
        .map(|host| ListedHost {
            rack: rack_of.get(&host.name).cloned(),
            ..host
        })
        .collect();
    Ok(file)
}

/// `Key=value` words of a line.
fn fields(line: &str) -> BTreeMap<&str, &str> {
    line.split_whitespace()
        .filter_map(|word| word.split_once('='))
        .collect()
}

fn nodes_of(
    names: &str,
    target: Option<&str>,
    location: &str,
) -> Result<Vec<ListedHost>, InventoryError> {
    let expand = |set: &str| {
        let none = GroupSources::default();
        let set = NodeSet::parse_in_place(
            set,
            &none,
            crate::inventory::syntax::Blanks::Mistake,
            Some(location),
        );
        set.map(|set| set.names())
    };
    let names = expand(names)?;
    let targets = match target {
        Some(target) => expand(target)?,
        None => names.clone(),
    };
    if targets.len() != names.len() {
        return Err(InventoryError::HostFile {
            location: location.to_owned(),
            problem: format!("{} nodes have {} addresses", names.len(), targets.len()),
            remedy: "give NodeAddr as many addresses as NodeName has names".into(),
        });
    }
    Ok(names
        .into_iter()
        .zip(targets)
        .map(|(name, target)| ListedHost::reached_at(&name, &target, location.to_owned()))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_stand_below_their_leaf_switches() {
        let text = "NodeName=DEFAULT CPUs=8\nNodeName=n[1-4] NodeAddr=10.0.0.[1-4] \\\n  RealMemory=1000\n\
                    SwitchName=leaf1 Nodes=n[1-2]\nSwitchName=leaf2 Nodes=n[3-4]\nSwitchName=spine Switches=leaf[1-2]\n";
        let file = read(Path::new("slurm.conf"), text).unwrap();
        let found: Vec<String> = file
            .hosts
            .iter()
            .map(|h| {
                format!(
                    "{} {} {}",
                    h.name,
                    h.address.unwrap(),
                    h.rack.as_deref().unwrap()
                )
            })
            .collect();
        assert_eq!(found[0], "n1 10.0.0.1 leaf1");
        assert_eq!(found[3], "n4 10.0.0.4 leaf2");
        let shown = "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-2]\nSwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=leaf[1-2]\n";
        let file = read(Path::new("-"), shown).unwrap();
        assert_eq!(file.hosts.len(), 2);
        assert!(read(Path::new("-"), "NodeName=n[1-2] NodeAddr=a\n").is_err());
    }
}
