//! The Parquet tables of a run, made from its events.

mod counters;
mod flows;
mod numbers;
mod reading;

use crate::FORMAT_VERSION;
use crate::error::StoreError;
use crate::events::EventReader;
use crate::fold::Fold;
use crate::table::{Column, ColumnDescription, TableWriter, int};
use counters::{COUNTERS, CounterRow, Latest, TRAFFIC, TrafficRow};
use ew_model::facts::{CpuCounters, HostSample, InterfaceCounters};
use ew_model::record::Interval;
use ew_model::telemetry::{CauseCounters, ReadingCost};
use ew_model::{
    FlowRecord, HostId, Inventory, Plan, RecordedEvent, Run, RunEvent, RunManifest, Stage,
};
use flows::{Endpoint, FLOWS, FlowRow, Planned, StageWords};
use reading::{OfReading, Reading, agent_ns, clock_offset_ns, host};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// One table for the reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDescription {
    /// File name in the run directory.
    pub file: &'static str,
    /// What a row is.
    pub about: &'static str,
    /// In file order.
    pub columns: Vec<ColumnDescription>,
}

/// Every table and column a finished run has: the documentation's source.
#[must_use]
pub fn describe_tables() -> Vec<TableDescription> {
    fn describe<R>(columns: &[Column<R>]) -> Vec<ColumnDescription> {
        columns.iter().map(Column::describe).collect()
    }
    vec![
        TableDescription {
            file: FLOWS_FILE,
            about: "One row per flow and round, missing ones included.",
            columns: describe(&FLOWS),
        },
        TableDescription {
            file: INTERVALS_FILE,
            about: "One row per interval of a flow's window, as the receiver counted it (the sender, where only it reports intervals).",
            columns: describe(INTERVALS),
        },
        TableDescription {
            file: HOSTS_FILE,
            about: "Raw kernel counters: per reading one row per CPU (kind cpu; above 32 CPUs the busiest few, and the sum of all under the name `all`) and one per interface (kind interface); the other kind's columns are null.",
            columns: describe(HOSTS),
        },
        TableDescription {
            file: COUNTERS_FILE,
            about: "Raw counters that explain causes: one row per counter at its first reading and whenever it changed.",
            columns: describe(COUNTERS),
        },
        TableDescription {
            file: TRAFFIC_FILE,
            about: "Who moved bytes on a host: one row per process, and one per process and peer, whenever more was moved.",
            columns: describe(TRAFFIC),
        },
    ]
}

const FLOWS_FILE: &str = "flows.parquet";
const INTERVALS_FILE: &str = "intervals.parquet";
const HOSTS_FILE: &str = "hosts.parquet";
const COUNTERS_FILE: &str = "counters.parquet";
const TRAFFIC_FILE: &str = "traffic.parquet";

/// Writes all tables of a run whose events are complete, and reads it back on the way.
pub(crate) fn write_tables(directory: &Path, manifest: RunManifest) -> Result<Run, StoreError> {
    let mut tables = Tables::create(directory, &manifest)?;
    let mut fold = Fold::new(manifest);
    let mut events = EventReader::open(directory)?;
    while let Some(event) = events.next()? {
        tables.take(&event)?;
        fold.take(event);
    }
    tables.flows.finish()?;
    tables.intervals.finish()?;
    tables.hosts.finish()?;
    tables.counters.finish()?;
    tables.traffic.finish()?;
    Ok(fold.finish(events.warnings()))
}

struct Tables {
    inventory: Inventory,
    names: Vec<Arc<str>>,
    stages: Vec<Arc<StageWords>>,
    senders: BTreeMap<(u32, u32), u32>,
    clock_offset_ns: BTreeMap<HostId, i64>,
    flows: TableWriter<FlowRow>,
    intervals: TableWriter<IntervalRow>,
    hosts: TableWriter<HostRow>,
    latest: Latest,
    counters: TableWriter<CounterRow>,
    traffic: TableWriter<TrafficRow>,
}

struct IntervalRow {
    stage: u32,
    round: u32,
    flow: u32,
    interval: Interval,
}

struct HostRow {
    reading: Reading,
    at_ns: u64,
    late_ns: u64,
    cost: Option<ReadingCost>,
    counters: Counters,
}

impl OfReading for HostRow {
    fn reading(&self) -> &Reading {
        &self.reading
    }
}

enum Counters {
    /// The sum, where not all are listed.
    AllCpus(CpuCounters),
    Cpu(CpuCounters),
    Interface(InterfaceCounters),
}

impl Tables {
    fn create(directory: &Path, manifest: &RunManifest) -> Result<Self, StoreError> {
        let facts = [
            ("eastwest.run", manifest.id.clone()),
            ("eastwest.format_version", FORMAT_VERSION.to_string()),
        ];
        let hosts = manifest.inventory.hosts.iter();
        Ok(Self {
            names: hosts.map(|host| host.name.as_str().into()).collect(),
            inventory: manifest.inventory.clone(),
            stages: Vec::new(),
            senders: BTreeMap::new(),
            clock_offset_ns: BTreeMap::new(),
            flows: TableWriter::create(&directory.join(FLOWS_FILE), &FLOWS, &facts)?,
            intervals: TableWriter::create(&directory.join(INTERVALS_FILE), INTERVALS, &facts)?,
            hosts: TableWriter::create(&directory.join(HOSTS_FILE), HOSTS, &facts)?,
            latest: Latest::default(),
            counters: TableWriter::create(&directory.join(COUNTERS_FILE), COUNTERS, &facts)?,
            traffic: TableWriter::create(&directory.join(TRAFFIC_FILE), TRAFFIC, &facts)?,
        })
    }

    fn take(&mut self, recorded: &RecordedEvent) -> Result<(), StoreError> {
        match &recorded.event {
            RunEvent::RunStarted { plan, .. } | RunEvent::Replanned { plan } => {
                self.take_plan(plan);
            }
            RunEvent::ClockSynced {
                host, offset_ns, ..
            } => {
                self.clock_offset_ns.insert(*host, *offset_ns);
            }
            RunEvent::RoundFinished { records, .. } => {
                for record in records {
                    self.take_flow(recorded.at_ns, record.clone())?;
                }
            }
            RunEvent::HostSampled { host, sample } => {
                self.take_sample(recorded.at_ns, *host, sample)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn take_plan(&mut self, plan: &Plan) {
        let words = |stage: &Stage| {
            Arc::new(StageWords {
                name: stage.name.clone(),
                pattern: stage.pattern.name(),
                workload: stage.workload.kind.name(),
                aggressors: stage.workload_of_aggressors().kind.name(),
                tool: stage.workload.tool.name(),
            })
        };
        self.stages = plan.stages.iter().map(words).collect();
        self.senders.clear();
        for (index, stage) in (0..).zip(&plan.stages) {
            for (round, planned) in (0..).zip(&stage.rounds) {
                if let Some(senders) = planned.senders_per_rack {
                    self.senders.insert((index, round), senders);
                }
            }
        }
    }

    fn take_flow(&mut self, at_ns: u64, record: FlowRecord) -> Result<(), StoreError> {
        let (stage, round) = (record.stage.0, record.round.0);
        let with_intervals = [record.receiver.as_ref(), record.sender.as_ref()]
            .into_iter()
            .flatten()
            .find(|end| !end.intervals.is_empty());
        for interval in with_intervals.map_or(&[][..], |end| &end.intervals) {
            self.intervals.push(IntervalRow {
                stage,
                round,
                flow: record.flow.0,
                interval: *interval,
            })?;
        }
        let planned = Planned {
            stage: self.stages.get(stage as usize).cloned(),
            senders_per_rack: self.senders.get(&(stage, round)).copied(),
            src: self.endpoint(record.src),
            dst: self.endpoint(record.dst),
        };
        let row = FlowRow::new(at_ns, planned, record);
        let weight = row.weight();
        self.flows.push_weighing(row, weight)
    }

    fn take_sample(
        &mut self,
        at_ns: u64,
        host: HostId,
        sample: &HostSample,
    ) -> Result<(), StoreError> {
        let reading = Reading {
            host: self.name(host),
            agent_ns: sample.agent_ns,
            clock_offset_ns: self.clock_offset_ns.get(&host).copied(),
        };
        if let Some(causes) = &sample.causes {
            self.take_causes(host, &reading, causes)?;
        }
        let all = sample.all_cpus.iter();
        let all = all.map(|all| Counters::AllCpus(all.times));
        let cpus = all.chain(sample.cpus.iter().copied().map(Counters::Cpu));
        let interfaces = sample.interfaces.iter().cloned().map(Counters::Interface);
        for counters in cpus.chain(interfaces) {
            self.hosts.push(HostRow {
                reading: reading.clone(),
                at_ns,
                late_ns: sample.late_ns,
                cost: sample.cost,
                counters,
            })?;
        }
        Ok(())
    }

    fn take_causes(
        &mut self,
        host: HostId,
        reading: &Reading,
        causes: &CauseCounters,
    ) -> Result<(), StoreError> {
        for row in self.latest.changed_counters(host, reading, causes) {
            self.counters.push(row)?;
        }
        for row in self.latest.changed_traffic(host, reading, causes) {
            self.traffic.push(row)?;
        }
        Ok(())
    }

    /// A damaged file may contain any number.
    fn name(&self, id: HostId) -> Arc<str> {
        let name = self.names.get(id.index());
        name.map_or_else(|| id.to_string().into(), Arc::clone)
    }

    fn endpoint(&self, id: HostId) -> Endpoint {
        let host = self.inventory.hosts.get(id.index());
        let rack = host
            .and_then(|host| host.rack)
            .and_then(|rack| self.inventory.racks.get(rack.index()));
        Endpoint {
            host: self.name(id),
            rack: rack.map(|rack| rack.name.clone()),
        }
    }
}

const INTERVALS: &[Column<IntervalRow>] = &[
    Column::int("stage", "index of the stage in the plan", |r| {
        r.stage.into()
    }),
    Column::int("round", "index of the round in its stage", |r| {
        r.round.into()
    }),
    Column::int("flow", "number of the flow in the plan", |r| r.flow.into()),
    Column::int("offset_ns", "start, from the window's start", |r| {
        int(r.interval.offset_ns)
    }),
    Column::int("length_ns", "length", |r| int(r.interval.length_ns)),
    Column::int("bytes", "payload bytes", |r| int(r.interval.bytes)),
];

const HOSTS: &[Column<HostRow>] = &[
    host(),
    Column::text("kind", "cpu or interface", |r| match r.counters {
        Counters::AllCpus(_) | Counters::Cpu(_) => "cpu".to_owned(),
        Counters::Interface(_) => "interface".to_owned(),
    }),
    Column::text(
        "name",
        "the CPU's number, `all` for the sum of all CPUs, or the interface's name",
        |r| match &r.counters {
            Counters::AllCpus(_) => "all".to_owned(),
            Counters::Cpu(cpu) => cpu.cpu.to_string(),
            Counters::Interface(interface) => interface.name.clone(),
        },
    ),
    Column::int(
        "received_at_ns",
        "when the controller had it, since the run began, controller's clock",
        |r| int(r.at_ns),
    ),
    agent_ns(),
    Column::int(
        "late_ns",
        "how late it was read against its schedule",
        |r| int(r.late_ns),
    ),
    Column::maybe_int(
        "read_cpu_ns",
        "CPU time that the whole reading took; every row of a reading repeats it",
        |r| r.cost.map(|cost| int(cost.cpu_ns)),
    ),
    Column::maybe_int("read_wall_ns", "time that the whole reading took", |r| {
        r.cost.map(|cost| int(cost.wall_ns))
    }),
    clock_offset_ns(),
    Column::maybe_int(
        "user_ticks",
        "ticks of 1/100 s since boot, as all *_ticks",
        |r| cpu(r).map(|c| int(c.user_ticks)),
    ),
    Column::maybe_int("nice_ticks", "nice", |r| cpu(r).map(|c| int(c.nice_ticks))),
    Column::maybe_int("system_ticks", "system", |r| {
        cpu(r).map(|c| int(c.system_ticks))
    }),
    Column::maybe_int("idle_ticks", "idle", |r| cpu(r).map(|c| int(c.idle_ticks))),
    Column::maybe_int("iowait_ticks", "waiting for disks", |r| {
        cpu(r)?.iowait_ticks.map(int)
    }),
    Column::maybe_int("irq_ticks", "hardware interrupts", |r| {
        cpu(r)?.irq_ticks.map(int)
    }),
    Column::maybe_int(
        "softirq_ticks",
        "software interrupts, where packets are handled",
        |r| cpu(r)?.softirq_ticks.map(int),
    ),
    Column::maybe_int("steal_ticks", "taken by the hypervisor", |r| {
        cpu(r)?.steal_ticks.map(int)
    }),
    Column::maybe_int("guest_ticks", "of user_ticks: ran guests", |r| {
        cpu(r)?.guest_ticks.map(int)
    }),
    Column::maybe_int("guest_nice_ticks", "of nice_ticks: ran guests", |r| {
        cpu(r)?.guest_nice_ticks.map(int)
    }),
    Column::maybe_int("rx_bytes", "received bytes since boot", |r| {
        interface(r).map(|i| int(i.rx_bytes))
    }),
    Column::maybe_int("rx_packets", "received packets", |r| {
        interface(r).map(|i| int(i.rx_packets))
    }),
    Column::maybe_int("rx_errors", "receive errors", |r| {
        interface(r).map(|i| int(i.rx_errors))
    }),
    Column::maybe_int("rx_drops", "receive drops", |r| {
        interface(r).map(|i| int(i.rx_drops))
    }),
    Column::maybe_int(
        "rx_fifo_errors",
        "times the receive ring overran, where the driver counts it here",
        |r| interface(r)?.rx_fifo_errors.map(int),
    ),
    Column::maybe_int("tx_bytes", "sent bytes since boot", |r| {
        interface(r).map(|i| int(i.tx_bytes))
    }),
    Column::maybe_int("tx_packets", "sent packets", |r| {
        interface(r).map(|i| int(i.tx_packets))
    }),
    Column::maybe_int("tx_errors", "send errors", |r| {
        interface(r).map(|i| int(i.tx_errors))
    }),
    Column::maybe_int("tx_drops", "send drops", |r| {
        interface(r).map(|i| int(i.tx_drops))
    }),
];

fn cpu(row: &HostRow) -> Option<&CpuCounters> {
    match &row.counters {
        Counters::AllCpus(cpu) | Counters::Cpu(cpu) => Some(cpu),
        Counters::Interface(_) => None,
    }
}

fn interface(row: &HostRow) -> Option<&InterfaceCounters> {
    match &row.counters {
        Counters::AllCpus(_) | Counters::Cpu(_) => None,
        Counters::Interface(interface) => Some(interface),
    }
}
