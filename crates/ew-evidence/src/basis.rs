//! What rates are compared with: a reference host's line rate, and how much of it TCP payload can
//! be.

use crate::criteria::LEAST_FILL;
use crate::observations::Observations;
use ew_model::analysis::{Basis, KnownFraming, NicRateSource};
use ew_model::ceiling::{Encapsulation, Framing, LinkCounting, Transport};
use ew_model::facts::InterfaceFacts;
use ew_model::run::Run;
use ew_model::{HostId, Workload, WorkloadKind};
use ew_stats::{median, quantile};
use std::collections::BTreeMap;

/// Drivers of devices that have no link of their own, and report any speed.
pub const VIRTUAL: [&str; 5] = ["veth", "tun", "bridge", "macvlan", "ipvlan"];
/// The largest IP packet; loopback's MTU is one byte more.
const GREATEST_MTU_BYTES: u32 = 65_536;

/// The reference and what was learnt on the way to it.
#[derive(Clone, Debug)]
pub struct Reference {
    /// As reports show it.
    pub basis: Basis,
    /// Payload rate of a reference host, bits per second.
    pub goodput_bits_per_sec: Option<f64>,
    /// Whether that was taken from the measured rates themselves.
    pub discovered: bool,
}

impl Reference {
    /// Payload rate of a reference host for a workload: datagrams have other headers than segments,
    /// and may be short. `None` without a reference, and for workloads that have no rate.
    pub fn ceiling_bits_per_sec(&self, workload: &Workload) -> Option<f64> {
        let nic = self.basis.nic_bits_per_sec?;
        let efficiency = match workload.kind {
            WorkloadKind::TcpStream => self.basis.efficiency,
            WorkloadKind::UdpStream => {
                let cost = self.datagrams().message(workload.message_bytes);
                cost.efficiency()
            }
            _ => return None,
        };
        Some(nic * efficiency)
    }

    /// What datagrams look like on the link.
    pub fn datagrams(&self) -> Framing {
        Framing {
            transport: Transport::Udp,
            ..self.basis.framing.framing.clone()
        }
    }
}

/// The interface that carries a host's data address.
pub fn data_interface(run: &Run, host: HostId) -> Option<&InterfaceFacts> {
    let address = run.manifest.inventory.host(host).address?;
    run.facts.get(&host)?.interface_with(address)
}

/// What the data interface's outermost queueing discipline lets pass, bits per second, and its
/// kind.
pub fn shaper(run: &Run, host: HostId) -> Option<(f64, &str)> {
    let interface = data_interface(run, host)?;
    let last = run.samples.get(&host)?.last()?.causes.as_ref()?;
    let mut own = last.qdiscs.iter();
    let root = own.find(|qdisc| qdisc.root && qdisc.interface == interface.name)?;
    Some((root.rate_bytes_per_sec? as f64 * 8.0, &root.kind))
}

/// What a host's physical link reports, bits per second; virtual devices report speeds that nothing
/// has.
pub fn physical_speed(run: &Run, host: HostId) -> Option<f64> {
    let interface = data_interface(run, host)?;
    let driver = interface.driver.as_deref()?;
    let speed = interface.speed_bits_per_sec?;
    (speed > 0.0 && !VIRTUAL.contains(&driver)).then_some(speed)
}

/// What a host's link lets pass, bits per second: as configured, as its shaper does, or its speed.
pub fn line_rate(run: &Run, host: HostId) -> Option<f64> {
    let configured = run.plan.expect.nic_bits_per_sec;
    let shaped = || Some(shaper(run, host)?.0).filter(|rate| *rate > 0.0);
    configured
        .or_else(shaped)
        .or_else(|| physical_speed(run, host))
}

/// The value most hosts share, the greater one of two equally frequent.
pub fn most_common<T: Ord + Clone>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut counts: BTreeMap<T, u32> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    counts
        .into_iter()
        .max_by_key(|(value, count)| (*count, value.clone()))
        .map(|(value, _)| value)
}

/// Finds the reference: the configured rate, else the hosts' link speed when the measured rates
/// make it plausible, or show nothing of hosts, else the median over hosts of what each did at its
/// better times.
pub fn reference(observations: &Observations<'_>) -> Reference {
    let run = observations.run;
    let framing = framing(observations);
    // An MTU without space for payload is nonsense from a damaged file; it must not become a
    // division by zero.
    let efficiency = framing.framing.efficiency().max(0.01);
    let (seen, is_of_hosts) = typical_goodput(observations);
    let (nic, nic_rate_source) = if let Some(limit) = max_rate(run) {
        (Some(limit), NicRateSource::MaxRate)
    } else if let Some(stated) = run.plan.expect.nic_bits_per_sec {
        (Some(stated), NicRateSource::Configured)
    } else if let Some(speed) = plausible_link_speed(run, seen, efficiency) {
        (Some(speed), NicRateSource::LinkSpeed)
    } else if let Some(rate) = common_line_rate(run).filter(|_| !is_of_hosts) {
        (Some(rate), NicRateSource::LinkSpeed)
    } else if let Some(goodput) = seen {
        (Some(goodput / efficiency), NicRateSource::MedianOfHosts)
    } else {
        (None, NicRateSource::Unknown)
    };
    let discovered = matches!(
        nic_rate_source,
        NicRateSource::MedianOfHosts | NicRateSource::Unknown
    );
    Reference {
        goodput_bits_per_sec: nic.map(|nic| nic * efficiency),
        discovered,
        basis: Basis {
            nic_bits_per_sec: nic,
            nic_rate_source,
            efficiency,
            framing,
        },
    }
}

fn common_line_rate(run: &Run) -> Option<f64> {
    let hosts = run.manifest.inventory.host_ids();
    let rates = hosts.filter_map(|host| line_rate(run, host));
    Some(most_common(rates.map(|rate| rate.round() as u64))? as f64)
}

/// What the run was allowed to load a host's link with, median over hosts.
fn max_rate(run: &Run) -> Option<f64> {
    let limit = run.plan.rate_limit.as_ref()?;
    // Hosts without a limit are above all others.
    median(&limit.hosts_bits_per_sec).filter(|rate| rate.is_finite())
}

fn plausible_link_speed(run: &Run, seen: Option<f64>, efficiency: f64) -> Option<f64> {
    let speeds = run
        .manifest
        .inventory
        .host_ids()
        .filter_map(|host| link_speed(run, host))
        .filter(|speed| *speed > 0.0)
        .map(|speed| speed.round() as u64);
    let speed = most_common(speeds)? as f64;
    match seen {
        Some(goodput) => (goodput >= LEAST_FILL * speed * efficiency).then_some(speed),
        None => Some(speed),
    }
}

/// Of the data interface, or of what is below a tunnel or a tag.
fn link_speed(run: &Run, host: HostId) -> Option<f64> {
    let mut way = way_down(run, host)?.into_iter();
    way.find_map(|interface| interface.speed_bits_per_sec)
}

/// What a host does when nothing but hosts limits it: per host the upper quartile of its isolated
/// flows, intra-rack when there are such, then the median over hosts. Shared flows are asked only
/// when there is no isolated one. Next to it, whether hosts are all that may have limited it, and
/// not what leads from rack to rack.
fn typical_goodput(observations: &Observations<'_>) -> (Option<f64>, bool) {
    let inventory = observations.inventory();
    let mut inside: BTreeMap<HostId, Vec<f64>> = BTreeMap::new();
    let mut anywhere: BTreeMap<HostId, Vec<f64>> = BTreeMap::new();
    for round in observations.judged().flat_map(|stage| &stage.rounds) {
        for ((row, rate), isolated) in round.rates().zip(&round.isolated) {
            if !isolated {
                continue;
            }
            for host in [row.src, row.dst] {
                anywhere.entry(host).or_default().push(rate);
                if !inventory.crosses_racks(row.src, row.dst) {
                    inside.entry(host).or_default().push(rate);
                }
            }
        }
    }
    let is_of_hosts = anywhere.is_empty() || !inside.is_empty();
    let isolated = if inside.is_empty() { anywhere } else { inside };
    let best: Vec<f64> = isolated
        .values()
        .filter_map(|rates| quantile(rates, 0.75))
        .collect();
    let typical = median(&best).or_else(|| busiest_host(observations));
    (typical, is_of_hosts)
}

/// The max sum a host sent or received, median over rounds per host, then near the top over
/// hosts: in an incast only the receivers are full.
fn busiest_host(observations: &Observations<'_>) -> Option<f64> {
    let mut sums: BTreeMap<HostId, Vec<f64>> = BTreeMap::new();
    for round in observations.judged().flat_map(|stage| &stage.rounds) {
        let mut sent: BTreeMap<HostId, f64> = BTreeMap::new();
        let mut received: BTreeMap<HostId, f64> = BTreeMap::new();
        for (row, rate) in round.rates() {
            *sent.entry(row.src).or_default() += rate;
            *received.entry(row.dst).or_default() += rate;
        }
        for (host, sum) in sent.into_iter().chain(received) {
            sums.entry(host).or_default().push(sum);
        }
    }
    let per_host: Vec<f64> = sums
        .values()
        .filter_map(|sums| quantile(sums, 0.75))
        .collect();
    quantile(&per_host, 0.9)
}

/// What packets look like on the link, and how that is known.
fn framing(observations: &Observations<'_>) -> KnownFraming {
    let run = observations.run;
    let hosts = || run.manifest.inventory.host_ids();
    let mtu = most_common(hosts().filter_map(|host| data_interface(run, host)?.mtu_bytes));
    let addresses = run.manifest.inventory.hosts.iter();
    let timestamps = seen_timestamps(observations);
    let around =
        most_common(hosts().filter_map(|host| Some(Encapsulation::of(way_down(run, host)?))));
    let around = around.unwrap_or_default();
    let framing = Framing {
        mtu_bytes: mtu.unwrap_or(1500).min(GREATEST_MTU_BYTES),
        ipv6: addresses
            .filter_map(|host| host.address)
            .any(|address| address.is_ipv6()),
        transport: Transport::Tcp {
            timestamps: timestamps.unwrap_or(true),
        },
        tunnels: around.tunnels,
        vlan_tags: around.vlan_tags,
        counting: counting(
            hosts().filter_map(|host| way_down(run, host)?.pop()?.driver.as_deref()),
        ),
    };
    KnownFraming {
        framing,
        is_mtu_known: mtu.is_some(),
        are_timestamps_known: timestamps.is_some(),
    }
}

/// The data interface and those below it.
fn way_down(run: &Run, host: HostId) -> Option<Vec<&InterfaceFacts>> {
    let interface = data_interface(run, host)?;
    Some(run.facts.get(&host)?.way_down(interface))
}

fn seen_timestamps(observations: &Observations<'_>) -> Option<bool> {
    let seen = observations
        .judged()
        .flat_map(|stage| stage.measured())
        .filter_map(|row| row.sender.as_ref())
        .flat_map(|end| &end.streams)
        .filter_map(|stream| stream.tcp_info)
        .map(|info| u64::from(info.timestamps));
    most_common(seen).map(|common| common == 1)
}

/// Virtual devices shape frames as the kernel sees them, without preamble, checksum and gap.
fn counting<'a>(mut drivers: impl Iterator<Item = &'a str>) -> LinkCounting {
    if drivers.any(|driver| VIRTUAL.contains(&driver)) {
        LinkCounting::EthernetHeader
    } else {
        LinkCounting::OnTheWire
    }
}
