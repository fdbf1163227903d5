//! Processes that are in the way on purpose: one that sends, one that keeps a CPU busy, one that
//! writes to disk; and traffic between racks by hosts that take no part, which is sent and received
//! at the leaves.
//!
//! An intruder is the calling program started anew inside the host. It ends with the lab: it holds
//! on to the keeper and ends when that does, however it ends.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ew_model::topology::{BackgroundSpec, BurstSpec, HostSpec};
use ew_sys::namespace::{ProcessHandle, effective_user_id};
use serde::{Deserialize, Serialize};
use socket2::{Domain, Socket, Type};

use crate::addresses::{Addresses, address, host_number};
use crate::error::LabError;
use crate::spec::LabSpec;
use crate::state;

const VARIABLE: &str = "EASTWEST_LAB_INTRUDER";

/// The discard service (RFC 863), on the controller.
const SINK_PORT: u16 = 9;
const CONNECT_LIMIT: Duration = Duration::from_secs(2);

/// How often the neighbour hands over what its rate allows, and each connection of background
/// traffic.
const SENDS_PER_SEC: u32 = 100;
const BACKGROUND_SENDS_PER_SEC: u32 = 25;

/// How long a hog takes and leaves the CPU in turn, when it is woken in time. Short, since what the
/// kernel does for other hosts on this CPU waits as long.
const HOG_PERIOD: Duration = Duration::from_millis(2);
/// A waking that comes this many times later than asked for is a pause of the whole machine, which
/// a hog does not make up for.
const LATEST_WAKING: u32 = 4;

/// What the writer writes at once and how many of these are under way, past the page cache: a disk
/// is full, not a CPU. Smaller writes, or more of them, keep it no busier and cost up to twice the
/// CPU time.
const WRITE_BYTES: usize = 4 << 20;
const WRITERS: u64 = 2;
/// What the kernel asks of memory that a disk reads by itself (open(2), O_DIRECT): a logical block,
/// at most a page.
const ALIGNMENT: usize = 4096;

/// What an intruder does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Intruder {
    /// Sends to the controller over TCP at this rate, as far as the network lets it.
    Neighbour { to: IpAddr, bits_per_sec: u64 },
    /// Receives what neighbours, or hosts of other racks, send.
    Sink { at: IpAddr },
    /// Sends to another rack over TCP at this rate, as far as the network lets it.
    Background {
        from: IpAddr,
        to: IpAddr,
        bits_per_sec: u64,
        streams: u32,
        bursts: Option<BurstSpec>,
    },
    /// Takes this share of one CPU, before every ordinary process.
    CpuHog { cpu: usize, share: f64 },
    /// Writes to a disk without pause, and waits for each write.
    DiskWriter,
}

/// What is handed to the started process.
#[derive(Serialize, Deserialize)]
struct Order {
    intruder: Intruder,
    keeper_pid: u32,
    keeper_start_ticks: u64,
}

/// Those that a host is to have.
pub(crate) fn of_host(controller: IpAddr, host: &HostSpec) -> Vec<Intruder> {
    let neighbour = host.neighbour_bits_per_sec;
    let neighbour = neighbour.map(|bits_per_sec| Intruder::Neighbour {
        to: controller,
        bits_per_sec,
    });
    let hog = host.cpu_hog_share.map(|share| Intruder::CpuHog {
        cpu: hog_cpu(host),
        share,
    });
    let writer = host.disk_writer.then_some(Intruder::DiskWriter);
    [neighbour, hog, writer].into_iter().flatten().collect()
}

/// What sends a rack's background traffic.
pub(crate) fn of_background(addresses: Addresses, traffic: &BackgroundSpec) -> Intruder {
    Intruder::Background {
        from: addresses.tenant(traffic.from.index()),
        to: addresses.tenant(traffic.to.index()),
        bits_per_sec: traffic.rate_bits_per_sec,
        streams: traffic.streams,
        bursts: traffic.bursts,
    }
}

/// The CPUs that what is started on a host is bound to: its hog's, or those without hogs, since a
/// hog is to be in the way of its own host only. `None` where nobody has one, or all CPUs have.
pub(crate) fn cpus_of(lab: &LabSpec, host: &HostSpec) -> Option<Vec<usize>> {
    if host.cpu_hog_share.is_some() {
        return Some(vec![hog_cpu(host)]);
    }
    let with_hog = lab.hosts().filter(|host| host.cpu_hog_share.is_some());
    let taken: Vec<usize> = with_hog.map(hog_cpu).collect();
    let free: Vec<usize> = (0..cpu_count())
        .filter(|cpu| !taken.contains(cpu))
        .collect();
    (!taken.is_empty() && !free.is_empty()).then_some(free)
}

/// By the host's number in its rack.
fn hog_cpu(host: &HostSpec) -> usize {
    usize::from(host_number(address(host))) % cpu_count()
}

fn cpu_count() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Whether this machine can carry it.
pub(crate) fn check(intruder: Intruder) -> Result<(), LabError> {
    let unsupported = |problem: String| Err(LabError::Unsupported { problem });
    match intruder {
        Intruder::CpuHog { .. } if effective_user_id() != 0 => {
            unsupported("a cpu-hog needs root".into())
        }
        Intruder::DiskWriter if is_in_memory(&std::env::temp_dir()) => unsupported(format!(
            "a disk-writer needs a disk, and {} is in memory; let TMPDIR name a directory on a disk",
            std::env::temp_dir().display()
        )),
        _ => Ok(()),
    }
}

/// Makes `command`, which starts this program or one like it, an intruder of the lab with this
/// keeper.
pub(crate) fn prepare(
    command: &mut Command,
    intruder: Intruder,
    keeper: (u32, u64),
    log: &Path,
) -> Result<(), LabError> {
    use std::os::unix::process::CommandExt;
    let order = Order {
        intruder,
        keeper_pid: keeper.0,
        keeper_start_ticks: keeper.1,
    };
    let words = serde_json::to_string(&order).map_err(io::Error::other);
    let log_file = fs::File::options().append(true).create(true).open(log);
    command
        .env(VARIABLE, words.map_err(LabError::io("write", log))?)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log_file.map_err(LabError::io("open", log))?)
        .process_group(0);
    Ok(())
}

/// Whether a process is an intruder. False for one that has just ended, or that is somebody else's.
pub(crate) fn is_intruder(pid: u32) -> bool {
    order_of(pid).is_some()
}

/// Whether a process receives what intruders send.
pub(crate) fn is_sink(pid: u32) -> bool {
    let order = order_of(pid);
    order.is_some_and(|order| matches!(order.intruder, Intruder::Sink { .. }))
}

fn order_of(pid: u32) -> Option<Order> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let entries = environment.split(|byte| *byte == 0);
    let prefix = format!("{VARIABLE}=");
    let mut words = entries.filter_map(|entry| entry.strip_prefix(prefix.as_bytes()));
    serde_json::from_slice(words.next()?).ok()
}

/// Becomes an intruder, and never returns, when this process was started as one.
pub(crate) fn main_if_requested() {
    let Some(words) = std::env::var_os(VARIABLE) else {
        return;
    };
    let order: Result<Order, _> = serde_json::from_str(&words.to_string_lossy());
    let ended = match order {
        Ok(order) => live(&order),
        Err(error) => Err(io::Error::other(error)),
    };
    if let Err(error) = ended {
        // Standard error is the lab's log of intruders; when it is gone, so is the lab.
        let _ = writeln!(io::stderr(), "{}: {error}", words.to_string_lossy());
    }
    std::process::exit(1);
}

fn live(order: &Order) -> io::Result<()> {
    let _ = fs::write("/proc/self/comm", name(order.intruder));
    end_with_keeper(order)?;
    match order.intruder {
        Intruder::Neighbour { to, bits_per_sec } => Stream::neighbour(to, bits_per_sec).live(),
        Intruder::Sink { at } => receive_for_ever(at),
        Intruder::Background {
            from,
            to,
            bits_per_sec,
            streams,
            bursts,
        } => {
            let stream = Stream {
                from: Some(from),
                to,
                bits_per_sec: bits_per_sec / u64::from(streams.max(1)),
                sends_per_sec: BACKGROUND_SENDS_PER_SEC,
                bursts,
            };
            std::thread::scope(|scope| {
                for _ in 0..streams {
                    scope.spawn(|| stream.live());
                }
            });
            Ok(())
        }
        Intruder::CpuHog { cpu, share } => keep_busy(cpu, share),
        Intruder::DiskWriter => write_for_ever(),
    }
}

/// As `ps` and the findings show it.
fn name(intruder: Intruder) -> &'static str {
    match intruder {
        Intruder::Neighbour { .. } => "lab-neighbour",
        Intruder::Sink { .. } => "lab-sink",
        Intruder::Background { .. } => "lab-background",
        Intruder::CpuHog { .. } => "lab-cpu-hog",
        Intruder::DiskWriter => "lab-disk-writer",
    }
}

fn end_with_keeper(order: &Order) -> io::Result<()> {
    let keeper = ProcessHandle::open(order.keeper_pid)?;
    if state::start_ticks(order.keeper_pid) != Some(order.keeper_start_ticks) {
        return Err(io::Error::other("the lab's keeper has ended"));
    }
    std::thread::Builder::new().spawn(move || {
        while !keeper.wait_ended(Duration::from_secs(3600)) {}
        std::process::exit(0);
    })?;
    Ok(())
}

/// One connection that is made again when it is lost. What could not be sent in its time is not
/// made up for.
struct Stream {
    from: Option<IpAddr>,
    to: IpAddr,
    bits_per_sec: u64,
    sends_per_sec: u32,
    bursts: Option<BurstSpec>,
}

impl Stream {
    fn neighbour(to: IpAddr, bits_per_sec: u64) -> Self {
        Self {
            from: None,
            to,
            bits_per_sec,
            sends_per_sec: SENDS_PER_SEC,
            bursts: None,
        }
    }

    fn live(&self) -> io::Result<()> {
        let bytes = self.bits_per_sec / 8 / u64::from(self.sends_per_sec);
        let block = vec![0x5a; bytes.max(1) as usize];
        let begin = Instant::now();
        loop {
            if let Ok(mut stream) = self.connect() {
                while self.send_in_time(&mut stream, &block, begin).is_ok() {}
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let to = SocketAddr::from((self.to, SINK_PORT));
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, None)?;
        if let Some(from) = self.from {
            socket.bind(&SocketAddr::from((from, 0)).into())?;
        }
        socket.connect_timeout(&to.into(), CONNECT_LIMIT)?;
        socket.set_write_timeout(Some(CONNECT_LIMIT))?;
        Ok(socket.into())
    }

    fn send_in_time(&self, stream: &mut TcpStream, block: &[u8], begin: Instant) -> io::Result<()> {
        let next = Instant::now() + Duration::from_secs(1) / self.sends_per_sec;
        if self.is_on(begin.elapsed()) {
            stream.write_all(block)?;
        }
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        Ok(())
    }

    fn is_on(&self, since_begin: Duration) -> bool {
        let Some(bursts) = self.bursts else {
            return true;
        };
        let period_ns = u128::from(bursts.on_ns) + u128::from(bursts.off_ns);
        since_begin.as_nanos() % period_ns.max(1) < u128::from(bursts.on_ns)
    }
}

fn receive_for_ever(at: IpAddr) -> io::Result<()> {
    let listener = TcpListener::bind((at, SINK_PORT))?;
    for stream in listener.incoming() {
        let mut stream = stream?;
        std::thread::Builder::new().spawn(move || {
            let mut block = vec![0; 256 << 10];
            while stream.read(&mut block).is_ok_and(|count| count > 0) {}
        })?;
    }
    Ok(())
}

fn keep_busy(cpu: usize, share: f64) -> io::Result<()> {
    ew_sys::thread::run_on_cpu(cpu)?;
    ew_sys::thread::schedule_first();
    loop {
        let begin = Instant::now();
        let asked = HOG_PERIOD.mul_f64(1.0 - share);
        std::thread::sleep(asked);
        let left = begin.elapsed().min(LATEST_WAKING * asked);
        let until = Instant::now() + left.mul_f64(share / (1.0 - share));
        while Instant::now() < until {}
    }
}

fn write_for_ever() -> io::Result<()> {
    std::thread::scope(|scope| {
        for _ in 1..WRITERS {
            scope.spawn(write_in_place);
        }
        write_in_place()
    })
}

/// The file has no name, so nothing is left of it. Each writer has its own: where a file lies in
/// pieces, the file system lets one at a time write to it.
fn write_in_place() -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let file = tempfile::tempfile()?;
    // Else the kernel is made to write what it was given.
    let must_sync = ew_sys::disk::write_uncached(&file).is_err();
    let mut memory = vec![0; WRITE_BYTES + ALIGNMENT];
    let start = memory.as_ptr().align_offset(ALIGNMENT);
    let block = &mut memory[start..start + WRITE_BYTES];
    for turn in 0u64.. {
        // A disk that finds nothing changed could take it easy.
        block[..8].copy_from_slice(&turn.to_ne_bytes());
        file.write_all_at(block, 0)?;
        if must_sync {
            file.sync_data()?;
        }
    }
    Ok(())
}

/// By the mount that contains it (proc_pid_mountinfo(5)): the one with the longest path.
fn is_in_memory(dir: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let rows = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((PathBuf::from(words.next()?), words.next()?))
    });
    rows.filter(|(path, _)| dir.starts_with(path))
        .max_by_key(|(path, _)| path.as_os_str().len())
        .is_some_and(|(_, kind)| matches!(kind, "tmpfs" | "ramfs"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::inventory::RackId;

    #[test]
    fn memory_is_no_disk() {
        assert!(!is_in_memory(Path::new("/no/such/folder")) || is_in_memory(Path::new("/")));
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        if mounts.contains(" /dev/shm tmpfs ") {
            assert!(is_in_memory(Path::new("/dev/shm/deep/inside")));
        }
    }

    #[test]
    fn a_hog_has_its_cpu_to_its_host() {
        let cpus = cpu_count();
        let lab = |faults: &str| {
            let text = format!("name: hog\nracks: 2\nhosts-per-rack: 1\nfaults: [{faults}]\n");
            LabSpec::parse(&text, "lab.yaml").unwrap()
        };
        let of = |lab: &LabSpec, name: &str| cpus_of(lab, lab.find_host(name).unwrap().1);
        assert_eq!(of(&lab(""), "r1h1"), None);
        let one = lab("{host: r1h1, cpu-hog: 90%}");
        let hog = hog_cpu(one.find_host("r1h1").unwrap().1);
        assert_eq!(of(&one, "r1h1"), Some(vec![hog]));
        let others: Vec<usize> = (0..cpus).filter(|cpu| *cpu != hog).collect();
        assert_eq!(of(&one, "r2h1"), (cpus > 1).then_some(others));
    }

    #[test]
    fn names_fit_the_kernel() {
        let all = [
            Intruder::Neighbour {
                to: IpAddr::from([0; 4]),
                bits_per_sec: 1,
            },
            Intruder::Sink {
                at: IpAddr::from([0; 4]),
            },
            of_background(
                Addresses(Default::default()),
                &BackgroundSpec {
                    from: RackId(0),
                    to: RackId(1),
                    rate_bits_per_sec: 1,
                    streams: 1,
                    bursts: None,
                },
            ),
            Intruder::CpuHog { cpu: 0, share: 0.5 },
            Intruder::DiskWriter,
        ];
        assert!(all.into_iter().all(|intruder| name(intruder).len() <= 15));
    }
}
