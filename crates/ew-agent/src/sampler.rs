//! Reads raw host counters on a fixed schedule.

use crate::inbox::Input;
use ew_sys::clock;
use ew_telemetry::Sampler;
use std::path::Path;
use std::sync::mpsc::Sender;
use std::thread;

/// Samples every `interval_ns` until the inbox is gone.
pub(crate) fn spawn(interval_ns: u64, inbox: Sender<Input>) {
    thread::spawn(move || {
        let mut sampler = Sampler::new(Path::new("/"));
        let mut due_ns = clock::monotonic_ns();
        loop {
            let now_ns = clock::monotonic_ns();
            let sample = sampler.sample(now_ns, now_ns.saturating_sub(due_ns));
            if inbox.send(Input::Sample(sample)).is_err() {
                return;
            }
            // A late reading does not shift the schedule, and missed ones are skipped, not made up.
            due_ns = (due_ns + interval_ns).max(clock::monotonic_ns());
            clock::sleep_until_ns(due_ns);
        }
    });
}
