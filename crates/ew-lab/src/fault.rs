//! What can be wrong with a lab on purpose.

use ew_model::topology::{BucketSpec, CongestionControl};
use ew_model::units;

use crate::error::LabError;
use crate::problem::{Problem, unreadable};

/// One thing wrong with one part of the network.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// A host, rack or pod by name; `r1/2` for member 2 of an uplink; `spine/2` or `core/2` for all
    /// that leads there.
    pub target: String,
    /// What is wrong.
    pub kind: FaultKind,
}

/// What is wrong. Rates in bits per second.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultKind {
    /// The NIC sends and receives at this rate.
    Nic(u64),
    /// The NIC sends at this rate.
    Tx(u64),
    /// The NIC receives at this rate.
    Rx(u64),
    /// The uplink, or one member of it, has this rate in these directions.
    Uplink(Way, u64),
    /// This share of all packets is lost: on a host's link, or on an uplink or member in these
    /// directions.
    Loss(Way, f64),
    /// The member loses every packet in these directions, and both ends take it to be good.
    BlackHole(Way),
    /// The member's link is up, but routes over it are lost in these directions: senders use the
    /// others.
    Withdrawn(Way),
    /// The member's share of the hash buckets, relative to the others'.
    Weight(u32),
    /// Other hosts of the rack send to those of another rack; `None` ends it.
    Background(Option<Background>),
    /// All processes of the host share this many cores.
    CpuQuota(f64),
    /// TCP receive buffers end at this many bytes.
    ReceiveBuffer(u64),
    /// TCP send buffers end at this many bytes.
    SendBuffer(u64),
    /// The NIC's MTU in bytes.
    Mtu(u32),
    /// What the host's connections use by default.
    Congestion(CongestionControl),
    /// One connection of the host sends at most at this rate; `None` ends that.
    FlowCap(Option<u64>),
    /// The host sends at its NIC's rate while it has credits, then at a sustained one; `None` ends
    /// that.
    Bucket(Option<BucketSpec>),
    /// A process of the host sends to the controller at this rate, for as long as the lab is up;
    /// `None` ends it.
    Neighbour(Option<u64>),
    /// All processes of the host share one CPU with a process that takes this share of it first;
    /// `None` ends that.
    CpuHog(Option<f64>),
    /// A process of the host writes to this machine's disk without pause.
    DiskWriter(bool),
    /// The cable is out. Of a member: routing has converged.
    LinkDown,
    /// The cable is in again.
    LinkUp,
}

/// Directions of a link, seen from below: of a rack, or of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Out of the rack.
    Up,
    /// Into the rack.
    Down,
    /// Up and down.
    Both,
    /// Neither: fixes.
    Neither,
}

/// Traffic of hosts that take no part in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Background {
    /// The rack that it enters.
    pub to: String,
    /// Payload of all connections together.
    pub bits_per_sec: u64,
}

impl Fault {
    /// Reads a fault as written on the command line: `nic=100M`, `uplink=1G`, `up-loss=2%`,
    /// `black-hole=down`, `cpu-quota=20%`, `link-down`, and so on; docs/reference/lab-files.md has
    /// all.
    ///
    /// # Errors
    /// [`LabError::Fault`] naming what was expected.
    pub fn parse(target: &str, text: &str) -> Result<Self, LabError> {
        let (word, value) = match text.split_once('=') {
            Some((word, value)) => (word, Some(value)),
            None => (text, None),
        };
        let kind = FaultKind::read(word, value).map_err(|problem| LabError::Fault {
            target: target.into(),
            problem,
        })?;
        Ok(Self {
            target: target.into(),
            kind,
        })
    }
}

impl FaultKind {
    pub(crate) fn read(word: &str, value: Option<&str>) -> Result<Self, Problem> {
        match (word, value) {
            ("link-down", None) => return Ok(Self::LinkDown),
            ("link-up", None) => return Ok(Self::LinkUp),
            _ => {}
        }
        let no_fault = || Problem::NoFault { word: word.into() };
        let value = value.ok_or_else(no_fault)?;
        let of_path = Self::read_path_fault(word, value)?;
        let kind = match of_path {
            Some(kind) => Some(kind),
            None => Self::read_host_fault(word, value)?,
        };
        kind.ok_or_else(no_fault)
    }

    fn read_path_fault(word: &str, value: &str) -> Result<Option<Self>, Problem> {
        let loss = |way| {
            Ok(Self::Loss(
                way,
                read_share(value, "share of packets", "2%")?,
            ))
        };
        let kind: Result<Self, Problem> = match word {
            "uplink" => Ok(Self::Uplink(Way::Both, read_rate(value)?)),
            "up" => Ok(Self::Uplink(Way::Up, read_rate(value)?)),
            "down" => Ok(Self::Uplink(Way::Down, read_rate(value)?)),
            "loss" => loss(Way::Both),
            "up-loss" => loss(Way::Up),
            "down-loss" => loss(Way::Down),
            "black-hole" => Ok(Self::BlackHole(read_way(value)?)),
            "withdrawn" => Ok(Self::Withdrawn(read_way(value)?)),
            "weight" => Ok(Self::Weight(read_whole(value, "weight", "3")?)),
            "background" => Ok(Self::Background(unless_off(value, read_background)?)),
            _ => return Ok(None),
        };
        kind.map(Some)
    }

    fn read_host_fault(word: &str, value: &str) -> Result<Option<Self>, Problem> {
        Ok(Some(match word {
            "nic" => Self::Nic(read_rate(value)?),
            "tx" => Self::Tx(read_rate(value)?),
            "rx" => Self::Rx(read_rate(value)?),
            "cpu-quota" => Self::CpuQuota(read_share(value, "share of a core", "20%")?),
            "receive-buffer" => Self::ReceiveBuffer(read_size(value)?),
            "send-buffer" => Self::SendBuffer(read_size(value)?),
            "mtu" => Self::Mtu(read_whole(value, "mtu", "1400")?),
            "congestion-control" => Self::Congestion(read_congestion(value)?),
            "flow-cap" => Self::FlowCap(unless_off(value, read_rate)?),
            "bucket" => Self::Bucket(unless_off(value, read_bucket)?),
            "neighbour" => Self::Neighbour(unless_off(value, read_rate)?),
            "cpu-hog" => Self::CpuHog(unless_off(value, |text| {
                read_share(text, "share of a core", "98%")
            })?),
            "disk-writer" => Self::DiskWriter(match value {
                "on" => true,
                "off" => false,
                _ => return Err(no_word(value, &["on", "off"])),
            }),
            _ => return Ok(None),
        }))
    }
}

fn no_word(word: &str, words: &'static [&'static str]) -> Problem {
    let word = word.into();
    Problem::Word { word, words }
}

fn read_way(text: &str) -> Result<Way, Problem> {
    match text {
        "up" => Ok(Way::Up),
        "down" => Ok(Way::Down),
        "both" => Ok(Way::Both),
        "off" => Ok(Way::Neither),
        _ => Err(no_word(text, &["up", "down", "both", "off"])),
    }
}

pub(crate) fn read_congestion(text: &str) -> Result<CongestionControl, Problem> {
    let known = [CongestionControl::Cubic, CongestionControl::Bbr];
    let found = known.into_iter().find(|control| control.name() == text);
    found.ok_or_else(|| no_word(text, &["cubic", "bbr"]))
}

/// `20M/100M`: sustained rate, and credits in bytes.
pub(crate) fn read_bucket(text: &str) -> Result<BucketSpec, Problem> {
    let (rate, size) = text
        .split_once('/')
        .ok_or_else(|| unreadable(text, "bucket", "20M/50MB"))?;
    Ok(BucketSpec {
        sustained_bits_per_sec: read_rate(rate)?,
        capacity_bytes: read_size(size)?,
    })
}

fn read_background(text: &str) -> Result<Background, Problem> {
    let (to, rate) = text
        .split_once(':')
        .ok_or_else(|| unreadable(text, "rack and rate", "r2:40M"))?;
    Ok(Background {
        to: to.into(),
        bits_per_sec: read_rate(rate)?,
    })
}

fn read_whole(text: &str, what: &'static str, example: &'static str) -> Result<u32, Problem> {
    text.parse().map_err(|_| unreadable(text, what, example))
}

fn unless_off<T>(
    value: &str,
    read: impl FnOnce(&str) -> Result<T, Problem>,
) -> Result<Option<T>, Problem> {
    match value {
        "off" => Ok(None),
        _ => read(value).map(Some),
    }
}

fn read_size(text: &str) -> Result<u64, Problem> {
    Ok(units::parse_bytes(text)?)
}

pub(crate) fn read_rate(text: &str) -> Result<u64, Problem> {
    Ok(units::parse_bits_per_sec(text)?.round() as u64)
}

/// `20%` as 0.2.
fn read_share(text: &str, what: &'static str, example: &'static str) -> Result<f64, Problem> {
    let percent = text
        .strip_suffix('%')
        .and_then(|number| number.trim().parse::<f64>().ok());
    match percent {
        Some(percent) if percent.is_finite() => Ok(percent / 100.0),
        _ => Err(unreadable(text, what, example)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_as_written() {
        let kind = |text| Fault::parse("r1h1", text).map(|fault| fault.kind);
        assert_eq!(kind("nic=100M").unwrap(), FaultKind::Nic(100_000_000));
        assert_eq!(kind("cpu-quota=20%").unwrap(), FaultKind::CpuQuota(0.2));
        assert_eq!(
            kind("receive-buffer=64K").unwrap(),
            FaultKind::ReceiveBuffer(65536)
        );
        assert_eq!(
            kind("send-buffer=16K").unwrap(),
            FaultKind::SendBuffer(16384)
        );
        assert_eq!(kind("mtu=1400").unwrap(), FaultKind::Mtu(1400));
        assert_eq!(
            kind("loss=2.5%").unwrap(),
            FaultKind::Loss(Way::Both, 0.025)
        );
        assert_eq!(
            kind("neighbour=40M").unwrap(),
            FaultKind::Neighbour(Some(40_000_000))
        );
        assert_eq!(kind("neighbour=off").unwrap(), FaultKind::Neighbour(None));
        assert_eq!(kind("cpu-hog=98%").unwrap(), FaultKind::CpuHog(Some(0.98)));
        assert_eq!(kind("disk-writer=on").unwrap(), FaultKind::DiskWriter(true));
        assert_eq!(kind("link-down").unwrap(), FaultKind::LinkDown);
        assert_eq!(
            kind("up=25M").unwrap(),
            FaultKind::Uplink(Way::Up, 25_000_000)
        );
        assert_eq!(
            kind("down-loss=1%").unwrap(),
            FaultKind::Loss(Way::Down, 0.01)
        );
        assert_eq!(
            kind("black-hole=off").unwrap(),
            FaultKind::BlackHole(Way::Neither)
        );
        let bucket = BucketSpec {
            sustained_bits_per_sec: 20_000_000,
            capacity_bytes: 1 << 20,
        };
        assert_eq!(
            kind("bucket=20M/1M").unwrap(),
            FaultKind::Bucket(Some(bucket))
        );
        let background = Background {
            to: "r2".into(),
            bits_per_sec: 40_000_000,
        };
        assert_eq!(
            kind("background=r2:40M").unwrap(),
            FaultKind::Background(Some(background))
        );
    }

    #[test]
    fn a_wrong_fault_names_the_right_ones() {
        for text in [
            "speed=1G",
            "nic",
            "nic=fast",
            "cpu-quota=half",
            "loss=little",
            "disk-writer=maybe",
            "link-down=1",
            "black-hole=left",
            "bucket=20M",
            "background=40M",
            "congestion-control=vegas",
            "",
        ] {
            assert!(Fault::parse("r1h1", text).is_err(), "{text}");
        }
        let error = Fault::parse("r1h1", "speed=1G").unwrap_err().to_string();
        assert!(
            error.contains("r1h1") && error.contains("nic=RATE"),
            "{error}"
        );
    }
}
