//! All streams start together: each prepares its memory first, and time begins when the last one is
//! ready.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Between two checks of threads that may have ended before they were ready.
const LOOK: Duration = Duration::from_millis(5);

/// Closed until somebody opens it, for good.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    ready: usize,
    open: bool,
}

impl Gate {
    /// A stream is ready, and waits.
    pub(super) fn pass(&self) {
        let mut state = self.lock();
        state.ready += 1;
        self.changed.notify_all();
        while !state.open {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until so many are ready. `lost` returns how many never will be.
    pub(crate) fn await_ready(&self, count: usize, patience: Duration, lost: impl Fn() -> usize) {
        let deadline = Instant::now() + patience;
        let mut state = self.lock();
        while state.ready + lost() < count && Instant::now() < deadline {
            let waited = self.changed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Lets all pass.
    pub(crate) fn open(&self) {
        self.lock().open = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn nobody_passes_before_all_are_ready() {
        let (gate, passed) = (Gate::default(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    gate.pass();
                    passed.fetch_add(1, Ordering::Relaxed);
                });
            }
            gate.await_ready(3, Duration::from_secs(20), || 0);
            assert_eq!(passed.load(Ordering::Relaxed), 0);
            gate.open();
        });
        assert_eq!(passed.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn who_never_comes_is_not_waited_for() {
        let gate = Gate::default();
        gate.await_ready(2, Duration::from_secs(20), || 2);
        gate.await_ready(2, Duration::ZERO, || 0);
        gate.open();
        gate.pass();
    }
}
