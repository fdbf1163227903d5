//! UDP: a header in front of each datagram, and the receiver's count of what came. Many with one
//! system call where nothing is lost by it: when there is no rate to keep, and for what has queued
//! up.

use super::mover::{Mover, is_passing};
use super::pace::Pace;
use crate::wire::datagram::{Arrivals, Header, LONG_HEADER_BYTES};
use ew_sys::clock::monotonic_ns;
use ew_sys::datagram::{
    MAX_AT_ONCE, MAX_BYTES, MAX_SEGMENTS, Received, receive_many, receive_trains, segment_sends,
    send_many,
};
use ew_sys::transfer::receive_head;
use std::io;
use std::sync::atomic::Ordering;

/// Datagrams of one system call take this much at most.
const BATCH_BYTES: usize = 256 * 1024;
/// Space for every train that a socket can receive.
const MAX_TRAIN_BYTES: usize = 64 * 1024;

/// Sends until stopped, or until the goal grants nothing more.
pub(super) fn send(mover: &Mover) -> io::Result<()> {
    let params = &mover.work.params;
    let block_bytes = params.block_bytes;
    // Datagrams that are due one by one go one by one.
    let is_train = mover.work.options.segments_sends && params.bits_per_sec == 0;
    let batch = match params.bits_per_sec {
        0 if is_train => (MAX_BYTES / block_bytes.max(1)).clamp(1, MAX_SEGMENTS),
        0 => batch_of(block_bytes),
        _ => 1,
    };
    if is_train && let Ok(segment_bytes) = block_bytes.try_into() {
        segment_sends(&*mover.socket, segment_bytes)?;
    }
    let mut sender = Sender {
        mover,
        is_train,
        slots: mover.work.content.repeat(batch),
        sequence: 0,
        sent_bytes: 0,
    };
    mover.work.gate.pass();
    let mut pace = Pace::new(params.bits_per_sec, params.burst);
    while pace.wait(|| mover.stopped(true)) {
        // A datagram goes as a whole or not at all, also the last one.
        let grants = (0..batch).take_while(|_| mover.work.goal.reserve(block_bytes) > 0);
        let granted = grants.count();
        if granted == 0 || !sender.send_all(granted)? {
            return Ok(());
        }
        pace.note(granted * block_bytes);
    }
    Ok(())
}

/// Receives until stopped. With `skip_rx_copy` only the header is copied.
pub(super) fn receive(mover: &Mover) -> io::Result<()> {
    if mover.work.params.skip_rx_copy {
        return receive_heads(mover);
    }
    let takes_trains = mover.work.options.receives_trains;
    let slot_bytes = match takes_trains {
        true => MAX_TRAIN_BYTES,
        false => mover.work.params.block_bytes.max(LONG_HEADER_BYTES),
    };
    if takes_trains {
        receive_trains(&*mover.socket)?;
    }
    let batch = batch_of(slot_bytes);
    let mut slots = vec![0; slot_bytes * batch];
    let mut received = [Received::default(); MAX_AT_ONCE];
    let mut totals = Totals::default();
    mover.work.gate.pass();
    while !mover.stopped(false) {
        let count = match receive_many(
            &*mover.socket,
            &mut slots,
            slot_bytes,
            &mut received[..batch],
            true,
        ) {
            Ok(count) => count,
            Err(error) if is_passing(&error) => continue,
            Err(error) => return Err(error),
        };
        let now_us = monotonic_ns() / 1000;
        for (slot, came) in slots.chunks_exact(slot_bytes).zip(&received[..count]) {
            let taken = &slot[..came.bytes.min(slot_bytes)];
            for datagram in taken.chunks(came.segment_bytes.max(1)) {
                totals.note(mover, datagram, datagram.len(), now_us);
            }
        }
        totals.publish(mover);
    }
    Ok(())
}

fn receive_heads(mover: &Mover) -> io::Result<()> {
    let mut head = [0; LONG_HEADER_BYTES];
    let mut totals = Totals::default();
    mover.work.gate.pass();
    while !mover.stopped(false) {
        match receive_head(&*mover.socket, &mut head) {
            // The length may exceed the buffer's (CVE-2025-54351).
            Ok(length) => {
                let copied = &head[..length.min(head.len())];
                totals.note(mover, copied, length, monotonic_ns() / 1000);
                totals.publish(mover);
            }
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn batch_of(slot_bytes: usize) -> usize {
    (BATCH_BYTES / slot_bytes.max(1)).clamp(1, MAX_AT_ONCE)
}

struct Sender<'run> {
    mover: &'run Mover,
    /// All datagrams of a call go to the kernel as one train.
    is_train: bool,
    slots: Vec<u8>,
    sequence: u64,
    sent_bytes: u64,
}

impl Sender<'_> {
    /// Sends so many datagrams, again while the kernel has no space for them. False when stopped
    /// before.
    fn send_all(&mut self, count: usize) -> io::Result<bool> {
        let params = &self.mover.work.params;
        let block_bytes = params.block_bytes;
        let sent_us = monotonic_ns() / 1000;
        for (slot, offset) in self.slots.chunks_exact_mut(block_bytes).zip(1..=count) {
            let sequence = self.sequence + offset as u64;
            let header = Header { sent_us, sequence };
            header.write(params.wide_counters, slot);
        }
        let mut done = 0;
        while done < count {
            if self.mover.stopped(true) {
                return Ok(false);
            }
            let rest = &self.slots[done * block_bytes..];
            let sent = if count == 1 || self.is_train {
                let bytes = (count - done) * block_bytes;
                let sent = self.mover.socket.send(&rest[..bytes]);
                sent.map(|bytes| bytes / block_bytes)
            } else {
                send_many(
                    &*self.mover.socket,
                    rest,
                    block_bytes,
                    block_bytes,
                    count - done,
                )
            };
            match sent {
                Ok(sent) => {
                    done += sent;
                    self.note(sent);
                }
                Err(error) if is_passing(&error) || is_full(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn note(&mut self, sent: usize) {
        let block_bytes = self.mover.work.params.block_bytes;
        self.sequence += sent as u64;
        self.sent_bytes += (sent * block_bytes) as u64;
        let counters = &self.mover.counters;
        counters.packets.store(self.sequence, Ordering::Relaxed);
        counters.bytes.store(self.sent_bytes, Ordering::Relaxed);
        for _ in 0..sent {
            self.mover.work.goal.note_sent(block_bytes);
        }
    }
}

/// What a receiver has counted.
#[derive(Default)]
struct Totals {
    arrivals: Arrivals,
    total_bytes: u64,
}

impl Totals {
    fn note(&mut self, mover: &Mover, copied: &[u8], length: usize, now_us: u64) {
        // Too short for a header: a duplicated greeting.
        if let Some(header) = Header::read(mover.work.params.wide_counters, copied) {
            self.arrivals.note(header, now_us);
            self.total_bytes += length as u64;
            mover.work.goal.note_received(length);
        }
    }

    fn publish(&self, mover: &Mover) {
        let (arrivals, counters) = (&self.arrivals, &mover.counters);
        let jitter_bits = arrivals.jitter_s.to_bits();
        counters.bytes.store(self.total_bytes, Ordering::Relaxed);
        counters.packets.store(arrivals.packets, Ordering::Relaxed);
        counters.lost.store(arrivals.lost, Ordering::Relaxed);
        counters
            .out_of_order
            .store(arrivals.out_of_order, Ordering::Relaxed);
        counters.jitter_s_bits.store(jitter_bits, Ordering::Relaxed);
    }
}

/// ENOBUFS: the device's queue is full. iperf3 loses the datagram; we send it later.
fn is_full(error: &io::Error) -> bool {
    const ENOBUFS: i32 = 105;
    error.raw_os_error() == Some(ENOBUFS)
}
