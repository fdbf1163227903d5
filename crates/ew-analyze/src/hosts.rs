//! One host's figures.

use ew_evidence::basis::data_interface;
use ew_evidence::observations::{Observations, times};
use ew_fit::{Network, Side};
use ew_model::HostId;
use ew_model::analysis::{ConntrackRefusals, HostAnalysis, HostState};
use ew_model::facts::{CpuCounters, HostSample};
use ew_model::latency::Histogram;
use ew_model::run::Run;
use ew_model::telemetry::ConntrackCounters;
use std::collections::BTreeMap;

/// Min time over which a CPU's share is taken: shorter spans are mostly the clock tick.
const CPU_SPAN_NS: u64 = 900_000_000;

/// All hosts, in inventory order.
pub(crate) fn hosts(observations: &Observations<'_>, network: &Network) -> Vec<HostAnalysis> {
    let run = observations.run;
    let round_trips = round_trips(observations);
    let retransmits = retransmits(observations);
    let congestion = congestion(observations);
    let analysis = |host: HostId| HostAnalysis {
        host,
        state: state(run, host),
        tx_bits_per_sec: network.side_rate(Side::Tx(host)),
        rx_bits_per_sec: network.side_rate(Side::Rx(host)),
        tx_effect: network.effect(Side::Tx(host)),
        rx_effect: network.effect(Side::Rx(host)),
        interface: data_interface(run, host).cloned(),
        kernel: run.facts.get(&host).map(|facts| facts.kernel.clone()),
        congestion: congestion.get(&host).map(|name| (*name).to_owned()),
        idle_rtt_ns: round_trips.get(&host).and_then(|times| times.quantile(0.5)),
        retransmits: retransmits.get(&host).copied(),
        clock_error_ns: run.clock_error_ns.get(&host).copied(),
        rejected_connections: run.rejected_connections.get(&host).copied().unwrap_or(0),
        busiest_cpu: run
            .samples
            .get(&host)
            .and_then(|samples| busiest_cpu(samples)),
        conntrack: run.samples.get(&host).and_then(|s| conntrack(s)),
        stages: Vec::new(),
        series: Vec::new(),
    };
    observations.inventory().host_ids().map(analysis).collect()
}

/// Over all readings, whatever went on. A failed insertion counts as a dropped packet, too, on most
/// kernels.
fn conntrack(samples: &[HostSample]) -> Option<ConntrackRefusals> {
    let readings = samples.iter().filter_map(|s| s.causes.as_ref()?.conntrack);
    let readings: Vec<ConntrackCounters> = readings.collect();
    let refused = |counters: &ConntrackCounters| counters.insert_failed.max(counters.dropped);
    let packets = refused(readings.last()?).saturating_sub(refused(readings.first()?));
    let fullest = readings.iter().max_by_key(|counters| counters.entries)?;
    (packets > 0).then_some(ConntrackRefusals {
        packets,
        entries: fullest.entries,
        max_entries: fullest.max_entries,
    })
}

fn state(run: &Run, host: HostId) -> HostState {
    if let Some(message) = run.failed.get(&host) {
        return HostState::Failed {
            message: message.clone(),
        };
    }
    match run.lost.get(&host) {
        Some(message) => HostState::Lost {
            message: message.clone(),
        },
        None => HostState::Alive,
    }
}

/// Times of a host's probes, either way.
fn round_trips(observations: &Observations<'_>) -> BTreeMap<HostId, Histogram> {
    let mut by_host: BTreeMap<HostId, Histogram> = BTreeMap::new();
    let stages = observations.idle_round_trips();
    for row in stages.flat_map(|stage| stage.measured()) {
        if let Some(times) = times(row) {
            by_host.entry(row.src).or_default().merge(times);
            by_host.entry(row.dst).or_default().merge(times);
        }
    }
    by_host
}

fn congestion<'a>(observations: &'a Observations<'_>) -> BTreeMap<HostId, &'a str> {
    let mut by_host = BTreeMap::new();
    let stages = observations.stages.iter();
    for row in stages.flat_map(|stage| stage.measured()) {
        let sender = row.sender.as_ref();
        if let Some(name) = sender.and_then(|end| end.congestion.as_deref()) {
            by_host.entry(row.src).or_insert(name);
        }
    }
    by_host
}

fn retransmits(observations: &Observations<'_>) -> BTreeMap<HostId, u64> {
    let mut by_host = BTreeMap::new();
    for row in observations
        .stages
        .iter()
        .flat_map(|stage| stage.measured())
    {
        if let Some(count) = row.retransmits() {
            *by_host.entry(row.src).or_default() += count;
        }
    }
    by_host
}

/// The largest busy share that any CPU had over about a second.
fn busiest_cpu(samples: &[HostSample]) -> Option<f64> {
    let mut busiest: Option<f64> = None;
    let mut first = 0;
    for last in 1..samples.len() {
        while first + 1 < last && span_ns(samples, first + 1, last) >= CPU_SPAN_NS {
            first += 1;
        }
        if span_ns(samples, first, last) < CPU_SPAN_NS {
            continue;
        }
        for cpu in &samples[last].cpus {
            let before = samples[first]
                .cpus
                .iter()
                .find(|before| before.cpu == cpu.cpu);
            if let Some(share) = before.and_then(|before| busy_share(before, cpu)) {
                busiest = Some(busiest.map_or(share, |max: f64| max.max(share)));
            }
        }
    }
    busiest
}

fn span_ns(samples: &[HostSample], first: usize, last: usize) -> u64 {
    samples[last]
        .agent_ns
        .saturating_sub(samples[first].agent_ns)
}

/// Busy ticks over all ticks between two readings. `user` includes guest time.
fn busy_share(before: &CpuCounters, after: &CpuCounters) -> Option<f64> {
    let busy = |c: &CpuCounters| {
        let kernel = [c.irq_ticks, c.softirq_ticks, c.steal_ticks];
        c.user_ticks + c.nice_ticks + c.system_ticks + kernel.into_iter().flatten().sum::<u64>()
    };
    let idle = |c: &CpuCounters| c.idle_ticks + c.iowait_ticks.unwrap_or(0);
    let busy = busy(after).saturating_sub(busy(before));
    let all = busy + idle(after).saturating_sub(idle(before));
    (all > 0).then(|| busy as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(second: u64, busy: u64, idle: u64) -> HostSample {
        HostSample {
            agent_ns: second * 1_000_000_000,
            cpus: vec![CpuCounters {
                system_ticks: busy,
                idle_ticks: idle,
                ..CpuCounters::default()
            }],
            ..HostSample::default()
        }
    }

    #[test]
    fn the_busiest_second_counts() {
        let samples = [
            sample(0, 1000, 50),
            sample(1, 1010, 140),
            sample(2, 1100, 150),
            sample(3, 1100, 250),
        ];
        let share = busiest_cpu(&samples).unwrap();
        assert!((share - 0.9).abs() < 1e-9, "{share}");
        assert_eq!(busiest_cpu(&samples[..1]), None);
    }
}
