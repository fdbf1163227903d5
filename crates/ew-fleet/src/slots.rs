//! How many hosts are launched at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A launch that takes longer says that the uplink, or this machine, has enough to do.
const QUICK: Duration = Duration::from_secs(5);

/// Hosts launched at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FanOut {
    /// At first; at least 1.
    pub first: usize,
    /// After quick launches.
    pub most: usize,
}

impl FanOut {
    /// Always this many.
    #[must_use]
    pub const fn fixed(hosts: usize) -> Self {
        Self {
            first: hosts,
            most: hosts,
        }
    }
}

/// Slots for launches. Every quick launch makes room for one more, so that their number doubles as
/// long as all are quick and stays where launches are slow: more at once would then only make each
/// of them slower.
#[derive(Debug)]
pub struct LaunchSlots {
    free: Arc<Semaphore>,
    granted: AtomicUsize,
    most: usize,
}

/// A launch may go on while this is held.
pub type LaunchSlot = OwnedSemaphorePermit;

impl LaunchSlots {
    /// As many as the fan-out begins with.
    #[must_use]
    pub fn new(fan_out: FanOut) -> Self {
        let first = fan_out.first.max(1);
        Self {
            free: Arc::new(Semaphore::new(first)),
            granted: AtomicUsize::new(first),
            most: fan_out.most,
        }
    }

    /// Waits for a slot. `None` never happens: the slots are not closed.
    pub async fn take(&self) -> Option<LaunchSlot> {
        Arc::clone(&self.free).acquire_owned().await.ok()
    }

    /// A host is up, so long after its launch began.
    pub fn launched_after(&self, took: Duration) {
        if took > QUICK {
            return;
        }
        let grow = |granted| (granted < self.most).then_some(granted + 1);
        let grown = self
            .granted
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, grow);
        if grown.is_ok() {
            self.free.add_permits(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_launches_make_room_up_to_the_limit() {
        let slots = LaunchSlots::new(FanOut { first: 8, most: 10 });
        slots.launched_after(Duration::from_secs(6));
        assert_eq!(slots.free.available_permits(), 8);
        for _ in 0..5 {
            slots.launched_after(Duration::from_secs(1));
        }
        assert_eq!(slots.free.available_permits(), 10);
        let fixed = LaunchSlots::new(FanOut::fixed(3));
        fixed.launched_after(Duration::ZERO);
        assert_eq!(fixed.free.available_permits(), 3);
    }
}
