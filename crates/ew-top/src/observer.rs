//! From readings to views.

use crate::counted::{between_ns, rate, rate_or_zero};
use crate::cpu::cpu_view;
use crate::network::{interface_views, interrupt_views, protocol_view, qdisc_views};
use crate::storage::{disk_views, memory_view};
use crate::verdict::verdict;
use crate::view::{FlowView, LimitedBy, PortView, ProcessView, RemoteView, View};
use ew_model::telemetry::{HostReading, ProcessCounters, ServicePort, TcpSocket};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

/// Clock ticks of `/proc/PID/stat` per second: USER_HZ, a constant of the kernel's interface
/// (proc(5)).
const TICKS_PER_SECOND: f64 = 100.0;
/// Connections shown; busier ones go first, and totals are of all.
const MAX_FLOWS: usize = 200;

/// Compares each reading with the one before.
#[derive(Debug, Default)]
pub struct Observer {
    before: Option<HostReading>,
    /// What sockets had counted when last seen, one reading longer than they live: the kernel
    /// reports a death a little after it, so that the socket may be in neither the list nor the
    /// deaths of one reading.
    counted: BTreeMap<u64, Counted>,
}

#[derive(Clone, Debug, Default)]
struct Counted {
    acked_bytes: u64,
    received_bytes: u64,
    retransmits: u32,
    busy_us: Option<u64>,
    receive_window_us: Option<u64>,
    send_buffer_us: Option<u64>,
    pid: Option<u32>,
    missed_readings: u8,
}

impl Observer {
    /// Nothing seen yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a reading, and gives what happened since the one before: `None` for the first.
    pub fn observe(&mut self, now: HostReading) -> Option<View> {
        let before = self.before.take();
        let view = before.as_ref().map(|before| self.view(before, &now));
        self.remember(&now);
        self.before = Some(now);
        view
    }

    fn view(&self, before: &HostReading, now: &HostReading) -> View {
        let time = between_ns(before.monotonic_ns, now.monotonic_ns);
        let names = names(now);
        let flows = self.flows(before, now, &names);
        let mut view = View {
            realtime_ns: now.realtime_ns,
            interval_ns: u64::try_from(time.as_nanos()).unwrap_or(u64::MAX),
            late_ns: now.late_ns,
            own_cpu_share: rate_or_zero(now.cost.cpu_ns, 0, time) / 1e9,
            cpu: cpu_view(before, now, time),
            interfaces: interface_views(before, now, time),
            qdiscs: qdisc_views(before, now, time),
            interrupts: interrupt_views(before, now, time),
            protocols: protocol_view(before, now, time),
            processes: processes(before, now, &flows, time),
            remotes: remotes(&flows),
            ports: ports(&flows, &listened(now)),
            disks: disk_views(before, now, time),
            memory: memory_view(before, now, time),
            unseen: now.unseen.clone(),
            flows,
            ..View::default()
        };
        view.verdict = verdict(&view);
        view.flows.truncate(MAX_FLOWS);
        view
    }

    /// Connections that carried something, the fastest first.
    fn flows(
        &self,
        before: &HostReading,
        now: &HostReading,
        names: &BTreeMap<u32, &str>,
    ) -> Vec<FlowView> {
        let time = between_ns(before.sockets.read_ns, now.sockets.read_ns);
        let closed: BTreeSet<u64> = now.sockets.tcp_closed.iter().map(|s| s.cookie).collect();
        // A socket that died between the list and the deaths is in both.
        let living = now.sockets.tcp.iter();
        let living = living.filter(|s| s.state != TcpSocket::LISTEN && !closed.contains(&s.cookie));
        let died = now.sockets.tcp_closed.iter();
        let all = living.map(|s| (s, false)).chain(died.map(|s| (s, true)));
        let mut flows: Vec<FlowView> = all
            .map(|(socket, closed)| self.flow(socket, closed, names, time))
            .filter(|flow| flow.rx_bits_per_sec + flow.tx_bits_per_sec > 0.0)
            .collect();
        let rate = |flow: &FlowView| flow.rx_bits_per_sec + flow.tx_bits_per_sec;
        flows.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
        flows
    }

    /// A socket not seen before was born in the interval, so that all it counted is the interval's.
    fn flow(
        &self,
        socket: &TcpSocket,
        closed: bool,
        names: &BTreeMap<u32, &str>,
        time: Duration,
    ) -> FlowView {
        let before = self
            .counted
            .get(&socket.cookie)
            .cloned()
            .unwrap_or_default();
        let now = Counted::of(socket);
        let pid = socket.pid.or(before.pid);
        let tx = rate_or_zero(now.acked_bytes, before.acked_bytes, time) * 8.0;
        FlowView {
            local: socket.local,
            remote: socket.remote,
            pid,
            process: pid
                .and_then(|pid| names.get(&pid))
                .map_or_else(String::new, |n| (*n).to_owned()),
            rx_bits_per_sec: rate_or_zero(now.received_bytes, before.received_bytes, time) * 8.0,
            tx_bits_per_sec: tx,
            retransmits_per_sec: rate_or_zero(
                now.retransmits.into(),
                before.retransmits.into(),
                time,
            ),
            rtt_us: socket.info.rtt_us,
            closed,
            limited_by: if tx > 0.0 {
                limited_by(&before, &now, time)
            } else {
                None
            },
        }
    }

    fn remember(&mut self, now: &HostReading) {
        let mut counted: BTreeMap<u64, Counted> = BTreeMap::new();
        for (cookie, mut old) in std::mem::take(&mut self.counted) {
            old.missed_readings += 1;
            if old.missed_readings <= 1 {
                counted.insert(cookie, old);
            }
        }
        let all = now.sockets.tcp.iter().chain(&now.sockets.tcp_closed);
        for socket in all {
            let mut new = Counted::of(socket);
            new.pid = socket
                .pid
                .or(counted.get(&socket.cookie).and_then(|old| old.pid));
            counted.insert(socket.cookie, new);
        }
        self.counted = counted;
    }
}

impl Counted {
    fn of(socket: &TcpSocket) -> Self {
        Self {
            acked_bytes: socket.acked_bytes.unwrap_or(0),
            received_bytes: socket.received_bytes.unwrap_or(0),
            retransmits: socket.info.total_retransmits,
            busy_us: socket.info.busy_us,
            receive_window_us: socket.info.receive_window_limited_us,
            send_buffer_us: socket.info.send_buffer_limited_us,
            pid: socket.pid,
            missed_readings: 0,
        }
    }
}

/// By the kernel's clocks (include/uapi/linux/tcp.h): idle for most of the interval is the
/// application; else most of the busy time decides, and what neither window nor buffer explains is
/// the congestion window.
fn limited_by(before: &Counted, now: &Counted, time: Duration) -> Option<LimitedBy> {
    // A kernel that reports no clocks (before 4.10) reports nothing; a new socket's clocks begin at
    // 0.
    let share =
        |now: Option<u64>, before: Option<u64>| rate(Some(now?), Some(before.unwrap_or(0)), time);
    let busy = share(now.busy_us, before.busy_us)? / 1e6;
    let window = share(now.receive_window_us, before.receive_window_us)? / 1e6;
    let buffer = share(now.send_buffer_us, before.send_buffer_us)? / 1e6;
    Some(if busy < 0.5 {
        LimitedBy::Application
    } else if window > 0.5 * busy {
        LimitedBy::ReceiverWindow
    } else if buffer > 0.5 * busy {
        LimitedBy::SendBuffer
    } else {
        LimitedBy::Path
    })
}

fn names(reading: &HostReading) -> BTreeMap<u32, &str> {
    let processes = reading.processes.iter();
    processes.map(|p| (p.pid, p.name.as_str())).collect()
}

fn processes(
    before: &HostReading,
    now: &HostReading,
    flows: &[FlowView],
    time: Duration,
) -> Vec<ProcessView> {
    let mut views: BTreeMap<Option<u32>, ProcessView> = BTreeMap::new();
    for process in &now.processes {
        let was = before
            .processes
            .binary_search_by_key(&process.pid, |p| p.pid);
        let was = was.ok().map(|index| &before.processes[index]);
        let was = was.filter(|was| was.start_ticks == process.start_ticks);
        views.insert(Some(process.pid), process_view(was, process, time));
    }
    for flow in flows {
        let view = views.entry(flow.pid).or_insert_with(|| ProcessView {
            pid: flow.pid,
            name: flow.process.clone(),
            ..ProcessView::default()
        });
        view.rx_bits_per_sec += flow.rx_bits_per_sec;
        view.tx_bits_per_sec += flow.tx_bits_per_sec;
        view.connections += 1;
    }
    add_udp(&mut views, before, now, time);
    let is_shown = |p: &ProcessView| {
        let disk = p.read_bytes_per_sec.unwrap_or(0.0) + p.written_bytes_per_sec.unwrap_or(0.0);
        p.rx_bits_per_sec + p.tx_bits_per_sec + p.cpu_cores + p.udp_drops_per_sec + disk > 0.0
    };
    let mut shown: Vec<ProcessView> = views.into_values().filter(is_shown).collect();
    let rate = |p: &ProcessView| (p.rx_bits_per_sec + p.tx_bits_per_sec, p.cpu_cores);
    shown.sort_by(|a, b| {
        rate(b)
            .partial_cmp(&rate(a))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    shown
}

/// A process that began in the interval has used all it used in it.
fn process_view(
    before: Option<&ProcessCounters>,
    now: &ProcessCounters,
    time: Duration,
) -> ProcessView {
    let time = before.map_or(time, |before| between_ns(before.read_ns, now.read_ns));
    let ticks = |p: &ProcessCounters| p.user_ticks + p.system_ticks;
    let cpu = rate_or_zero(ticks(now), before.map_or(0, ticks), time) / TICKS_PER_SECOND;
    let disk = |of: fn(&ProcessCounters) -> Option<u64>| {
        let was = before.map_or(Some(0), of);
        // Not read again because it did not run: nothing moved.
        of(now).map(|now| rate_or_zero(now, was.unwrap_or(now), time))
    };
    ProcessView {
        pid: Some(now.pid),
        name: now.name.clone(),
        cpu_cores: cpu,
        read_bytes_per_sec: disk(|p| p.read_bytes),
        written_bytes_per_sec: disk(|p| p.written_bytes),
        threads: now.threads,
        resident_pages: now.resident_pages,
        ..ProcessView::default()
    }
}

fn add_udp(
    views: &mut BTreeMap<Option<u32>, ProcessView>,
    before: &HostReading,
    now: &HostReading,
    time: Duration,
) {
    let was: BTreeMap<u64, u32> = before
        .sockets
        .udp
        .iter()
        .map(|s| (s.cookie, s.drops.unwrap_or(0)))
        .collect();
    for socket in &now.sockets.udp {
        let Some(view) = views.get_mut(&socket.pid) else {
            continue;
        };
        view.udp_sockets += 1;
        let drops = socket.drops.unwrap_or(0);
        let before = was.get(&socket.cookie).copied().unwrap_or(0);
        view.udp_drops_per_sec += rate_or_zero(drops.into(), before.into(), time);
    }
}

fn remotes(flows: &[FlowView]) -> Vec<RemoteView> {
    let mut views: BTreeMap<IpAddr, RemoteView> = BTreeMap::new();
    for flow in flows {
        let address = flow.remote.ip();
        let view = views.entry(address).or_insert(RemoteView {
            address,
            rx_bits_per_sec: 0.0,
            tx_bits_per_sec: 0.0,
            connections: 0,
            retransmits_per_sec: 0.0,
            rtt_us: None,
        });
        view.rx_bits_per_sec += flow.rx_bits_per_sec;
        view.tx_bits_per_sec += flow.tx_bits_per_sec;
        view.connections += 1;
        view.retransmits_per_sec += flow.retransmits_per_sec;
        // 0 is "not measured yet".
        let rtt = (flow.rtt_us > 0).then_some(flow.rtt_us);
        view.rtt_us = [view.rtt_us, rtt].into_iter().flatten().min();
    }
    let mut views: Vec<RemoteView> = views.into_values().collect();
    let rate = |view: &RemoteView| view.rx_bits_per_sec + view.tx_bits_per_sec;
    views.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
    views
}

fn listened(reading: &HostReading) -> BTreeSet<u16> {
    let sockets = reading.sockets.tcp.iter();
    let listening = sockets.filter(|s| s.state == TcpSocket::LISTEN);
    listening.map(|s| s.local.port()).collect()
}

fn ports(flows: &[FlowView], listened: &BTreeSet<u16>) -> Vec<PortView> {
    let mut views: BTreeMap<ServicePort, PortView> = BTreeMap::new();
    for flow in flows {
        let service = ServicePort::of(flow.local.port(), flow.remote.port(), listened);
        let view = views.entry(service).or_insert(PortView {
            port: service.port,
            served_here: service.served_here,
            rx_bits_per_sec: 0.0,
            tx_bits_per_sec: 0.0,
            connections: 0,
        });
        view.rx_bits_per_sec += flow.rx_bits_per_sec;
        view.tx_bits_per_sec += flow.tx_bits_per_sec;
        view.connections += 1;
    }
    let mut views: Vec<PortView> = views.into_values().collect();
    let rate = |view: &PortView| view.rx_bits_per_sec + view.tx_bits_per_sec;
    views.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
    views
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::record::TcpInfo;
    use ew_model::telemetry::SocketsReading;
    use proptest::prelude::*;

    fn socket(cookie: u64, acked: u64, received: u64) -> TcpSocket {
        TcpSocket {
            cookie,
            local: "192.0.2.1:5000".parse().unwrap(),
            remote: "192.0.2.9:40000".parse().unwrap(),
            state: TcpSocket::ESTABLISHED,
            inode: 1,
            uid: 0,
            pid: Some(77),
            receive_queue: 0,
            send_queue: 0,
            acked_bytes: Some(acked),
            received_bytes: Some(received),
            data_segments_out: None,
            info: TcpInfo::default(),
        }
    }

    fn reading(second: u64, tcp: Vec<TcpSocket>, tcp_closed: Vec<TcpSocket>) -> HostReading {
        HostReading {
            monotonic_ns: second * 1_000_000_000,
            sockets: SocketsReading {
                read_ns: second * 1_000_000_000,
                tcp,
                tcp_closed,
                ..SocketsReading::default()
            },
            processes: vec![ProcessCounters {
                pid: 77,
                name: "mover".into(),
                read_ns: second * 1_000_000_000,
                user_ticks: second * 50,
                ..ProcessCounters::default()
            }],
            ..HostReading::default()
        }
    }

    #[test]
    fn a_transfer_is_its_processs_its_peers_and_its_ports() {
        let mut observer = Observer::new();
        assert_eq!(
            observer.observe(reading(1, vec![socket(5, 1000, 0)], vec![])),
            None
        );
        let mut listener = socket(6, 0, 0);
        listener.state = TcpSocket::LISTEN;
        let sockets = vec![socket(5, 126_000, 250_000), listener];
        let view = observer.observe(reading(2, sockets, vec![])).unwrap();
        let process = &view.processes[0];
        assert_eq!((process.pid, process.name.as_str()), (Some(77), "mover"));
        assert_eq!(
            (process.tx_bits_per_sec, process.rx_bits_per_sec),
            (1e6, 2e6)
        );
        assert_eq!((process.connections, process.cpu_cores), (1, 0.5));
        assert_eq!(view.remotes[0].address, IpAddr::from([192, 0, 2, 9]));
        assert_eq!(
            (view.ports[0].port, view.ports[0].served_here),
            (5000, true)
        );
    }

    #[test]
    fn what_dies_unseen_counts_once() {
        let mut observer = Observer::new();
        observer.observe(reading(1, vec![socket(5, 0, 1000)], vec![]));
        // Dead, and not reported yet.
        let view = observer.observe(reading(2, vec![], vec![])).unwrap();
        assert!(view.flows.is_empty());
        let view = observer
            .observe(reading(3, vec![], vec![socket(5, 0, 3000)]))
            .unwrap();
        assert_eq!(view.flows[0].rx_bits_per_sec, 16_000.0);
        assert!(view.flows[0].closed);
        // In the list and among the dead.
        observer.observe(reading(4, vec![socket(6, 0, 500)], vec![socket(6, 0, 500)]));
        let view = observer.observe(reading(5, vec![], vec![])).unwrap();
        assert!(view.flows.is_empty());
    }

    #[test]
    fn a_death_without_owner_is_its_last_owners() {
        let mut observer = Observer::new();
        observer.observe(reading(1, vec![socket(5, 0, 0)], vec![]));
        let mut dead = socket(5, 0, 1000);
        dead.pid = None;
        let view = observer.observe(reading(2, vec![], vec![dead])).unwrap();
        assert_eq!(view.flows[0].pid, Some(77));
    }

    #[test]
    fn clocks_say_what_limits_a_sender() {
        let clocks = |busy, window, buffer| Counted {
            busy_us: Some(busy),
            receive_window_us: Some(window),
            send_buffer_us: Some(buffer),
            ..Counted::default()
        };
        let limit = |busy, window, buffer| {
            let before = clocks(0, 0, 0);
            limited_by(
                &before,
                &clocks(busy, window, buffer),
                Duration::from_secs(1),
            )
        };
        assert_eq!(limit(100_000, 0, 0), Some(LimitedBy::Application));
        assert_eq!(limit(900_000, 800_000, 0), Some(LimitedBy::ReceiverWindow));
        assert_eq!(limit(900_000, 0, 600_000), Some(LimitedBy::SendBuffer));
        assert_eq!(limit(1_000_000, 100_000, 100_000), Some(LimitedBy::Path));
        let old = Counted::default();
        assert_eq!(limited_by(&old, &old, Duration::from_secs(1)), None);
    }

    proptest! {
        /// However a connection's bytes fall into readings, lists and deaths, they are counted
        /// once.
        #[test]
        fn bytes_are_conserved(steps in proptest::collection::vec((0_u64..1000, any::<bool>()), 1..20)) {
            let mut observer = Observer::new();
            observer.observe(reading(0, vec![], vec![]));
            let (mut received, mut seen, mut hidden) = (0, 0.0, false);
            let last = steps.len();
            for (index, (bytes, hide)) in steps.into_iter().enumerate() {
                received += bytes;
                let ends = index + 1 == last;
                // It may be missing in one reading, not in two.
                hidden = hide && !hidden && !ends;
                let alive = if hidden || ends { vec![] } else { vec![socket(5, 0, received)] };
                let dead = if ends { vec![socket(5, 0, received)] } else { vec![] };
                let view = observer.observe(reading(index as u64 + 1, alive, dead)).unwrap();
                seen += view.flows.iter().map(|f| f.rx_bits_per_sec).sum::<f64>() / 8.0;
            }
            prop_assert!((seen - received as f64).abs() < 1e-3);
        }
    }
}
