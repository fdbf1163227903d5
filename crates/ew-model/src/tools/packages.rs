//! Which programs a tool consists of, and which package brings them.

use crate::facts::OsRelease;
use crate::workload::Tool;

/// A family of distributions, which name packages alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Debian and what is made of it.
    Debian,
    /// Ubuntu and what is made of it: Debian's packages, other archive parts.
    Ubuntu,
    /// Fedora.
    Fedora,
    /// RHEL and its rebuilds, which take some packages from EPEL.
    Rhel,
    /// SLES.
    Suse,
    /// openSUSE: SLES' packages, and an archive part of what is not free, which a fresh
    /// installation uses.
    OpenSuse,
    /// Alpine.
    Alpine,
    /// Arch and what is made of it.
    Arch,
}

/// EPEL as an archive part of [`Distribution::Rhel`].
pub(super) const EPEL: &str = "epel";
/// What [`Distribution::Alpine`] has next to its `main`.
pub(super) const COMMUNITY: &str = "community";

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

    /// The package that brings them. `None` for the engine, and where we know of none in the
    /// distribution's own archive: lmbench's licence keeps it out of most, and Arch leaves the less
    /// common ones to its users (AUR).
    #[must_use]
    pub fn package(self, distribution: Distribution) -> Option<Package> {
        match distribution {
            Distribution::Debian => self.debian_package("non-free"),
            Distribution::Ubuntu => self.debian_package("multiverse"),
            Distribution::Fedora => self.fedora_package(None),
            Distribution::Rhel => self.fedora_package(Some(EPEL)),
            Distribution::Suse => self.suse_package(),
            Distribution::OpenSuse if self == Self::Netperf => Some(Package::plain("netperf")),
            Distribution::OpenSuse => self.suse_package(),
            Distribution::Alpine => self.alpine_package(),
            Distribution::Arch => self.arch_package(),
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

    /// `further` is where RHEL's rebuilds find what only Fedora itself has in its archive. Fedora's
    /// package list: netperf since EPEL 8, qperf in EPEL since RHEL 9 does not have it.
    fn fedora_package(self, further: Option<&'static str>) -> Option<Package> {
        let (name, part) = match self {
            Self::Engine | Self::Lmbench | Self::Netpipe => return None,
            Self::Iperf | Self::Nuttcp | Self::Netperf | Self::Qperf => (self.name(), further),
            Self::Ping => ("iputils", None),
            _ => (self.name(), None),
        };
        Some(Package { name, part })
    }

    /// SUSE calls iperf3 iperf, and has no iperf 2.
    fn suse_package(self) -> Option<Package> {
        match self {
            Self::Iperf3 => Some(Package::plain("iperf")),
            Self::Qperf => Some(Package::plain("qperf")),
            Self::Ping => Some(Package::plain("iputils")),
            _ => None,
        }
    }

    fn alpine_package(self) -> Option<Package> {
        match self {
            Self::Iperf3 => Some(Package::plain("iperf3")),
            Self::Iperf | Self::Nuttcp => Some(Package {
                name: self.name(),
                part: Some(COMMUNITY),
            }),
            Self::Ping => Some(Package::plain("iputils")),
            _ => None,
        }
    }

    fn arch_package(self) -> Option<Package> {
        match self {
            Self::Iperf3 | Self::Iperf | Self::Netperf | Self::Qperf => {
                Some(Package::plain(self.name()))
            }
            Self::Ping => Some(Package::plain("iputils")),
            _ => None,
        }
    }
}

impl Package {
    fn plain(name: &'static str) -> Self {
        Self { name, part: None }
    }
}

impl Distribution {
    /// By its own word first, then by what it reports to be made of. `None` for what we do not
    /// know.
    #[must_use]
    pub fn of(os: &OsRelease) -> Option<Self> {
        let words = std::iter::once(&os.id).chain(&os.id_like);
        words.map(String::as_str).find_map(|word| match word {
            "debian" => Some(Self::Debian),
            "ubuntu" => Some(Self::Ubuntu),
            "fedora" => Some(Self::Fedora),
            "rhel" | "centos" | "rocky" | "almalinux" | "ol" => Some(Self::Rhel),
            "opensuse" | "opensuse-leap" | "opensuse-tumbleweed" => Some(Self::OpenSuse),
            "sles" | "suse" => Some(Self::Suse),
            "alpine" => Some(Self::Alpine),
            "arch" => Some(Self::Arch),
            _ => None,
        })
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
        assert_eq!(Tool::Lmbench.package(Distribution::Fedora), None);
        for tool in [Tool::Iperf, Tool::Netperf, Tool::Qperf, Tool::Nuttcp] {
            let package = tool.package(Distribution::Rhel).unwrap();
            assert_eq!((package.name, package.part), (tool.name(), Some(EPEL)));
            assert_eq!(tool.package(Distribution::Fedora).unwrap().part, None);
        }
        assert_eq!(Tool::Netperf.package(Distribution::Suse), None);
        assert!(Tool::Netperf.package(Distribution::OpenSuse).is_some());
        let iperf3 = Tool::Iperf3.package(Distribution::OpenSuse).unwrap();
        assert_eq!(iperf3.name, "iperf");
    }

    #[test]
    fn a_distribution_is_known_by_itself_or_by_its_parents() {
        let of = |id: &str, like: &[&str]| {
            Distribution::of(&OsRelease {
                id: id.into(),
                id_like: like.iter().map(|word| (*word).to_owned()).collect(),
                name: String::new(),
            })
        };
        assert_eq!(of("debian", &[]), Some(Distribution::Debian));
        assert_eq!(
            of("linuxmint", &["ubuntu", "debian"]),
            Some(Distribution::Ubuntu)
        );
        // Rocky is like Fedora, too, but takes packages from elsewhere.
        assert_eq!(
            of("rocky", &["rhel", "centos", "fedora"]),
            Some(Distribution::Rhel)
        );
        assert_eq!(
            of("opensuse-leap", &["suse", "opensuse"]),
            Some(Distribution::OpenSuse)
        );
        assert_eq!(of("sles", &["suse"]), Some(Distribution::Suse));
        assert_eq!(of("nixos", &[]), None);
    }
}
