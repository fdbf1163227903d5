//! Which programs a tool consists of, and which package brings them.

use crate::workload::Tool;

/// A family of distributions, which name packages alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Debian and what is made of it.
    Debian,
    /// Ubuntu and what is made of it: Debian's packages, other archive parts.
    Ubuntu,
    /// Fedora, and RHEL with its rebuilds (some packages come from EPEL there).
    Fedora,
}

/// What a package manager is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: &'static str,
    /// The part of the archive it lies in, where that is not among those a fresh installation uses.
    pub part: Option<&'static str>,
}

impl Tool {
    /// The programs it consists of. None for the engine.
    #[must_use]
    pub fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Engine => &[],
            Self::Iperf3 => &["iperf3"],
            Self::Iperf => &["iperf"],
            Self::Netperf => &["netperf", "netserver"],
            Self::Lmbench => &["bw_tcp", "lat_tcp", "lat_udp", "lat_connect"],
            Self::Netpipe => &["NPtcp"],
            Self::Nuttcp => &["nuttcp"],
            Self::Sockperf => &["sockperf"],
            Self::Qperf => &["qperf"],
            Self::Ping => &["ping"],
        }
    }

    /// The package that brings them. `None` for the engine, and where the distribution has none: netperf's and lmbench's
    /// licences kept them out of Fedora's archive, and it has no NetPIPE over TCP.
    #[must_use]
    pub fn package(self, distribution: Distribution) -> Option<Package> {
        match distribution {
            Distribution::Debian => self.debian_package("non-free"),
            Distribution::Ubuntu => self.debian_package("multiverse"),
            Distribution::Fedora => self.fedora_package(),
        }
    }

    fn debian_package(self, restricted: &'static str) -> Option<Package> {
        let (name, part) = match self {
            Self::Engine => return None,
            Self::Netperf | Self::Lmbench => (self.name(), Some(restricted)),
            Self::Netpipe => ("netpipe-tcp", None),
            Self::Ping => ("iputils-ping", None),
            _ => (self.name(), None),
        };
        Some(Package { name, part })
    }

    fn fedora_package(self) -> Option<Package> {
        let name = match self {
            Self::Engine | Self::Netperf | Self::Lmbench | Self::Netpipe => return None,
            Self::Ping => "iputils",
            _ => self.name(),
        };
        Some(Package { name, part: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_external_tool_has_programs_and_a_package() {
        for tool in Tool::ALL {
            let is_external = tool != Tool::Engine;
            assert_eq!(!tool.programs().is_empty(), is_external, "{tool:?}");
            for distribution in [Distribution::Debian, Distribution::Ubuntu] {
                assert_eq!(
                    tool.package(distribution).is_some(),
                    is_external,
                    "{tool:?}"
                );
            }
        }
        let netperf = Tool::Netperf.package(Distribution::Ubuntu).unwrap();
        assert_eq!(
            (netperf.name, netperf.part),
            ("netperf", Some("multiverse"))
        );
        assert_eq!(Tool::Netperf.package(Distribution::Fedora), None);
    }
}
