//! `/proc/PID/stat` and `/proc/PID/io`, see proc(5).
//!
//! `stat` costs the kernel about 15 µs a process, and a large host has thousands, most of them its
//! own idle threads. So processes that use no CPU are read less often, and `io` only when a process
//! ran at all.

use crate::file::FileBuffer;
use ew_model::telemetry::ProcessCounters;
use ew_sys::clock::monotonic_ns;
use std::collections::BTreeMap;
use std::path::Path;

/// A process is quiet when so many readings saw no CPU time of it.
const QUIET_READINGS: u32 = 3;
/// A quiet process is read every so many readings.
const READINGS_PER_QUIET: u32 = 4;

/// Fields of `stat` behind the name, counted from the state.
const PARENT: usize = 1;
const USER_TICKS: usize = 11;
const SYSTEM_TICKS: usize = 12;
const THREADS: usize = 17;
const START_TICKS: usize = 19;
const RESIDENT_PAGES: usize = 21;

/// Reads processes again and again; remembers which are quiet.
#[derive(Debug, Default)]
pub(crate) struct ProcessReader {
    known: BTreeMap<u32, Known>,
    readings: u32,
}

#[derive(Clone, Debug)]
struct Known {
    counters: ProcessCounters,
    is_kernels: bool,
    quiet_readings: u32,
}

impl ProcessReader {
    /// Every process this user may see, by number.
    pub(crate) fn read(&mut self, root: &Path, buffer: &mut FileBuffer) -> Vec<ProcessCounters> {
        self.readings = self.readings.wrapping_add(1);
        let mut now = BTreeMap::new();
        for pid in pids(root) {
            let known = self.known.remove(&pid);
            let process = match known {
                Some(known) if self.may_wait(&known) => Some(known),
                known => process(root, buffer, pid, known),
            };
            now.extend(process.map(|process| (pid, process)));
        }
        self.known = now;
        self.known
            .values()
            .map(|known| known.counters.clone())
            .collect()
    }

    /// How many processes' disk traffic this user may not see.
    pub(crate) fn refused(&self) -> usize {
        let refused = |k: &&Known| !k.is_kernels && k.counters.written_bytes.is_none();
        self.known.values().filter(refused).count()
    }

    fn may_wait(&self, known: &Known) -> bool {
        let turn = self.readings.wrapping_add(known.counters.pid);
        known.quiet_readings >= QUIET_READINGS && !turn.is_multiple_of(READINGS_PER_QUIET)
    }
}

/// The numbers of all processes, in the folder's order.
pub(crate) fn pids(root: &Path) -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir(root.join("proc"));
    entries
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn process(root: &Path, buffer: &mut FileBuffer, pid: u32, before: Option<Known>) -> Option<Known> {
    let text = buffer.read_once(root.join(format!("proc/{pid}/stat")))?;
    let (mut counters, is_kernels) = stat(pid, &text)?;
    counters.read_ns = monotonic_ns();
    let before = before.filter(|known| known.counters.start_ticks == counters.start_ticks);
    let ticks = |c: &ProcessCounters| c.user_ticks.saturating_add(c.system_ticks);
    if let Some(quiet) = before.filter(|known| ticks(&known.counters) == ticks(&counters)) {
        counters.read_bytes = quiet.counters.read_bytes;
        counters.written_bytes = quiet.counters.written_bytes;
        let quiet_readings = quiet.quiet_readings.saturating_add(1);
        return Some(Known {
            counters,
            is_kernels,
            quiet_readings,
        });
    }
    if !is_kernels {
        let text = buffer.read_once(root.join(format!("proc/{pid}/io")));
        let text = text.unwrap_or_default();
        counters.read_bytes = named(&text, "read_bytes:");
        counters.written_bytes = named(&text, "write_bytes:");
    }
    Some(Known {
        counters,
        is_kernels,
        quiet_readings: 0,
    })
}

/// A process' name and its parent. `None` when it ended.
pub(crate) fn name_and_parent(
    root: &Path,
    buffer: &mut FileBuffer,
    pid: u32,
) -> Option<(String, u32)> {
    let text = buffer.read_once(root.join(format!("proc/{pid}/stat")))?;
    let (name, rest) = split(&text)?;
    let parent = rest.split_whitespace().nth(PARENT)?.parse().ok()?;
    Some((name, parent))
}

/// `7 (name with (brackets) ) S 1 ...`: the name ends at the last bracket. Processes name
/// themselves as they like, and a terminal would obey control characters.
fn split(text: &str) -> Option<(String, &str)> {
    let (start, end) = (text.find('(')?, text.rfind(')')?);
    let name = text.get(start + 1..end)?;
    let name = name.replace(char::is_control, "?");
    Some((name, text.get(end + 1..)?))
}

/// Flags mark the kernel's own threads
/// (`PF_KTHREAD`).
fn stat(pid: u32, text: &str) -> Option<(ProcessCounters, bool)> {
    const FLAGS: usize = 6;
    const KERNEL_THREAD: u64 = 0x0020_0000;
    let (name, rest) = split(text)?;
    let numbers: Vec<u64> = rest
        .split_whitespace()
        .take(RESIDENT_PAGES + 1)
        // The state is a letter and some priorities are negative; none of them is kept.
        .map(|word| word.parse().unwrap_or(0))
        .collect();
    let process = ProcessCounters {
        pid,
        start_ticks: *numbers.get(START_TICKS)?,
        name,
        threads: numbers[THREADS] as u32,
        resident_pages: numbers.get(RESIDENT_PAGES).copied().unwrap_or(0),
        user_ticks: numbers[USER_TICKS],
        system_ticks: numbers[SYSTEM_TICKS],
        ..ProcessCounters::default()
    };
    Some((process, numbers[FLAGS] & KERNEL_THREAD != 0))
}

fn named(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::recorded;

    #[test]
    fn recorded_processes() {
        let all =
            ProcessReader::default().read(&recorded("linux-6.12"), &mut FileBuffer::default());
        assert_eq!(all.len(), 2);
        assert_eq!((all[0].pid, all[0].name.as_str()), (12, "kworker/0:1"));
        assert_eq!(all[0].read_bytes, None, "a kernel thread");
        let odd = &all[1];
        assert_eq!((odd.pid, odd.name.as_str()), (4711, "a) (b"));
        assert_eq!((odd.user_ticks, odd.system_ticks), (300, 40));
        assert_eq!(odd.resident_pages, 200);
        assert_eq!((odd.threads, odd.start_ticks), (8, 123_456));
        assert_eq!(
            (odd.read_bytes, odd.written_bytes),
            (Some(4096), Some(8192))
        );
    }

    #[test]
    fn a_name_cut_inside_a_letter_hides_no_process() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc/7")).unwrap();
        // 15 bytes, the last of them the first half of a letter.
        let text = b"7 (fourteen-bytes\xc3) S 1 1 1 0 -1 64 0 0 0 0 3 0 0 0 20 0 1 0 5 0";
        std::fs::write(root.path().join("proc/7/stat"), text).unwrap();
        let mut buffer = FileBuffer::default();
        let all = ProcessReader::default().read(root.path(), &mut buffer);
        assert_eq!(all[0].name, "fourteen-bytes\u{fffd}");
        let named = name_and_parent(root.path(), &mut buffer, 7);
        assert_eq!(named, Some((all[0].name.clone(), 1)));
    }

    #[test]
    fn quiet_processes_are_read_less_often_and_busy_ones_always() {
        let root = tempfile::tempdir().unwrap();
        let write = |pid: u32, ticks: u32| {
            let folder = root.path().join(format!("proc/{pid}"));
            std::fs::create_dir_all(&folder).unwrap();
            let text = format!("{pid} (x) S 1 1 1 0 -1 64 0 0 0 0 {ticks} 0 0 0 20 0 1 0 5 0");
            std::fs::write(folder.join("stat"), text).unwrap();
        };
        let (mut reader, mut buffer) = (ProcessReader::default(), FileBuffer::default());
        let (mut last, mut fresh) = ([0, 0], [0, 0]);
        for reading in 0..12 {
            write(8, 1);
            write(9, reading);
            let all = reader.read(root.path(), &mut buffer);
            for (index, process) in all.iter().enumerate() {
                fresh[index] += u32::from(process.read_ns != last[index]);
                last[index] = process.read_ns;
            }
            assert_eq!(all[1].user_ticks, u64::from(reading));
        }
        // Four readings until it is known to be quiet, then every fourth.
        assert_eq!(fresh, [6, 12]);
        std::fs::remove_dir_all(root.path().join("proc/8")).unwrap();
        assert_eq!(reader.read(root.path(), &mut buffer).len(), 1, "ended");
    }

    #[test]
    fn cut_lines_are_no_process() {
        assert!(stat(1, "1 (x) S 1 2 3").is_none());
        assert!(stat(1, "").is_none());
        assert!(stat(1, ")(").is_none());
    }
}
