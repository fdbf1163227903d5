//! What the owner of a host allows, whatever a controller orders: `/etc/eastwest/limits`.

use crate::problem::{FILE, LimitsFileError, Problem};
use ew_model::facts::HostFacts;
use ew_model::plan::GOODPUT_SHARE;
use ew_model::units::{parse_bits_per_sec, parse_duration_ns};
use ew_model::workload::Tool;
use ew_proto::message::{Role, RoundOrder, StageOrder, Welcome};
use std::io;
use std::net::IpAddr;
use std::time::Duration;

const DAY_S: u64 = 24 * 3600;
const SECOND_NS: u64 = 1_000_000_000;
/// Requests up to this size, and this many at once, load no link worth limiting.
const LARGEST_FREE_MESSAGE_BYTES: u64 = 4096;
const MAX_FREE_REQUESTS: usize = 64;
/// What rounding makes of a controller's shares.
const ROUNDING: f64 = 1.001;

/// The file's content. A host without one allows everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Limits {
    /// Why no run is welcome.
    deny: Option<String>,
    max_rate: Option<MaxRate>,
    /// How long an agent may take part.
    max_duration: Option<Duration>,
    hours: Option<Hours>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum MaxRate {
    Share(f64),
    BitsPerSec(f64),
}

/// A part of every day, seconds since midnight UTC. It goes over midnight where it ends before it
/// begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hours {
    from_s: u64,
    to_s: u64,
}

impl Limits {
    /// # Errors
    /// With the file: what cannot be understood allows nothing.
    pub(crate) fn read() -> Result<Self, Problem> {
        let limits = match std::fs::read_to_string(FILE) {
            Ok(text) => Self::parse(&text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error.into()),
        };
        limits.map_err(Problem::LimitsFile)
    }

    fn parse(text: &str) -> Result<Self, LimitsFileError> {
        let mut limits = Self::default();
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, value) = line.split_once('=').unwrap_or((line, ""));
            match (key.trim(), value.trim()) {
                ("deny", why) => limits.deny = Some(why.to_owned()),
                ("max-rate", rate) => limits.max_rate = Some(MaxRate::parse(rate)?),
                ("max-duration", time) => {
                    let ns = parse_duration_ns(time).ok().filter(|ns| *ns > 0);
                    let ns = ns.ok_or_else(|| LimitsFileError::MaxDuration(time.to_owned()))?;
                    limits.max_duration = Some(Duration::from_nanos(ns));
                }
                ("hours", hours) => limits.hours = Some(Hours::parse(hours)?),
                (key, _) => return Err(LimitsFileError::Key(key.to_owned())),
            }
        }
        Ok(limits)
    }

    /// Whether a run may begin now.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn admit(self, welcome: &Welcome, realtime_ns: u64) -> Result<Self, Problem> {
        if let Some(why) = self.deny {
            return Err(Problem::Denied(why));
        }
        if let Some(hours) = self.hours.filter(|hours| hours.left(realtime_ns).is_none()) {
            let hours = hours.to_string();
            return Err(Problem::OutsideHours { hours });
        }
        if self.max_rate.is_some() && welcome.offer_iperf3_port.is_some() {
            return Err(refuses("--offer-iperf3"));
        }
        Ok(self)
    }

    /// How long an agent that begins now may take part. `None`: as long as it likes.
    pub(crate) fn time_left(&self, realtime_ns: u64) -> Option<Duration> {
        let of_hours = self.hours.and_then(|hours| hours.left(realtime_ns));
        self.max_duration.into_iter().chain(of_hours).min()
    }

    /// The most that each direction of the data interface may carry, bits per second on the wire.
    ///
    /// # Errors
    /// Where it is a share of a line rate that nobody knows.
    pub(crate) fn max_bits_per_sec(
        &self,
        facts: &HostFacts,
        address: IpAddr,
    ) -> Result<Option<f64>, Problem> {
        let line = || {
            let interface = facts.interface_with(address);
            let speed = interface.and_then(|interface| interface.speed_bits_per_sec);
            speed.ok_or(Problem::UnknownLineRate { address })
        };
        match self.max_rate {
            None => Ok(None),
            Some(MaxRate::BitsPerSec(rate)) => Ok(Some(rate)),
            Some(MaxRate::Share(share)) => Ok(Some(share * line()?)),
        }
    }
}

impl MaxRate {
    fn parse(text: &str) -> Result<Self, LimitsFileError> {
        let problem = || LimitsFileError::MaxRate(text.to_owned());
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

impl Hours {
    fn parse(text: &str) -> Result<Self, LimitsFileError> {
        let problem = || LimitsFileError::Hours(text.to_owned());
        let time = |text: &str| {
            let (hour, minute) = text.trim().split_once(':')?;
            let (hour, minute): (u64, u64) = (hour.parse().ok()?, minute.parse().ok()?);
            (hour < 24 && minute < 60).then_some(hour * 3600 + minute * 60)
        };
        let (from, to) = text.split_once('-').ok_or_else(problem)?;
        match (time(from), time(to)) {
            (Some(from_s), Some(to_s)) if from_s != to_s => Ok(Self { from_s, to_s }),
            _ => Err(problem()),
        }
    }

    /// To the end. `None`: outside.
    fn left(self, realtime_ns: u64) -> Option<Duration> {
        let now_s = realtime_ns / SECOND_NS % DAY_S;
        let since = |from_s: u64| (now_s + DAY_S - from_s) % DAY_S;
        let length_s = (self.to_s + DAY_S - self.from_s) % DAY_S;
        length_s
            .checked_sub(since(self.from_s))
            .filter(|left| *left > 0)
            .map(Duration::from_secs)
    }
}

impl std::fmt::Display for Hours {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let time = |s: u64| format!("{:02}:{:02}", s / 3600, s / 60 % 60);
        write!(f, "{}-{} UTC", time(self.from_s), time(self.to_s))
    }
}

/// Why a host with a limit does not do something that obeys none.
pub(crate) fn refuses(what: impl Into<String>) -> Problem {
    Problem::KnowsNoLimit { what: what.into() }
}

/// Keeps a stage within the limit: what the host sends shares it evenly, and what it is to receive
/// must fit.
///
/// # Errors
/// Where nothing would keep it within the limit.
pub(crate) fn enforce(max_bits_per_sec: f64, order: &mut StageOrder) -> Result<(), Problem> {
    let workload = &order.workload;
    if workload.tool != Tool::Engine {
        return Err(refuses("external tools"));
    }
    if !workload.kind.keeps_to_a_rate() {
        let at_once = |round: &RoundOrder| round.flows.len() * round.streams as usize;
        let most = order.rounds.iter().map(at_once).max().unwrap_or(0);
        if workload.message_bytes > LARGEST_FREE_MESSAGE_BYTES || most > MAX_FREE_REQUESTS {
            return Err(refuses(format!(
                "{most} requests of {} bytes at once",
                workload.message_bytes
            )));
        }
        return Ok(());
    }
    let goodput = GOODPUT_SHARE * max_bits_per_sec;
    for round in &mut order.rounds {
        let receives = round.flows.iter().filter(|flow| flow.role == Role::Receive);
        let received: f64 = receives
            .map(|flow| flow.bits_per_sec.unwrap_or(f64::INFINITY))
            .sum();
        if received > ROUNDING * goodput {
            return Err(refuses("what the controller has it receive"));
        }
        share(goodput, round);
    }
    Ok(())
}

fn share(bits_per_sec: f64, round: &mut RoundOrder) {
    let sends = round.flows.iter().filter(|flow| flow.role == Role::Send);
    let share = bits_per_sec / sends.count().max(1) as f64;
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
    use ew_model::plan::{FlowId, RoundIndex, StageIndex};
    use ew_model::workload::{Workload, WorkloadKind};
    use ew_proto::message::FlowOrder;

    #[test]
    fn what_is_not_understood_allows_nothing() {
        let text = "# ours\nmax-rate = 10%\nmax-duration = 10m\nhours = 22:00-06:00\n\ndeny = night shift: ask ops@example.org\n";
        let limits = Limits::parse(text).unwrap();
        assert_eq!(limits.max_rate, Some(MaxRate::Share(0.1)));
        assert_eq!(limits.max_duration, Some(Duration::from_secs(600)));
        assert_eq!(limits.hours.unwrap().to_string(), "22:00-06:00 UTC");
        assert_eq!(
            limits.deny.as_deref(),
            Some("night shift: ask ops@example.org")
        );
        for wrong in [
            "max-rate = 0%",
            "max-rate = 110%",
            "max-rate = fast",
            "maxrate = 1G",
            "max-duration = 0s",
            "hours = 22-6",
            "hours = 24:00-06:00",
            "hours = 06:00-06:00",
        ] {
            assert!(Limits::parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Limits::parse("").unwrap(), Limits::default());
    }

    #[test]
    fn runs_are_over_when_the_hours_are() {
        let left = |text: &str, time: &str| {
            let at = Hours::parse(&format!("{time}-23:59")).unwrap().from_s;
            let limits = Limits::parse(text).unwrap();
            // Some day.
            limits.time_left((20_000 * DAY_S + at) * SECOND_NS)
        };
        let hour = Duration::from_secs(3600);
        assert_eq!(left("hours = 22:00-06:00", "23:00"), Some(7 * hour));
        assert_eq!(left("hours = 22:00-06:00", "05:00"), Some(hour));
        assert_eq!(left("hours = 22:00-06:00", "06:00"), None);
        assert_eq!(left("hours = 08:00-09:00", "07:59"), None);
        assert_eq!(
            left("hours = 08:00-10:00\nmax-duration = 1h", "08:00"),
            Some(hour)
        );
        assert_eq!(left("", "08:00"), None);
    }

    fn order(kind: WorkloadKind, message_bytes: u64, roles: &[(Role, Option<f64>)]) -> StageOrder {
        let peer = "198.18.0.1:5401".parse().unwrap();
        let flow = |(id, (role, rate)): (usize, &(Role, Option<f64>))| FlowOrder {
            bits_per_sec: *rate,
            ..FlowOrder::new(FlowId(id as u32), *role, true, peer)
        };
        StageOrder {
            stage: StageIndex(0),
            workload: Box::new(Workload {
                message_bytes,
                ..Workload::of(kind)
            }),
            warm_up_ns: 0,
            duration_ns: 1,
            gap_ns: 0,
            rounds: vec![RoundOrder {
                round: RoundIndex(0),
                offset_ns: 0,
                streams: 1,
                flows: roles.iter().enumerate().map(flow).collect(),
                followed: Vec::new(),
            }],
        }
    }

    #[test]
    fn what_the_host_sends_shares_its_limit_and_what_it_receives_must_fit() {
        let sends = [(Role::Send, None), (Role::Send, Some(1e6))];
        let fits = (Role::Receive, Some(GOODPUT_SHARE * 1e9));
        let roles = [&sends[..], &[fits]].concat();
        let mut bulk = order(WorkloadKind::TcpStream, 1 << 20, &roles);
        enforce(1e9, &mut bulk).unwrap();
        let flows = bulk.rounds[0].flows.iter();
        let rates: Vec<_> = flows.map(|flow| flow.bits_per_sec).collect();
        assert_eq!(rates, [Some(GOODPUT_SHARE * 5e8), Some(1e6), fits.1]);
        for too_much in [None, Some(1e9)] {
            let mut bulk = order(
                WorkloadKind::TcpStream,
                1 << 20,
                &[(Role::Receive, too_much)],
            );
            assert!(enforce(1e9, &mut bulk).is_err(), "{too_much:?}");
        }
    }

    #[test]
    fn what_no_limit_holds_is_refused() {
        let request = [(Role::Send, None)];
        let mut small = order(WorkloadKind::TcpRr, 64, &request);
        assert!(enforce(1e9, &mut small).is_ok());
        small.rounds[0].streams = 65;
        assert!(enforce(1e9, &mut small).is_err());
        let mut large = order(WorkloadKind::TcpRr, 1 << 20, &request);
        assert!(
            enforce(1e9, &mut large)
                .unwrap_err()
                .to_string()
                .contains("1048576 bytes")
        );
        let mut tool = order(WorkloadKind::TcpStream, 1 << 20, &request);
        tool.workload.tool = Tool::Iperf3;
        assert!(enforce(1e9, &mut tool).is_err());
    }

    #[test]
    fn iperf3_for_everybody_obeys_no_limit() {
        let limits = Limits::parse("max-rate = 1G").unwrap();
        let welcome = |offer_iperf3_port| Welcome {
            host: ew_model::inventory::HostId(0),
            address: "198.18.0.1".parse().unwrap(),
            network: None,
            token: ew_proto::message::RunToken([0; 16]),
            relay_key: None,
            data_ports: (1, 2),
            sample_interval_ns: 1,
            offer_iperf3_port,
            watch_interval_ns: None,
            claim: None,
            syslog: false,
            tools: Vec::new(),
        };
        assert!(limits.clone().admit(&welcome(None), 0).is_ok());
        assert!(limits.admit(&welcome(Some(5201)), 0).is_err());
    }
}
