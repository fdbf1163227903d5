//! Who moves bytes on this host, cheap enough to be read during a measurement.
//!
//! One list of all TCP sockets: a walk of the kernel's table (its size goes with the host's memory:
//! 0.1 to 2 ms) and 1.5 µs a socket, which is locked only while its own counters are copied. Closed
//! sockets come from the kernel. Owners are searched among the agent's own files first, and in
//! all of /proc only for sockets that carried much.
//!
//! UDP sockets count no bytes: only who holds them and what they dropped is reported (1 µs a
//! socket), with the host's datagrams in `/proc/net/snmp`.

use crate::byte_totals::{ByteTotals, Segments};
use crate::file::{FileBuffer, read_net};
use crate::own::OwnConnections;
use crate::owners::SocketOwners;
use crate::processes::name_and_parent;
use crate::udp_totals::{UdpTotals, UdpUse};
use ew_model::telemetry::{ProcessTraffic, TcpSocket};
use ew_sys::clock::monotonic_ns;
use ew_sys::sock_diag::{SocketLister, TcpDeaths};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::path::Path;

/// A socket that carried less is not worth a search of /proc.
const MIN_BYTES: u64 = 64 << 10;
/// With more sockets than this a list would take 30 ms and more, and 5 MB.
const MAX_SOCKETS: u64 = 20_000;
/// Processes reported that hold UDP sockets and move nothing over TCP.
const UDP_HOLDERS_TOLD: usize = 16;
/// Each closed connection costs the kernel 2 to 3 µs to report. Beyond so many in one reading it is
/// not asked to.
const MAX_DEATHS: usize = 2_000;
/// For how long it is not asked then, at first and at most.
const SILENCE_NS: u64 = 10_000_000_000;
const LONGEST_SILENCE_NS: u64 = 160_000_000_000;
/// More generations between a process and the agent that started it are not followed.
const MAX_GENERATIONS: usize = 32;

/// Why there is no list of sockets.
#[derive(Debug, thiserror::Error)]
enum ListError {
    /// More than can be listed in little time.
    #[error(
        "traffic by process: {sockets} TCP sockets are too many to list during a measurement (at most {MAX_SOCKETS})"
    )]
    ManyTcp {
        /// In use.
        sockets: u64,
    },
    /// As [`ListError::ManyTcp`].
    #[error(
        "UDP sockets by process: {sockets} are too many to list during a measurement (at most {MAX_SOCKETS})"
    )]
    ManyUdp {
        /// In use.
        sockets: u64,
    },
    /// The kernel has no lists.
    #[error("traffic by process: the kernel has no sock_diag (modules inet_diag, tcp_diag)")]
    NoSockDiag,
    /// The kernel has no list of these.
    #[error("traffic by process: {0} (module tcp_diag)")]
    Tcp(#[source] io::Error),
    /// The kernel has no list of these.
    #[error("UDP sockets: {0} (module udp_diag)")]
    Udp(#[source] io::Error),
}

/// What one reading found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traffic {
    /// When. `None` when nothing could be read.
    pub(crate) read_ns: Option<u64>,
    /// The largest movers since the first reading, then who only holds UDP sockets.
    pub(crate) processes: Vec<ProcessTraffic>,
    /// What sockets sent that are neither the agent's nor its children's, since the first reading.
    pub(crate) others: Segments,
    /// What could not be seen, in words.
    pub(crate) unseen: Vec<String>,
}

/// Reads again and again; for the network namespace of the thread that made it.
#[derive(Debug)]
pub(crate) struct TrafficReader {
    lister: Option<SocketLister>,
    deaths: Deaths,
    owners: SocketOwners,
    byte_totals: ByteTotals,
    udp: UdpTotals,
    people: People,
    own: OwnConnections,
    living: Vec<TcpSocket>,
    died: Vec<TcpSocket>,
}

impl TrafficReader {
    pub(crate) fn new(own: OwnConnections) -> Self {
        Self {
            own,
            lister: SocketLister::open().ok(),
            deaths: Deaths::new(),
            owners: SocketOwners::default(),
            byte_totals: ByteTotals::default(),
            udp: UdpTotals::default(),
            people: People::default(),
            living: Vec::new(),
            died: Vec::new(),
        }
    }

    pub(crate) fn read(&mut self, root: &Path, buffer: &mut FileBuffer) -> Traffic {
        let mut traffic = Traffic::default();
        if let Err(reason) = self.list(root, buffer) {
            traffic.unseen.push(reason.to_string());
            return traffic;
        }
        traffic.read_ns = Some(monotonic_ns());
        traffic.unseen.extend(self.deaths.drain(&mut self.died));
        let (own, owners, listeners) = (&self.own, &self.owners, listeners(&self.living));
        // A connection that lived between two readings only was accepted by who listens on its
        // port, or is nobody's.
        let guess = |local: SocketAddr, remote| {
            let is_ours = own.include(local, remote).then(std::process::id);
            is_ours.or_else(|| owners.of(*listeners.get(&local.port())?))
        };
        self.byte_totals.take(&self.living, &self.died, &guess);
        if let Err(reason) = self.list_udp(root, buffer) {
            traffic.unseen.push(reason.to_string());
        }
        self.find_owners(root, listeners.values().copied().collect());
        traffic.processes = self.byte_totals.traffic();
        add_udp(&mut traffic.processes, self.udp.uses());
        for process in &mut traffic.processes {
            if let Some(pid) = process.pid {
                (process.command, process.is_ours) = self.people.of(root, buffer, pid);
            }
        }
        traffic.others = self.others(root, buffer);
        if self.owners.refused() > 0 {
            traffic.unseen.push(format!(
                "the sockets of {} process(es) of other users: their traffic has no process (needs root or CAP_SYS_PTRACE)",
                self.owners.refused()
            ));
        }
        traffic
    }

    /// Sockets of unknown owners are others', unless their ends are the run's.
    fn others(&mut self, root: &Path, buffer: &mut FileBuffer) -> Segments {
        let own = &self.own;
        let guess = |local, remote| own.include(local, remote).then(std::process::id);
        let mut others = Segments::default();
        for (pid, segments) in self.byte_totals.segments(&guess) {
            if !pid.is_some_and(|pid| self.people.of(root, buffer, pid).1) {
                others.add(segments);
            }
        }
        others
    }

    fn list(&mut self, root: &Path, buffer: &mut FileBuffer) -> Result<(), ListError> {
        self.living.clear();
        self.died.clear();
        let sockets = sockets_in_use(root, buffer, "TCP");
        if sockets > MAX_SOCKETS {
            return Err(ListError::ManyTcp { sockets });
        }
        let lister = self.lister.as_mut().ok_or(ListError::NoSockDiag)?;
        lister.tcp(&mut self.living).map_err(ListError::Tcp)
    }

    fn list_udp(&mut self, root: &Path, buffer: &mut FileBuffer) -> Result<(), ListError> {
        let sockets = sockets_in_use(root, buffer, "UDP");
        if sockets > MAX_SOCKETS {
            return Err(ListError::ManyUdp { sockets });
        }
        let mut living = Vec::new();
        if let Some(lister) = &mut self.lister {
            lister.udp(&mut living).map_err(ListError::Udp)?;
        }
        self.udp.take(&living);
        Ok(())
    }

    /// Most new sockets are the agent's own, and its files are few.
    fn find_owners(&mut self, root: &Path, listeners: BTreeSet<u32>) {
        let new = self.byte_totals.ownerless(0).chain(self.udp.ownerless());
        self.owners.look_at_own(root, &new.collect());
        self.name_owners();
        let carried_much = self.byte_totals.ownerless(MIN_BYTES);
        let wanted = carried_much.chain(self.udp.worth_a_search());
        self.owners.update(root, &wanted.chain(listeners).collect());
        self.name_owners();
    }

    fn name_owners(&mut self) {
        let owner = |inode| self.owners.of(inode);
        self.byte_totals.name_owners(&owner);
        self.udp.name_owners(&owner);
    }
}

/// Those that move nothing over TCP come behind, the largest losers first.
fn add_udp(processes: &mut Vec<ProcessTraffic>, mut uses: BTreeMap<Option<u32>, UdpUse>) {
    let reported = |pid, used: UdpUse| ProcessTraffic {
        pid,
        udp_sockets: used.sockets,
        udp_drops: used.drops,
        ..ProcessTraffic::default()
    };
    for process in processes.iter_mut() {
        let used = uses.remove(&process.pid).unwrap_or_default();
        (process.udp_sockets, process.udp_drops) = (used.sockets, used.drops);
    }
    let mut others: Vec<ProcessTraffic> =
        uses.into_iter().map(|(pid, u)| reported(pid, u)).collect();
    others.sort_by_key(|p| std::cmp::Reverse((p.udp_drops, p.udp_sockets)));
    others.truncate(UDP_HOLDERS_TOLD);
    processes.append(&mut others);
}

/// Ports that are listened on, and the listener's inode.
fn listeners(sockets: &[TcpSocket]) -> BTreeMap<u16, u32> {
    let listening = sockets.iter().filter(|s| s.state == TcpSocket::LISTEN);
    listening.map(|s| (s.local.port(), s.inode)).collect()
}

/// `TCP: inuse 31 orphan 0 ...` and `TCP6: inuse 4` of this network namespace. 0 when the kernel
/// does not report.
fn sockets_in_use(root: &Path, buffer: &mut FileBuffer, protocol: &str) -> u64 {
    let mut in_use = 0;
    for (file, family) in [("sockstat", ""), ("sockstat6", "6")] {
        let text = read_net(buffer, root, file).unwrap_or_default();
        let name = format!("{protocol}{family}: inuse ");
        let line = text.lines().find_map(|line| line.strip_prefix(&*name));
        let count = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        in_use += count.unwrap_or(0);
    }
    in_use
}

/// The kernel's news of closed sockets, asked for as long as they are few: reporting them costs the
/// host that is measured.
#[derive(Debug)]
struct Deaths {
    reported: Option<TcpDeaths>,
    ask_again_ns: u64,
    silence_ns: u64,
}

impl Deaths {
    fn new() -> Self {
        Self {
            reported: TcpDeaths::open().ok(),
            ask_again_ns: 0,
            silence_ns: SILENCE_NS,
        }
    }

    /// Adds what died since the last call. Returns what is not reported, in words.
    fn drain(&mut self, died: &mut Vec<TcpSocket>) -> Option<String> {
        let now_ns = monotonic_ns();
        if self.reported.is_none() && now_ns >= self.ask_again_ns {
            self.reported = TcpDeaths::open().ok();
        }
        let missed = self.reported.as_mut().map(|reported| reported.drain(died));
        match missed {
            Some(Ok(0)) if died.len() <= MAX_DEATHS => {
                self.silence_ns = SILENCE_NS;
                return None;
            }
            Some(_) => {
                self.reported = None;
                self.ask_again_ns = now_ns + self.silence_ns;
                self.silence_ns = (self.silence_ns * 2).min(LONGEST_SILENCE_NS);
            }
            None => {}
        }
        Some("what connections carried in their last moments: too many close, or the kernel does not report".into())
    }
}

/// Names of processes, and which the agent started.
#[derive(Debug, Default)]
struct People {
    known: BTreeMap<u32, (String, bool)>,
}

impl People {
    /// A process' name and whether it is the agent or its child. A process that ended keeps what
    /// was known of it.
    fn of(&mut self, root: &Path, buffer: &mut FileBuffer, pid: u32) -> (String, bool) {
        if let Some(known) = self.known.get(&pid) {
            return known.clone();
        }
        let found = find(root, buffer, pid, std::process::id());
        found.map_or_else(Default::default, |found| {
            self.known.insert(pid, found.clone());
            found
        })
    }
}

fn find(root: &Path, buffer: &mut FileBuffer, pid: u32, agent: u32) -> Option<(String, bool)> {
    let (name, mut parent) = name_and_parent(root, buffer, pid)?;
    let mut is_ours = pid == agent;
    for _ in 0..MAX_GENERATIONS {
        is_ours |= parent == agent;
        if is_ours || parent <= 1 {
            break;
        }
        parent = name_and_parent(root, buffer, parent).map_or(0, |(_, parent)| parent);
    }
    Some((name, is_ours))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_of_children_are_ours() {
        let root = tempfile::tempdir().unwrap();
        for (pid, name, parent) in [
            (1, "init", 0),
            (20, "agent", 1),
            (21, "sh", 20),
            (22, "iperf (3)", 21),
            (30, "backup", 1),
            (41, "loop", 42),
            (42, "loop", 41),
        ] {
            let folder = root.path().join(format!("proc/{pid}"));
            std::fs::create_dir_all(&folder).unwrap();
            let text = format!("{pid} ({name}) S {parent} 1 1 0 -1 64");
            std::fs::write(folder.join("stat"), text).unwrap();
        }
        let find = |pid| find(root.path(), &mut FileBuffer::default(), pid, 20);
        assert_eq!(find(22), Some(("iperf (3)".into(), true)));
        assert_eq!(find(20), Some(("agent".into(), true)));
        assert_eq!(find(30), Some(("backup".into(), false)));
        assert_eq!(find(41), Some(("loop".into(), false)));
        assert_eq!(find(99), None);
    }

    #[test]
    fn sockets_are_counted_before_they_are_listed() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("proc/self/net");
        std::fs::create_dir_all(&folder).unwrap();
        let four = "sockets: used 300\nTCP: inuse 19990 orphan 0 tw 1 alloc 5 mem 4\n";
        std::fs::write(folder.join("sockstat"), four).unwrap();
        std::fs::write(folder.join("sockstat6"), "TCP6: inuse 40\nUDP6: inuse 9\n").unwrap();
        let mut buffer = FileBuffer::default();
        assert_eq!(sockets_in_use(root.path(), &mut buffer, "TCP"), 20_030);
        assert_eq!(sockets_in_use(root.path(), &mut buffer, "UDP"), 9);
        let traffic = TrafficReader::new(OwnConnections::default()).read(root.path(), &mut buffer);
        assert_eq!(traffic.read_ns, None);
        assert!(
            traffic.unseen[0].contains("20030 TCP sockets"),
            "{traffic:?}"
        );
    }

    #[test]
    fn who_holds_udp_comes_behind_who_moves_bytes() {
        let moved = |pid| ProcessTraffic {
            pid: Some(pid),
            sent_bytes: 1,
            ..ProcessTraffic::default()
        };
        let mut processes = vec![moved(5), moved(6)];
        let used = |sockets, drops| UdpUse { sockets, drops };
        let uses = [
            (None, used(1, 0)),
            (Some(6), used(2, 3)),
            (Some(7), used(1, 4)),
        ];
        add_udp(&mut processes, uses.into_iter().collect());
        let reported = processes.iter();
        let reported: Vec<_> = reported
            .map(|p| (p.pid, p.udp_sockets, p.udp_drops))
            .collect();
        let others = [(Some(7), 1, 4), (None, 1, 0)];
        assert_eq!(reported[..2], [(Some(5), 0, 0), (Some(6), 2, 3)]);
        assert_eq!(reported[2..], others);
    }

    /// What a full buffer drops is its holder's: this process', whose files are checked first.
    #[test]
    fn datagrams_dropped_here_are_this_processs() {
        let mut reader = TrafficReader::new(OwnConnections::default());
        let mut buffer = FileBuffer::default();
        let mut own_drops = || {
            let traffic = reader.read(Path::new("/"), &mut buffer);
            let own = traffic.processes.into_iter();
            let own = own.filter(|p| p.pid == Some(std::process::id()));
            own.map(|p| p.udp_drops).sum::<u64>()
        };
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(own_drops(), 0);
        let address = socket.local_addr().unwrap();
        // More than any default receive buffer holds: nobody reads.
        for _ in 0..2_000 {
            let _ = socket.send_to(&[0; 8_000], address);
        }
        assert!(own_drops() > 0);
    }

    #[test]
    fn this_host_is_read() {
        let traffic = TrafficReader::new(OwnConnections::default())
            .read(Path::new("/"), &mut FileBuffer::default());
        assert!(traffic.read_ns.is_some(), "{traffic:?}");
    }
}
