//! `/proc/stat`, see proc(5).

use ew_model::facts::CpuCounters;
use std::path::Path;

/// One entry per online CPU, in the kernel's order. Empty when the file cannot be read.
pub(crate) fn cpu_counters(root: &Path) -> Vec<CpuCounters> {
    let text = std::fs::read_to_string(root.join("proc/stat")).unwrap_or_default();
    cpu_lines(&text).collect()
}

/// The same from the file's text.
pub(crate) fn cpu_lines(text: &str) -> impl Iterator<Item = CpuCounters> {
    text.lines().filter_map(cpu_line)
}

/// `cpu3 user nice system idle iowait irq softirq steal guest guest_nice`; old kernels end earlier.
/// The line that begins with `cpu` and a space is the sum of the others.
fn cpu_line(line: &str) -> Option<CpuCounters> {
    let mut words = line.strip_prefix("cpu")?.split(' ');
    let cpu = words.next()?.parse().ok()?;
    let mut ticks = words.map_while(|word| word.parse().ok());
    Some(CpuCounters {
        cpu,
        user_ticks: ticks.next()?,
        nice_ticks: ticks.next()?,
        system_ticks: ticks.next()?,
        idle_ticks: ticks.next()?,
        iowait_ticks: ticks.next(),
        irq_ticks: ticks.next(),
        softirq_ticks: ticks.next(),
        steal_ticks: ticks.next(),
        guest_ticks: ticks.next(),
        guest_nice_ticks: ticks.next(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_today() {
        let counters = cpu_line("cpu12 1 2 3 4 5 6 7 8 9 10").unwrap();
        assert_eq!((counters.cpu, counters.user_ticks), (12, 1));
        assert_eq!(counters.softirq_ticks, Some(7));
        assert_eq!(counters.steal_ticks, Some(8));
        let guests = (counters.guest_ticks, counters.guest_nice_ticks);
        assert_eq!(guests, (Some(9), Some(10)));
    }

    #[test]
    fn what_an_old_kernel_does_not_tell_is_none() {
        let counters = cpu_line("cpu0 1 2 3 4 5").unwrap();
        assert_eq!(counters.iowait_ticks, Some(5));
        assert_eq!((counters.irq_ticks, counters.steal_ticks), (None, None));
    }

    #[test]
    fn other_lines_are_no_cpu() {
        for line in ["cpu  1 2 3 4", "intr 1 2 3 4 5", "cpu1 1 2 3", "cpu1", ""] {
            assert_eq!(cpu_line(line), None, "{line}");
        }
    }
}
