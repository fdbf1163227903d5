//! A view as tables.

use crate::table::{Cell, Column, Table};
use crate::view::{
    FlowView, InterfaceView, InterruptView, LimitedBy, ProcessView, QdiscView, View,
};
use ew_model::units::{format_bits_per_sec, format_bytes, format_hertz};

/// CPUs named of an interrupt.
const MAX_CPUS: usize = 4;

/// All tables, in the order of their keys on the screen.
pub(crate) fn tables(view: &View) -> Vec<Table> {
    vec![
        processes(view),
        remotes(view),
        flows(view),
        ports(view),
        interfaces(view),
        cores(view),
        disks(view),
        queues(view),
        interrupts(view),
    ]
}

fn processes(view: &View) -> Table {
    let row = |p: &ProcessView| {
        let name = match p.pid {
            Some(_) => p.name.as_str(),
            None => "(owner not seen)",
        };
        vec![
            Cell::figure(p.pid.map(f64::from), |pid| format!("{pid:.0}")),
            Cell::text(name),
            bits(p.rx_bits_per_sec),
            bits(p.tx_bits_per_sec),
            count(p.connections.into()),
            percent(Some(p.cpu_cores)),
            bytes(p.read_bytes_per_sec),
            bytes(p.written_bytes_per_sec),
            count(p.udp_sockets.into()),
            per_second(Some(p.udp_drops_per_sec)),
        ]
    };
    Table {
        title: "processes",
        columns: columns(&[
            "PID",
            "-PROCESS",
            "RECEIVES",
            "SENDS",
            "CONNS",
            "CPU",
            "READS",
            "WRITES",
            "UDP",
            "UDP LOST/s",
        ]),
        rows: view.processes.iter().map(row).collect(),
    }
}

fn remotes(view: &View) -> Table {
    Table {
        title: "remote hosts",
        columns: columns(&["-HOST", "RECEIVES", "SENDS", "CONNS", "RETRANS/s", "RTT"]),
        rows: view
            .remotes
            .iter()
            .map(|r| {
                vec![
                    Cell::text(r.address.to_string()),
                    bits(r.rx_bits_per_sec),
                    bits(r.tx_bits_per_sec),
                    count(r.connections.into()),
                    per_second(Some(r.retransmits_per_sec)),
                    round_trip(r.rtt_us),
                ]
            })
            .collect(),
    }
}

fn flows(view: &View) -> Table {
    let row = |f: &FlowView| {
        let owner = f
            .pid
            .map_or_else(|| "-".to_owned(), |pid| format!("{} ({pid})", f.process));
        let limit = match f.limited_by {
            _ if f.closed => "closed",
            Some(LimitedBy::Application) => "program",
            Some(LimitedBy::ReceiverWindow) => "receiver",
            Some(LimitedBy::SendBuffer) => "send buffer",
            Some(LimitedBy::Path) => "path",
            None => "-",
        };
        vec![
            Cell::text(f.local.to_string()),
            Cell::text(f.remote.to_string()),
            Cell::text(owner),
            bits(f.rx_bits_per_sec),
            bits(f.tx_bits_per_sec),
            per_second(Some(f.retransmits_per_sec)),
            round_trip((f.rtt_us > 0).then_some(f.rtt_us)),
            Cell::text(limit),
        ]
    };
    Table {
        title: "flows",
        columns: columns(&[
            "-LOCAL",
            "-REMOTE",
            "-PROCESS",
            "RECEIVES",
            "SENDS",
            "RETRANS/s",
            "RTT",
            "-LIMITED BY",
        ]),
        rows: view.flows.iter().map(row).collect(),
    }
}

fn ports(view: &View) -> Table {
    Table {
        title: "ports",
        columns: columns(&["PORT", "-SERVED", "RECEIVES", "SENDS", "CONNS"]),
        rows: view
            .ports
            .iter()
            .map(|p| {
                vec![
                    count(p.port.into()),
                    Cell::text(if p.served_here { "here" } else { "elsewhere" }),
                    bits(p.rx_bits_per_sec),
                    bits(p.tx_bits_per_sec),
                    count(p.connections.into()),
                ]
            })
            .collect(),
    }
}

fn interfaces(view: &View) -> Table {
    let row = |i: &InterfaceView| {
        vec![
            Cell::text(&i.name),
            Cell::text(if i.link.carrier { "up" } else { "down" }),
            Cell::figure(i.link.speed_bits_per_sec, format_bits_per_sec),
            percent(i.utilisation),
            bits(i.rx_bits_per_sec),
            bits(i.tx_bits_per_sec),
            per_second(Some(i.rx_packets_per_sec)),
            per_second(Some(i.tx_packets_per_sec)),
            per_second(Some(i.rx_losses_per_sec)),
            per_second(Some(i.tx_losses_per_sec)),
        ]
    };
    Table {
        title: "interfaces",
        columns: columns(&[
            "-INTERFACE",
            "-LINK",
            "SPEED",
            "USED",
            "RECEIVES",
            "SENDS",
            "RX PKT/s",
            "TX PKT/s",
            "RX LOST/s",
            "TX LOST/s",
        ]),
        rows: view.interfaces.iter().map(row).collect(),
    }
}

fn cores(view: &View) -> Table {
    Table {
        title: "cpus",
        columns: columns(&[
            "CPU",
            "BUSY",
            "USER",
            "SYSTEM",
            "SOFTIRQ",
            "IRQ",
            "STEAL",
            "IOWAIT",
            "RUNS AT",
            "PKT/s",
            "DROPS/s",
            "SQUEEZED/s",
        ]),
        rows: view
            .cpu
            .cores
            .iter()
            .map(|c| {
                let shares = [
                    c.busy, c.user, c.system, c.softirq, c.irq, c.steal, c.iowait,
                ];
                let mut row = vec![count(c.cpu.into())];
                row.extend(shares.map(|share| percent(Some(share))));
                row.push(Cell::figure(
                    c.frequency_hz.map(|hz| hz as f64),
                    format_hertz,
                ));
                row.extend(
                    [
                        c.packets_per_sec,
                        c.softnet_drops_per_sec,
                        c.squeezed_per_sec,
                    ]
                    .map(per_second),
                );
                row
            })
            .collect(),
    }
}

fn disks(view: &View) -> Table {
    Table {
        title: "disks",
        columns: columns(&[
            "-DISK", "BUSY", "READS", "WRITES", "READ/s", "WRITE/s", "AWAIT", "QUEUE",
        ]),
        rows: view
            .disks
            .iter()
            .map(|d| {
                vec![
                    Cell::text(&d.name),
                    percent(Some(d.utilisation)),
                    bytes(Some(d.read_bytes_per_sec)),
                    bytes(Some(d.written_bytes_per_sec)),
                    per_second(Some(d.reads_per_sec)),
                    per_second(Some(d.writes_per_sec)),
                    Cell::figure(d.await_ms, |ms| format!("{ms:.1} ms")),
                    Cell::figure(Some(d.queue), |queue| format!("{queue:.1}")),
                ]
            })
            .collect(),
    }
}

fn queues(view: &View) -> Table {
    let row = |q: &QdiscView| {
        vec![
            Cell::text(&q.interface),
            Cell::text(&q.kind),
            bytes_now(q.backlog_bytes.into()),
            per_second(Some(q.drops_per_sec)),
            per_second(Some(q.overlimits_per_sec)),
        ]
    };
    Table {
        title: "queues",
        columns: columns(&["-INTERFACE", "-QUEUE", "WAITING", "DROPS/s", "OVERLIMITS/s"]),
        rows: view.qdiscs.iter().map(row).collect(),
    }
}

fn interrupts(view: &View) -> Table {
    let row = |i: &InterruptView| {
        let cpus = i.cpus.iter().take(MAX_CPUS);
        let cpus: Vec<String> = cpus
            .map(|(cpu, rate)| format!("{cpu}: {rate:.0}"))
            .collect();
        vec![
            count(i.interrupt.into()),
            Cell::text(&i.name),
            per_second(Some(i.per_sec)),
            Cell::text(cpus.join(", ")),
        ]
    };
    Table {
        title: "interrupts",
        columns: columns(&["IRQ", "-RAISED BY", "PER s", "-CPU: PER s"]),
        rows: view.interrupts.iter().map(row).collect(),
    }
}

/// A heading that begins with a dash is one of text.
fn columns(headings: &[&'static str]) -> Vec<Column> {
    let column = |heading: &&'static str| Column {
        heading: heading.strip_prefix('-').unwrap_or(heading),
        is_text: heading.starts_with('-'),
    };
    headings.iter().map(column).collect()
}

fn bits(rate: f64) -> Cell {
    Cell::figure(Some(rate), |rate| {
        if rate == 0.0 {
            "0".to_owned()
        } else {
            format_bits_per_sec(rate)
        }
    })
}

fn bytes(rate: Option<f64>) -> Cell {
    Cell::figure(rate, |rate| {
        if rate == 0.0 {
            "0".to_owned()
        } else {
            format!("{}/s", format_bytes(rate as u64))
        }
    })
}

fn bytes_now(size: u64) -> Cell {
    Cell::figure(Some(size as f64), |_| format_bytes(size))
}

fn percent(share: Option<f64>) -> Cell {
    Cell::figure(share, |share| format!("{:.0}%", share * 100.0))
}

fn per_second(rate: Option<f64>) -> Cell {
    Cell::figure(rate, |rate| format!("{rate:.0}"))
}

fn count(number: u64) -> Cell {
    Cell::figure(Some(number as f64), |number| format!("{number:.0}"))
}

fn round_trip(rtt_us: Option<u32>) -> Cell {
    Cell::figure(rtt_us.map(f64::from), |us| format!("{:.2} ms", us / 1e3))
}
