//! Host files of every shape people have, recognised by what is in them.
//!
//! A plain list and an MPI hostfile name the hosts of a run. The other shapes describe a whole
//! cluster: `--hosts` then selects among their hosts, and `--racks` names their groups.

mod ansible;
mod ansible_ini;
mod content;
mod document;
mod etc_hosts;
mod lines;
mod mpi;
mod slurm;

pub(super) use content::HostFile;

use super::groups::GroupSources;
use super::host_list::parse_host_list;
use super::inventory_error::InventoryError;
use ansible_ini::is_section;
use content::KNOWN_SHAPES;
use lines::significant_lines;
use std::path::PathBuf;

/// A file that has been read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedText {
    /// Where it was read.
    pub path: PathBuf,
    /// What is in it.
    pub text: String,
}

/// What a host file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// `name [address]` or node sets on each line.
    Plain,
    /// `name slots=N`, or MPICH's `name:N`.
    MpiHostfile,
    /// `address name alias...`.
    EtcHosts,
    /// `[group]` sections.
    AnsibleIni,
    /// slurm.conf, topology.conf, or what `scontrol show node|topology` prints.
    Slurm,
    /// An object or array: Kubernetes nodes, `ansible-inventory --list`, or plain JSON; also in
    /// YAML's flow style.
    Json,
    /// Ansible's YAML, or the forms of JSON in YAML.
    Yaml,
    /// Markup, which no inventory is.
    Markup,
}

/// Reads a host file of any shape.
///
/// # Errors
/// [`InventoryError`] that names the file, the shape it was recognised as, and the problem.
pub(super) fn read_host_file(
    file: &NamedText,
    sources: &GroupSources,
) -> Result<HostFile, InventoryError> {
    let NamedText { path, text } = file;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let catalogue = |read: Result<HostFile, InventoryError>| {
        read.map(|file| HostFile {
            is_catalogue: true,
            ..file
        })
    };
    match Shape::of(text) {
        Shape::Plain => Ok(HostFile {
            hosts: parse_host_list(path, text, sources)?,
            ..HostFile::default()
        }),
        Shape::MpiHostfile => mpi::read(path, text, sources),
        Shape::EtcHosts => catalogue(etc_hosts::read(path, text)),
        Shape::AnsibleIni => catalogue(ansible_ini::read(path, text)),
        Shape::Slurm => catalogue(slurm::read(path, text)),
        Shape::Json => catalogue(document::read_json(path, text)),
        Shape::Yaml => catalogue(document::read_yaml(path, text)),
        Shape::Markup => Err(InventoryError::HostFile {
            location: path.display().to_string(),
            problem: "this is markup (XML or HTML), not a list of hosts".into(),
            remedy: format!("give {KNOWN_SHAPES}"),
        }),
    }
}

impl Shape {
    /// By the first lines that show something.
    fn of(text: &str) -> Self {
        let lines = || significant_lines(text).map(|(_, line)| line);
        let first = lines().next().unwrap_or("");
        if first.starts_with('<') {
            Self::Markup
        } else if first.starts_with('{') || is_array(first) {
            Self::Json
        } else if lines().any(is_section) || lines().any(has_ansible_variable) {
            Self::AnsibleIni
        } else if lines().any(slurm::is_definition) {
            Self::Slurm
        } else if is_yaml(first) {
            Self::Yaml
        } else if lines().any(mpi::is_entry) {
            Self::MpiHostfile
        } else if lines().any(etc_hosts::is_entry) {
            Self::EtcHosts
        } else {
            Self::Plain
        }
    }
}

/// `["n1"`, `[n1, n2]`, and no section `[n1]` nor node set `[1-4,7]`.
fn is_array(line: &str) -> bool {
    let inside = line.strip_prefix('[').map(str::trim_start);
    let has_names =
        |rest: &str| rest.starts_with(|c: char| c.is_alphabetic()) && rest.contains(',');
    inside.is_some_and(|rest| {
        rest.is_empty() || rest.starts_with(['"', '\'', '{', ']']) || has_names(rest)
    })
}

/// `---`, `- n1`, `hosts:`, `r1: [n1, n2]`.
fn is_yaml(first: &str) -> bool {
    let (key, value) = first.split_once(':').unwrap_or((first, "no key"));
    let is_opened = value.is_empty() || value.trim_start().starts_with(['[', '{']);
    let is_key = is_opened && !key.contains(char::is_whitespace);
    first == "---" || first.starts_with("- ") || first.starts_with("apiVersion:") || is_key
}

fn has_ansible_variable(line: &str) -> bool {
    line.split_whitespace()
        .skip(1)
        .any(|word| word.starts_with("ansible_") && word.contains('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Shape {
        Shape::of(text)
    }

    #[test]
    fn shapes_are_recognised() {
        assert_eq!(shape("n1\nn[2-4]\n"), Shape::Plain);
        assert_eq!(shape("n1 10.0.0.1\n10.0.0.2 10.1.0.2\n"), Shape::Plain);
        assert_eq!(shape("# x\nn1 slots=4\n"), Shape::MpiHostfile);
        assert_eq!(shape("127.0.0.1 localhost\n"), Shape::EtcHosts);
        assert_eq!(shape("[web]\nn1\n"), Shape::AnsibleIni);
        assert_eq!(shape("n1 ansible_host=10.0.0.1\n"), Shape::AnsibleIni);
        assert_eq!(shape("all:\n  hosts:\n    n1:\n"), Shape::Yaml);
        assert_eq!(shape("---\nall:\n"), Shape::Yaml);
        assert_eq!(shape("[\"n1\"]"), Shape::Json);
        assert_eq!(shape("[\n  {\"name\": \"n1\"}\n]"), Shape::Json);
        assert_eq!(shape("{\"items\": []}"), Shape::Json);
        for flow in ["[n1, n2]", "[n1,\n n2]", "{r1: [n1]}", "['n1']"] {
            assert_eq!(shape(flow), Shape::Json, "{flow}");
        }
        for yaml in [
            "hosts: [n1, n2]",
            "r1: {",
            "- n1\n- n2\n",
            "r1:\n  [n1, n2]\n",
        ] {
            assert_eq!(shape(yaml), Shape::Yaml, "{yaml}");
        }
        for plain in ["[1-4,7]", "n1:22", "ops@n[1-4]:2222", "fd00::1", "n1: x"] {
            assert_eq!(shape(plain), Shape::Plain, "{plain}");
        }
        assert_eq!(shape("SwitchName=s1 Nodes=n[1-4]\n"), Shape::Slurm);
        assert_eq!(shape("<?xml version='1.0'?>"), Shape::Markup);
        assert_eq!(shape(""), Shape::Plain);
    }
}
