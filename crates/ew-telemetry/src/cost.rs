//! What a reading cost.

use ew_model::telemetry::ReadingCost;
use ew_sys::{clock, thread};

/// Runs from the begin of a reading to its end, on one thread.
#[derive(Debug)]
pub(crate) struct Meter {
    began_ns: u64,
    cpu_ns: u64,
}

impl Meter {
    pub(crate) fn start() -> Self {
        Self {
            began_ns: clock::monotonic_ns(),
            cpu_ns: own_cpu_ns(),
        }
    }

    pub(crate) fn cost(&self) -> ReadingCost {
        ReadingCost {
            cpu_ns: own_cpu_ns().saturating_sub(self.cpu_ns),
            wall_ns: clock::monotonic_ns() - self.began_ns,
        }
    }
}

/// By the scheduler's clock: getrusage counts ticks of 4 or 10 ms, and a reading takes less.
fn own_cpu_ns() -> u64 {
    thread::cpu_ns_of(thread::current_id()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_costs_cpu_time_and_sleep_does_not() {
        let meter = Meter::start();
        std::thread::sleep(std::time::Duration::from_millis(50));
        let slept = meter.cost();
        assert!(slept.wall_ns >= 50_000_000 && slept.cpu_ns < slept.wall_ns);
        let mut sum = 0_u64;
        while meter.cost().cpu_ns < slept.cpu_ns + 100_000 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
    }
}
