//! What can be wrong with a lab on purpose.

use ew_model::units;

use crate::error::LabError;

/// One thing wrong with one host or rack.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// A host, or for [`FaultKind::Uplink`] a rack.
    pub target: String,
    /// What is wrong.
    pub kind: FaultKind,
}

/// What is wrong. Rates in bits per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultKind {
    /// The NIC sends and receives at this rate.
    Nic(u64),
    /// The NIC sends at this rate.
    Tx(u64),
    /// The NIC receives at this rate.
    Rx(u64),
    /// The rack's uplink has this rate, each direction.
    Uplink(u64),
    /// This share of all packets on the host's link, or on the rack's uplink, is lost, each direction.
    Loss(f64),
    /// All processes of the host share this many cores.
    CpuQuota(f64),
    /// TCP receive buffers end at this many bytes.
    ReceiveBuffer(u64),
    /// TCP send buffers end at this many bytes.
    SendBuffer(u64),
    /// The NIC's MTU in bytes.
    Mtu(u32),
    /// A process of the host sends to the controller at this rate, for as long as the lab is up; `None` ends it.
    Neighbour(Option<u64>),
    /// All processes of the host share one CPU with a process that takes this share of it first; `None` ends that.
    CpuHog(Option<f64>),
    /// A process of the host writes to this machine's disk without pause.
    DiskWriter(bool),
    /// The cable is out.
    LinkDown,
    /// The cable is in again.
    LinkUp,
}

impl Fault {
    /// Reads a fault as written on the command line: `nic=100M`, `rx=50M`, `uplink=1G`, `loss=2%`, `cpu-quota=20%`,
    /// `receive-buffer=64K`, `send-buffer=16K`, `mtu=1400`, `neighbour=40M`, `cpu-hog=98%`, `disk-writer=on`, `link-down`,
    /// `link-up`.
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
    pub(crate) fn read(word: &str, value: Option<&str>) -> Result<Self, String> {
        const WORDS: &str = "nic=RATE, tx=RATE, rx=RATE, uplink=RATE, loss=PERCENT, cpu-quota=PERCENT, receive-buffer=SIZE, \
                             send-buffer=SIZE, mtu=BYTES, neighbour=RATE, cpu-hog=PERCENT, disk-writer=on, link-down or link-up";
        match (word, value) {
            ("link-down", None) => return Ok(Self::LinkDown),
            ("link-up", None) => return Ok(Self::LinkUp),
            _ => {}
        }
        let value = value.ok_or_else(|| format!("`{word}` is not a fault; use {WORDS}"))?;
        Ok(match word {
            "nic" => Self::Nic(read_rate(value)?),
            "tx" => Self::Tx(read_rate(value)?),
            "rx" => Self::Rx(read_rate(value)?),
            "uplink" => Self::Uplink(read_rate(value)?),
            "loss" => Self::Loss(read_share(value, "of packets", "2%")?),
            "cpu-quota" => Self::CpuQuota(read_share(value, "of a core", "20%")?),
            "receive-buffer" => Self::ReceiveBuffer(read_size(value)?),
            "send-buffer" => Self::SendBuffer(read_size(value)?),
            "mtu" => Self::Mtu(
                value
                    .parse()
                    .map_err(|_| format!("`{value}` is not an mtu; write it like 1400"))?,
            ),
            "neighbour" => Self::Neighbour(unless_off(value, read_rate)?),
            "cpu-hog" => Self::CpuHog(unless_off(value, |text| {
                read_share(text, "of a core", "98%")
            })?),
            "disk-writer" => Self::DiskWriter(match value {
                "on" => true,
                "off" => false,
                _ => return Err(format!("`{value}` is neither `on` nor `off`")),
            }),
            _ => return Err(format!("`{word}` is not a fault; use {WORDS}")),
        })
    }
}

fn unless_off<T>(
    value: &str,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    match value {
        "off" => Ok(None),
        _ => read(value).map(Some),
    }
}

fn read_size(text: &str) -> Result<u64, String> {
    units::parse_bytes(text).map_err(|error| error.to_string())
}

pub(crate) fn read_rate(text: &str) -> Result<u64, String> {
    let rate = units::parse_bits_per_sec(text).map_err(|error| error.to_string())?;
    Ok(rate.round() as u64)
}

/// `20%` as 0.2.
fn read_share(text: &str, of_what: &str, example: &str) -> Result<f64, String> {
    let percent = text
        .strip_suffix('%')
        .and_then(|number| number.trim().parse::<f64>().ok());
    match percent {
        Some(percent) if percent.is_finite() => Ok(percent / 100.0),
        _ => Err(format!(
            "`{text}` is not a share {of_what}; write it like {example}"
        )),
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
        assert_eq!(kind("loss=2.5%").unwrap(), FaultKind::Loss(0.025));
        assert_eq!(
            kind("neighbour=40M").unwrap(),
            FaultKind::Neighbour(Some(40_000_000))
        );
        assert_eq!(kind("neighbour=off").unwrap(), FaultKind::Neighbour(None));
        assert_eq!(kind("cpu-hog=98%").unwrap(), FaultKind::CpuHog(Some(0.98)));
        assert_eq!(kind("disk-writer=on").unwrap(), FaultKind::DiskWriter(true));
        assert_eq!(kind("link-down").unwrap(), FaultKind::LinkDown);
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
