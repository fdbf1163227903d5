//! What a NIC's driver is set to and counts, by the ioctl `SIOCETHTOOL`
//! (include/uapi/linux/ethtool.h).
//!
//! The ioctl and not the newer netlink family, because the driver's own counters (`ethtool -S`) are
//! reported by the ioctl only, and the settings by both on every kernel in use. None of these calls
//! needs privilege.

use crate::net::{SIOCETHTOOL, control_socket, named_request};
use ew_model::telemetry::{Coalescing, PauseSettings, Rings};
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

const GET_COALESCE: u32 = 0x0e;
const GET_RINGS: u32 = 0x10;
const GET_PAUSE: u32 = 0x12;
const GET_STRINGS: u32 = 0x1b;
const GET_STATISTICS: u32 = 0x1d;
const GET_SET_SIZES: u32 = 0x37;
const GET_FEATURES: u32 = 0x3a;
const GET_CHANNELS: u32 = 0x3c;

const STRINGS_OF_STATISTICS: u32 = 1;
const STRINGS_OF_FEATURES: u32 = 4;
/// `ETH_GSTRING_LEN`.
const STRING_BYTES: usize = 32;
/// A driver may gain counters or names between the call that reports their number and the one that
/// fetches them (`ethtool -L`), and many kernels write as many as there are then, whatever space
/// was announced. Beyond this much space there is a page that nobody may write to, so that the
/// kernel gives up instead of writing over our memory.
const SPARE_BYTES: usize = 64 * 1024;
/// More than any driver has; a greater answer is taken for nonsense.
const MAX_STRINGS: usize = 100_000;

/// Asks drivers, for the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct Ethtool {
    socket: UdpSocket,
}

impl Ethtool {
    /// Opens the socket to ask through.
    ///
    /// # Errors
    /// The system's.
    pub fn open() -> io::Result<Self> {
        Ok(Self {
            socket: control_socket()?,
        })
    }

    /// Ring sizes. `None` when the driver has none to report.
    #[must_use]
    pub fn rings(&self, interface: &str) -> Option<Rings> {
        let words = self.ask::<9>(interface, GET_RINGS)?;
        Some(Rings {
            rx_max: words[1],
            tx_max: words[4],
            rx: words[5],
            tx: words[8],
        })
    }

    /// Interrupt coalescing.
    #[must_use]
    pub fn coalescing(&self, interface: &str) -> Option<Coalescing> {
        let words = self.ask::<23>(interface, GET_COALESCE)?;
        Some(Coalescing {
            rx_us: words[1],
            rx_frames: words[2],
            tx_us: words[5],
            tx_frames: words[6],
            adaptive_rx: words[10] != 0,
            adaptive_tx: words[11] != 0,
        })
    }

    /// Flow control.
    #[must_use]
    pub fn pause(&self, interface: &str) -> Option<PauseSettings> {
        let words = self.ask::<4>(interface, GET_PAUSE)?;
        Some(PauseSettings {
            negotiated: words[1] != 0,
            rx: words[2] != 0,
            tx: words[3] != 0,
        })
    }

    /// Queues in use: combined ones, or the greater of receive and transmit.
    #[must_use]
    pub fn queues(&self, interface: &str) -> Option<u32> {
        let words = self.ask::<9>(interface, GET_CHANNELS)?;
        let queues = words[8].max(words[5]).max(words[6]);
        (queues > 0).then_some(queues)
    }

    /// Offloads and other features that are on, by ethtool's names.
    #[must_use]
    pub fn features_on(&self, interface: &str) -> Option<Vec<String>> {
        let names = self.strings(interface, STRINGS_OF_FEATURES)?;
        // Header of two words, then per 32 features the words available, requested, active, never
        // changed.
        let blocks = names.len().div_ceil(32);
        let mut words = vec![0_u32; 2 + 4 * blocks];
        words[0] = GET_FEATURES;
        words[1] = u32::try_from(blocks).ok()?;
        self.call(interface, &mut words)?;
        let is_on = |index: usize| {
            words
                .get(2 + 4 * (index / 32) + 2)
                .is_some_and(|active| active >> (index % 32) & 1 == 1)
        };
        let on = names.into_iter().enumerate().filter(|(i, _)| is_on(*i));
        Some(on.map(|(_, name)| name).collect())
    }

    /// The names of the driver's own counters, in its order. Empty when it has none.
    #[must_use]
    pub fn statistic_names(&self, interface: &str) -> Vec<String> {
        self.strings(interface, STRINGS_OF_STATISTICS)
            .unwrap_or_default()
    }

    /// The driver's own counters, in the order of `names` as [`Ethtool::statistic_names`] reported
    /// them. `None` when the driver's counters are no longer those.
    #[must_use]
    pub fn statistics(&self, interface: &str, names: &[String]) -> Option<Vec<u64>> {
        if self.set_size(interface, STRINGS_OF_STATISTICS)? != names.len() {
            return None;
        }
        // Header of two words, one u64.
        let mut guarded = GuardedBlock::with_capacity(8 + 8 * names.len() + SPARE_BYTES)?;
        let block = guarded.words_mut();
        block[0] = pack(GET_STATISTICS, u32::try_from(names.len()).ok()?);
        self.call(interface, block)?;
        let reported = unpack(block[0]).1 as usize;
        (reported == names.len()).then(|| block[1..=reported].to_vec())
    }

    fn strings(&self, interface: &str, set: u32) -> Option<Vec<String>> {
        let count = self.set_size(interface, set)?;
        // Three words of header, then the strings.
        let mut guarded = GuardedBlock::with_capacity(12 + count * STRING_BYTES + SPARE_BYTES)?;
        let block = guarded.words_mut();
        block[0] = pack(GET_STRINGS, set);
        block[1] = pack(u32::try_from(count).ok()?, 0);
        self.call(interface, block)?;
        let reported = unpack(block[1]).0 as usize;
        let bytes: Vec<u8> = block
            .iter()
            .flat_map(|w| w.to_ne_bytes())
            .skip(12)
            .collect();
        let count = reported.min(bytes.len() / STRING_BYTES);
        Some(
            bytes
                .chunks_exact(STRING_BYTES)
                .take(count)
                .map(text)
                .collect(),
        )
    }

    fn set_size(&self, interface: &str, set: u32) -> Option<usize> {
        // Command, reserved, a 64-bit mask of sets, one size per set that exists.
        let mut words = [0_u32; 4 + 64];
        words[0] = GET_SET_SIZES;
        words[2..4].copy_from_slice(&halves(1_u64 << set));
        self.call(interface, &mut words)?;
        let exists = words[2..4] != [0, 0];
        let size = words[4] as usize;
        (exists && size > 0 && size <= MAX_STRINGS).then_some(size)
    }

    fn ask<const WORDS: usize>(&self, interface: &str, command: u32) -> Option<[u32; WORDS]> {
        let mut words = [0; WORDS];
        words[0] = command;
        self.call(interface, &mut words)?;
        Some(words)
    }

    /// `block` begins with a command's number, and has the space that the command's answer takes:
    /// every caller above explains how its layout makes it so.
    fn call<T: Word>(&self, interface: &str, block: &mut [T]) -> Option<()> {
        let mut request = named_request(interface)?;
        request.ifr_ifru.ifru_data = block.as_mut_ptr().cast();
        // SAFETY: `block` is plain integers, begins with its command and is as large as that
        // command's answer.
        let status =
            unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
        (status >= 0).then_some(())
    }
}

/// Zeroed memory that ends where a page begins that nobody may write to.
struct GuardedBlock {
    start: NonNull<u64>,
    words: usize,
    mapped_bytes: usize,
}

impl GuardedBlock {
    /// `None` when the system has no memory left.
    fn with_capacity(bytes: usize) -> Option<Self> {
        let page_bytes = page_bytes();
        let usable_bytes = bytes.checked_next_multiple_of(page_bytes)?;
        let mapped_bytes = usable_bytes.checked_add(page_bytes)?;
        // SAFETY: a new mapping of anonymous memory, at an address of the kernel's choice.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return None;
        }
        let block = Self {
            start: NonNull::new(start.cast())?,
            words: usable_bytes / size_of::<u64>(),
            mapped_bytes,
        };
        // SAFETY: the last page of the mapping just made, which nothing refers to yet.
        let guarded =
            unsafe { libc::mprotect(start.byte_add(usable_bytes), page_bytes, libc::PROT_NONE) };
        (guarded == 0).then_some(block)
    }

    fn words_mut(&mut self) -> &mut [u64] {
        // SAFETY: the mapping is page aligned, zeroed, writable up to the guard page, ours alone,
        // and lives as long as `self`.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.words) }
    }
}

impl Drop for GuardedBlock {
    fn drop(&mut self) {
        // SAFETY: the mapping that `with_capacity` made; nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.mapped_bytes) };
    }
}

fn page_bytes() -> usize {
    // SAFETY: no arguments but a constant.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

/// A plain integer, for which every bit pattern is a value.
trait Word {}
impl Word for u32 {}
impl Word for u64 {}

/// Two neighbouring u32 of a C structure as the u64 that covers them.
fn pack(first: u32, second: u32) -> u64 {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&first.to_ne_bytes());
    bytes[4..].copy_from_slice(&second.to_ne_bytes());
    u64::from_ne_bytes(bytes)
}

fn unpack(word: u64) -> (u32, u32) {
    let [first, second] = halves(word);
    (first, second)
}

fn halves(word: u64) -> [u32; 2] {
    let b = word.to_ne_bytes();
    [
        u32::from_ne_bytes([b[0], b[1], b[2], b[3]]),
        u32::from_ne_bytes([b[4], b[5], b[6], b[7]]),
    ]
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_packed_as_c_lays_them() {
        assert_eq!(unpack(pack(0x1d, 7)), (0x1d, 7));
        assert_eq!(text(b"rx_dropped\0\0garbage"), "rx_dropped");
        assert_eq!(text(&[b'a'; STRING_BYTES]).len(), STRING_BYTES);
    }

    #[test]
    fn loopback_has_offloads_and_no_rings() {
        let ethtool = Ethtool::open().unwrap();
        let features = ethtool.features_on("lo").unwrap();
        assert!(features.iter().any(|f| f == "loopback"), "{features:?}");
        assert_eq!(ethtool.rings("lo"), None);
        assert!(ethtool.statistic_names("lo").is_empty());
    }

    #[test]
    fn an_interface_that_does_not_exist_tells_nothing() {
        let ethtool = Ethtool::open().unwrap();
        assert_eq!(ethtool.features_on("none0"), None);
        assert_eq!(ethtool.coalescing("none0"), None);
        assert_eq!(ethtool.statistics("none0", &["a".to_owned()]), None);
    }

    #[test]
    fn counters_keep_the_order_of_their_names() {
        let ethtool = Ethtool::open().unwrap();
        for interface in crate::net::interfaces().unwrap() {
            let name = &interface.facts.name;
            let names = ethtool.statistic_names(name);
            if let Some(values) = ethtool.statistics(name, &names) {
                assert_eq!(values.len(), names.len(), "{name}");
            }
        }
    }
}
