//! The busiest CPUs of a host with many: all of them in every sample would be most of what a run
//! writes.

use ew_model::facts::{AllCpus, CpuCounters, HostSample};
use std::collections::{BTreeMap, BTreeSet};

/// Up to this many CPUs are all listed.
const MAX_LISTED: usize = 32;
/// Of more, this many.
const BUSIEST: usize = 8;

/// Remembers what the CPUs of one host did, to know which work most.
#[derive(Debug, Default)]
pub struct BusiestCpus {
    worked_ticks: BTreeMap<u32, u64>,
    /// Since the sample before the last one.
    busiest: BTreeSet<u32>,
}

impl BusiestCpus {
    /// Puts the sum in place of most CPUs of a host with many. Those stay that worked most since
    /// the last sample, and those that did so at that one: each span between two samples has both
    /// ends of its busiest ones, once they are busy for longer than a span.
    pub fn keep(&mut self, sample: &mut HostSample) {
        if sample.cpus.len() <= MAX_LISTED {
            return;
        }
        let worked: BTreeMap<u32, u64> = (sample.cpus.iter())
            .map(|cpu| (cpu.cpu, worked_ticks(cpu)))
            .collect();
        let mut grown: Vec<(u64, u32)> = worked
            .iter()
            .map(|(cpu, ticks)| {
                let before = self.worked_ticks.get(cpu).unwrap_or(ticks);
                (ticks.saturating_sub(*before), *cpu)
            })
            .collect();
        grown.sort_unstable_by(|a, b| b.cmp(a));
        let busiest = grown
            .into_iter()
            .take(BUSIEST)
            .map(|(_, cpu)| cpu)
            .collect();
        let before = std::mem::replace(&mut self.busiest, busiest);
        self.worked_ticks = worked;
        sample.all_cpus = Some(Box::new(AllCpus {
            count: sample.cpus.len() as u32,
            times: sample.cpus.iter().copied().sum(),
        }));
        let is_kept = |cpu: u32| self.busiest.contains(&cpu) || before.contains(&cpu);
        sample.cpus.retain(|cpu| is_kept(cpu.cpu));
        if let Some(causes) = &mut sample.causes
            && !causes.softnet.is_empty()
        {
            let all = causes.softnet.iter().map(|(_, softnet)| *softnet);
            causes.all_softnet = Some(all.sum());
            causes.softnet.retain(|(cpu, _)| is_kept(*cpu));
        }
    }
}

/// `user` includes guest time. What a hypervisor took is no work, but shows that there was some.
fn worked_ticks(cpu: &CpuCounters) -> u64 {
    let newer = [cpu.irq_ticks, cpu.softirq_ticks, cpu.steal_ticks];
    cpu.user_ticks + cpu.nice_ticks + cpu.system_ticks + newer.into_iter().flatten().sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::telemetry::{CauseCounters, SoftnetCounters};

    /// CPU after CPU: ticks of work; 10 packets dropped on each.
    fn sample(worked: impl Iterator<Item = u64>) -> HostSample {
        let cpu = |(cpu, system_ticks)| CpuCounters {
            cpu,
            system_ticks,
            idle_ticks: 1000,
            softirq_ticks: Some(1),
            ..CpuCounters::default()
        };
        let cpus: Vec<CpuCounters> = (0..).zip(worked).map(cpu).collect();
        let softnet = cpus.iter().map(|cpu| {
            let dropped = 10;
            (
                cpu.cpu,
                SoftnetCounters {
                    dropped,
                    ..SoftnetCounters::default()
                },
            )
        });
        let causes = CauseCounters {
            softnet: softnet.collect(),
            ..CauseCounters::default()
        };
        HostSample {
            causes: Some(Box::new(causes)),
            cpus,
            ..HostSample::default()
        }
    }

    fn numbers(sample: &HostSample) -> Vec<u32> {
        sample.cpus.iter().map(|cpu| cpu.cpu).collect()
    }

    #[test]
    fn few_cpus_stay_as_they_are() {
        let mut few = sample((0..32).map(|cpu| 5 * cpu));
        let whole = few.clone();
        BusiestCpus::default().keep(&mut few);
        assert_eq!(few, whole);
        assert_eq!(few.cpu_count(), 32);
    }

    #[test]
    fn of_many_the_busiest_stay_and_the_sum_of_all() {
        let mut busiest = BusiestCpus::default();
        let mut first = sample((0..128).map(|_| 100));
        busiest.keep(&mut first);
        assert_eq!(first.cpus.len(), BUSIEST);
        let sums = |s: &HostSample| {
            let causes = s.causes.as_ref().unwrap();
            let dropped = causes.over_softnet(|softnet| softnet.dropped);
            (
                s.cpu_count(),
                s.over_cpus(|cpu| Some(cpu.system_ticks)),
                dropped,
            )
        };
        assert_eq!(sums(&first), (128, Some(12_800), Some(1280)));
        let at_work = |busy: std::ops::Range<u64>| {
            move |cpu: u64| 100 + if busy.contains(&cpu) { 90 } else { 1 }
        };
        let mut second = sample((0..128).map(at_work(40..48)));
        busiest.keep(&mut second);
        let listed = numbers(&second);
        assert!((40..48).all(|cpu| listed.contains(&cpu)), "{listed:?}");
        // They rest, and others work: the span has both ends of all.
        let rested = at_work(40..48);
        let now = |cpu: u64| rested(cpu) + if cpu < 3 { 80 } else { 0 };
        let mut third = sample((0..128).map(now));
        busiest.keep(&mut third);
        let listed = numbers(&third);
        assert!(
            (0..3).chain(40..48).all(|cpu| listed.contains(&cpu)),
            "{listed:?}"
        );
        assert!(listed.len() <= 2 * BUSIEST && listed.is_sorted());
        let softnet = &third.causes.as_ref().unwrap().softnet;
        assert_eq!(softnet.len(), listed.len());
        assert_eq!(sums(&third).2, Some(1280));
        assert_eq!(
            third.over_cpus(|cpu| cpu.steal_ticks),
            None,
            "no kernel reports it"
        );
    }
}
