//! What moving the bytes costs the host, read at the window's edges.

use crate::shared::RoundShared;
use crate::stream::Stream;
use ew_model::record::{CpuSplit, CpuUse};
use std::sync::Arc;

/// The kernel counts in ticks of 10 ms towards programs (USER_HZ of include/asm-generic/param.h).
const TICK_NS: u64 = 10_000_000;

/// One reading of all that CPU time is compared with.
#[derive(Debug)]
pub(crate) struct CpuReading {
    engine_ns: u64,
    engine_wait_ns: Option<u64>,
    host: HostTicks,
    moved_bytes: u64,
    transactions: u64,
}

/// The host's CPUs together, `/proc/stat` of proc(5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct HostTicks {
    user: u64,
    nice: u64,
    system: u64,
    iowait: u64,
    irq: u64,
    softirq: u64,
    steal: u64,
    cpus: u32,
}

impl CpuReading {
    /// `None` where the host's counters cannot be read.
    pub(crate) fn take(shared: &RoundShared, flows: &[Vec<Arc<Stream>>]) -> Option<Self> {
        let host = HostTicks::parse(&std::fs::read_to_string("/proc/stat").ok()?)?;
        let counters = || flows.iter().flatten().map(|stream| &stream.counters);
        Some(Self {
            engine_ns: shared.engine_cpu_ns(),
            engine_wait_ns: shared.engine_wait_ns(),
            host,
            moved_bytes: counters()
                .map(|c| c.sent_bytes() + c.received_bytes())
                .sum(),
            transactions: counters().map(|c| c.transactions()).sum(),
        })
    }

    /// What was used since an earlier reading. The kernel's ticks may run backwards by a little.
    pub(crate) fn since(&self, earlier: &Self) -> CpuUse {
        let ticks =
            |of: fn(&HostTicks) -> u64| of(&self.host).saturating_sub(of(&earlier.host)) * TICK_NS;
        CpuUse {
            engine_ns: self.engine_ns.saturating_sub(earlier.engine_ns),
            engine_wait_ns: self
                .engine_wait_ns
                .zip(earlier.engine_wait_ns)
                .and_then(|(now, then)| now.checked_sub(then)),
            busy_ns: ticks(HostTicks::busy),
            softirq_ns: ticks(|host| host.softirq),
            steal_ns: ticks(|host| host.steal),
            split: Some(CpuSplit {
                user_ns: ticks(|host| host.user),
                nice_ns: ticks(|host| host.nice),
                system_ns: ticks(|host| host.system),
                iowait_ns: ticks(|host| host.iowait),
                irq_ns: ticks(|host| host.irq),
            }),
            cpus: self.host.cpus,
            moved_bytes: self.moved_bytes - earlier.moved_bytes,
            transactions: self.transactions - earlier.transactions,
        }
    }
}

impl HostTicks {
    /// The first line is `cpu  user nice system idle iowait irq softirq steal`, one line for each
    /// CPU follows. Guests' time, which comes behind, is in the user's already.
    fn parse(text: &str) -> Option<Self> {
        let sum = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = sum
            .split_whitespace()
            .map_while(|w| w.parse().ok())
            .collect();
        let [user, nice, system, _idle, iowait, irq, softirq, steal, ..] = ticks[..] else {
            return None;
        };
        let is_cpu = |line: &&str| {
            let number = line.strip_prefix("cpu");
            number.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        Some(Self {
            user,
            nice,
            system,
            iowait,
            irq,
            softirq,
            steal,
            cpus: text.lines().filter(is_cpu).count() as u32,
        })
    }

    /// Everything but idle, waiting for disks, and stolen.
    fn busy(&self) -> u64 {
        self.user + self.nice + self.system + self.irq + self.softirq
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "cpu  10 1 20 500 7 2 30 4 9 0\ncpu0 5 1\ncpu1 5 0\nintr 5\n";
    const AFTER: &str = "cpu  15 1 21 900 10 2 33 6 9 0\ncpu0 5 1\ncpu1 5 0\n";

    #[test]
    fn idle_waiting_and_stolen_time_is_not_busy() {
        let reading = |text, engine_ns| CpuReading {
            engine_ns,
            engine_wait_ns: Some(engine_ns * 4),
            host: HostTicks::parse(text).unwrap(),
            moved_bytes: engine_ns * 2,
            transactions: engine_ns * 3,
        };
        let used = reading(AFTER, 30).since(&reading(BEFORE, 10));
        let expected = CpuUse {
            engine_ns: 20,
            engine_wait_ns: Some(80),
            busy_ns: (5 + 1 + 3) * TICK_NS,
            softirq_ns: 3 * TICK_NS,
            steal_ns: 2 * TICK_NS,
            split: Some(CpuSplit {
                user_ns: 5 * TICK_NS,
                system_ns: TICK_NS,
                iowait_ns: 3 * TICK_NS,
                ..CpuSplit::default()
            }),
            cpus: 2,
            moved_bytes: 40,
            transactions: 60,
        };
        assert_eq!(used, expected);
    }

    #[test]
    fn what_is_not_there_is_none() {
        assert_eq!(HostTicks::parse("cpu0 1 2 3 4 5 6 7 8\n"), None);
        assert_eq!(HostTicks::parse("cpu  1 2 3 4\n"), None);
    }
}
