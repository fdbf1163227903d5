//! Examples under the help of every command. A test checks that every command has some, and that
//! all of them are command lines that parse.

use clap::Command;

/// Where the guides are.
const GUIDE: &str = "https://github.com/eastwest-net/eastwest/tree/main/docs/guide";

const EXIT_CODES: &str = "\
Exit codes: 0 as expected; 1 findings worse than configured, or a host worse than its peers; \
2 wrong usage or input; 3 partial (hosts or pairs missing); 4 failed; 130 interrupted.";

const SERVE: &str = "
Nobody without the printed address, which has a token, is served anything. The token travels in clear text: over a network, \
tunnel it by ssh. Ctrl-C ends it.";

/// Commands by their words, and example lines: a command, and after two spaces what it is for.
const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "eastwest demo                                    two faults in an emulated cluster, found",
            "eastwest pair node1 node2                        throughput of two hosts, about 12 s",
            "eastwest run --hosts 'node[01-40]'               qualify a cluster, about 3 min",
            "eastwest run --racks '@rack[1-3]' --network 10.20.0.0/16 --expect-nic 25G",
            "eastwest top                                     what limits this host now, and who",
            "eastwest compare last~1 last --threshold 5%      did it get worse?",
        ],
    ),
    (
        "demo",
        &[
            "eastwest demo",
            "eastwest demo --output demo.html",
            "eastwest demo --show-lab                         the emulated cluster, as a lab file",
        ],
    ),
    (
        "pair",
        &[
            "eastwest pair node1 node2                        5 s in each direction",
            "eastwest pair node1 node2 -P 4 -t 10             4 connections, 10 s each",
            "eastwest pair node1 node2 -R                     node2 sends",
            "eastwest pair node1 node2 -u -b 1G -l 1448       UDP at 1 Gb/s",
            "eastwest pair node1 node2 -n 6 -t 2              six repetitions: with 95% intervals",
        ],
    ),
    (
        "latency",
        &[
            "eastwest latency node1 node2",
            "eastwest latency node1 node2 --set request-rate=10k     at a set rate, under load",
        ],
    ),
    (
        "mesh",
        &[
            "eastwest mesh 'node[01-40]'",
            "eastwest mesh @all --dry-run                     how long, how many bytes",
        ],
    ),
    (
        "congestion",
        &[
            "eastwest congestion --racks '@rack[1-3]'",
            "eastwest congestion 'node[01-16]' --max-rate 20%",
        ],
    ),
    (
        "run",
        &[
            "eastwest run --hosts 'node[01-40]'               qualify a cluster",
            "eastwest run --racks '@rack[1-3]' --dry-run      what it would do, and how long",
            "eastwest run --racks '@rack[1-3]' --expect-nic 25G --expect-oversubscription 2",
            "eastwest run mesh 'node[01-40]' --output mesh.html",
            "eastwest run mine.yaml -g compute -l ops -J bastion",
            "eastwest run -g compute --expect 'rtt.p99<300us' --output results.xml",
        ],
    ),
    (
        "scenario",
        &["eastwest scenario list", "eastwest scenario show qualify"],
    ),
    (
        "scenario list",
        &["eastwest scenario list", "eastwest scenario list --json"],
    ),
    (
        "scenario show",
        &[
            "eastwest scenario show qualify",
            "eastwest scenario show pair",
        ],
    ),
    (
        "hosts",
        &[
            "eastwest hosts 'node[01-10]!node05,@rack2'",
            "eastwest hosts -f node1 node2 node3              node[1-3]",
            "eastwest hosts -c @all",
        ],
    ),
    (
        "doctor",
        &[
            "eastwest doctor --hosts 'node[01-40]'",
            "eastwest doctor --racks '@rack[1-3]' --network 10.20.0.0/16 -v",
        ],
    ),
    (
        "tools",
        &[
            "eastwest tools --hosts 'node[01-40]'",
            "eastwest tools --hosts 'node[01-40]' --tool iperf3 --install-tools",
        ],
    ),
    (
        "report",
        &[
            "eastwest report                                  the last run",
            "eastwest report last~1 --output before.html",
            "eastwest report -v                               with all facts and notes",
        ],
    ),
    (
        "compare",
        &[
            "eastwest compare                                 the last two runs",
            "eastwest compare last~1 last --threshold 5% --each-host",
            "eastwest compare before after --names '1 GbE,10 GbE' --output change.html",
        ],
    ),
    (
        "runs",
        &["eastwest runs list", "eastwest runs prune --keep 20"],
    ),
    (
        "runs list",
        &[
            "eastwest runs list",
            "eastwest runs list --runs-dir /srv/runs --json",
        ],
    ),
    (
        "runs show",
        &[
            "eastwest runs show",
            "eastwest runs show last~1 --format md",
        ],
    ),
    (
        "runs repeat",
        &[
            "eastwest runs repeat                             the last run's flows again",
            "eastwest runs repeat last~1 -- --output again.html",
        ],
    ),
    (
        "runs prune",
        &[
            "eastwest runs prune --keep 20",
            "eastwest runs prune --older-than 30d",
        ],
    ),
    (
        "runs trend",
        &[
            "eastwest runs trend                              every figure of the newest run's scenario",
            "eastwest runs trend throughput --scenario qualify    one metric",
            "eastwest runs trend --last 30 --fail-on-change   a nightly check: 1 when the level fell",
        ],
    ),
    (
        "serve",
        &[
            "eastwest serve                                   this machine alone, any free port",
            "eastwest serve 127.0.0.1:8000 --runs-dir /srv    a port of its own, for an ssh tunnel",
        ],
    ),
    ("schema", &["eastwest schema | jq .properties"]),
    (
        "line-rate",
        &[
            "eastwest line-rate --link 25G --mtu 9000",
            "eastwest line-rate --interface eth0 --rtt 300us",
            "eastwest line-rate --link 10G --tunnel vxlan --message 200",
        ],
    ),
    (
        "size",
        &[
            "eastwest size --data 10TB --within 30m --disk 1.2GB/s --nic 25G",
            "eastwest size --data 10TB --within 30m --disk 1.2GB/s --nic 25G --headroom 20% --failures 1",
            "eastwest size --data 10TB --within 30m --run last",
            "eastwest size --data 500GB --within 1h --ec 6,3 --disk 200MB/s --nic 10G --clients 16",
        ],
    ),
    (
        "storage",
        &["eastwest storage restore --dfs-hosts /etc/hadoop/conf/dfs.hosts"],
    ),
    (
        "storage restore",
        &["eastwest storage restore --dfs-hosts /etc/hadoop/conf/dfs.hosts"],
    ),
    (
        "stop",
        &["eastwest stop                                    as root: agents of all users"],
    ),
    (
        "top",
        &[
            "eastwest top",
            "eastwest top --once --duration 10s",
            "eastwest top --once --json",
            "eastwest top n7                                  another host, by an agent over ssh",
            "eastwest top '@web'                              a line a host, the worst first",
            "eastwest top --record slow.jsonl                 and later: eastwest top --replay slow.jsonl",
        ],
    ),
    (
        "lab",
        &[
            "eastwest lab up -f lab.yaml",
            "eastwest run --via lab",
            "eastwest lab fault r1h1 nic=50M",
            "eastwest lab down",
        ],
    ),
    (
        "lab up",
        &[
            "eastwest lab up -f lab.yaml",
            "eastwest lab up -f lab.yaml --lab second",
        ],
    ),
    (
        "lab down",
        &["eastwest lab down", "eastwest lab down --lab second"],
    ),
    ("lab status", &["eastwest lab status"]),
    (
        "lab exec",
        &[
            "eastwest lab exec r1h1 -- ip address",
            "eastwest lab exec controller -- eastwest run --racks @racks",
        ],
    ),
    (
        "lab counters",
        &[
            "eastwest lab counters",
            "eastwest lab counters --every 1s --for 10s",
        ],
    ),
    (
        "lab fault",
        &[
            "eastwest lab fault r1h1 nic=50M",
            "eastwest lab fault r1h1 clear",
        ],
    ),
    (
        "image",
        &[
            "eastwest image -o eastwest.tar",
            "eastwest image -o eastwest.tar --name registry.example/net/eastwest:1",
        ],
    ),
    (
        "kubernetes",
        &[
            "eastwest kubernetes rbac --namespace net",
            "eastwest kubernetes job --namespace net --cron '0 3 * * *'",
        ],
    ),
    (
        "kubernetes rbac",
        &["eastwest kubernetes rbac --namespace net --subject alice"],
    ),
    (
        "kubernetes job",
        &[
            "eastwest kubernetes job --namespace net",
            "eastwest kubernetes job --namespace net --cron '0 3 * * *'",
        ],
    ),
    (
        "man",
        &[
            "eastwest man | man -l -",
            "eastwest man /usr/local/share/man/man1",
        ],
    ),
    (
        "iperf3",
        &[
            "eastwest iperf3 -s                               many clients at a time",
            "eastwest iperf3 -c host117 -P 4 -R",
        ],
    ),
    (
        "completions",
        &["eastwest completions bash", "eastwest completions zsh"],
    ),
];

/// The command with examples under its help and under that of its commands.
pub(crate) fn add_to(cli: Command) -> Command {
    add("", cli)
}

fn add(path: &str, command: Command) -> Command {
    let command = command.mut_subcommands(|below| {
        let name = below.get_name();
        let below_path = format!("{path} {name}").trim_start().to_owned();
        add(&below_path, below)
    });
    let known = EXAMPLES.iter().find(|(of, _)| *of == path);
    let Some((_, lines)) = known else {
        return command;
    };
    let mut text = format!("Examples:\n  {}\n", lines.join("\n  "));
    text.push_str(&match path {
        "" => format!("\n{EXIT_CODES}\nGuides: {GUIDE}"),
        "size" => "\nAmounts are decimal as disks are sold (10TB = 10^13 bytes; GiB is binary); NIC rates are bits per second.".into(),
        "serve" => SERVE.into(),
        _ => format!("\nGuides: {GUIDE}"),
    });
    command.after_help(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cli, shorthand};
    use std::ffi::OsString;

    /// Every visible command below this one, by its words.
    fn paths(path: &str, command: &Command, found: &mut Vec<String>) {
        for below in command.get_subcommands().filter(|c| !c.is_hide_set()) {
            let path = format!("{path} {}", below.get_name())
                .trim_start()
                .to_owned();
            paths(&path, below, found);
            found.push(path);
        }
    }

    /// As a shell splits it; only single quotes are used here.
    fn words(line: &str) -> Vec<OsString> {
        let mut words = Vec::new();
        for (at, part) in line.split('\'').enumerate() {
            match at % 2 {
                1 => words.push(part.into()),
                _ => words.extend(part.split_whitespace().map(OsString::from)),
            }
        }
        words
    }

    #[test]
    fn every_command_has_examples() {
        let mut found = vec![String::new()];
        paths("", &cli::definition(), &mut found);
        for path in found {
            assert!(
                EXAMPLES.iter().any(|(of, _)| *of == path),
                "`{path}` has none"
            );
        }
    }

    #[test]
    fn every_example_parses_and_is_of_its_command() {
        for (path, lines) in EXAMPLES {
            let mut own = false;
            for line in *lines {
                let command = line.split("  ").next().unwrap();
                let command = command.split(" | ").next().unwrap();
                own |= command.starts_with(&format!("eastwest {path}"));
                let parsed =
                    cli::definition().try_get_matches_from(shorthand::spelled_out(words(command)));
                assert!(parsed.is_ok(), "{command}: {}", parsed.unwrap_err());
                assert!(line.chars().count() <= 98, "{line}");
            }
            assert!(own, "`{path}` has no example of its own");
        }
    }
}
