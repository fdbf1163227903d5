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
    /// All processes of the host share this many cores.
    CpuQuota(f64),
    /// TCP receive buffers end at this many bytes.
    ReceiveBuffer(u64),
    /// The NIC's MTU in bytes.
    Mtu(u32),
    /// The cable is out.
    LinkDown,
    /// The cable is in again.
    LinkUp,
}

impl Fault {
    /// Reads a fault as written on the command line: `nic=100M`, `rx=50M`, `uplink=1G`, `cpu-quota=20%`,
    /// `receive-buffer=64K`, `mtu=1400`, `link-down`, `link-up`.
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
        const WORDS: &str = "nic=RATE, tx=RATE, rx=RATE, uplink=RATE, cpu-quota=PERCENT, receive-buffer=SIZE, mtu=BYTES, link-down or link-up";
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
            "cpu-quota" => Self::CpuQuota(read_quota(value)?),
            "receive-buffer" => {
                Self::ReceiveBuffer(units::parse_bytes(value).map_err(|e| e.to_string())?)
            }
            "mtu" => Self::Mtu(
                value
                    .parse()
                    .map_err(|_| format!("`{value}` is not an mtu; write it like 1400"))?,
            ),
            _ => return Err(format!("`{word}` is not a fault; use {WORDS}")),
        })
    }
}

pub(crate) fn read_rate(text: &str) -> Result<u64, String> {
    let rate = units::parse_bits_per_sec(text).map_err(|error| error.to_string())?;
    Ok(rate.round() as u64)
}

/// `20%` or `150%` of one core.
fn read_quota(text: &str) -> Result<f64, String> {
    let percent = text
        .strip_suffix('%')
        .and_then(|number| number.trim().parse::<f64>().ok());
    match percent {
        Some(percent) if percent.is_finite() => Ok(percent / 100.0),
        _ => Err(format!(
            "`{text}` is not a share of a core; write it like 20%"
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
        assert_eq!(kind("mtu=1400").unwrap(), FaultKind::Mtu(1400));
        assert_eq!(kind("link-down").unwrap(), FaultKind::LinkDown);
    }

    #[test]
    fn a_wrong_fault_names_the_right_ones() {
        for text in [
            "speed=1G",
            "nic",
            "nic=fast",
            "cpu-quota=half",
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
