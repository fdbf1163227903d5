//! Hosts and racks from what people have: every shape of file gives the same cluster, and what is
//! none is named.

use crate::common::{eastwest, text};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Name and contents of files that all describe r1: n1 to n4, r2: n5 to n8.
fn fixtures() -> Vec<(&'static str, String)> {
    let numbered = |line: &dyn Fn(u32) -> String| (1..=8).map(line).collect::<String>();
    let rack = |n: u32| if n < 5 { "r1" } else { "r2" };
    let node = |n: u32| {
        format!(
            r#"{{"kind":"Node","metadata":{{"name":"n{n}","labels":{{"topology.kubernetes.io/rack":"{}"}}}},
            "status":{{"addresses":[{{"type":"InternalIP","address":"198.18.0.{n}"}}]}}}}"#,
            rack(n)
        )
    };
    let nodes: Vec<String> = (1..=8).map(node).collect();
    vec![
        (
            "ansible.ini",
            "[rack1]\nn[1:4] rack=r1\n[rack2]\nn[5:8] rack=r2\n[compute:children]\nrack1\nrack2\n".into(),
        ),
        (
            "ansible.yaml",
            "all:\n  children:\n    one:\n      vars: {rack: r1}\n      hosts:\n        n[1:4]:\n    two:\n      vars: {rack: r2}\n      \
             hosts:\n        n[5:8]:\n"
                .into(),
        ),
        (
            "topology.conf",
            "SwitchName=r1 Nodes=n[1-4]\nSwitchName=r2 Nodes=n[5-8]\nSwitchName=top Switches=r[1-2]\n".into(),
        ),
        (
            "nodes.json",
            format!(r#"{{"kind":"List","items":[{}]}}"#, nodes.join(",")),
        ),
        (
            "racks.json",
            r#"{"r1": ["n1","n2","n3","n4"], "r2": ["n5","n6","n7","n8"]}"#.into(),
        ),
        (
            "hostfile",
            numbered(&|n| format!("n{n} slots=16\n")),
        ),
        ("machinefile", numbered(&|n| format!("n{n}:16\n"))),
        (
            "hosts",
            format!("127.0.0.1 localhost\n{}", numbered(&|n| format!("198.18.0.{n} n{n}\n"))),
        ),
        ("plain", numbered(&|n| format!("n{n}\n"))),
    ]
}

/// Shapes that know no racks.
const WITHOUT_RACKS: [&str; 4] = ["hostfile", "machinefile", "hosts", "plain"];

fn dry_run(args: &[&str]) -> Command {
    let mut command = eastwest();
    command
        .args(["run", "qualify", "--dry-run", "--seed", "1"])
        .args(args);
    command
}

/// The plan in words, without the network: only some files have addresses.
fn plan_of(out: &Output) -> String {
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let shown = text(&out.stdout);
    let lines = shown.lines().filter(|line| !line.starts_with("network: "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_shape_gives_the_same_plan() {
    let work = tempfile::tempdir().unwrap();
    let racks = "r1=n[1-4],r2=n[5-8]";
    let expected = plan_of(&dry_run(&["--racks", racks]).output().unwrap());
    for (name, contents) in fixtures() {
        let path = work.path().join(name);
        std::fs::write(&path, contents).unwrap();
        let mut command = dry_run(&["--hosts-file"]);
        command.arg(&path);
        if WITHOUT_RACKS.contains(&name) {
            command.args(["--racks", racks]);
        }
        let plan = plan_of(&command.output().unwrap());
        assert_eq!(plan, expected, "{name}");
    }
}

#[test]
fn a_part_of_a_file_is_chosen_from_stdin() {
    let (_, inventory) = fixtures().swap_remove(0);
    let mut command = dry_run(&[
        "--hosts-file",
        "-",
        "--hosts",
        "@rack1!n3,@rack2!N8",
        "--racks",
    ]);
    command
        .arg("@rack[1-2]")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(inventory.as_bytes()).unwrap();
    drop(input);
    let plan = plan_of(&child.wait_with_output().unwrap());
    let chosen = dry_run(&["--racks", "rack1=n[1-2,4],rack2=n[5-8]"]);
    assert_eq!(plan, plan_of(&{ chosen }.output().unwrap()));
}

#[test]
fn what_is_no_host_list_is_named() {
    let work = tempfile::tempdir().unwrap();
    let cases = [
        (
            "state.json",
            r#"{"terraform_version": "1.9"}"#,
            "Terraform state",
        ),
        ("nodes.xml", "<nodes/>", "markup"),
        (
            "pods.json",
            r#"{"kind":"Pod","metadata":{"name":"x"}}"#,
            "no node",
        ),
        ("columns", "n1 192.0.2.1 eth1\n", "third column `eth1`"),
        (
            "inv.ini",
            "[web]\nn1 ansible_host={{x}}\n",
            "ansible-inventory",
        ),
        ("port", "n1:99999\n", "cannot be a host"),
    ];
    for (name, contents, expected) in cases {
        let path = work.path().join(name);
        std::fs::write(&path, contents).unwrap();
        let out = dry_run(&["--hosts-file"]).arg(&path).output().unwrap();
        let stderr = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{name}: {stderr}");
        assert!(
            stderr.contains(expected) && stderr.contains(name),
            "{stderr}"
        );
    }
}

#[test]
fn a_saved_cluster_stands_for_its_options() {
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join("eastwest");
    std::fs::create_dir(&config).unwrap();
    save(
        &config,
        "prod:\n  racks: 'r1=n[1-4],r2=n[5-8]'\n  ssh-user: ops\nsmall:\n  hosts-file: [nodes.a, nodes.b]\nwrong:\n  colour: red\n\
         port:\n  ssh-port: x\nv4:\n  hosts: n[1-4]\n  ipv4: true\n  addresses: a\npods:\n  via: kubernetes\n  namespace: net\n  nodes: x\n  \
         dial-ports: 1-2\n",
    );
    std::fs::write(config.join("nodes.a"), "n1\nn2\n").unwrap();
    std::fs::write(config.join("nodes.b"), "n3\nn4\n").unwrap();
    let run = |args: &[&str]| {
        let mut command = dry_run(args);
        command
            .env("XDG_CONFIG_HOME", home.path())
            .output()
            .unwrap()
    };
    let same = |saved: &[&str], spelled: &[&str]| {
        assert_eq!(plan_of(&run(saved)), plan_of(&run(spelled)), "{saved:?}");
    };
    same(&["-c", "prod"], &["--racks", "r1=n[1-4],r2=n[5-8]"]);
    same(&["--cluster=small"], &["--racks", "a=n[1-2],b=n[3-4]"]);
    same(
        &["-c", "prod", "--racks", "x=n[1-2],y=n[3-4]"],
        &["--racks", "x=n[1-2],y=n[3-4]"],
    );
    // The command line goes before what does not go with it.
    let v4 = ["--hosts", "n[1-4]", "--racks", "x=n[1-2],y=n[3-4]", "-6"];
    same(&["-c", "v4", "--racks", v4[3], "-6"], &v4);
    same(
        &["-c", "v4", "--racks", v4[3], "--network", "10.0.0.0/8"],
        &v4[..4],
    );
    for (name, expected) in [
        ("prd", "there are: pods, port, prod"),
        ("wrong", "no option `colour`"),
        ("port", "clusters.yaml: invalid value 'x' for '--ssh-port"),
        ("pods", "--dial-ports is of --via slurm"),
    ] {
        let out = run(&["-c", name]);
        assert_eq!(out.status.code(), Some(2));
        assert!(
            text(&out.stderr).contains(expected),
            "{}",
            text(&out.stderr)
        );
    }
    save(&config, "prod:\n  hosts: a\nprod:\n  hosts: b\n");
    let twice = text(&run(&["-c", "prod"]).stderr);
    assert!(
        twice.contains("the key `prod` is there twice; keep one"),
        "{twice}"
    );
}

fn save(config: &Path, clusters: &str) {
    std::fs::write(config.join("clusters.yaml"), clusters).unwrap();
}
