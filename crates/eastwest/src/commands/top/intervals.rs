//! From readings to views.

use ew_model::telemetry::HostReading;
use ew_top::{Observer, View};
use std::collections::BTreeMap;

/// Hosts' views: of every interval between two readings, or of one interval from the first reading
/// to the last.
pub(super) struct Intervals {
    is_one: bool,
    observers: BTreeMap<String, Observer>,
    last: BTreeMap<String, Box<HostReading>>,
}

impl Intervals {
    pub(super) fn new(is_one: bool) -> Self {
        Self {
            is_one,
            observers: BTreeMap::new(),
            last: BTreeMap::new(),
        }
    }

    /// The view of the interval that ends with a reading. `None` for a host's first, and where
    /// there is one interval, which [`Intervals::finish`] has.
    pub(super) fn take(&mut self, host: &str, reading: Box<HostReading>) -> Option<View> {
        if self.is_one && self.observers.contains_key(host) {
            self.last.insert(host.to_owned(), reading);
            return None;
        }
        let observer = self.observers.entry(host.to_owned()).or_default();
        observer.observe(*reading)
    }

    /// The views of the one interval, after the last reading.
    pub(super) fn finish(mut self) -> Vec<(String, View)> {
        let last = std::mem::take(&mut self.last).into_iter();
        let view = |(host, reading): (String, Box<HostReading>)| {
            let view = self.observers.get_mut(&host)?.observe(*reading)?;
            Some((host, view))
        };
        last.filter_map(view).collect()
    }
}
