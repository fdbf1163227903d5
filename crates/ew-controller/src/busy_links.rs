//! Whether others use the hosts' links, checked before anything is loaded.

use crate::fleet_event::FleetEvent;
use crate::journal::Journal;
use crate::members::Members;
use crate::run_error::RunError;
use ew_model::event::RunEvent;
use ew_model::facts::HostSample;
use ew_model::inventory::HostId;
use ew_model::units::format_bits_per_sec;
use ew_proto::controller_session::ControllerEvent;
use std::collections::BTreeMap;

/// Share of a link that others may use.
const IDLE: f64 = 0.05;
/// Shorter times show little about a rate.
const MIN_NS: u64 = 400_000_000;
/// Readings come once a second, unless the user says otherwise.
const LIMIT_NS: u64 = 3_000_000_000;

/// A host's link in use.
#[derive(Clone, Debug, PartialEq)]
struct Busy {
    host: HostId,
    bits_per_sec: f64,
    line_bits_per_sec: f64,
}

/// Refuses to load hosts whose links others use, unless by force, which is a warning then. Links
/// of unknown speed are not checked.
pub(crate) async fn check(
    members: &mut Members,
    expected_bits_per_sec: Option<f64>,
    force: bool,
    journal: &mut Journal,
) -> Result<(), RunError> {
    let lines: BTreeMap<HostId, f64> = members.link_speeds(expected_bits_per_sec);
    if lines.is_empty() {
        return Ok(());
    }
    let readings = read(members, &lines, journal).await?;
    let busy = readings.iter().filter_map(|(host, (first, last))| {
        let interface = &members.data_interface(*host)?.name;
        used(*host, interface, first, last, *lines.get(host)?)
    });
    let busy: Vec<Busy> = busy.collect();
    let Some(most) = busy.iter().max_by(|a, b| a.share().total_cmp(&b.share())) else {
        return Ok(());
    };
    let names = busy.iter().map(|busy| members.inventory().name(busy.host));
    let hosts = ew_plan::inventory::fold(names);
    let example = format!(
        "{}: {} on a link of {}, {:.0}%",
        members.inventory().name(most.host),
        format_bits_per_sec(most.bits_per_sec),
        format_bits_per_sec(most.line_bits_per_sec),
        100.0 * most.share()
    );
    if force {
        journal.warn(format!(
            "{hosts}: background traffic before any load ({example}); rates are of both together (--force)"
        ));
        return Ok(());
    }
    Err(RunError::LinksInUse { hosts, example })
}

impl Busy {
    fn share(&self) -> f64 {
        self.bits_per_sec / self.line_bits_per_sec
    }
}

/// A first and a last reading of every host, as far as they come in time.
async fn read(
    members: &mut Members,
    lines: &BTreeMap<HostId, f64>,
    journal: &mut Journal,
) -> Result<BTreeMap<HostId, (HostSample, HostSample)>, RunError> {
    let mut readings: BTreeMap<HostId, (HostSample, HostSample)> = BTreeMap::new();
    let deadline_ns = members.now_ns() + LIMIT_NS;
    let is_enough = |(first, last): &(HostSample, HostSample)| span_ns(first, last) >= MIN_NS;
    while readings.values().filter(|pair| is_enough(pair)).count() < lines.len() {
        match members.next(deadline_ns).await {
            FleetEvent::Agent(host, ControllerEvent::Sample(sample)) => {
                if lines.contains_key(&host) {
                    let entry = readings.entry(host);
                    entry
                        .and_modify(|(_, last)| last.clone_from(&sample))
                        .or_insert_with(|| (sample.clone(), sample.clone()));
                }
                journal.emit(RunEvent::HostSampled { host, sample });
            }
            FleetEvent::Interrupt => return Err(RunError::Interrupted),
            FleetEvent::Deadline => break,
            other => {
                journal.note(other, members.inventory());
            }
        }
    }
    readings.retain(|_, pair| is_enough(pair));
    Ok(readings)
}

fn span_ns(first: &HostSample, last: &HostSample) -> u64 {
    last.agent_ns.saturating_sub(first.agent_ns)
}

/// The fuller direction, where it is more than others may use.
fn used(
    host: HostId,
    interface: &str,
    first: &HostSample,
    last: &HostSample,
    line_bits_per_sec: f64,
) -> Option<Busy> {
    let bytes = |sample: &HostSample| {
        let own = sample.interfaces.iter().find(|own| own.name == interface)?;
        Some([own.tx_bytes, own.rx_bytes])
    };
    let (before, after) = (bytes(first)?, bytes(last)?);
    let grown = (0..2).map(|way| after[way].saturating_sub(before[way]));
    let seconds = span_ns(first, last) as f64 / 1e9;
    let busy = Busy {
        host,
        bits_per_sec: grown.max().unwrap_or(0) as f64 * 8.0 / seconds,
        line_bits_per_sec,
    };
    (busy.share() > IDLE).then_some(busy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::facts::InterfaceCounters;

    #[test]
    fn more_than_a_twentieth_in_either_direction_is_in_use() {
        let sample = |agent_ns, tx_bytes, rx_bytes| HostSample {
            agent_ns,
            interfaces: vec![InterfaceCounters {
                name: "eth0".into(),
                tx_bytes,
                rx_bytes,
                ..InterfaceCounters::default()
            }],
            ..HostSample::default()
        };
        let first = sample(1_000_000_000, 500, 500);
        let used = |tx: u64, rx: u64| {
            let last = sample(3_000_000_000, 500 + tx, 500 + rx);
            used(HostId(0), "eth0", &first, &last, 1e9).map(|busy| busy.bits_per_sec)
        };
        // A twentieth of 1 Gb/s for 2 s is 12.5 MB.
        assert_eq!(used(12_500_000, 0), None);
        assert_eq!(used(12_500_001, 0), Some(50_000_004.0));
        assert_eq!(used(0, 25_000_000), Some(1e8));
        let other = super::used(HostId(0), "eth1", &first, &first, 1e9);
        assert_eq!(other, None, "an interface that is gone");
    }
}
