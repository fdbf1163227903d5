//! How fast CPUs run: `cpufreq` below `/sys/devices/system/cpu`, else `cpu MHz` of `/proc/cpuinfo`.
//!
//! Only the CPUs that worked most since they were last asked about are asked: their speed is what
//! limits a flow, and nobody is woken for it. To read the current frequency of one CPU, Linux 4.13
//! to 5.18 on x86 interrupts it and waits 10 ms (`arch_freq_get_on_cpu`), one CPU after the other:
//! on a host with 128 of them more than a second. `/proc/cpuinfo` waits once for all, and costs 20
//! µs a CPU, because it is 1 to 2 KB of text each; it is read only where nothing scales
//! frequencies.

use crate::file::{FileBuffer, number};
use crate::paced::Paced;
use ew_model::telemetry::CpuReading;
use ew_sys::clock::monotonic_ns;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// CPUs asked in one reading.
const MAX_CPUS: usize = 4;

/// Asks again and again, as seldom as the answers cost.
#[derive(Debug, Default)]
pub(crate) struct FrequencyReader {
    /// By CPU, when they were last asked about.
    worked_ticks: BTreeMap<u32, u64>,
    latest_hz: Paced<Vec<(u32, u64)>>,
}

impl FrequencyReader {
    /// The current frequencies of the CPUs that worked most: (CPU number, Hz). Empty where nothing
    /// reports.
    pub(crate) fn latest_hz(
        &mut self,
        root: &Path,
        buffer: &mut FileBuffer,
        cpus: &[CpuReading],
    ) -> Vec<(u32, u64)> {
        let before = &mut self.worked_ticks;
        self.latest_hz.latest(monotonic_ns(), || {
            let now = cpus.iter().map(|cpu| (cpu.times.cpu, worked_ticks(cpu)));
            let now: BTreeMap<u32, u64> = now.collect();
            let asked = busiest(before, &now);
            *before = now;
            frequencies_hz(root, buffer, &asked)
        })
    }
}

/// A CPU's max frequency. `None` where nothing scales it, as in most virtual machines.
pub(crate) fn max_frequency_hz(root: &Path, cpu: u32) -> Option<u64> {
    scaling_hz(root, cpu, "cpuinfo_max_freq")
}

fn busiest(before: &BTreeMap<u32, u64>, now: &BTreeMap<u32, u64>) -> BTreeSet<u32> {
    let worked = now.iter().map(|(cpu, ticks)| {
        let was = before.get(cpu).copied().unwrap_or(0);
        (ticks.saturating_sub(was), *cpu)
    });
    let mut worked: Vec<(u64, u32)> = worked.filter(|(ticks, _)| *ticks > 0).collect();
    worked.sort_unstable();
    let most = worked.into_iter().rev().take(MAX_CPUS);
    most.map(|(_, cpu)| cpu).collect()
}

/// `user` includes guest time.
fn worked_ticks(cpu: &CpuReading) -> u64 {
    let times = &cpu.times;
    let interrupts = [times.irq_ticks, times.softirq_ticks].into_iter().flatten();
    let processes = [times.user_ticks, times.nice_ticks, times.system_ticks];
    interrupts.chain(processes).fold(0, u64::saturating_add)
}

fn frequencies_hz(root: &Path, buffer: &mut FileBuffer, asked: &BTreeSet<u32>) -> Vec<(u32, u64)> {
    let scaled = |cpu: &u32| Some((*cpu, scaling_hz(root, *cpu, "scaling_cur_freq")?));
    let scaled: Vec<(u32, u64)> = asked.iter().filter_map(scaled).collect();
    if !scaled.is_empty() {
        return scaled;
    }
    let text = buffer.read(root.join("proc/cpuinfo")).unwrap_or_default();
    let reported = cpuinfo_hz(text);
    reported.filter(|(cpu, _)| asked.contains(cpu)).collect()
}

fn scaling_hz(root: &Path, cpu: u32, name: &str) -> Option<u64> {
    let path = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}");
    number(root.join(path))?.checked_mul(1000)
}

/// `processor : 3`, then `cpu MHz : 2445.428`; other architectures than x86 do not report.
fn cpuinfo_hz(text: &str) -> impl Iterator<Item = (u32, u64)> {
    let mut cpu = None;
    text.lines().filter_map(move |line| {
        let (name, value) = line.split_once(':')?;
        match name.trim_end() {
            "processor" => {
                cpu = value.trim().parse().ok();
                None
            }
            "cpu MHz" => {
                let mhz: f64 = value.trim().parse().ok()?;
                (mhz > 0.0).then_some((cpu?, (mhz * 1e6).round() as u64))
            }
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::cpus;
    use crate::sample::tests::recorded;

    fn read(tree: &str) -> Vec<(u32, u64)> {
        let (root, mut buffer) = (recorded(tree), FileBuffer::default());
        let cpus = cpus(&root, &mut buffer);
        FrequencyReader::default().latest_hz(&root, &mut buffer, &cpus)
    }

    #[test]
    fn where_something_scales_it() {
        let both = [(0, 2_400_000_000), (2, 2_400_000_000)];
        assert_eq!(read("linux-6.12"), both);
        let max = |cpu| max_frequency_hz(&recorded("linux-6.12"), cpu);
        assert_eq!((max(2), max(1)), (Some(3_900_000_000), None));
    }

    #[test]
    fn where_only_cpuinfo_tells() {
        // CPU 1 never worked; CPU 3's value is no frequency.
        assert_eq!(read("linux-5.14"), [(0, 2_095_078_000), (2, 1_796_500_000)]);
        assert_eq!(max_frequency_hz(&recorded("linux-5.14"), 0), None);
    }

    #[test]
    fn where_nothing_tells() {
        assert_eq!(read("linux-4.18"), []);
        assert_eq!(read("nothing-here"), []);
    }

    #[test]
    fn those_that_worked_most_meanwhile_are_asked() {
        let ticks = |of: &[u64]| (0..).zip(of.iter().copied()).collect();
        let before = ticks(&[9000, 10, 10, 10, 10, 10]);
        let now = ticks(&[9001, 90, 10, 80, 70, 60, 20]);
        // CPU 6 is new: all it did counts. CPU 2 slept.
        assert_eq!(busiest(&before, &now), [1, 3, 4, 5].into());
        assert_eq!(busiest(&now, &now), [].into());
    }
}
