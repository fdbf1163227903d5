//! A host's counters as figures: per stage, and over time.

use super::cover::{IDLE, KINDS, in_all_cpus, in_cpu};
use super::{Cover, Quota, Telemetry};
use crate::basis::{Reference, data_interface};
use crate::observations::{Observations, StageView};
use ew_model::HostId;
use ew_model::analysis::{CpuShare, DiskShare, HostAnalysis, HostPoint, HostStageAnalysis};
use ew_model::facts::{HostSample, InterfaceCounters};
use ew_model::finding::details::DropLocation;
use ew_model::plan::RoundIndex;
use ew_model::record::{EndRecord, FlowRecord};
use ew_model::telemetry::DiskCounters;
use ew_stats::median;
use std::collections::{BTreeMap, BTreeSet};

/// Points a host's line may have, so that a report of a long run stays small.
const MAX_POINTS: usize = 600;

/// Puts what the counters report into the hosts' analyses.
pub fn fill(
    hosts: &mut [HostAnalysis],
    observations: &Observations<'_>,
    telemetry: &Telemetry<'_>,
    reference: &Reference,
) {
    let of_stages = observations.stages.iter();
    let rows: Vec<_> = of_stages
        .map(|view| rows_by_host(view, observations.inventory().hosts.len()))
        .collect();
    for analysis in hosts {
        let link = link_bits_per_sec(observations, analysis.host, reference);
        let host = Host {
            host: analysis.host,
            interface: data_interface(observations.run, analysis.host).map(|i| i.name.as_str()),
            link_bits_per_sec: link,
        };
        let stages = observations.stages.iter().zip(&rows).enumerate();
        analysis.stages = stages
            .filter_map(|(index, (view, rows))| {
                host.in_stage((index, view), rows.get(host.host.index())?, telemetry)
            })
            .collect();
        analysis.series = host.series(telemetry);
    }
}

/// The measured rows of every host, at either end: no host has to search the rows of all.
fn rows_by_host<'a>(view: &StageView<'a>, hosts: usize) -> Vec<Vec<&'a FlowRecord>> {
    let mut rows = vec![Vec::new(); hosts];
    for row in view.measured() {
        // A damaged run may name hosts that it does not have.
        for host in BTreeSet::from([row.src, row.dst]) {
            if let Some(own) = rows.get_mut(host.index()) {
                own.push(row);
            }
        }
    }
    rows
}

/// What reached a host and was dropped there, by layer.
pub fn receive_drop_counts(
    sample: &HostSample,
    interface: Option<&str>,
) -> Vec<(DropLocation, u64)> {
    let mut counts = Vec::new();
    if let Some(counters) = interface_of(sample, interface) {
        counts.push((DropLocation::Interface, counters.rx_drops));
        let overruns = counters.rx_fifo_errors.unwrap_or(0);
        counts.push((DropLocation::Ring, overruns));
    }
    if let Some(causes) = &sample.causes {
        let backlog = causes.over_softnet(|counters| counters.dropped);
        counts.push((DropLocation::Backlog, backlog.unwrap_or(0)));
        let protocols = &causes.protocols;
        let tcp = [
            protocols.tcp_receive_queue_drops,
            protocols.tcp_backlog_drops,
        ];
        counts.push((DropLocation::TcpSockets, tcp.into_iter().flatten().sum()));
        counts.push((
            DropLocation::UdpSockets,
            protocols.udp_receive_buffer_errors.unwrap_or(0),
        ));
    }
    counts
}

/// The data interface's own speed when link speeds are what rates are compared with, else what a
/// reference host does.
fn link_bits_per_sec(
    observations: &Observations<'_>,
    host: HostId,
    reference: &Reference,
) -> Option<f64> {
    let nic = reference.basis.nic_bits_per_sec;
    let own = data_interface(observations.run, host)?.speed_bits_per_sec;
    match own.filter(|speed| *speed > 0.0 && !reference.discovered) {
        Some(own) => Some(nic.map_or(own, |nic| nic.min(own))),
        None => nic,
    }
}

/// A host and where to look.
struct Host<'a> {
    host: HostId,
    interface: Option<&'a str>,
    link_bits_per_sec: Option<f64>,
}

impl Host<'_> {
    /// `None` for a stage that it took no part in.
    fn in_stage(
        &self,
        (index, view): (usize, &StageView<'_>),
        rows: &[&FlowRecord],
        telemetry: &Telemetry<'_>,
    ) -> Option<HostStageAnalysis> {
        let retransmits: Vec<u64> = rows
            .iter()
            .filter(|row| row.src == self.host)
            .filter_map(|row| row.retransmits())
            .collect();
        let sent = rows.iter().filter(|row| row.src == self.host);
        let received = rows.iter().filter(|row| row.dst == self.host);
        let sent = sums_by_round(sent.map(|row| (row.round, row.sender.as_ref())));
        let received = sums_by_round(received.map(|row| (row.round, row.receiver.as_ref())));
        let flows = HostStageAnalysis {
            stage: index as u32,
            link_bits_per_sec: self.link_bits_per_sec,
            sent_bits_per_sec: median(&sent),
            received_bits_per_sec: median(&received),
            max_sent_bits_per_sec: sent.into_iter().max_by(f64::total_cmp),
            max_received_bits_per_sec: received.into_iter().max_by(f64::total_cmp),
            retransmits: (!retransmits.is_empty()).then(|| retransmits.iter().sum()),
            throttled_share: Quota::of(telemetry, self.host, index, view).held_back_share(),
            ..HostStageAnalysis::default()
        };
        let cover = telemetry.cover(self.host, |stage| stage == index);
        (!rows.is_empty()).then(|| match cover {
            Some(cover) => self.with_counters(&flows, &cover),
            None => flows,
        })
    }

    fn bits_per_sec(&self, cover: &Cover<'_>, bytes: fn(&InterfaceCounters) -> u64) -> Option<f64> {
        let per_second = cover.per_second(|s| interface_of(s, self.interface).map(bytes));
        per_second.map(|bytes| 8.0 * bytes)
    }

    fn with_counters(&self, flows: &HostStageAnalysis, cover: &Cover<'_>) -> HostStageAnalysis {
        let established = |s: &HostSample| s.causes.as_ref()?.protocols.tcp_established;
        let drops = cover.grown(|s| {
            let counts = receive_drop_counts(s, self.interface);
            (!counts.is_empty()).then(|| counts.iter().map(|(_, count)| count).sum())
        });
        HostStageAnalysis {
            rounds: cover.rounds,
            busiest_cpu: busiest_cpu(cover),
            busy_share: busy_share(cover),
            tx_bits_per_sec: self.bits_per_sec(cover, |i| i.tx_bytes),
            rx_bits_per_sec: self.bits_per_sec(cover, |i| i.rx_bytes),
            disk: busiest_disk(cover),
            tcp_established: cover.readings().filter_map(established).max(),
            receive_drops: drops.map(|count| count.round() as u64),
            ..*flows
        }
    }

    /// One point per span between readings; spans are joined where there are too many.
    fn series(&self, telemetry: &Telemetry<'_>) -> Vec<HostPoint> {
        let samples = telemetry.samples(self.host);
        let every = samples.len().div_ceil(MAX_POINTS).max(1);
        let last = samples.len().saturating_sub(1);
        let spans = (0..last).step_by(every);
        let spans = spans.map(|from| &samples[from..=last.min(from + every)]);
        let point = |readings: &[HostSample]| {
            Some(HostPoint {
                t_ns: telemetry.axis_ns(self.host, readings.last()?.agent_ns),
                ..self.point(readings)?
            })
        };
        spans.filter_map(point).collect()
    }

    /// Over several readings rates are means, and shares the largest between two of them: no full
    /// CPU or disk is hidden.
    fn point(&self, readings: &[HostSample]) -> Option<HostPoint> {
        let cover = Cover::of_span(readings.first()?, readings.last()?)?;
        let pairs = readings.windows(2);
        let parts: Vec<Cover<'_>> = pairs
            .filter_map(|pair| Cover::of_span(&pair[0], &pair[1]))
            .collect();
        let cpus: Vec<CpuShare> = parts.iter().filter_map(busiest_cpu).collect();
        let most = |of: fn(&CpuShare) -> f64| cpus.iter().map(of).reduce(f64::max);
        let disks = parts.iter().filter_map(busiest_disk);
        Some(HostPoint {
            t_ns: 0,
            busiest_cpu: most(|cpu| cpu.busy_share),
            softirq_share: most(|cpu| cpu.softirq_share),
            steal_share: most(|cpu| cpu.steal_share),
            tx_bits_per_sec: self.bits_per_sec(&cover, |i| i.tx_bytes),
            rx_bits_per_sec: self.bits_per_sec(&cover, |i| i.rx_bytes),
            disk_busy_share: disks.map(|disk| disk.busy_share).reduce(f64::max),
            retransmits_per_sec: cover
                .per_second(|s| s.causes.as_ref()?.protocols.tcp_retransmitted_segments),
        })
    }
}

/// The counters of the interface of this name.
pub fn interface_of<'s>(
    sample: &'s HostSample,
    name: Option<&str>,
) -> Option<&'s InterfaceCounters> {
    sample
        .interfaces
        .iter()
        .find(|i| Some(i.name.as_str()) == name)
}

/// Payload of a host's flows in one direction, bits per second: their sum in each round.
fn sums_by_round<'r>(ends: impl Iterator<Item = (RoundIndex, Option<&'r EndRecord>)>) -> Vec<f64> {
    let mut rounds: BTreeMap<RoundIndex, f64> = BTreeMap::new();
    for (round, end) in ends {
        if let Some(rate) = end.and_then(EndRecord::bits_per_sec) {
            *rounds.entry(round).or_default() += rate;
        }
    }
    rounds.into_values().collect()
}

/// The CPU with the max busy share.
fn busiest_cpu(cover: &Cover<'_>) -> Option<CpuShare> {
    let mut cpus: BTreeMap<u32, [f64; KINDS]> = BTreeMap::new();
    for ((cpu, kind), ticks) in cover.grown_by_key(None, in_cpu) {
        cpus.entry(cpu).or_default()[kind] = ticks;
    }
    let share = |(cpu, ticks): (u32, [f64; KINDS])| {
        let all = cover.cpu_ticks(ticks.iter().sum());
        let [user, system, softirq, steal, _] = ticks.map(|kind| kind / all);
        (all > 0.0).then_some(CpuShare {
            cpu,
            busy_share: user + system + softirq + steal,
            user_share: user,
            system_share: system,
            softirq_share: softirq,
            steal_share: steal,
            frequency_hz: frequency_hz(cover, cpu),
        })
    };
    cpus.into_iter()
        .filter_map(share)
        .max_by(|a, b| a.busy_share.total_cmp(&b.busy_share))
}

fn frequency_hz(cover: &Cover<'_>, cpu: u32) -> Option<f64> {
    let reported = cover.readings().filter_map(|sample| {
        let mut reported = sample.causes.as_ref()?.frequencies_hz.iter();
        reported
            .find(|(of, _)| *of == cpu)
            .map(|(_, hz)| *hz as f64)
    });
    median(&reported.collect::<Vec<_>>())
}

/// Of all CPUs.
pub fn busy_share(cover: &Cover<'_>) -> Option<f64> {
    let (mut busy, mut all) = (0.0, 0.0);
    for ((_, kind), ticks) in cover.grown_by_key(None, in_all_cpus) {
        all += ticks;
        busy += if kind == IDLE { 0.0 } else { ticks };
    }
    (all > 0.0).then(|| busy / all)
}

/// The disk that was busy for the largest part of the time.
fn busiest_disk(cover: &Cover<'_>) -> Option<DiskShare> {
    let grown = |counter: fn(&DiskCounters) -> u64| {
        cover.grown_by_key(None, move |s| {
            let disks = s.causes.iter().flat_map(|causes| &causes.disks);
            disks
                .map(|disk| (disk.name.as_str(), counter(disk)))
                .collect()
        })
    };
    let busy_ms = grown(|d| d.busy_ms);
    let (name, busy_ms) = busy_ms.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let of = |counter| grown(counter).get(name).copied().unwrap_or(0.0);
    let seconds = cover.ns() / 1e9;
    let requests = of(|d| d.reads) + of(|d| d.writes);
    let waited_ms = of(|d| d.read_ms) + of(|d| d.write_ms);
    Some(DiskShare {
        name: name.to_owned(),
        busy_share: (busy_ms / 1000.0 / seconds).min(1.0),
        read_bytes_per_sec: of(|d| d.read_bytes) / seconds,
        written_bytes_per_sec: of(|d| d.written_bytes) / seconds,
        await_ns: (requests >= 1.0).then(|| (waited_ms * 1e6 / requests) as u64),
    })
}

#[cfg(test)]
mod tests {
    use super::super::Window;
    use super::*;
    use ew_model::facts::{AllCpus, CpuCounters};

    const S: u64 = 1_000_000_000;

    fn ticks(cpu: u32, system_ticks: u64, idle_ticks: u64) -> CpuCounters {
        CpuCounters {
            cpu,
            system_ticks,
            idle_ticks,
            ..CpuCounters::default()
        }
    }

    /// Of a host with 100 CPUs, of which only some are listed.
    fn sample(second: u64, all_system_ticks: u64, cpus: &[CpuCounters]) -> HostSample {
        let all_cpus = AllCpus {
            count: 100,
            times: ticks(0, all_system_ticks, second * 10_000 - all_system_ticks),
        };
        HostSample {
            agent_ns: second * S,
            cpus: cpus.to_vec(),
            all_cpus: Some(Box::new(all_cpus)),
            ..HostSample::default()
        }
    }

    #[test]
    fn of_many_cpus_the_sum_counts_and_one_that_is_not_listed_was_idle() {
        let mut samples = vec![
            sample(1, 0, &[ticks(3, 0, 50), ticks(9, 0, 50)]),
            sample(2, 500, &[ticks(3, 90, 60), ticks(9, 20, 130)]),
            sample(3, 1000, &[ticks(9, 60, 190)]),
        ];
        let window = Window {
            stage: 0,
            loaded_ns: S,
            start_ns: S,
            end_ns: 3 * S,
        };
        let cover = Cover::new(&samples, &[&window]).unwrap();
        let busiest = busiest_cpu(&cover).unwrap();
        assert_eq!((busiest.cpu, busiest.busy_share), (3, 0.45));
        assert_eq!(busy_share(&cover), Some(0.05));
        // A CPU went offline: its ticks are in one of the sums.
        samples[2].all_cpus.as_mut().unwrap().count = 99;
        let cover = Cover::new(&samples, &[&window]).unwrap();
        assert_eq!(busy_share(&cover), Some(0.05));
        let cover = Cover::new(&samples[1..], &[&window]).unwrap();
        assert_eq!(busy_share(&cover), None);
    }

    #[test]
    fn a_point_over_several_readings_hides_no_full_cpu() {
        let host = Host {
            host: HostId(0),
            interface: None,
            link_bits_per_sec: None,
        };
        let readings = [
            sample(1, 0, &[ticks(3, 0, 0)]),
            sample(2, 100, &[ticks(3, 100, 0)]),
            sample(3, 100, &[ticks(3, 100, 100)]),
        ];
        assert_eq!(host.point(&readings).unwrap().busiest_cpu, Some(1.0));
        assert_eq!(host.point(&readings[1..]).unwrap().busiest_cpu, Some(0.0));
        assert_eq!(host.point(&readings[..1]), None);
    }
}
