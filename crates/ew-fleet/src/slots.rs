//! How many hosts are launched at the same time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// A launch that takes longer shows that the uplink, or this machine, has enough to do.
const QUICK: Duration = Duration::from_secs(5);
/// Launches turned away within this time are turned away by the same rush.
const ONE_RUSH: Duration = Duration::from_secs(2);
/// Fewer at once would not help a host that turns everybody away.
const FEWEST: usize = 2;

/// Hosts launched at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FanOut {
    /// At first; at least 1.
    pub first: usize,
    /// After quick launches.
    pub most: usize,
}

impl FanOut {
    /// Never more than this many.
    #[must_use]
    pub const fn fixed(hosts: usize) -> Self {
        Self {
            first: hosts,
            most: hosts,
        }
    }
}

/// Slots for launches. Every quick launch adds one, so that their number doubles as long as all are
/// quick and stays where launches are slow: more at once would then only make each of them slower.
/// A rush that is turned away halves it; from then on it grows by one for as many quick launches as
/// there are slots.
#[derive(Debug)]
pub struct LaunchSlots {
    free: Arc<Semaphore>,
    granted: Arc<Mutex<Granted>>,
    most: usize,
}

#[derive(Debug)]
struct Granted {
    slots: usize,
    /// Slots in use that are gone when their launch ends.
    owed: usize,
    /// Since the last change.
    quick_launches: usize,
    last_turned_away: Option<Instant>,
}

/// A launch may go on while this is held.
#[derive(Debug)]
pub struct LaunchSlot {
    permit: Option<OwnedSemaphorePermit>,
    granted: Arc<Mutex<Granted>>,
}

impl Drop for LaunchSlot {
    fn drop(&mut self) {
        let mut granted = lock(&self.granted);
        if let (Some(fewer), Some(permit)) = (granted.owed.checked_sub(1), self.permit.take()) {
            granted.owed = fewer;
            permit.forget();
        }
    }
}

impl LaunchSlots {
    /// As many as the fan-out begins with.
    #[must_use]
    pub fn new(fan_out: FanOut) -> Self {
        let first = fan_out.first.max(1);
        Self {
            free: Arc::new(Semaphore::new(first)),
            granted: Arc::new(Mutex::new(Granted {
                slots: first,
                owed: 0,
                quick_launches: 0,
                last_turned_away: None,
            })),
            most: fan_out.most,
        }
    }

    /// Waits for a slot. `None` never happens: the slots are not closed.
    pub async fn take(&self) -> Option<LaunchSlot> {
        let permit = Arc::clone(&self.free).acquire_owned().await.ok()?;
        Some(LaunchSlot {
            permit: Some(permit),
            granted: Arc::clone(&self.granted),
        })
    }

    /// A host is up, so long after its launch began.
    pub fn launched_after(&self, took: Duration) {
        let mut granted = lock(&self.granted);
        if took > QUICK || granted.slots >= self.most {
            return;
        }
        granted.quick_launches += 1;
        let needed = match granted.last_turned_away {
            Some(_) => granted.slots,
            None => 1,
        };
        if granted.quick_launches < needed {
            return;
        }
        granted.quick_launches = 0;
        granted.slots += 1;
        match granted.owed.checked_sub(1) {
            Some(fewer) => granted.owed = fewer,
            None => self.free.add_permits(1),
        }
    }

    /// A host's first connection was closed by the other side before anybody had logged in.
    pub fn turned_away(&self, now: Instant) {
        let mut granted = lock(&self.granted);
        let is_same_rush = |last: Instant| now.saturating_duration_since(last) < ONE_RUSH;
        if granted.last_turned_away.is_some_and(is_same_rush) {
            return;
        }
        granted.last_turned_away = Some(now);
        granted.quick_launches = 0;
        let fewer = (granted.slots / 2).max(FEWEST).min(granted.slots);
        granted.owed += granted.slots - fewer;
        granted.slots = fewer;
        granted.owed -= self.free.forget_permits(granted.owed);
    }
}

fn lock(granted: &Mutex<Granted>) -> MutexGuard<'_, Granted> {
    granted.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_ONCE: Duration = Duration::ZERO;

    #[test]
    fn quick_launches_add_slots_up_to_the_limit() {
        let slots = LaunchSlots::new(FanOut { first: 8, most: 10 });
        slots.launched_after(Duration::from_secs(6));
        assert_eq!(slots.free.available_permits(), 8);
        for _ in 0..5 {
            slots.launched_after(Duration::from_secs(1));
        }
        assert_eq!(slots.free.available_permits(), 10);
        let fixed = LaunchSlots::new(FanOut::fixed(3));
        fixed.launched_after(AT_ONCE);
        assert_eq!(fixed.free.available_permits(), 3);
    }

    #[tokio::test]
    async fn a_rush_that_is_turned_away_halves_the_slots_once() {
        let slots = LaunchSlots::new(FanOut { first: 8, most: 64 });
        let mut held = Vec::new();
        for _ in 0..6 {
            held.extend(slots.take().await);
        }
        let now = Instant::now();
        slots.turned_away(now);
        slots.turned_away(now + ONE_RUSH / 2);
        assert_eq!(slots.free.available_permits(), 0);
        held.truncate(4);
        assert_eq!(slots.free.available_permits(), 0, "two slots are gone");
        held.clear();
        assert_eq!(slots.free.available_permits(), 4);
        // Four quick launches, not one, for the next slot.
        for permits in [4, 4, 4, 5] {
            slots.launched_after(AT_ONCE);
            assert_eq!(slots.free.available_permits(), permits);
        }
    }

    #[test]
    fn a_host_that_turns_everybody_away_leaves_two_slots() {
        let slots = LaunchSlots::new(FanOut::fixed(8));
        let began = Instant::now();
        for rush in 0..6 {
            slots.turned_away(began + rush * ONE_RUSH);
        }
        assert_eq!(slots.free.available_permits(), FEWEST);
        let one = LaunchSlots::new(FanOut::fixed(1));
        one.turned_away(began);
        assert_eq!(one.free.available_permits(), 1);
    }
}
