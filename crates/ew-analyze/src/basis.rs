//! What rates are held against: a healthy host's line rate, and how much of it TCP payload can be.

use crate::observations::Observations;
use crate::stats::{median, quantile};
use ew_model::HostId;
use ew_model::analysis::Basis;
use ew_model::facts::InterfaceFacts;
use ew_model::run::Run;
use ew_model::units::format_bits_per_sec;
use ew_plan::expectation::{LinkCounting, protocol_efficiency};
use std::collections::BTreeMap;

/// A link speed is believed when flows inside racks reach this share of it.
const PLAUSIBLE_SHARE: f64 = 0.7;

/// The reference and what was learnt on the way to it.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub(crate) basis: Basis,
    /// Payload rate of a healthy host, bits per second.
    pub(crate) goodput_bits_per_sec: Option<f64>,
    /// Whether that was taken from the measured rates themselves.
    pub(crate) discovered: bool,
}

/// The interface that carries a host's data address.
pub(crate) fn data_interface(run: &Run, host: HostId) -> Option<&InterfaceFacts> {
    let address = run.manifest.inventory.host(host).address?;
    run.facts.get(&host)?.interface_with(address)
}

/// The value most hosts share, the greater one of two equally frequent.
pub(crate) fn most_common(values: impl Iterator<Item = u64>) -> Option<u64> {
    let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    counts
        .into_iter()
        .max_by_key(|(value, count)| (*count, *value))
        .map(|(value, _)| value)
}

/// Finds the reference: the stated rate, else the hosts' link speed when the measured rates make it plausible,
/// else the median over hosts of what each did at its better times.
pub(crate) fn reference(observations: &Observations<'_>) -> Reference {
    let run = observations.run;
    let (efficiency, efficiency_source) = efficiency(observations);
    let seen = typical_goodput(observations);
    let (nic, source, discovered) = if let Some(stated) = run.plan.expect.nic_bits_per_sec {
        (Some(stated), "stated".to_owned(), false)
    } else if let Some(speed) = plausible_link_speed(run, seen, efficiency) {
        (Some(speed), "link speed".to_owned(), false)
    } else {
        let source = match seen {
            Some(_) => "discovered: median of hosts".to_owned(),
            None => "nothing was measured or stated".to_owned(),
        };
        (seen.map(|goodput| goodput / efficiency), source, true)
    };
    Reference {
        goodput_bits_per_sec: nic.map(|nic| nic * efficiency),
        discovered,
        basis: Basis {
            nic_bits_per_sec: nic,
            nic_source: source,
            efficiency,
            efficiency_source,
        },
    }
}

fn plausible_link_speed(run: &Run, seen: Option<f64>, efficiency: f64) -> Option<f64> {
    let speeds = run
        .manifest
        .inventory
        .host_ids()
        .filter_map(|host| data_interface(run, host)?.speed_bits_per_sec)
        .filter(|speed| *speed > 0.0)
        .map(|speed| speed.round() as u64);
    let speed = most_common(speeds)? as f64;
    match seen {
        Some(goodput) => (goodput >= PLAUSIBLE_SHARE * speed * efficiency).then_some(speed),
        None => Some(speed),
    }
}

/// What a host does when nothing but hosts limits it: per host the upper quartile of its lone flows, inside racks
/// when there are such, then the median over hosts. Shared flows are asked only when there is no lone one.
fn typical_goodput(observations: &Observations<'_>) -> Option<f64> {
    let inventory = observations.inventory();
    let mut inside: BTreeMap<HostId, Vec<f64>> = BTreeMap::new();
    let mut anywhere: BTreeMap<HostId, Vec<f64>> = BTreeMap::new();
    for round in observations.judged().flat_map(|stage| &stage.rounds) {
        for ((row, rate), solo) in round.rates().zip(&round.solo) {
            if !solo {
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
    let lone = if inside.is_empty() { anywhere } else { inside };
    let best: Vec<f64> = lone
        .values()
        .filter_map(|rates| quantile(rates, 0.75))
        .collect();
    median(&best).or_else(|| busiest_host(observations))
}

/// The greatest sum a host sent or received, median over rounds per host, then near the top over hosts:
/// in an incast only the receivers are full.
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

/// Payload over wire bytes, and how it came about in words.
fn efficiency(observations: &Observations<'_>) -> (f64, String) {
    let run = observations.run;
    let hosts = || run.manifest.inventory.host_ids();
    let mtu =
        most_common(hosts().filter_map(|host| data_interface(run, host)?.mtu_bytes.map(u64::from)));
    let ipv6 = run
        .manifest
        .inventory
        .hosts
        .iter()
        .filter_map(|host| host.address)
        .any(|address| address.is_ipv6());
    let timestamps = seen_timestamps(observations);
    let drivers = hosts().filter_map(|host| data_interface(run, host)?.driver.as_deref());
    let counting = counting(drivers);
    let mtu_bytes = mtu.map_or(1500, |mtu| mtu.min(u64::from(u32::MAX)) as u32);
    // An MTU without room for payload is nonsense from a damaged file; it must not become a division by zero.
    let efficiency =
        protocol_efficiency(mtu_bytes, ipv6, timestamps.unwrap_or(true), counting).max(0.01);
    let assumed = |known: bool| if known { "" } else { " (assumed)" };
    let words = format!(
        "MTU {mtu_bytes}{}, IPv{}, {}timestamps{}, {}: {:.4}",
        assumed(mtu.is_some()),
        if ipv6 { 6 } else { 4 },
        if timestamps.unwrap_or(true) {
            ""
        } else {
            "no "
        },
        assumed(timestamps.is_some()),
        counting_words(counting),
        efficiency,
    );
    (efficiency, words)
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
    const VIRTUAL: [&str; 5] = ["veth", "tun", "bridge", "macvlan", "ipvlan"];
    if drivers.any(|driver| VIRTUAL.contains(&driver)) {
        LinkCounting::EthernetHeader
    } else {
        LinkCounting::OnTheWire
    }
}

fn counting_words(counting: LinkCounting) -> &'static str {
    match counting {
        LinkCounting::EthernetHeader => "frames as the kernel counts them",
        LinkCounting::OnTheWire => "Ethernet with preamble and gap",
    }
}

/// "200 Mb/s (discovered: median of hosts)".
pub(crate) fn basis_words(basis: &Basis) -> Option<String> {
    let nic = basis.nic_bits_per_sec?;
    Some(format!(
        "{} ({})",
        format_bits_per_sec(nic),
        basis.nic_source
    ))
}
