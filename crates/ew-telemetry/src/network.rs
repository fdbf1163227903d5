//! Interfaces with their links, drivers and queueing disciplines.
//!
//! Link facts come from ioctls and netlink, which answer for the calling thread's network
//! namespace; `/sys/class/net` shows the namespace it was mounted in.

use crate::file::{FileBuffer, read_net};
use crate::net_dev::device_lines;
use ew_model::facts::InterfaceCounters;
use ew_model::telemetry::{InterfaceLink, InterfaceReading, QdiscCounters};
use ew_sys::ethtool::Ethtool;
use ew_sys::net::interfaces;
use ew_sys::qdisc::QdiscLister;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;

/// Links are asked for again after this many readings: a renegotiated speed is seen within seconds.
const READINGS_PER_LINK: u32 = 5;
/// Parts of the names that drivers give to counters of loss, pauses and errors. Others, thousands
/// on some NICs, count what `/proc/net/dev` counts, per queue and size.
const TELLING: [&str; 12] = [
    "drop",
    "miss",
    "err",
    "discard",
    "pause",
    "no_buf",
    "nobuf",
    "no_dma",
    "out_of_buffer",
    "alloc_fail",
    "timeout",
    "overrun",
];

/// Reads interfaces again and again; remembers what changes seldom.
#[derive(Debug)]
pub(crate) struct NetworkReader {
    ethtool: Option<Ethtool>,
    qdiscs: Option<QdiscLister>,
    tells_links: bool,
    links: BTreeMap<String, InterfaceLink>,
    drivers: BTreeMap<String, DriverNames>,
    readings: u32,
}

/// A driver's names, and the positions of those worth keeping.
#[derive(Debug, Default)]
struct DriverNames {
    all: Vec<String>,
    kept: Vec<usize>,
    /// The driver's counters are no longer those.
    are_stale: Cell<bool>,
}

impl NetworkReader {
    /// For the network namespace of the calling thread.
    pub(crate) fn new() -> Self {
        Self {
            tells_links: true,
            ..Self::of_counters()
        }
    }

    /// The same without [`InterfaceReading::link`]: some drivers ask the device for it, which
    /// disturbs a measurement.
    pub(crate) fn of_counters() -> Self {
        Self {
            ethtool: Ethtool::open().ok(),
            qdiscs: QdiscLister::open().ok(),
            tells_links: false,
            links: BTreeMap::new(),
            drivers: BTreeMap::new(),
            readings: 0,
        }
    }

    /// All interfaces, loopback too.
    pub(crate) fn interfaces(
        &mut self,
        root: &Path,
        buffer: &mut FileBuffer,
    ) -> Vec<InterfaceReading> {
        if self.tells_links && self.readings.is_multiple_of(READINGS_PER_LINK) {
            self.links = self.ethtool.as_ref().map(links).unwrap_or_default();
        }
        self.readings = self.readings.wrapping_add(1);
        let text = read_net(buffer, root, "dev").unwrap_or_default();
        let lines: Vec<InterfaceCounters> = device_lines(text).collect();
        self.learn_drivers(&lines);
        let read = lines.into_iter().map(|line| self.interface(line));
        read.collect()
    }

    /// All queueing disciplines. Empty when the kernel does not report.
    pub(crate) fn qdiscs(&mut self) -> Vec<QdiscCounters> {
        let listed = self.qdiscs.as_mut().map(QdiscLister::list);
        listed.and_then(Result::ok).unwrap_or_default()
    }

    fn interface(&self, counters: InterfaceCounters) -> InterfaceReading {
        let name = &counters.name;
        InterfaceReading {
            link: self.links.get(name).cloned().unwrap_or_default(),
            driver_counters: self.driver_counters(name).unwrap_or_default(),
            counters,
        }
    }

    fn driver_counters(&self, interface: &str) -> Option<Vec<(String, u64)>> {
        let names = self.drivers.get(interface)?;
        if names.kept.is_empty() {
            return None;
        }
        let ethtool = self.ethtool.as_ref()?;
        let Some(values) = ethtool.statistics(interface, &names.all) else {
            // Other counters than before: after `ethtool -L`, for example.
            names.are_stale.set(true);
            return None;
        };
        let kept = names.kept.iter();
        Some(
            kept.map(|index| (names.all[*index].clone(), values[*index]))
                .collect(),
        )
    }

    /// Asks new interfaces for the names of their counters.
    fn learn_drivers(&mut self, lines: &[InterfaceCounters]) {
        let is_there = |name: &String| lines.iter().any(|line| line.name == *name);
        self.drivers.retain(|name, _| is_there(name));
        for name in lines.iter().map(|line| &line.name) {
            let known = self.drivers.get(name);
            if known.is_none_or(|names| names.are_stale.get()) {
                let names = self.ethtool.as_ref().map(|e| e.statistic_names(name));
                let names = driver_names(names.unwrap_or_default());
                self.drivers.insert(name.clone(), names);
            }
        }
    }
}

/// What changes seldom on every interface of the calling thread's network namespace.
pub(crate) fn links_now() -> BTreeMap<String, InterfaceLink> {
    let ethtool = Ethtool::open();
    ethtool.map(|ethtool| links(&ethtool)).unwrap_or_default()
}

fn links(ethtool: &Ethtool) -> BTreeMap<String, InterfaceLink> {
    let described = interfaces()
        .unwrap_or_default()
        .into_iter()
        .map(|interface| {
            let name = interface.facts.name;
            let link = InterfaceLink {
                speed_bits_per_sec: interface.facts.speed_bits_per_sec,
                duplex: interface.facts.duplex,
                mtu_bytes: interface.facts.mtu_bytes,
                driver: interface.facts.driver,
                carrier: interface.carrier,
                loopback: interface.loopback,
                rings: ethtool.rings(&name),
                coalescing: ethtool.coalescing(&name),
                pause: ethtool.pause(&name),
                queues: ethtool.queues(&name),
                offloads_on: ethtool.features_on(&name).unwrap_or_default(),
            };
            (name, link)
        });
    described.collect()
}

fn driver_names(all: Vec<String>) -> DriverNames {
    let reports = |name: &str| {
        TELLING
            .iter()
            .any(|part| name.to_ascii_lowercase().contains(part))
    };
    let kept = all.iter().enumerate().filter(|(_, name)| reports(name));
    DriverNames {
        kept: kept.map(|(index, _)| index).collect(),
        all,
        are_stale: Cell::new(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_loss_and_pauses_are_kept() {
        let names = [
            "rx_packets",
            "rx_missed_errors",
            "tx_pause_ctrl_phy",
            "rx3_bytes",
            "rx_out_of_buffer",
        ];
        let names = driver_names(names.map(str::to_owned).to_vec());
        assert_eq!(names.kept, [1, 2, 4]);
    }

    #[test]
    fn this_host_has_loopback() {
        let mut reader = NetworkReader::new();
        let all = reader.interfaces(Path::new("/"), &mut FileBuffer::default());
        let lo = all.iter().find(|i| i.link.loopback).unwrap();
        assert_eq!(lo.counters.name, "lo");
        assert_eq!(lo.link.speed_bits_per_sec, None);
        assert!(!lo.link.offloads_on.is_empty());
    }
}
