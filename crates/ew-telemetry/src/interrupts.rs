//! `/proc/interrupts`, see proc(5).

use crate::file::FileBuffer;
use ew_model::telemetry::InterruptCounters;
use std::collections::BTreeMap;
use std::path::Path;

/// Interrupts reported for one reading: a host has one per queue and device, hundreds in all, most
/// of them idle.
const MAX_TOLD: usize = 32;

/// Counts interrupts from the first reading on.
#[derive(Debug, Default)]
pub(crate) struct InterruptReader {
    first: Option<BTreeMap<u32, BTreeMap<u32, u64>>>,
}

impl InterruptReader {
    /// The interrupts raised most since the first reading, the busiest first, with the CPUs they
    /// were raised on.
    pub(crate) fn read(&mut self, root: &Path, buffer: &mut FileBuffer) -> Vec<InterruptCounters> {
        let mut all = interrupts(root, buffer);
        // After a reading that failed the counts since boot would be those of the interval.
        if all.is_empty() {
            return all;
        }
        let first = self.first.get_or_insert_with(|| {
            let counts = all.iter();
            let counts = counts.map(|i| (i.interrupt, i.per_cpu.iter().copied().collect()));
            counts.collect()
        });
        for interrupt in &mut all {
            let before = first.get(&interrupt.interrupt);
            for (cpu, count) in &mut interrupt.per_cpu {
                let before = before.and_then(|counts| counts.get(cpu));
                *count = count.saturating_sub(before.copied().unwrap_or(0));
            }
            interrupt.per_cpu.retain(|(_, count)| *count > 0);
        }
        let raised = |i: &InterruptCounters| {
            let counts = i.per_cpu.iter().map(|(_, count)| *count);
            counts.fold(0, u64::saturating_add)
        };
        all.retain(|interrupt| raised(interrupt) > 0);
        all.sort_by_key(|interrupt| std::cmp::Reverse(raised(interrupt)));
        all.truncate(MAX_TOLD);
        all
    }
}

/// Device interrupts that were ever raised. Empty when the file cannot be read.
pub(crate) fn interrupts(root: &Path, buffer: &mut FileBuffer) -> Vec<InterruptCounters> {
    let text = buffer
        .read(root.join("proc/interrupts"))
        .unwrap_or_default();
    let mut lines = text.lines();
    let cpus: Vec<u32> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("CPU")?.parse().ok())
        .collect();
    lines.filter_map(|line| interrupt(line, &cpus)).collect()
}

/// ` 38:  0  8953  PCI-MSIX-0000:00:03.0  1-edge  eth0-rx-0`: number, one count per online CPU,
/// chip, line, name. Lines of the architecture's own interrupts begin with letters.
fn interrupt(line: &str, cpus: &[u32]) -> Option<InterruptCounters> {
    let (number, rest) = line.split_once(':')?;
    let interrupt = number.trim().parse().ok()?;
    let mut words = rest.split_whitespace();
    let mut per_cpu = Vec::new();
    for cpu in cpus {
        let count: u64 = words.next()?.parse().ok()?;
        if count > 0 {
            per_cpu.push((*cpu, count));
        }
    }
    let name = words.next_back()?.to_owned();
    (!per_cpu.is_empty()).then_some(InterruptCounters {
        interrupt,
        name,
        per_cpu,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::recorded;

    #[test]
    fn queues_of_a_nic_by_cpu() {
        let all = interrupts(&recorded("linux-6.12"), &mut FileBuffer::default());
        let names: Vec<_> = all.iter().map(|i| i.name.as_str()).collect();
        assert_eq!(names, ["eth0-rx-0", "eth0-tx-0", "nvme0q1"]);
        assert_eq!(all[0].per_cpu, [(2, 8953)]);
        assert_eq!(all[1].per_cpu, [(0, 6957), (2, 1)]);
    }

    #[test]
    fn busy_interrupts_count_from_the_first_reading() {
        let root = tempfile::tempdir().unwrap();
        let mut reader = InterruptReader::default();
        let mut read = |counts: [u64; 4]| {
            let [a, b, c, d] = counts;
            let text =
                format!("  CPU0 CPU1\n 38: {a} {b} PCI eth0-rx-0\n 39: {c} {d} PCI eth0-rx-1\n");
            std::fs::create_dir_all(root.path().join("proc")).unwrap();
            std::fs::write(root.path().join("proc/interrupts"), text).unwrap();
            let read = reader.read(root.path(), &mut FileBuffer::default());
            let named = read.into_iter().map(|i| (i.name, i.per_cpu));
            named.collect::<Vec<_>>()
        };
        assert_eq!(read([0, 0, 0, 0]), [], "nothing could be read");
        assert_eq!(read([100, 5, 7, 0]), []);
        let (first, second) = ("eth0-rx-0".to_owned(), "eth0-rx-1".to_owned());
        assert_eq!(read([101, 5, 7, 0]), [(first.clone(), vec![(0, 1)])]);
        let busy = (second, vec![(0, 2), (1, 9)]);
        assert_eq!(read([101, 5, 9, 9]), [busy, (first, vec![(0, 1)])]);
    }

    #[test]
    fn other_lines_are_no_device() {
        for line in [
            "LOC: 1 2 Local timer interrupts",
            "ERR: 0",
            "",
            "7: 1",
            "9: 0 0 none",
        ] {
            assert_eq!(interrupt(line, &[0, 2]), None, "{line}");
        }
    }
}
