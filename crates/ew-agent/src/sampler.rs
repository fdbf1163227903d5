//! Reads raw host counters on a fixed schedule.

use crate::inbox::Input;
use ew_model::telemetry::HostReading;
use ew_proto::message::OthersTcp;
use ew_sys::clock;
use ew_telemetry::{HostReader, OwnConnections, Sampler};
use std::path::Path;
use std::sync::mpsc::SyncSender;
use std::thread;

/// More often would measure the clock ticks of the kernel, and the reading.
const SHORTEST_INTERVAL_NS: u64 = 100_000_000;
/// What a reading for who watches holds at most of sockets of each kind and of processes: about 1
/// MB in all.
const MAX_SENT: usize = 4000;

/// Samples every `interval_ns` until the inbox is gone.
pub(crate) fn spawn(interval_ns: u64, own: OwnConnections, inbox: SyncSender<Input>) {
    thread::spawn(move || {
        let mut sampler = Sampler::new(Path::new("/"), own);
        on_schedule(interval_ns, |now_ns, due_ns| {
            let sample = sampler.sample(now_ns, now_ns.saturating_sub(due_ns));
            let others = sampler.others_segments();
            let others = others.map(|(sent_segments, retransmitted_segments)| OthersTcp {
                sent_segments,
                retransmitted_segments,
            });
            inbox.send(Input::Sample(sample, others)).is_ok()
        });
    });
}

/// Reads everything of this host every `interval_ns` until the inbox is gone, for who watches it.
pub(crate) fn spawn_watch(interval_ns: u64, inbox: SyncSender<Input>) {
    thread::spawn(move || {
        let mut reader = HostReader::new(Path::new("/"));
        on_schedule(interval_ns, |_, due_ns| {
            let mut reading = reader.read(due_ns);
            keep_sendable(&mut reading);
            inbox.send(Input::Reading(Box::new(reading))).is_ok()
        });
    });
}

/// Calls `read` with the time and when it was due, until it returns that nobody listens any more.
fn on_schedule(interval_ns: u64, mut read: impl FnMut(u64, u64) -> bool) {
    let interval_ns = interval_ns.max(SHORTEST_INTERVAL_NS);
    let mut due_ns = clock::monotonic_ns();
    while read(clock::monotonic_ns(), due_ns) {
        due_ns = next_due_ns(due_ns, interval_ns, clock::monotonic_ns());
        clock::sleep_until_ns(due_ns);
    }
}

/// A late reading does not shift the schedule, and missed ones are skipped, not made up.
fn next_due_ns(due_ns: u64, interval_ns: u64, now_ns: u64) -> u64 {
    let missed = now_ns.saturating_sub(due_ns) / interval_ns;
    due_ns + (missed + 1) * interval_ns
}

/// Leaves out what is too much for the control link. The oldest sockets stay: one that comes and
/// goes from reading to reading would look as if it had carried all it ever did in one of them.
fn keep_sendable(reading: &mut HostReading) {
    let sockets = &mut reading.sockets;
    let left_out = [
        sockets.tcp.len(),
        sockets.tcp_closed.len(),
        sockets.udp.len(),
    ]
    .map(|count| count.saturating_sub(MAX_SENT))
    .iter()
    .sum::<usize>();
    if left_out > 0 {
        sockets.tcp.sort_unstable_by_key(|socket| socket.cookie);
        reading.unseen.push(format!(
            "{left_out} socket(s): more than {MAX_SENT} are too many for the control link; run `eastwest top` on the host itself"
        ));
    }
    sockets.tcp.truncate(MAX_SENT);
    sockets.tcp_closed.truncate(MAX_SENT);
    sockets.udp.truncate(MAX_SENT);
    reading.processes.truncate(MAX_SENT);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::telemetry::UdpSocket;

    #[test]
    fn an_overrun_skips_readings_and_keeps_the_schedule() {
        let next = |now_ns| next_due_ns(1000, 100, now_ns);
        assert_eq!([next(1000), next(1099)], [1100, 1100]);
        assert_eq!([next(1100), next(1345)], [1200, 1400]);
    }

    #[test]
    fn a_reading_fits_the_control_link() {
        let socket = |number: u64| UdpSocket {
            cookie: number,
            local: ([192, 0, 2, 1], 9).into(),
            remote: ([192, 0, 2, 2], 9).into(),
            inode: 7,
            pid: None,
            receive_queue: 0,
            send_queue: 0,
            drops: None,
        };
        let mut reading = HostReading::default();
        reading.sockets.udp = (0..MAX_SENT as u64).map(socket).collect();
        keep_sendable(&mut reading);
        assert_eq!(reading.unseen, Vec::<String>::new());
        reading.sockets.udp.push(socket(5000));
        keep_sendable(&mut reading);
        assert_eq!(reading.sockets.udp.len(), MAX_SENT);
        assert!(
            reading.unseen[0].starts_with("1 socket(s)"),
            "{:?}",
            reading.unseen
        );
    }
}
