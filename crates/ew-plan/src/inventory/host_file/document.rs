//! Inventories in JSON or YAML: Kubernetes nodes, Ansible's two forms, and plain lists of hosts.

use super::ansible::{Tree, Variables};
use super::content::{HostFile, KNOWN_SHAPES};
use crate::inventory::host_list::ListedHost;
use crate::inventory::inventory_error::InventoryError;
use serde_json::{Map, Value};
use std::net::IpAddr;
use std::path::Path;

type Object = Map<String, Value>;

/// Node labels that name a rack, the first that a node has; a zone serves as a rack where
/// nothing finer is known.
const RACK_LABELS: [&str; 2] = ["topology.kubernetes.io/rack", "topology.kubernetes.io/zone"];
/// How deep groups may nest.
const MAX_DEPTH: usize = 64;

pub(super) fn read_json(path: &Path, text: &str) -> Result<HostFile, InventoryError> {
    let reader = Reader::new(path);
    let value = serde_json::from_str(text).or_else(|error| {
        // YAML's flow style needs no quotes.
        let value = serde_saphyr::from_str::<Value>(text);
        value.map_err(|_| reader.wrong(format!("not valid JSON: {error}")))
    })?;
    reader.read(&value)
}

pub(super) fn read_yaml(path: &Path, text: &str) -> Result<HostFile, InventoryError> {
    let reader = Reader::new(path);
    let value = serde_saphyr::from_str::<Value>(text)
        .map_err(|error| reader.wrong(format!("not valid YAML: {error}")))?;
    reader.read(&value)
}

struct Reader {
    location: String,
}

impl Reader {
    fn new(path: &Path) -> Self {
        Self {
            location: path.display().to_string(),
        }
    }

    fn wrong(&self, problem: String) -> InventoryError {
        InventoryError::HostFile {
            location: self.location.clone(),
            problem,
            remedy: format!("give {KNOWN_SHAPES}"),
        }
    }

    fn read(&self, value: &Value) -> Result<HostFile, InventoryError> {
        match value {
            Value::Array(hosts) => self.hosts(hosts, None),
            Value::Object(object) if object.contains_key("kind") => self.kubernetes(object),
            Value::Object(object) if object.contains_key("_meta") => self.ansible_list(object),
            Value::Object(object) if object.values().any(is_ansible_group) => self.ansible(object),
            Value::Object(object) => self.plain(object),
            _ => Err(self.wrong("this is neither a list nor a mapping".into())),
        }
    }

    /// `{"hosts": [...]}`, or racks by their names: `{"r1": ["n1", "n2"], "r2": [...]}`.
    fn plain(&self, object: &Object) -> Result<HostFile, InventoryError> {
        if let Some(Value::Array(hosts)) = object.get("hosts") {
            return self.hosts(hosts, None);
        }
        if object.contains_key("terraform_version") {
            let remedy = "write the addresses as an output, and give `terraform output -json NAME`";
            return Err(InventoryError::HostFile {
                location: self.location.clone(),
                problem: "this is a Terraform state".into(),
                remedy: remedy.into(),
            });
        }
        let mut file = HostFile::default();
        for (rack, hosts) in object {
            let Value::Array(hosts) = hosts else {
                let problem =
                    format!("`{rack}` contains no list of hosts, and the format is not known");
                return Err(self.wrong(problem));
            };
            let of_rack = self.hosts(hosts, Some(rack))?;
            let names = of_rack.hosts.iter().map(|host| host.name.clone()).collect();
            file.groups.insert(rack.clone(), names);
            file.hosts.extend(of_rack.hosts);
        }
        Ok(file)
    }

    fn hosts(&self, hosts: &[Value], rack: Option<&str>) -> Result<HostFile, InventoryError> {
        let hosts = hosts.iter().map(|host| self.host(host, rack));
        Ok(HostFile {
            hosts: hosts.collect::<Result<_, _>>()?,
            ..HostFile::default()
        })
    }

    /// A name, or an object with `name` and what else is known.
    fn host(&self, value: &Value, rack: Option<&str>) -> Result<ListedHost, InventoryError> {
        const KEYS: [&str; 5] = ["name", "address", "rack", "user", "port"];
        let object = match value {
            Value::String(text) => {
                let mut host = ListedHost::of_login(text, self.location.clone());
                host.rack = rack.map(str::to_owned);
                return Ok(host);
            }
            Value::Object(object) => object,
            other => return Err(self.wrong(format!("`{other}` is not a host"))),
        };
        if let Some(unknown) = object.keys().find(|key| !KEYS.contains(&key.as_str())) {
            let keys = KEYS.join(", ");
            return Err(self.wrong(format!("a host has the key `{unknown}`; known are {keys}")));
        }
        let text = |key: &str| scalar(object.get(key)?);
        let name = text("name").ok_or_else(|| self.wrong(format!("host {value} has no `name`")))?;
        let mut host = ListedHost::of_login(&name, self.location.clone());
        if let Some(address) = text("address") {
            let parsed = address.parse::<IpAddr>();
            let problem = |_| self.wrong(format!("`{address}` is no address (host {name})"));
            host.address = Some(parsed.map_err(problem)?);
        }
        if let Some(port) = text("port") {
            let parsed = port.parse::<u16>();
            let problem = |_| self.wrong(format!("`{port}` is no port (host {name})"));
            host.login.port = Some(parsed.map_err(problem)?);
        }
        host.login.user = text("user").or(host.login.user);
        host.rack = text("rack").or_else(|| rack.map(str::to_owned));
        Ok(host)
    }

    /// `kubectl get nodes -o json` or `-o yaml`.
    fn kubernetes(&self, object: &Object) -> Result<HostFile, InventoryError> {
        let one = [Value::Object(object.clone())];
        let nodes = match object.get("items") {
            Some(Value::Array(items)) => items.as_slice(),
            _ => &one,
        };
        let mut hosts = Vec::new();
        for node in nodes {
            let kind = node["kind"].as_str().unwrap_or("");
            let Some(name) = node["metadata"]["name"].as_str().filter(|_| kind == "Node") else {
                return Err(self.wrong(format!("this is Kubernetes, and a {kind} is no node")));
            };
            let mut host = ListedHost::named(name, self.location.clone());
            host.address = internal_address(node);
            let labels = &node["metadata"]["labels"];
            let rack = RACK_LABELS.iter().find_map(|label| labels[label].as_str());
            host.rack = rack.map(str::to_owned);
            hosts.push(host);
        }
        // One rack is no more than none.
        let one_rack = hosts.iter().all(|host| host.rack == hosts[0].rack);
        if one_rack || hosts.iter().any(|host| host.rack.is_none()) {
            hosts.iter_mut().for_each(|host| host.rack = None);
        }
        Ok(HostFile {
            hosts,
            ..HostFile::default()
        })
    }

    /// What `ansible-inventory --list` prints.
    fn ansible_list(&self, object: &Object) -> Result<HostFile, InventoryError> {
        let mut tree = Tree::default();
        let of_hosts = &object["_meta"]["hostvars"];
        for (group, value) in object.iter().filter(|(name, _)| *name != "_meta") {
            for host in strings(&value["hosts"]) {
                let variables = variables(&of_hosts[&host]);
                tree.add_hosts(group, &host, &variables, &self.location)?;
            }
            for child in strings(&value["children"]) {
                tree.add_child(group, &child);
            }
        }
        tree.into_host_file(&self.location)
    }

    /// Ansible's YAML: groups with `hosts`, `children` and `vars`.
    fn ansible(&self, object: &Object) -> Result<HostFile, InventoryError> {
        let mut tree = Tree::default();
        for (group, value) in object {
            self.ansible_group(&mut tree, group, value, 0)?;
        }
        tree.into_host_file(&self.location)
    }

    fn ansible_group(
        &self,
        tree: &mut Tree,
        group: &str,
        value: &Value,
        depth: usize,
    ) -> Result<(), InventoryError> {
        if depth > MAX_DEPTH {
            return Err(self.wrong(format!("groups are more than {MAX_DEPTH} deep")));
        }
        tree.add_variables(group, variables(&value["vars"]));
        for (host, own) in value["hosts"].as_object().into_iter().flatten() {
            tree.add_hosts(group, host, &variables(own), &self.location)?;
        }
        for (child, below) in value["children"].as_object().into_iter().flatten() {
            tree.add_child(group, child);
            self.ansible_group(tree, child, below, depth + 1)?;
        }
        Ok(())
    }
}

fn is_ansible_group(value: &Value) -> bool {
    let is_mapping = |key: &str| matches!(value.get(key), Some(Value::Object(_) | Value::Null));
    ["hosts", "children", "vars"].into_iter().any(is_mapping)
}

fn internal_address(node: &Value) -> Option<IpAddr> {
    let addresses = node["status"]["addresses"].as_array()?;
    let internal = addresses
        .iter()
        .find(|address| address["type"] == "InternalIP")?;
    internal["address"].as_str()?.parse().ok()
}

fn strings(value: &Value) -> Vec<String> {
    let values = value.as_array().into_iter().flatten();
    values.filter_map(scalar).collect()
}

fn variables(value: &Value) -> Variables {
    let pairs = value.as_object().into_iter().flatten();
    pairs
        .filter_map(|(key, value)| Some((key.clone(), scalar(value)?)))
        .collect()
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Result<HostFile, InventoryError> {
        read_json(Path::new("hosts.json"), text)
    }

    fn racks(file: &HostFile) -> Vec<String> {
        let rack = |host: &ListedHost| host.rack.clone().unwrap_or("-".into());
        file.hosts
            .iter()
            .map(|host| format!("{}/{}", host.name, rack(host)))
            .collect()
    }

    #[test]
    fn plain_lists() {
        assert_eq!(
            racks(&json(r#"["n1", "ops@n2:2222"]"#).unwrap()),
            ["n1/-", "n2/-"]
        );
        let objects = json(r#"{"hosts": [{"name": "n1", "address": "10.0.0.1", "rack": "r1"}]}"#);
        assert_eq!(racks(&objects.unwrap()), ["n1/r1"]);
        for flow in ["{r1: [n1, n2]}", "{r1: [n1,\n  n2]}"] {
            assert_eq!(racks(&json(flow).unwrap()), ["n1/r1", "n2/r1"], "{flow}");
        }
        assert_eq!(racks(&json("[n1, n2]").unwrap()), ["n1/-", "n2/-"]);
        let by_rack = json(r#"{"r1": ["n1"], "r2": ["n2", {"name": "n3"}]}"#).unwrap();
        assert_eq!(racks(&by_rack), ["n1/r1", "n2/r2", "n3/r2"]);
        for (wrong, word) in [
            (r#"{"name": "x"}"#, "not known"),
            (r#"[{"ip": "x"}]"#, "known are name"),
            (r#"[{"name": "a", "address": "b"}]"#, "no address"),
            (r#"{"terraform_version": "1"}"#, "Terraform"),
            (
                r#"{"kind": "List", "items": [{"kind": "Pod"}]}"#,
                "a Pod is no node",
            ),
            ("{", "not valid JSON"),
        ] {
            let error = json(wrong).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn kubernetes_nodes() {
        let node = |name: &str, address: &str, zone: &str| {
            format!(
                r#"{{"kind":"Node","metadata":{{"name":"{name}","labels":{{"topology.kubernetes.io/zone":"{zone}"}}}},
                "status":{{"addresses":[{{"type":"Hostname","address":"{name}"}},{{"type":"InternalIP","address":"{address}"}}]}}}}"#
            )
        };
        let (a, b) = (node("n1", "10.0.0.1", "z1"), node("n2", "10.0.0.2", "z2"));
        let file = json(&format!(r#"{{"kind":"List","items":[{a},{b}]}}"#)).unwrap();
        assert_eq!(racks(&file), ["n1/z1", "n2/z2"]);
        assert_eq!(file.hosts[1].address, Some("10.0.0.2".parse().unwrap()));
        let one_zone = json(&format!(r#"{{"kind":"List","items":[{a}]}}"#)).unwrap();
        assert_eq!(racks(&one_zone), ["n1/-"]);
    }

    #[test]
    fn both_forms_of_ansible() {
        let yaml = "all:\n  vars: {ansible_user: ops}\n  children:\n    rack1:\n      hosts:\n        n[1:2]:\n    rack2:\n      hosts:\n        \
                    n3: {ansible_port: 2222}\n";
        let file = read_yaml(Path::new("inv.yaml"), yaml).unwrap();
        assert_eq!(racks(&file), ["n1/rack1", "n2/rack1", "n3/rack2"]);
        assert_eq!(file.hosts[2].login.port, Some(2222));
        assert_eq!(file.hosts[0].login.user.as_deref(), Some("ops"));
        let list = r#"{"_meta": {"hostvars": {"n1": {"ansible_host": "10.0.0.1"}}}, "all": {"children": ["rack1"]},
            "rack1": {"hosts": ["n1", "n2"]}}"#;
        let file = json(list).unwrap();
        assert_eq!(racks(&file), ["n1/rack1", "n2/rack1"]);
        assert_eq!(file.hosts[0].login.target.as_deref(), Some("10.0.0.1"));
    }
}
