//! Waiting for a time that can be cut short.

use ew_sys::clock::{monotonic_ns, sleep_until_ns};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The last part of a wait is slept with the kernel's absolute timer, which is more exact than a
/// condition variable.
const EXACT_PART_NS: u64 = 2_000_000;

/// Raised once; wakes everybody who waits.
#[derive(Debug, Default)]
pub(crate) struct Cancel {
    raised: Mutex<bool>,
    changed: Condvar,
}

/// The wait was cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cancelled;

impl Cancel {
    pub(crate) fn raise(&self) {
        *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    pub(crate) fn is_raised(&self) -> bool {
        *self.raised.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until CLOCK_MONOTONIC reaches the time.
    pub(crate) fn sleep_until(&self, deadline_ns: u64) -> Result<(), Cancelled> {
        self.wait_coarsely(deadline_ns.saturating_sub(EXACT_PART_NS))?;
        sleep_until_ns(deadline_ns);
        if self.is_raised() {
            return Err(Cancelled);
        }
        Ok(())
    }

    fn wait_coarsely(&self, deadline_ns: u64) -> Result<(), Cancelled> {
        let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        while !*raised {
            let now_ns = monotonic_ns();
            if now_ns >= deadline_ns {
                return Ok(());
            }
            let timeout = Duration::from_nanos(deadline_ns - now_ns);
            (raised, _) = self
                .changed
                .wait_timeout(raised, timeout)
                .unwrap_or_else(PoisonError::into_inner);
        }
        Err(Cancelled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_has_passed_is_not_waited_for() {
        assert_eq!(Cancel::default().sleep_until(0), Ok(()));
    }

    #[test]
    fn the_time_is_reached() {
        let deadline_ns = monotonic_ns() + 20_000_000;
        assert_eq!(Cancel::default().sleep_until(deadline_ns), Ok(()));
        assert!(monotonic_ns() >= deadline_ns);
    }

    #[test]
    fn a_raised_cancel_ends_the_wait() {
        let cancel = Cancel::default();
        cancel.raise();
        assert_eq!(cancel.sleep_until(u64::MAX), Err(Cancelled));
    }
}
