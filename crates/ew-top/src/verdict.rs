//! What limits the host: each resource's utilisation, saturation and errors against a bar, the one
//! furthest above its bar first. The bars are those of the run's rules where both ask the same.

use crate::view::{
    CoreView, FlowView, HostLimit, HostVerdict, InterfaceView, ProcessView, View, Who,
};
use ew_model::units::{format_bits_per_sec, format_bytes};
use std::collections::BTreeMap;

/// A link is full: payload, headers and acknowledgements leave less than this free.
const LINK_FULL: f64 = 0.90;
/// More segments retransmitted than a healthy path ever needs.
const LOSS_SHARE: f64 = 0.02;
/// Below so many segments a second a share shows nothing.
const LOSS_SEGMENTS_PER_SEC: f64 = 100.0;
/// All CPUs are busy.
const ALL_CORES_BUSY: f64 = 0.90;
/// One core is: ticks leave a few per cent of error.
const ONE_CORE_BUSY: f64 = 0.95;
/// A core does mostly packets.
const SOFTIRQ_CORE: f64 = 0.50;
/// One thread uses one core whole.
const ONE_THREAD_BUSY: f64 = 0.90;
/// The hypervisor takes more than a neighbour should.
const STEAL: f64 = 0.10;
/// Periods in which the quota ran out.
const THROTTLED: f64 = 0.10;
/// A disk always has a request in flight.
const DISK_BUSY: f64 = 0.90;
/// Tasks wait for disks: a busy disk that nobody waits for limits nobody.
const DISK_PRESSURE: f64 = 0.10;
/// Tasks wait for memory.
const MEMORY_PRESSURE: f64 = 0.10;
/// Of all memory, what is left.
const MEMORY_LEFT: f64 = 0.03;

/// One limit that is met.
struct Met {
    limit: HostLimit,
    /// Above 1; how far above its bar.
    severity: f64,
    what: String,
    who: Option<Who>,
    evidence: Vec<String>,
}

/// The verdict on a view whose tables are filled.
pub(crate) fn verdict(view: &View) -> HostVerdict {
    let mut met = Vec::new();
    met.extend(view.interfaces.iter().filter_map(|i| full_link(view, i)));
    let shaped = view.interfaces.iter().find_map(|i| full_shaper(view, i));
    met.extend(shaped.or_else(|| standing_queue(view)));
    met.extend(loss(view));
    met.extend(quota(view));
    met.extend(
        all_cores(view)
            .or_else(|| one_core(view))
            .or_else(|| one_thread(view)),
    );
    met.extend(steal(view));
    met.extend(disk(view));
    met.extend(memory(view));
    met.sort_by(|a, b| b.severity.total_cmp(&a.severity));
    let mut met = met.into_iter();
    let Some(worst) = met.next() else {
        return nothing(view);
    };
    HostVerdict {
        limit: worst.limit,
        sentence: sentence(&worst),
        severity: worst.severity,
        who: worst.who,
        evidence: worst.evidence,
        also: met.map(|other| sentence(&other)).collect(),
    }
}

fn sentence(met: &Met) -> String {
    let word = match met.limit {
        HostLimit::None => "nothing",
        HostLimit::Network => "network",
        HostLimit::Cpu => "CPU",
        HostLimit::Disk => "disk",
        HostLimit::Memory => "memory",
    };
    let who = met.who.as_ref().map_or_else(String::new, |who| {
        let share = who
            .share
            .map_or_else(String::new, |s| format!(", {}", percent(s)));
        let peer = who.peer.map_or_else(String::new, |p| format!(", with {p}"));
        format!("; most by {} (pid {}{share}{peer})", who.name, who.pid)
    });
    format!("{word}-bound: {}{who}", met.what)
}

fn nothing(view: &View) -> HostVerdict {
    let mut parts = Vec::new();
    let busiest = view
        .links()
        .max_by(|a, b| traffic(a).total_cmp(&traffic(b)));
    parts.extend(busiest.map(|i| format!("{} {}", i.name, link_words(i))));
    parts.push(format!("CPUs {} busy", percent(view.cpu.busy)));
    let core = view.busiest_core();
    parts.extend(core.map(|c| format!("the busiest, cpu{}, {}", c.cpu, percent(c.busy))));
    let disk = view.disks.first();
    parts.extend(disk.map(|d| format!("{} {} busy", d.name, percent(d.utilisation))));
    HostVerdict {
        sentence: format!("nothing is the limit: {}", parts.join(", ")),
        ..HostVerdict::default()
    }
}

fn full_link(view: &View, interface: &InterfaceView) -> Option<Met> {
    let utilisation = interface.utilisation.filter(|u| *u >= LINK_FULL)?;
    if interface.link.loopback {
        return None;
    }
    let sends = interface.tx_bits_per_sec >= interface.rx_bits_per_sec;
    let direction = if sends { "sends" } else { "receives" };
    let mut evidence = vec![format!("{} {}", interface.name, link_words(interface))];
    if interface.link.duplex.as_deref() == Some("half") {
        evidence.push(format!(
            "{} is half duplex: both directions share it",
            interface.name
        ));
    }
    evidence.extend(queue_words(view, &interface.name));
    Some(Met {
        limit: HostLimit::Network,
        severity: utilisation / LINK_FULL,
        what: format!(
            "{} {direction} at {} of its {}",
            interface.name,
            percent(utilisation),
            speed(interface)
        ),
        who: mover(view, sends, interface),
        evidence,
    })
}

/// A shaper makes a slower link of a faster one, for sending.
fn full_shaper(view: &View, interface: &InterfaceView) -> Option<Met> {
    let rate = interface.shaped_bits_per_sec?;
    let utilisation = interface.tx_bits_per_sec / rate;
    (utilisation >= LINK_FULL).then(|| Met {
        limit: HostLimit::Network,
        severity: utilisation / LINK_FULL,
        what: format!(
            "{} sends at {} of the {} that its shaper (tbf) lets pass",
            interface.name,
            percent(utilisation),
            format_bits_per_sec(rate)
        ),
        who: mover(view, true, interface),
        evidence: queue_words(view, &interface.name),
    })
}

/// A queue that never empties: the way to see that a link whose speed the kernel does not know is
/// full.
fn standing_queue(view: &View) -> Option<Met> {
    let full = |q: &&crate::view::QdiscView| {
        q.standing && (q.overlimits_per_sec > 0.0 || q.drops_per_sec > 0.0)
    };
    let qdisc = view.qdiscs.iter().find(full)?;
    let interface = view.interfaces.iter().find(|i| i.name == qdisc.interface)?;
    Some(Met {
        limit: HostLimit::Network,
        severity: 1.05,
        what: format!(
            "{} sends {} and its queue ({}) never empties",
            qdisc.interface,
            format_bits_per_sec(interface.tx_bits_per_sec),
            qdisc.kind
        ),
        who: mover(view, true, interface),
        evidence: queue_words(view, &qdisc.interface),
    })
}

fn loss(view: &View) -> Option<Met> {
    let share = view
        .protocols
        .retransmit_share
        .filter(|s| *s >= LOSS_SHARE)?;
    let out = view.protocols.segments_out_per_sec?;
    let again = view.protocols.retransmits_per_sec?;
    if out < LOSS_SEGMENTS_PER_SEC {
        return None;
    }
    let worst = view
        .flows
        .iter()
        .max_by(|a, b| a.retransmits_per_sec.total_cmp(&b.retransmits_per_sec))
        .filter(|flow| flow.retransmits_per_sec > 0.0);
    let mut evidence = vec![format!(
        "{again:.0} of {:.0} segments per second were retransmitted",
        out + again
    )];
    evidence.extend(worst.map(|flow| {
        format!(
            "most to {}: {:.0} per second",
            flow.remote, flow.retransmits_per_sec
        )
    }));
    Some(Met {
        limit: HostLimit::Network,
        severity: (share / LOSS_SHARE).min(1.04),
        what: format!("{} of TCP segments are lost on the way", percent(share)),
        who: None,
        evidence,
    })
}

fn quota(view: &View) -> Option<Met> {
    let throttled = view.cpu.throttled.filter(|t| *t >= THROTTLED)?;
    let quota = view.cpu.quota_cores?;
    Some(Met {
        limit: HostLimit::Cpu,
        severity: throttled / THROTTLED,
        what: format!(
            "this control group's quota of {quota:.2} cores ran out in {} of all periods",
            percent(throttled)
        ),
        who: None,
        evidence: vec![format!("CPUs {} busy", percent(view.cpu.busy))],
    })
}

fn all_cores(view: &View) -> Option<Met> {
    let busy = Some(view.cpu.busy).filter(|busy| *busy >= ALL_CORES_BUSY)?;
    let mut evidence = Vec::new();
    evidence.extend(view.busiest_core().map(core_words));
    evidence.extend(pressure_words(view));
    Some(Met {
        limit: HostLimit::Cpu,
        severity: busy / ALL_CORES_BUSY,
        what: format!(
            "all {} CPUs are {} busy",
            view.cpu.cores.len(),
            percent(busy)
        ),
        who: user_of_cpu(view),
        evidence,
    })
}

fn one_core(view: &View) -> Option<Met> {
    let core = view.busiest_core().filter(|c| c.busy >= ONE_CORE_BUSY)?;
    let mut evidence = vec![
        core_words(core),
        format!("all CPUs together {} busy", percent(view.cpu.busy)),
    ];
    evidence.extend(squeezed_words(core));
    let packets = core.softirq >= SOFTIRQ_CORE;
    let what = if packets {
        format!(
            "cpu{} is full of packet processing (softirq {})",
            core.cpu,
            percent(core.softirq)
        )
    } else {
        format!(
            "cpu{} is {} busy, all CPUs together {}",
            core.cpu,
            percent(core.busy),
            percent(view.cpu.busy)
        )
    };
    let is_alone = |who: &Who| who.share.is_some_and(|s| s > 0.0);
    Some(Met {
        limit: HostLimit::Cpu,
        severity: core.busy / ONE_CORE_BUSY,
        what,
        who: user_of_cpu(view).filter(|who| !packets && is_alone(who)),
        evidence,
    })
}

/// A single thread that the scheduler moves about fills no one core, and is limited by one all the
/// same.
fn one_thread(view: &View) -> Option<Met> {
    let full = |p: &&ProcessView| p.threads == 1 && p.cpu_cores >= ONE_THREAD_BUSY;
    let process = view.processes.iter().find(full)?;
    Some(Met {
        limit: HostLimit::Cpu,
        severity: (process.cpu_cores / ONE_THREAD_BUSY).min(1.02),
        what: format!(
            "one thread uses {} of a core, and can use no more",
            percent(process.cpu_cores)
        ),
        who: Some(Who {
            pid: process.pid?,
            name: process.name.clone(),
            share: None,
            peer: None,
        }),
        evidence: vec![format!("all CPUs together {} busy", percent(view.cpu.busy))],
    })
}

fn steal(view: &View) -> Option<Met> {
    let cores = &view.cpu.cores;
    let stolen = cores.iter().map(|c| c.steal).sum::<f64>() / cores.len().max(1) as f64;
    (stolen >= STEAL).then(|| Met {
        limit: HostLimit::Cpu,
        severity: (stolen / STEAL).min(1.03),
        what: format!(
            "the hypervisor takes {} of the CPUs' time (steal)",
            percent(stolen)
        ),
        who: None,
        evidence: vec![format!(
            "CPUs {} busy, steal included",
            percent(view.cpu.busy)
        )],
    })
}

fn disk(view: &View) -> Option<Met> {
    let disk = view.disks.first().filter(|d| d.utilisation >= DISK_BUSY)?;
    let pressure = view.memory.disk_pressure;
    if pressure.is_some_and(|p| p < DISK_PRESSURE) {
        return None;
    }
    let mut evidence = vec![format!(
        "{}: {}/s read, {}/s written, {:.1} requests in flight",
        disk.name,
        format_bytes(disk.read_bytes_per_sec as u64),
        format_bytes(disk.written_bytes_per_sec as u64),
        disk.queue
    )];
    evidence.extend(
        disk.await_ms
            .map(|ms| format!("a request takes {ms:.1} ms")),
    );
    evidence.extend(pressure.map(|p| format!("tasks waited for disks {} of the time", percent(p))));
    Some(Met {
        limit: HostLimit::Disk,
        severity: disk.utilisation / DISK_BUSY,
        what: format!(
            "{} is busy {} of the time",
            disk.name,
            percent(disk.utilisation)
        ),
        who: user_of_disk(view),
        evidence,
    })
}

fn memory(view: &View) -> Option<Met> {
    let memory = &view.memory;
    let pressure = memory.pressure.filter(|p| *p >= MEMORY_PRESSURE);
    let left = memory
        .available_bytes
        .zip(memory.total_bytes)
        .map(|(available, total)| available as f64 / total.max(1) as f64);
    let swaps = memory
        .swapped_pages_per_sec
        .is_some_and(|pages| pages > 0.0);
    let short = left.is_some_and(|left| left < MEMORY_LEFT) && swaps;
    if pressure.is_none() && !short {
        return None;
    }
    let what = match pressure {
        Some(pressure) => format!("tasks waited for memory {} of the time", percent(pressure)),
        None => "memory is short, and pages go to swap and back".to_owned(),
    };
    let mut evidence = Vec::new();
    evidence.extend(left.map(|left| format!("{} of memory is available", percent(left))));
    evidence.extend(
        memory
            .swapped_pages_per_sec
            .map(|p| format!("{p:.0} pages swapped per second")),
    );
    evidence.extend(
        memory
            .cgroup_share
            .map(|s| format!("this control group uses {} of its limit", percent(s))),
    );
    let largest = view.processes.iter().max_by_key(|p| p.resident_pages);
    Some(Met {
        limit: HostLimit::Memory,
        severity: pressure.unwrap_or(MEMORY_PRESSURE) / MEMORY_PRESSURE,
        what,
        who: largest.and_then(|p| who(p, None)),
        evidence,
    })
}

/// The process that moves most bytes in one direction, and whom it moves them with.
fn mover(view: &View, sends: bool, interface: &InterfaceView) -> Option<Who> {
    let rate = |flow: &FlowView| match sends {
        true => flow.tx_bits_per_sec,
        false => flow.rx_bits_per_sec,
    };
    let all = match sends {
        true => interface.tx_bits_per_sec,
        false => interface.rx_bits_per_sec,
    };
    let flows = || view.flows.iter().filter(|flow| leaves_the_host(flow));
    let mut rates: BTreeMap<u32, f64> = BTreeMap::new();
    for flow in flows() {
        if let Some(pid) = flow.pid {
            *rates.entry(pid).or_default() += rate(flow);
        }
    }
    let (pid, most) = rates.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    // Payload over frames: a few per cent less than the truth, never more than all.
    let share = Some(most / all).filter(|s| s.is_finite() && *s > 0.0)?;
    let own = flows().filter(|flow| flow.pid == Some(pid));
    let largest = own.max_by(|a, b| rate(a).total_cmp(&rate(b)))?;
    Some(Who {
        pid,
        name: largest.process.clone(),
        share: Some(share.min(1.0)),
        peer: Some(largest.remote.ip()),
    })
}

/// Traffic of a host with itself fills no link.
fn leaves_the_host(flow: &FlowView) -> bool {
    let (local, remote) = (flow.local.ip(), flow.remote.ip());
    !remote.is_loopback() && local != remote
}

fn user_of_cpu(view: &View) -> Option<Who> {
    let all: f64 = view.cpu.cores.iter().map(|c| c.busy).sum();
    let most = view
        .processes
        .iter()
        .max_by(|a, b| a.cpu_cores.total_cmp(&b.cpu_cores))?;
    let share = Some(most.cpu_cores / all).filter(|s| s.is_finite() && *s > 0.0)?;
    who(most, Some(share.min(1.0)))
}

fn user_of_disk(view: &View) -> Option<Who> {
    let of = |p: &ProcessView| {
        p.read_bytes_per_sec.unwrap_or(0.0) + p.written_bytes_per_sec.unwrap_or(0.0)
    };
    let all: f64 = view.processes.iter().map(of).sum();
    let most = view
        .processes
        .iter()
        .max_by(|a, b| of(a).total_cmp(&of(b)))?;
    let share = Some(of(most) / all).filter(|s| s.is_finite() && *s > 0.0)?;
    who(most, Some(share))
}

fn who(process: &ProcessView, share: Option<f64>) -> Option<Who> {
    Some(Who {
        pid: process.pid?,
        name: process.name.clone(),
        share,
        peer: None,
    })
}

fn queue_words(view: &View, interface: &str) -> Vec<String> {
    let queues = view.qdiscs.iter().filter(|q| q.interface == interface);
    queues
        .map(|q| {
            format!(
                "{} {}: {} waiting, {:.0} drops and {:.0} overlimits per second",
                q.interface,
                q.kind,
                format_bytes(q.backlog_bytes.into()),
                q.drops_per_sec,
                q.overlimits_per_sec
            )
        })
        .collect()
}

fn core_words(core: &CoreView) -> String {
    format!(
        "cpu{} {} busy: user {}, system {}, softirq {}, steal {}",
        core.cpu,
        percent(core.busy),
        percent(core.user),
        percent(core.system),
        percent(core.softirq),
        percent(core.steal)
    )
}

fn squeezed_words(core: &CoreView) -> Option<String> {
    let (squeezed, drops) = core.squeezed_per_sec.zip(core.softnet_drops_per_sec)?;
    (squeezed + drops > 0.0).then(|| {
        format!(
            "cpu{} left packets waiting {squeezed:.0} times and dropped {drops:.0} per second",
            core.cpu
        )
    })
}

fn pressure_words(view: &View) -> Option<String> {
    let pressure = view.cpu.pressure?;
    Some(format!(
        "tasks waited for a CPU {} of the time",
        percent(pressure)
    ))
}

fn link_words(interface: &InterfaceView) -> String {
    let rates = format!(
        "receives {} and sends {}",
        format_bits_per_sec(interface.rx_bits_per_sec),
        format_bits_per_sec(interface.tx_bits_per_sec)
    );
    match interface.utilisation {
        Some(utilisation) => format!(
            "{rates}, {} of its {}",
            percent(utilisation),
            speed(interface)
        ),
        None => format!("{rates} (link speed unknown)"),
    }
}

fn traffic(interface: &InterfaceView) -> f64 {
    interface.rx_bits_per_sec + interface.tx_bits_per_sec
}

fn speed(interface: &InterfaceView) -> String {
    interface
        .link
        .speed_bits_per_sec
        .map_or_else(|| "-".to_owned(), format_bits_per_sec)
}

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{CpuView, DiskView, MemoryView, ProtocolView, QdiscView};
    use ew_model::telemetry::InterfaceLink;

    fn core(cpu: u32, busy: f64, softirq: f64) -> CoreView {
        CoreView {
            cpu,
            busy,
            softirq,
            user: busy - softirq,
            ..CoreView::default()
        }
    }

    fn link(tx: f64, speed: Option<f64>) -> InterfaceView {
        InterfaceView {
            name: "eth0".into(),
            tx_bits_per_sec: tx,
            utilisation: speed.map(|speed| tx / speed),
            link: InterfaceLink {
                speed_bits_per_sec: speed,
                carrier: true,
                ..InterfaceLink::default()
            },
            ..InterfaceView::default()
        }
    }

    fn process(pid: u32, cpu_cores: f64) -> ProcessView {
        ProcessView {
            pid: Some(pid),
            name: format!("p{pid}"),
            threads: 4,
            cpu_cores,
            ..ProcessView::default()
        }
    }

    /// Two cores, one link of 1 Gb/s, all at ease.
    fn at_ease() -> View {
        View {
            cpu: CpuView {
                busy: 0.2,
                cores: vec![core(0, 0.1, 0.0), core(1, 0.3, 0.1)],
                ..CpuView::default()
            },
            interfaces: vec![link(120e6, Some(1e9))],
            processes: vec![process(7, 0.1), process(8, 0.3)],
            flows: vec![FlowView {
                local: "192.0.2.1:5000".parse().unwrap(),
                remote: "192.0.2.9:40000".parse().unwrap(),
                pid: Some(7),
                process: "p7".into(),
                rx_bits_per_sec: 0.0,
                tx_bits_per_sec: 100e6,
                retransmits_per_sec: 30.0,
                rtt_us: 100,
                closed: false,
                limited_by: None,
            }],
            ..View::default()
        }
    }

    #[test]
    fn a_host_at_ease_has_no_limit_and_says_its_numbers() {
        let verdict = verdict(&at_ease());
        assert_eq!(verdict.limit, HostLimit::None);
        assert_eq!(
            verdict.sentence,
            "nothing is the limit: eth0 receives 0.00 b/s and sends 120 Mb/s, 12% of its 1.00 Gb/s, CPUs 20% busy, \
             the busiest, cpu1, 30%"
        );
    }

    #[test]
    fn a_full_link_names_process_share_and_peer() {
        let mut view = at_ease();
        view.interfaces = vec![link(960e6, Some(1e9))];
        view.flows[0].tx_bits_per_sec = 864e6;
        let verdict = verdict(&view);
        assert_eq!(verdict.limit, HostLimit::Network);
        assert_eq!(
            verdict.sentence,
            "network-bound: eth0 sends at 96% of its 1.00 Gb/s; most by p7 (pid 7, 90%, with 192.0.2.9)"
        );
    }

    #[test]
    fn what_stays_on_the_host_fills_no_link() {
        let mut view = at_ease();
        view.interfaces = vec![link(960e6, Some(1e9))];
        let flow = |pid: u32, remote: &str, tx_bits_per_sec| FlowView {
            pid: Some(pid),
            process: format!("p{pid}"),
            remote: remote.parse().unwrap(),
            tx_bits_per_sec,
            ..view.flows[0].clone()
        };
        view.flows = vec![
            flow(8, "127.0.0.1:80", 9e9),
            flow(8, "192.0.2.1:80", 9e9),
            flow(7, "127.0.0.1:80", 9e9),
            flow(7, "192.0.2.9:80", 200e6),
            flow(7, "192.0.2.8:80", 300e6),
            flow(8, "192.0.2.7:80", 400e6),
        ];
        let who = verdict(&view).who.unwrap();
        let peer = Some("192.0.2.8".parse().unwrap());
        assert_eq!((who.pid, who.peer), (7, peer));
        assert!((who.share.unwrap() - 500.0 / 960.0).abs() < 1e-9);
    }

    #[test]
    fn loopback_is_no_network() {
        let mut view = at_ease();
        let mut loopback = link(2e9, Some(1e9));
        loopback.link.loopback = true;
        view.interfaces = vec![loopback];
        assert_eq!(verdict(&view).limit, HostLimit::None);
    }

    #[test]
    fn a_link_of_unknown_speed_is_full_when_its_queue_never_empties() {
        let mut view = at_ease();
        view.interfaces = vec![link(100e6, None)];
        let qdisc = QdiscView {
            interface: "eth0".into(),
            kind: "tbf".into(),
            standing: true,
            overlimits_per_sec: 900.0,
            ..QdiscView::default()
        };
        view.qdiscs = vec![qdisc.clone()];
        assert_eq!(verdict(&view).limit, HostLimit::Network);
        view.qdiscs = vec![QdiscView {
            standing: false,
            ..qdisc
        }];
        assert_eq!(verdict(&view).limit, HostLimit::None);
    }

    #[test]
    fn a_shaper_is_a_slower_link() {
        let mut view = at_ease();
        view.interfaces = vec![link(99e6, None)];
        view.interfaces[0].shaped_bits_per_sec = Some(100e6);
        let full = verdict(&view).sentence;
        assert!(
            full.contains("sends at 99% of the 100 Mb/s that its shaper"),
            "{full}"
        );
        view.interfaces[0].shaped_bits_per_sec = Some(200e6);
        assert_eq!(verdict(&view).limit, HostLimit::None);
    }

    #[test]
    fn a_core_full_of_packets_is_nobodys() {
        let mut view = at_ease();
        view.cpu.cores[1] = core(1, 0.99, 0.9);
        let verdict = verdict(&view);
        assert_eq!((verdict.limit, verdict.who), (HostLimit::Cpu, None));
        assert!(
            verdict.sentence.contains("packet processing (softirq 90%)"),
            "{}",
            verdict.sentence
        );
    }

    #[test]
    fn a_hog_is_named_on_one_core_on_all_and_between_them() {
        let mut view = at_ease();
        view.processes[1].cpu_cores = 0.98;
        view.cpu.cores[1] = core(1, 1.0, 0.0);
        assert_eq!(verdict(&view).who.unwrap().pid, 8);
        view.cpu.busy = 0.97;
        assert!(
            verdict(&view)
                .sentence
                .starts_with("CPU-bound: all 2 CPUs are 97% busy; most by p8")
        );
        view.cpu = at_ease().cpu;
        view.processes[1].threads = 1;
        assert!(
            verdict(&view)
                .sentence
                .contains("one thread uses 98% of a core")
        );
        view.processes[1].threads = 2;
        assert_eq!(verdict(&view).limit, HostLimit::None);
    }

    #[test]
    fn a_busy_disk_limits_only_those_that_wait() {
        let mut view = at_ease();
        view.disks = vec![DiskView {
            name: "sda".into(),
            utilisation: 0.99,
            await_ms: Some(12.5),
            ..DiskView::default()
        }];
        view.processes[0].written_bytes_per_sec = Some(1e6);
        view.memory.disk_pressure = Some(0.02);
        assert_eq!(verdict(&view).limit, HostLimit::None);
        view.memory.disk_pressure = Some(0.6);
        let verdict = verdict(&view);
        assert_eq!(
            (verdict.limit, verdict.who.unwrap().pid),
            (HostLimit::Disk, 7)
        );
        assert!(
            verdict
                .evidence
                .iter()
                .any(|e| e == "a request takes 12.5 ms")
        );
    }

    #[test]
    fn memory_quota_steal_and_loss_are_limits_too() {
        let mut view = at_ease();
        view.memory = MemoryView {
            pressure: Some(0.3),
            ..MemoryView::default()
        };
        assert_eq!(verdict(&view).limit, HostLimit::Memory);
        view.cpu.throttled = Some(0.9);
        view.cpu.quota_cores = Some(0.5);
        let both = verdict(&view);
        assert!(
            both.sentence.contains("quota of 0.50 cores ran out in 90%"),
            "{}",
            both.sentence
        );
        assert!(
            both.also[0].starts_with("memory-bound"),
            "the lesser limit is reported, too"
        );
        let mut view = at_ease();
        view.cpu.cores[0].steal = 0.3;
        assert!(verdict(&view).sentence.contains("hypervisor"));
        let mut view = at_ease();
        view.protocols = ProtocolView {
            segments_out_per_sec: Some(950.0),
            retransmits_per_sec: Some(50.0),
            retransmit_share: Some(0.05),
            ..ProtocolView::default()
        };
        let verdict = verdict(&view);
        assert_eq!(verdict.limit, HostLimit::Network);
        assert!(
            verdict.evidence[1].starts_with("most to 192.0.2.9:40000"),
            "{:?}",
            verdict.evidence
        );
    }
}
