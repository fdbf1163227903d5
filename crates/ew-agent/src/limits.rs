//! What the owner of a host allows, whatever a controller says: `/etc/eastwest/limits`.

use ew_model::facts::HostFacts;
use ew_model::plan::GOODPUT_SHARE;
use ew_model::units::parse_bits_per_sec;
use ew_proto::message::{Role, RoundOrder};
use std::io;
use std::net::IpAddr;

const FILE: &str = "/etc/eastwest/limits";

/// The file's content. A host without one allows everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Limits {
    /// Why no run is welcome.
    pub(crate) deny: Option<String>,
    max_rate: Option<MaxRate>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum MaxRate {
    Share(f64),
    BitsPerSec(f64),
}

impl Limits {
    /// # Errors
    /// In words, with the file: what cannot be understood allows nothing.
    pub(crate) fn read() -> Result<Self, String> {
        match std::fs::read_to_string(FILE) {
            Ok(text) => Self::parse(&text).map_err(|problem| format!("{FILE}: {problem}")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(format!("{FILE}: {error}")),
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut limits = Self::default();
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, value) = line.split_once('=').unwrap_or((line, ""));
            match (key.trim(), value.trim()) {
                ("deny", why) => limits.deny = Some(why.to_owned()),
                ("max-rate", rate) => limits.max_rate = Some(MaxRate::parse(rate)?),
                (key, _) => {
                    return Err(format!("unknown key `{key}`; there are max-rate and deny"));
                }
            }
        }
        Ok(limits)
    }

    /// The most that each direction of the data interface may carry, bits per second on the wire.
    ///
    /// # Errors
    /// In words, where it is a share of a line rate that nobody knows.
    pub(crate) fn max_bits_per_sec(
        &self,
        facts: &HostFacts,
        address: IpAddr,
    ) -> Result<Option<f64>, String> {
        let line = || {
            let interface = facts.interface_with(address);
            let speed = interface.and_then(|interface| interface.speed_bits_per_sec);
            speed.ok_or(format!(
                "{FILE}: max-rate is a share of the line rate, which {address}'s interface does \
                 not report; write a rate, such as 1G"
            ))
        };
        match self.max_rate {
            None => Ok(None),
            Some(MaxRate::BitsPerSec(rate)) => Ok(Some(rate)),
            Some(MaxRate::Share(share)) => Ok(Some(share * line()?)),
        }
    }
}

impl MaxRate {
    fn parse(text: &str) -> Result<Self, String> {
        let problem =
            || format!("max-rate `{text}` is neither a rate, such as 1G, nor a share, such as 10%");
        let positive = |value: f64| (value.is_finite() && value > 0.0).then_some(value);
        match text.strip_suffix('%') {
            Some(percent) => {
                let percent = percent.trim().parse().ok().and_then(positive);
                let percent = percent.filter(|percent| *percent <= 100.0);
                percent
                    .map(|percent| Self::Share(percent / 100.0))
                    .ok_or_else(problem)
            }
            None => {
                let rate = parse_bits_per_sec(text).ok().and_then(positive);
                rate.map(Self::BitsPerSec).ok_or_else(problem)
            }
        }
    }
}

/// Holds the bulk flows that the host sends in a round to the limit, shared evenly.
pub(crate) fn enforce(max_bits_per_sec: f64, round: &mut RoundOrder) {
    let sends = || round.flows.iter().filter(|flow| flow.role == Role::Send);
    let share = GOODPUT_SHARE * max_bits_per_sec / sends().count().max(1) as f64;
    for flow in &mut round.flows {
        if flow.role == Role::Send {
            let asked = flow.bits_per_sec.unwrap_or(f64::INFINITY);
            flow.bits_per_sec = Some(asked.min(share));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::plan::{FlowId, RoundIndex};
    use ew_proto::message::FlowOrder;

    #[test]
    fn what_is_not_understood_allows_nothing() {
        let text = "# ours\nmax-rate = 10%\n\ndeny = night shift: ask ops@example.org\n";
        let limits = Limits::parse(text).unwrap();
        assert_eq!(limits.max_rate, Some(MaxRate::Share(0.1)));
        assert_eq!(
            limits.deny.as_deref(),
            Some("night shift: ask ops@example.org")
        );
        for wrong in [
            "max-rate = 0%",
            "max-rate = 110%",
            "max-rate = fast",
            "maxrate = 1G",
        ] {
            assert!(Limits::parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Limits::parse("").unwrap(), Limits::default());
    }

    #[test]
    fn what_the_host_sends_shares_its_limit() {
        let peer = "198.18.0.1:5401".parse().unwrap();
        let flow = |id, role| FlowOrder::new(FlowId(id), role, true, peer);
        let mut round = RoundOrder {
            round: RoundIndex(0),
            offset_ns: 0,
            streams: 1,
            flows: vec![
                flow(0, Role::Send),
                flow(1, Role::Send),
                flow(2, Role::Receive),
            ],
            followed: Vec::new(),
        };
        round.flows[1].bits_per_sec = Some(1e6);
        enforce(1e9, &mut round);
        let rates: Vec<_> = round.flows.iter().map(|flow| flow.bits_per_sec).collect();
        assert_eq!(rates, [Some(GOODPUT_SHARE * 5e8), Some(1e6), None]);
    }
}
