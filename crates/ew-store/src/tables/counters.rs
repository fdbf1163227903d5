//! `counters.parquet` and `traffic.parquet`: what samples contain besides CPU times and interfaces.
//!
//! Long tables, because the sources have little in common; and only what changed, because most
//! counters do not move: 100 hosts make a few MB in ten minutes so, not hundreds.

use super::numbers::each_number;
use super::reading::{OfReading, Reading, agent_ns, clock_offset_ns, host};
use crate::table::{Column, int};
use ew_model::HostId;
use ew_model::telemetry::{CauseCounters, ProcessTraffic, ServicePort};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// One counter that changed.
pub(super) struct CounterRow {
    reading: Reading,
    counter: Counter,
    value: i64,
}

/// Which counter of a host.
struct Counter {
    source: &'static str,
    /// Empty for the whole host.
    name: Arc<str>,
    field: Arc<str>,
}

/// What one process moved, in all, with one peer or over one port, when it changed.
pub(super) struct TrafficRow {
    reading: Reading,
    mover: Mover,
    command: String,
    is_ours: bool,
    figures: Figures,
    udp_sockets: Option<u32>,
}

/// Only a whole process has UDP sockets, a peer and a port have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Figures {
    sent_bytes: u64,
    received_bytes: u64,
    udp_drops: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Mover {
    pid: Option<u32>,
    peer: Option<String>,
    service: Option<ServicePort>,
}

impl OfReading for CounterRow {
    fn reading(&self) -> &Reading {
        &self.reading
    }
}

impl OfReading for TrafficRow {
    fn reading(&self) -> &Reading {
        &self.reading
    }
}

/// A host's, by source, name and field. A lookup copies no name: a large run has
/// a hundred million of them.
type Values = HashMap<&'static str, HashMap<Arc<str>, HashMap<Arc<str>, i64>>>;

/// The latest values of every host.
#[derive(Debug, Default)]
pub(super) struct Latest {
    counters: BTreeMap<HostId, Values>,
    traffic: BTreeMap<HostId, BTreeMap<Mover, Figures>>,
}

impl Latest {
    /// The counters that are not as they were in the host's sample before.
    pub(super) fn changed_counters(
        &mut self,
        host: HostId,
        reading: &Reading,
        causes: &CauseCounters,
    ) -> Vec<CounterRow> {
        let mut changes = Changes {
            latest: self.counters.entry(host).or_default(),
            reading,
            rows: Vec::new(),
        };
        changes.take_all(causes);
        changes.rows
    }

    /// The processes, peers and ports with which more was moved or dropped than at the host's
    /// sample before.
    pub(super) fn changed_traffic(
        &mut self,
        host: HostId,
        reading: &Reading,
        causes: &CauseCounters,
    ) -> Vec<TrafficRow> {
        let Some(agent_ns) = causes.traffic_ns else {
            return Vec::new();
        };
        let latest = self.traffic.entry(host).or_default();
        let mut rows = Vec::new();
        for process in &causes.traffic {
            for (mover, figures) in movers(process) {
                if latest.insert(mover.clone(), figures) == Some(figures) {
                    continue;
                }
                let is_whole = figures.udp_drops.is_some();
                rows.push(TrafficRow {
                    reading: Reading {
                        agent_ns,
                        ..reading.clone()
                    },
                    udp_sockets: is_whole.then_some(process.udp_sockets),
                    mover,
                    command: process.command.clone(),
                    is_ours: process.is_ours,
                    figures,
                });
            }
        }
        rows
    }
}

fn movers(process: &ProcessTraffic) -> impl Iterator<Item = (Mover, Figures)> {
    let mover = |peer, service| Mover {
        pid: process.pid,
        peer,
        service,
    };
    let figures = |sent_bytes, received_bytes| Figures {
        sent_bytes,
        received_bytes,
        udp_drops: None,
    };
    let whole = Figures {
        udp_drops: Some(process.udp_drops),
        ..figures(process.sent_bytes, process.received_bytes)
    };
    let peers = process.peers.iter().map(move |peer| {
        let address = peer.address.to_string();
        let moved = figures(peer.sent_bytes, peer.received_bytes);
        (mover(Some(address), None), moved)
    });
    let ports = process.ports.iter().map(move |port| {
        let moved = figures(port.sent_bytes, port.received_bytes);
        (mover(None, Some(port.service)), moved)
    });
    let whole = std::iter::once((mover(None, None), whole));
    whole.chain(peers).chain(ports)
}

/// What changed with a reading.
struct Changes<'a> {
    latest: &'a mut Values,
    reading: &'a Reading,
    rows: Vec<CounterRow>,
}

impl Changes<'_> {
    /// Every number, by the names of `events.jsonl`.
    fn take_all(&mut self, causes: &CauseCounters) {
        for (cpu, softnet) in &causes.softnet {
            self.take("softnet", &cpu.to_string(), softnet);
        }
        if let Some(all) = &causes.all_softnet {
            self.take("softnet", "all", all);
        }
        for qdisc in &causes.qdiscs {
            let number = qdisc.handle >> 16;
            let name = format!("{} {} {number:x}:", qdisc.interface, qdisc.kind);
            self.take("qdisc", &name, qdisc);
        }
        for (interface, field, count) in &causes.driver_counters {
            self.take_one("driver", interface, field, int(*count));
        }
        for disk in &causes.disks {
            self.take("disk", &disk.name, disk);
        }
        for interrupt in &causes.interrupts {
            let name = format!("{} {}", interrupt.interrupt, interrupt.name);
            for (cpu, count) in &interrupt.per_cpu {
                self.take_one("interrupt", &name, &format!("cpu{cpu}"), int(*count));
            }
        }
        for (cpu, hz) in &causes.frequencies_hz {
            self.take_one("cpu", &cpu.to_string(), "frequency_hz", int(*hz));
        }
        self.take("protocol", "", &causes.protocols);
        self.take("memory", "", &causes.memory);
        self.take("pressure", "", &causes.pressure);
        self.take("cgroup", "", &causes.cgroup);
        self.take("conntrack", "", &causes.conntrack);
    }

    /// The numbers among the fields of a struct.
    fn take(&mut self, source: &'static str, name: &str, of: &impl Serialize) {
        each_number(of, &mut |field, value| {
            self.take_one(source, name, &field, value);
        });
    }

    fn take_one(&mut self, source: &'static str, name: &str, field: &str, value: i64) {
        let of_source = self.latest.entry(source).or_default();
        let latest = of_source.get(name).and_then(|fields| fields.get(field));
        if latest == Some(&value) {
            return;
        }
        let name = shared(of_source, name);
        let fields = of_source.entry(Arc::clone(&name)).or_default();
        let field = shared(fields, field);
        fields.insert(Arc::clone(&field), value);
        self.rows.push(CounterRow {
            reading: self.reading.clone(),
            counter: Counter {
                source,
                name,
                field,
            },
            value,
        });
    }
}

/// The key, as the map has it where it does.
fn shared<V>(map: &HashMap<Arc<str>, V>, key: &str) -> Arc<str> {
    map.get_key_value(key)
        .map_or_else(|| key.into(), |(known, _)| Arc::clone(known))
}

pub(super) const COUNTERS: &[Column<CounterRow>] = &[
    host(),
    Column::text(
        "source",
        "softnet, qdisc, driver, protocol, memory, disk, pressure, cgroup, conntrack, interrupt or cpu",
        |r| r.counter.source.to_owned(),
    ),
    Column::maybe_text(
        "name",
        "which CPU, interface, disk or interrupt; null for the whole host",
        |r| (!r.counter.name.is_empty()).then(|| r.counter.name.to_string()),
    ),
    Column::text("counter", "which counter", |r| r.counter.field.to_string()),
    agent_ns(),
    clock_offset_ns(),
    Column::int("value", "its value from this reading on", |r| r.value),
];

pub(super) const TRAFFIC: &[Column<TrafficRow>] = &[
    host(),
    agent_ns(),
    clock_offset_ns(),
    Column::maybe_int(
        "pid",
        "the process; null for sockets whose owner cannot be seen",
        |r| r.mover.pid.map(i64::from),
    ),
    Column::text("command", "its name; empty when unknown", |r| {
        r.command.clone()
    }),
    Column::int(
        "is_ours",
        "1 for the agent and what it started, else 0",
        |r| i64::from(r.is_ours),
    ),
    Column::maybe_text(
        "peer",
        "the remote host; null for all of them together",
        |r| r.mover.peer.clone(),
    ),
    Column::maybe_int(
        "port",
        "the service's port; null for all of them together",
        |r| r.mover.service.map(|service| i64::from(service.port)),
    ),
    Column::maybe_int(
        "served_here",
        "1 when this host listens on `port`, 0 when the other end does; null without a port",
        |r| {
            r.mover
                .service
                .map(|service| i64::from(service.served_here))
        },
    ),
    Column::int(
        "sent_bytes",
        "TCP payload sent since the agent's first reading",
        |r| int(r.figures.sent_bytes),
    ),
    Column::int(
        "received_bytes",
        "TCP payload received since the agent's first reading",
        |r| int(r.figures.received_bytes),
    ),
    Column::maybe_int(
        "udp_sockets",
        "UDP sockets it had then; null with a peer or port",
        |r| r.udp_sockets.map(i64::from),
    ),
    Column::maybe_int(
        "udp_drops",
        "datagrams its UDP sockets dropped since the agent's first reading; null with a peer or port",
        |r| r.figures.udp_drops.map(int),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::telemetry::{
        InterruptCounters, PeerTraffic, PortTraffic, Pressure, QdiscCounters, SoftnetCounters,
        StallCounters,
    };

    fn reading() -> Reading {
        Reading {
            host: "h1".into(),
            agent_ns: 5,
            clock_offset_ns: None,
        }
    }

    fn causes() -> CauseCounters {
        let stalls = StallCounters {
            some_us: 11,
            full_us: None,
        };
        CauseCounters {
            softnet: vec![(2, SoftnetCounters::default())],
            qdiscs: vec![QdiscCounters {
                interface: "eth0".into(),
                kind: "tbf".into(),
                handle: 0x8001_0000,
                drops: 3,
                ..QdiscCounters::default()
            }],
            driver_counters: vec![("eth0".into(), "rx_missed".into(), 7)],
            pressure: Pressure {
                cpu: Some(stalls),
                ..Pressure::default()
            },
            interrupts: vec![InterruptCounters {
                interrupt: 38,
                name: "eth0-rx-0".into(),
                per_cpu: vec![(1, 9)],
            }],
            frequencies_hz: vec![(2, 2_400_000_000)],
            ..CauseCounters::default()
        }
    }

    fn lines(rows: &[CounterRow]) -> Vec<String> {
        let line = |r: &CounterRow| {
            let Counter {
                source,
                name,
                field,
            } = &r.counter;
            let name = if name.is_empty() { "-" } else { name };
            format!("{source} {name} {field} {}", r.value)
        };
        rows.iter().map(line).collect()
    }

    #[test]
    fn every_number_is_there_once_and_again_when_it_changes() {
        let (mut latest, mut causes) = (Latest::default(), causes());
        let first = lines(&latest.changed_counters(HostId(0), &reading(), &causes));
        for wanted in [
            "softnet 2 squeezed 0",
            "qdisc eth0 tbf 8001: drops 3",
            "driver eth0 rx_missed 7",
            "pressure - cpu.some_us 11",
            "interrupt 38 eth0-rx-0 cpu1 9",
            "cpu 2 frequency_hz 2400000000",
        ] {
            assert!(
                first.iter().any(|line| line == wanted),
                "{wanted}: {first:#?}"
            );
        }
        assert!(
            !first.iter().any(|line| line.contains("tcp_")),
            "what was not read is not there: {first:#?}"
        );
        causes.qdiscs[0].drops = 4;
        let second = lines(&latest.changed_counters(HostId(0), &reading(), &causes));
        assert_eq!(second, ["qdisc eth0 tbf 8001: drops 4"]);
        let other = latest.changed_counters(HostId(1), &reading(), &causes);
        assert_eq!(other.len(), first.len(), "hosts are apart");
    }

    #[test]
    fn traffic_is_there_when_it_moves() {
        let mut latest = Latest::default();
        let peer = |sent_bytes| PeerTraffic {
            address: [192, 0, 2, 7].into(),
            sent_bytes,
            received_bytes: 0,
        };
        let process = |sent_bytes, peers| ProcessTraffic {
            pid: Some(9),
            sent_bytes,
            peers,
            ..ProcessTraffic::default()
        };
        let mut causes = CauseCounters {
            traffic_ns: Some(77),
            traffic: vec![process(10, vec![peer(10)])],
            ..CauseCounters::default()
        };
        let mut rows = |causes: &CauseCounters| {
            let rows = latest.changed_traffic(HostId(0), &reading(), causes);
            let figures = rows.into_iter();
            figures
                .map(|r| (r.reading.agent_ns, r.mover.peer, r.figures.sent_bytes))
                .collect::<Vec<_>>()
        };
        let address = Some("192.0.2.7".to_owned());
        assert_eq!(rows(&causes), [(77, None, 10), (77, address, 10)]);
        assert_eq!(rows(&causes), []);
        causes.traffic[0].sent_bytes = 15;
        assert_eq!(rows(&causes), [(77, None, 15)]);
        causes.traffic_ns = None;
        causes.traffic[0].sent_bytes = 16;
        assert_eq!(rows(&causes), [], "not read");
    }

    #[test]
    fn ports_have_rows_of_their_own() {
        let service = ServicePort {
            port: 2049,
            served_here: false,
        };
        let port = PortTraffic {
            service,
            sent_bytes: 10,
            received_bytes: 3,
        };
        let process = ProcessTraffic {
            sent_bytes: 10,
            received_bytes: 4,
            ports: vec![port],
            ..ProcessTraffic::default()
        };
        let causes = CauseCounters {
            traffic_ns: Some(77),
            traffic: vec![process],
            ..CauseCounters::default()
        };
        let rows = Latest::default().changed_traffic(HostId(0), &reading(), &causes);
        let reported = rows.into_iter();
        let reported: Vec<_> = reported
            .map(|r| (r.mover.service, r.figures.received_bytes, r.udp_sockets))
            .collect();
        assert_eq!(reported, [(None, 4, Some(0)), (Some(service), 3, None)]);
    }
}
