//! How missing tools get onto a host: the commands of its distribution, for a person to read or for
//! root to run.

use super::packages::{COMMUNITY, Distribution, EPEL};
use crate::workload::Tool;
use std::collections::BTreeSet;

/// Debian's package starts a server for everybody, now and at every boot.
const NO_NETSERVER: &str =
    "if [ -e /etc/init.d/netperf ]; then service netperf stop; update-rc.d netperf disable; fi";

/// How some tools are installed on one distribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// Shell commands for root (POSIX sh), in order; no one of them asks a question. Empty when no
    /// package is known.
    pub commands: Vec<String>,
    /// What is not in the distribution's own archive, as far as we know.
    pub without_package: Vec<Tool>,
}

/// The commands that install tools on a distribution.
#[must_use]
pub fn installation(distribution: Distribution, tools: &[Tool]) -> Installation {
    let packaged = |tool: &Tool| tool.package(distribution);
    let packages: BTreeSet<&str> = tools.iter().filter_map(packaged).map(|p| p.name).collect();
    let parts: BTreeSet<&str> = tools
        .iter()
        .filter_map(|tool| packaged(tool)?.part)
        .collect();
    let without_package = tools.iter().copied().filter(|t| packaged(t).is_none());
    let names = Vec::from_iter(packages).join(" ");
    Installation {
        commands: if names.is_empty() {
            Vec::new()
        } else {
            commands(distribution, &names, &parts)
        },
        without_package: without_package.collect(),
    }
}

fn commands(distribution: Distribution, names: &str, parts: &BTreeSet<&str>) -> Vec<String> {
    let mut commands: Vec<String> = parts.iter().map(|part| offer(part)).collect();
    match distribution {
        Distribution::Debian | Distribution::Ubuntu => {
            commands.push("apt-get update".into());
            commands.push(format!(
                "DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends {names}"
            ));
            if names.split(' ').any(|name| name == "netperf") {
                commands.push(NO_NETSERVER.into());
            }
        }
        Distribution::Fedora => commands.push(format!("dnf install -y {names}")),
        Distribution::Rhel => commands.push(format!("yum install -y {names}")),
        Distribution::Suse | Distribution::OpenSuse => {
            commands.push(format!("zypper --non-interactive install {names}"));
        }
        Distribution::Alpine => commands.push(format!("apk add {names}")),
        Distribution::Arch => commands.push(format!("pacman -S --needed --noconfirm {names}")),
    }
    commands
}

/// Adds an archive part that a fresh installation does not use.
fn offer(part: &str) -> String {
    match part {
        EPEL => "yum install -y epel-release || yum install -y \
                 https://dl.fedoraproject.org/pub/epel/epel-release-latest-$(rpm -E %rhel).noarch.rpm"
            .into(),
        // Next to each `main` that is in use: of the same release, from the same mirror.
        COMMUNITY => "sed -n -E 's,^([^#@].*)/main$,\\1/community,p' /etc/apk/repositories | while read -r line; \
                      do grep -qxF \"$line\" /etc/apk/repositories || echo \"$line\" >> /etc/apk/repositories; done"
            .into(),
        "multiverse" => "add-apt-repository -y multiverse".into(),
        // Into the entries of the archive that are there: newer hosts list components in .sources,
        // older ones in lines.
        _ => format!(
            "find /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list -type f 2>/dev/null \
             | xargs -r sed -i -E '/^(Components:|deb .*debian.* main)/{{/ {part}( |$)/! s/$/ {part}/}}'"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debian_offers_non_free_only_where_it_is_needed() {
        let plain = installation(Distribution::Debian, &[Tool::Qperf, Tool::Iperf3]);
        assert_eq!(plain.commands.len(), 2);
        assert!(plain.commands[1].ends_with(" iperf3 qperf"));
        let restricted = installation(Distribution::Debian, &[Tool::Netperf]);
        assert_eq!(restricted.commands.len(), 4);
        assert!(restricted.commands[3].contains("netperf disable"));
        assert!(restricted.commands[0].contains("s/$/ non-free/"));
        let ubuntu = installation(Distribution::Ubuntu, &[Tool::Lmbench]);
        assert!(ubuntu.commands[0].contains("multiverse"));
    }

    #[test]
    fn each_distribution_has_its_own_manager() {
        let by = |distribution| {
            let all = installation(distribution, &[Tool::Iperf3, Tool::Iperf, Tool::Lmbench]);
            assert!(all.without_package.contains(&Tool::Lmbench));
            all.commands.last().cloned().unwrap_or_default()
        };
        assert_eq!(by(Distribution::Fedora), "dnf install -y iperf iperf3");
        assert_eq!(by(Distribution::Rhel), "yum install -y iperf iperf3");
        assert_eq!(by(Distribution::Alpine), "apk add iperf iperf3");
        let suse = "zypper --non-interactive install iperf";
        assert_eq!(by(Distribution::Suse), suse);
        assert_eq!(by(Distribution::OpenSuse), suse);
        let arch = "pacman -S --needed --noconfirm iperf iperf3";
        assert_eq!(by(Distribution::Arch), arch);
    }

    #[test]
    fn alpine_offers_its_community_only_where_it_is_needed() {
        let plain = installation(Distribution::Alpine, &[Tool::Iperf3, Tool::Ping]);
        assert_eq!(plain.commands, ["apk add iperf3 iputils"]);
        let more = installation(Distribution::Alpine, &[Tool::Nuttcp]);
        assert!(more.commands[0].contains("/main$,\\1/community,p"));
        assert_eq!(more.commands[1], "apk add nuttcp");
    }

    #[test]
    fn without_packages_there_is_nothing_to_do() {
        let none = installation(Distribution::Arch, &[Tool::Lmbench]);
        assert_eq!(none.commands, Vec::<String>::new());
        assert_eq!(none.without_package, [Tool::Lmbench]);
    }
}
