//! The content of an Ansible inventory, whichever way it is written.

use super::content::HostFile;
use crate::inventory::host_list::ListedHost;
use crate::inventory::inventory_error::{InventoryError, check_count};
use crate::inventory::limits::{MAX_INDEXES, MAX_NODES};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Variables of a host or a group.
pub(super) type Variables = BTreeMap<String, String>;

/// The group that every host is in.
const ALL: &str = "all";

/// Groups and hosts as written.
#[derive(Debug, Default)]
pub(super) struct Tree {
    groups: BTreeMap<String, Group>,
    hosts: Vec<String>,
    variables: BTreeMap<String, Variables>,
}

#[derive(Debug, Default)]
struct Group {
    hosts: BTreeSet<String>,
    children: BTreeSet<String>,
    variables: Variables,
}

impl Tree {
    /// Adds hosts by Ansible's pattern, such as `n[01:40]`.
    pub(super) fn add_hosts(
        &mut self,
        group: &str,
        pattern: &str,
        variables: &Variables,
        location: &str,
    ) -> Result<(), InventoryError> {
        let (pattern, port) = match pattern.rsplit_once(':') {
            Some((name, port)) if !name.contains(':') && !port.contains(']') => (name, Some(port)),
            _ => (pattern, None),
        };
        for name in expand(pattern).map_err(|problem| wrong_range(pattern, problem, location))? {
            if !self.variables.contains_key(&name) {
                self.hosts.push(name.clone());
            }
            let own = self.variables.entry(name.clone()).or_default();
            own.extend(port.map(|port| ("ansible_port".to_owned(), port.to_owned())));
            own.extend(variables.clone());
            self.group(group).hosts.insert(name);
        }
        check_count(self.hosts.len(), location)
    }

    /// Adds a group below another.
    pub(super) fn add_child(&mut self, group: &str, child: &str) {
        self.group(child);
        self.group(group).children.insert(child.to_owned());
    }

    /// Adds variables of all hosts of a group.
    pub(super) fn add_variables(&mut self, group: &str, variables: Variables) {
        self.group(group).variables.extend(variables);
    }

    fn group(&mut self, name: &str) -> &mut Group {
        self.groups.entry(name.to_owned()).or_default()
    }

    /// Hosts with how they are reached and in which rack they are: by the variable `rack`, or by a
    /// group with `rack` in its name.
    pub(super) fn into_host_file(mut self, location: &str) -> Result<HostFile, InventoryError> {
        self.group(ALL);
        let groups = self.all_members(location)?;
        let groups_of_host = self.groups_of_hosts(&groups);
        let mut hosts = Vec::new();
        for name in &self.hosts {
            let of_host = groups_of_host.get(name).map_or(&[][..], Vec::as_slice);
            let variables = self.effective(name, of_host);
            if variables.get("ansible_connection").map(String::as_str) != Some("local") {
                let rack = self.rack_of(&variables, of_host);
                hosts.push(listed(name, &variables, rack, location)?);
            }
        }
        drop(groups_of_host);
        Ok(HostFile {
            hosts,
            groups,
            is_catalogue: true,
        })
    }

    /// All hosts of every group.
    fn all_members(&self, location: &str) -> Result<BTreeMap<String, Vec<String>>, InventoryError> {
        let mut groups = BTreeMap::new();
        let mut count = 0;
        for name in self.groups.keys() {
            let members = self.members(name);
            count += members.len();
            if count > MAX_INDEXES {
                return Err(InventoryError::HostFile {
                    location: location.to_owned(),
                    problem: format!("groups of more than {MAX_INDEXES} hosts in all"),
                    remedy: "give an inventory with fewer groups".into(),
                });
            }
            groups.insert(name.clone(), members);
        }
        Ok(groups)
    }

    /// All hosts of a group and of those below it.
    fn members(&self, group: &str) -> Vec<String> {
        if group == ALL {
            return self.hosts.clone();
        }
        let below = self.with_descendants(group);
        let below = below.iter().filter_map(|name| self.groups.get(name));
        let members: BTreeSet<&String> = below.flat_map(|group| &group.hosts).collect();
        let hosts = self.hosts.iter();
        hosts
            .filter(|host| members.contains(host))
            .cloned()
            .collect()
    }

    /// By host its groups, what is higher first: what has most below it is highest, `all` above
    /// everything.
    fn groups_of_hosts<'a>(
        &self,
        groups: &'a BTreeMap<String, Vec<String>>,
    ) -> BTreeMap<&'a String, Vec<&'a String>> {
        let mut ordered: Vec<(bool, Reverse<usize>, &String, &Vec<String>)> = groups
            .iter()
            .map(|(name, members)| {
                let below = Reverse(self.with_descendants(name).len());
                (name != ALL, below, name, members)
            })
            .collect();
        ordered.sort();
        let mut of_hosts: BTreeMap<&String, Vec<&String>> = BTreeMap::new();
        for (_, _, name, members) in ordered {
            for host in members {
                of_hosts.entry(host).or_default().push(name);
            }
        }
        of_hosts
    }

    /// A group and all below it; a group that leads back to itself is there once.
    fn with_descendants(&self, group: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::from([group.to_owned()]);
        let mut open = vec![group.to_owned()];
        while let Some(name) = open.pop() {
            for child in self.groups.get(&name).into_iter().flat_map(|g| &g.children) {
                if found.insert(child.clone()) {
                    open.push(child.clone());
                }
            }
        }
        found
    }

    /// A host's own variables before those of its groups, a child's before its parent's.
    fn effective(&self, host: &String, groups: &[&String]) -> Variables {
        let own = self.variables.get(host);
        let of_groups = groups.iter().filter_map(|name| self.groups.get(*name));
        let of_groups = of_groups.map(|group| &group.variables);
        let mut variables = Variables::new();
        for more in of_groups.chain(own) {
            variables.extend(more.clone());
        }
        variables
    }

    fn rack_of(&self, variables: &Variables, groups: &[&String]) -> Option<String> {
        let is_rack = |name: &&&String| {
            let below = self.groups.get(**name).map(|group| &group.children);
            let mut below = below.into_iter().flatten();
            names_a_rack(name) && !below.any(|child| names_a_rack(child))
        };
        let by_group = || {
            groups
                .iter()
                .filter(is_rack)
                .min()
                .map(|name| (*name).clone())
        };
        variables.get("rack").cloned().or_else(by_group)
    }
}

fn names_a_rack(group: &str) -> bool {
    group.to_ascii_lowercase().contains("rack")
}

fn listed(
    name: &str,
    variables: &Variables,
    rack: Option<String>,
    location: &str,
) -> Result<ListedHost, InventoryError> {
    let either = |keys: [&str; 2]| keys.iter().find_map(|key| variables.get(*key)).cloned();
    let target = either(["ansible_host", "ansible_ssh_host"]).unwrap_or_else(|| name.to_owned());
    let user = either(["ansible_user", "ansible_ssh_user"]);
    let port = either(["ansible_port", "ansible_ssh_port"]);
    let values = [Some(&target), user.as_ref(), port.as_ref(), rack.as_ref()];
    if let Some(template) = values.into_iter().flatten().find(|v| v.contains("{{")) {
        return Err(InventoryError::HostFile {
            location: location.to_owned(),
            problem: format!("host {name} has the template `{template}`"),
            remedy: "let Ansible fill it in: `ansible-inventory -i FILE --list > hosts.json`, and give hosts.json".into(),
        });
    }
    let port = port.map(|text| match text.parse::<u16>() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(InventoryError::HostFile {
            location: location.to_owned(),
            problem: format!("host {name} has the port `{text}`"),
            remedy: "give ansible_port a number from 1 to 65535".into(),
        }),
    });
    let mut host = ListedHost::reached_at(name, &target, location.to_owned());
    host.login.user = user;
    host.login.port = port.transpose()?;
    host.rack = rack;
    Ok(host)
}

fn wrong_range(pattern: &str, problem: &str, location: &str) -> InventoryError {
    InventoryError::HostFile {
        location: location.to_owned(),
        problem: format!("`{pattern}`: {problem}"),
        remedy: "Ansible writes ranges as n[01:40], n[1:40:2] or n[a:f]".into(),
    }
}

/// The names of a pattern: `n[01:40]`, `n[1:9:2]`, `n[a:f]`, several ranges multiply.
fn expand(pattern: &str) -> Result<Vec<String>, &'static str> {
    let Some((head, rest)) = pattern.split_once('[') else {
        return Ok(vec![pattern.to_owned()]);
    };
    let (range, tail) = rest.split_once(']').ok_or("missing closing bracket")?;
    let (items, tails) = (range_items(range)?, expand(tail)?);
    if items.len().saturating_mul(tails.len()) > MAX_NODES {
        return Err("too many hosts");
    }
    let each = |item: &String| {
        tails
            .iter()
            .map(|tail| format!("{head}{item}{tail}"))
            .collect::<Vec<_>>()
    };
    Ok(items.iter().flat_map(each).collect())
}

fn range_items(range: &str) -> Result<Vec<String>, &'static str> {
    let parts: Vec<&str> = range.split(':').collect();
    let (first, last, step) = match parts[..] {
        [first, last] => (first, last, 1),
        [first, last, step] => (
            first,
            last,
            step.parse().map_err(|_| "the step is no number")?,
        ),
        _ => return Err("not a range"),
    };
    if step == 0 {
        return Err("the step is 0");
    }
    if let ([from], [to]) = (first.as_bytes(), last.as_bytes())
        && from.is_ascii_alphabetic()
        && to.is_ascii_alphabetic()
    {
        return Ok((*from..=*to)
            .step_by(step)
            .map(|letter| char::from(letter).to_string())
            .collect());
    }
    let number = |text: &str| text.parse::<usize>().map_err(|_| "not a range of numbers");
    let (from, to) = (number(first)?, number(last)?);
    if to.saturating_sub(from) / step >= MAX_NODES {
        return Err("too many hosts");
    }
    let width = match first.starts_with('0') {
        true => first.len(),
        false => 0,
    };
    Ok((from..=to)
        .step_by(step)
        .map(|n| format!("{n:0width$}"))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        assert_eq!(expand("n[09:11].x").unwrap(), ["n09.x", "n10.x", "n11.x"]);
        assert_eq!(expand("n[1:5:2]").unwrap(), ["n1", "n3", "n5"]);
        assert_eq!(
            expand("r[1:2]n[a:b]").unwrap(),
            ["r1na", "r1nb", "r2na", "r2nb"]
        );
        for wrong in [
            "n[1-4]",
            "n[1:",
            "n[1:9:0]",
            "n[0:99999999]",
            "n[1:1000][1:1001]",
        ] {
            assert!(expand(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn groups_that_lead_in_a_circle_end() {
        let mut tree = Tree::default();
        tree.add_hosts("rack1", "n1", &Variables::new(), "f")
            .unwrap();
        tree.add_child("rack1", "b");
        tree.add_child("b", "rack1");
        let file = tree.into_host_file("f").unwrap();
        assert_eq!(file.hosts[0].rack.as_deref(), Some("rack1"));
    }
}
