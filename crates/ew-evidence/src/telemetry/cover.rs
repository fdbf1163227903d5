//! Readings against windows. Counters only grow, so what happened in a window is what they grew by
//! in the spans between readings that lie under load.

use super::Window;
use crate::criteria::FULL;
use ew_model::facts::{CpuCounters, HostSample};
use ew_model::telemetry::CgroupReading;
use std::collections::BTreeMap;

/// USER_HZ, proc(5).
const TICKS_PER_SECOND: f64 = 100.0;

/// Spans between readings that lie in a host's windows.
#[derive(Debug)]
pub struct Cover<'a> {
    spans: Vec<Span<'a>>,
    /// Windows that have a part in it.
    pub rounds: u32,
}

/// Two readings in a row, and how much of the time between them counts.
#[derive(Clone, Copy, Debug)]
struct Span<'a> {
    before: &'a HostSample,
    after: &'a HostSample,
    part: f64,
}

impl<'a> Cover<'a> {
    /// Spans wholly under load when there are any: then nothing idle is mixed in. Else all that are
    /// under load by half. Rates are those of the whole spans, so that short gaps between rounds
    /// are in them.
    pub fn new(samples: &'a [HostSample], windows: &[&Window]) -> Option<Self> {
        let pairs = samples.windows(2);
        let spans: Vec<Span<'_>> = pairs
            .filter_map(|pair| Span::under_load(&pair[0], &pair[1], windows))
            .collect();
        let (first, last) = (spans.first()?.before.agent_ns, spans.last()?.after.agent_ns);
        let inside = |w: &&&Window| w.loaded_ns < last && w.end_ns > first;
        let rounds = windows.iter().filter(inside).count() as u32;
        let whole: Vec<Span<'_>> = spans.iter().filter(|s| s.part >= FULL).copied().collect();
        let spans = if whole.is_empty() { spans } else { whole };
        Some(Self { spans, rounds })
    }

    /// Between two readings, whatever went on. `None` when no time passed.
    pub fn of_span(before: &'a HostSample, after: &'a HostSample) -> Option<Self> {
        let span = Span {
            before,
            after,
            part: 1.0,
        };
        (span.ns() > 0.0).then(|| Self {
            spans: vec![span],
            rounds: 0,
        })
    }

    /// Time covered.
    pub fn ns(&self) -> f64 {
        self.spans.iter().map(Span::ns).sum()
    }

    /// The first and the last reading that have what is asked for. `None` when they are the same.
    pub fn ends(
        &self,
        has: impl Fn(&'a HostSample) -> bool,
    ) -> Option<(&'a HostSample, &'a HostSample)> {
        let all = self.spans.iter().flat_map(|s| [s.before, s.after]);
        let mut asked = all.filter(|sample| has(sample));
        let first = asked.next()?;
        let last = asked.last()?;
        (first.agent_ns < last.agent_ns).then_some((first, last))
    }

    /// The readings at the ends of spans, later ones.
    pub fn readings(&self) -> impl Iterator<Item = &'a HostSample> {
        self.spans.iter().map(|s| s.after)
    }

    /// A CPU's ticks in the time covered, of which so many were seen. Where samples list only the
    /// busiest CPUs, it was not among them in the rest of the time, and that counts, too.
    pub fn cpu_ticks(&self, seen: f64) -> f64 {
        let lists_few = self.spans.iter().any(|s| s.after.all_cpus.is_some());
        let covered = self.ns() / 1e9 * TICKS_PER_SECOND;
        if lists_few { seen.max(covered) } else { seen }
    }

    /// What a counter grew by. `None` when no span covers it. A counter that runs backwards (a
    /// device that came anew) counts 0.
    pub fn grown(&self, counter: impl Fn(&'a HostSample) -> Option<u64>) -> Option<f64> {
        let mut sum = None;
        for span in &self.spans {
            if let (Some(before), Some(after)) = (counter(span.before), counter(span.after)) {
                *sum.get_or_insert(0.0) += after.saturating_sub(before) as f64;
            }
        }
        sum
    }

    /// What a counter grew by in a second.
    pub fn per_second(&self, counter: impl Fn(&'a HostSample) -> Option<u64>) -> Option<f64> {
        Some(self.grown(counter)? * 1e9 / self.ns())
    }

    /// Share of the time in which the control group's quota held tasks back. The kernel's count of
    /// time is a sum over the CPUs on which tasks waited, but no more time was lost than in the
    /// periods in which the quota ran out (kernel/sched/fair.c, `cpu_cfs_stat_show`).
    pub fn throttled_share(&self) -> Option<f64> {
        let of = |counter: fn(&CgroupReading) -> Option<u64>| {
            self.grown(|sample| counter(&sample.causes.as_ref()?.cgroup))
        };
        let over_cpus = of(|group| group.cpu_throttled_us)? * 1e3 / self.ns();
        let periods = of(|group| group.cpu_periods).filter(|periods| *periods > 0.0);
        let ran_out = of(|group| group.cpu_throttled_periods);
        let most = periods.zip(ran_out).map_or(1.0, |(all, some)| some / all);
        Some(over_cpus.min(most).min(1.0))
    }

    /// What several counters with keys grew by. One that is there for the first time had the count
    /// `newborn`; it is skipped where that is unknown.
    pub fn grown_by_key<K: Ord>(
        &self,
        newborn: Option<u64>,
        counters: impl Fn(&'a HostSample) -> Vec<(K, u64)>,
    ) -> BTreeMap<K, f64> {
        let mut sums = BTreeMap::new();
        for span in &self.spans {
            let before: BTreeMap<K, u64> = counters(span.before).into_iter().collect();
            for (key, after) in counters(span.after) {
                if let Some(before) = before.get(&key).copied().or(newborn) {
                    let grown = after.saturating_sub(before) as f64;
                    *sums.entry(key).or_insert(0.0) += grown;
                }
            }
        }
        sums
    }
}

impl<'a> Span<'a> {
    /// `None` for a span that is idle by more than half. `windows` are in order of time and do not
    /// overlap.
    fn under_load(
        before: &'a HostSample,
        after: &'a HostSample,
        windows: &[&Window],
    ) -> Option<Self> {
        let (from_ns, to_ns) = (before.agent_ns, after.agent_ns);
        let first = windows.partition_point(|window| window.end_ns <= from_ns);
        let inside = windows[first..].iter().take_while(|w| w.loaded_ns < to_ns);
        let loaded_ns: u64 = inside
            .map(|w| w.end_ns.min(to_ns).saturating_sub(w.loaded_ns.max(from_ns)))
            .sum();
        let part = loaded_ns as f64 / to_ns.saturating_sub(from_ns).max(1) as f64;
        let span = Self {
            before,
            after,
            part,
        };
        (part >= 0.5).then_some(span)
    }

    fn ns(&self) -> f64 {
        self.after.agent_ns.saturating_sub(self.before.agent_ns) as f64
    }
}

/// A CPU's time by what it did.
pub(super) const KINDS: usize = 5;
/// The last kind.
pub(super) const IDLE: usize = KINDS - 1;

/// A CPU's ticks: programs, kernel, interrupts and softirq, stolen, idle.
fn by_kind(cpu: &CpuCounters) -> [u64; KINDS] {
    [
        cpu.user_ticks + cpu.nice_ticks,
        cpu.system_ticks,
        cpu.irq_ticks.unwrap_or(0) + cpu.softirq_ticks.unwrap_or(0),
        cpu.steal_ticks.unwrap_or(0),
        cpu.idle_ticks + cpu.iowait_ticks.unwrap_or(0),
    ]
}

/// Every CPU's ticks by (CPU, kind).
pub(super) fn in_cpu(sample: &HostSample) -> Vec<((u32, usize), u64)> {
    let of_cpu = |cpu: &CpuCounters| {
        let number = cpu.cpu;
        let ticks = by_kind(cpu);
        (0..ticks.len()).map(move |kind| ((number, kind), ticks[kind]))
    };
    sample.cpus.iter().flat_map(of_cpu).collect()
}

/// The ticks of all CPUs by (CPU, kind). Where not all are listed, their sum, as of one CPU whose
/// number is their count: sums over more or fewer CPUs are not compared.
pub(super) fn in_all_cpus(sample: &HostSample) -> Vec<((u32, usize), u64)> {
    match &sample.all_cpus {
        Some(all) => (0..)
            .zip(by_kind(&all.times))
            .map(|(kind, ticks)| ((all.count, kind), ticks))
            .collect(),
        None => in_cpu(sample),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::telemetry::CauseCounters;

    /// Of a group with a quota, so many ms after the first reading.
    fn reading(ms: u64, periods: u64, ran_out: u64, throttled_ms: u64) -> HostSample {
        let cgroup = CgroupReading {
            cpu_periods: Some(periods),
            cpu_throttled_periods: Some(ran_out),
            cpu_throttled_us: Some(1000 * throttled_ms),
            ..CgroupReading::default()
        };
        let causes = CauseCounters {
            cgroup,
            ..CauseCounters::default()
        };
        HostSample {
            agent_ns: ms * 1_000_000,
            causes: Some(Box::new(causes)),
            ..HostSample::default()
        }
    }

    fn throttled_share(last: &HostSample) -> f64 {
        let first = reading(0, 0, 0, 0);
        let cover = Cover::of_span(&first, last).unwrap();
        cover.throttled_share().unwrap()
    }

    /// Eight CPUs wait for 90 ms of each of ten periods, or for 30 ms of one of twenty.
    #[test]
    fn waiting_cpus_are_not_added_up() {
        assert!((throttled_share(&reading(1000, 10, 10, 7200)) - 1.0).abs() < 1e-9);
        assert!((throttled_share(&reading(2000, 20, 1, 240)) - 0.05).abs() < 1e-9);
        assert!((throttled_share(&reading(1000, 10, 10, 100)) - 0.1).abs() < 1e-9);
    }
}
