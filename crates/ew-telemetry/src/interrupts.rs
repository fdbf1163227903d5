//! `/proc/interrupts`, see proc(5).

use crate::file::FileBuffer;
use ew_model::telemetry::InterruptCounters;
use std::path::Path;

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

/// ` 38:  0  8953  PCI-MSIX-0000:00:03.0  1-edge  eth0-rx-0`: number, one count per online CPU, chip, line, name. Lines
/// of the architecture's own interrupts begin with letters.
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
