//! Readings beside windows. Counters only grow, so what happened in a window is what they grew by in the spans between
//! readings, each taken with the part of it that lies under load.

use super::Window;
use ew_model::facts::{CpuCounters, HostSample};
use std::collections::BTreeMap;

/// A span between two readings counts as whole above this part of it under load.
const WHOLE: f64 = 0.95;

/// Spans between readings that lie in a host's windows.
#[derive(Debug)]
pub(crate) struct Cover<'a> {
    spans: Vec<Span<'a>>,
    /// Windows that have a part in it.
    pub(crate) rounds: u32,
}

/// Two readings in a row, and how much of the time between them counts.
#[derive(Clone, Copy, Debug)]
struct Span<'a> {
    before: &'a HostSample,
    after: &'a HostSample,
    part: f64,
}

impl<'a> Cover<'a> {
    /// Spans wholly under load when there are any: then nothing idle is mixed in. Else all that lie in a window by half, each
    /// with its part.
    pub(super) fn new<'w>(
        samples: &'a [HostSample],
        windows: impl Iterator<Item = &'w Window>,
    ) -> Option<Self> {
        let mut spans = Vec::new();
        let mut rounds = 0;
        for window in windows {
            let known = spans.len();
            spans.extend(spans_in(samples, window));
            rounds += u32::from(spans.len() > known);
        }
        let whole: Vec<Span<'_>> = spans.iter().filter(|s| s.part >= WHOLE).copied().collect();
        let spans = if whole.is_empty() { spans } else { whole };
        (!spans.is_empty()).then_some(Self { spans, rounds })
    }

    /// Between two readings, whatever went on. `None` when no time passed.
    pub(super) fn of_span(before: &'a HostSample, after: &'a HostSample) -> Option<Self> {
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
    pub(crate) fn ns(&self) -> f64 {
        self.spans.iter().map(|s| s.part * s.ns()).sum()
    }

    /// First reading's and last reading's time, agent's clock.
    pub(crate) fn between_ns(&self) -> (u64, u64) {
        let firsts = self.spans.iter().map(|s| s.before.agent_ns);
        let lasts = self.spans.iter().map(|s| s.after.agent_ns);
        (firsts.min().unwrap_or(0), lasts.max().unwrap_or(0))
    }

    /// The readings at the ends of spans, later ones.
    pub(crate) fn readings(&self) -> impl Iterator<Item = &'a HostSample> {
        self.spans.iter().map(|s| s.after)
    }

    /// What a counter grew by. `None` when no span tells. A counter that runs backwards (a device that came anew) counts 0.
    pub(crate) fn grown(&self, counter: impl Fn(&'a HostSample) -> Option<u64>) -> Option<f64> {
        let mut sum = None;
        for span in &self.spans {
            if let (Some(before), Some(after)) = (counter(span.before), counter(span.after)) {
                *sum.get_or_insert(0.0) += span.part * after.saturating_sub(before) as f64;
            }
        }
        sum
    }

    /// What a counter grew by in a second.
    pub(crate) fn per_second(
        &self,
        counter: impl Fn(&'a HostSample) -> Option<u64>,
    ) -> Option<f64> {
        Some(self.grown(counter)? * 1e9 / self.ns())
    }

    /// What several counters with keys grew by. One that is there for the first time had the count `newborn`; it is left out
    /// where that is unknown.
    pub(crate) fn grown_by_key<K: Ord>(
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
                    *sums.entry(key).or_insert(0.0) += span.part * grown;
                }
            }
        }
        sums
    }
}

impl Span<'_> {
    fn ns(&self) -> f64 {
        self.after.agent_ns.saturating_sub(self.before.agent_ns) as f64
    }
}

/// Spans that lie in a window by half at least.
fn spans_in<'a>(samples: &'a [HostSample], window: &Window) -> impl Iterator<Item = Span<'a>> {
    let (from_ns, to_ns) = (window.loaded_ns, window.end_ns);
    let first = samples.partition_point(|sample| sample.agent_ns <= from_ns);
    let pairs = samples[first.saturating_sub(1)..].windows(2);
    pairs
        .take_while(move |pair| pair[0].agent_ns < to_ns)
        .filter_map(move |pair| {
            let (before, after) = (&pair[0], &pair[1]);
            let length_ns = after.agent_ns.checked_sub(before.agent_ns)?;
            let in_window = after
                .agent_ns
                .min(to_ns)
                .saturating_sub(before.agent_ns.max(from_ns));
            let part = in_window as f64 / length_ns.max(1) as f64;
            (part >= 0.5).then_some(Span {
                before,
                after,
                part,
            })
        })
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
