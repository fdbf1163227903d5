//! UDP: a header in front of each datagram, and the receiver's account of what came.

use super::pace::Pace;
use super::payload::payload;
use super::{Mover, is_passing};
use crate::wire::datagram::{Arrivals, Header, LONG_HEADER_BYTES};
use crate::wire::params::MAX_UDP_BLOCK_BYTES;
use ew_sys::clock::monotonic_ns;
use ew_sys::transfer::receive_head;
use std::io;
use std::sync::atomic::Ordering;

/// Sends until stopped, or until the goal grants nothing more.
pub(super) fn send(mover: &Mover) -> io::Result<()> {
    let params = &mover.work.params;
    let mut datagram = payload(params.block_bytes, params.repeating_payload);
    let mut pace = Pace::new(params.bits_per_sec, params.burst);
    let (mut sequence, mut total) = (0, 0);
    while pace.wait(|| mover.stopped(true)) {
        // A datagram goes as a whole or not at all, also the last one.
        if mover.work.goal.reserve(params.block_bytes) == 0 {
            return Ok(());
        }
        sequence += 1;
        if !send_one(mover, &mut datagram, sequence)? {
            return Ok(());
        }
        total += datagram.len() as u64;
        mover.counters.packets.store(sequence, Ordering::Relaxed);
        mover.counters.bytes.store(total, Ordering::Relaxed);
        pace.note(datagram.len());
        mover.work.goal.note_sent(datagram.len());
    }
    Ok(())
}

/// Sends a datagram, again while the kernel has no room for it. False when stopped before.
fn send_one(mover: &Mover, datagram: &mut [u8], sequence: u64) -> io::Result<bool> {
    while !mover.stopped(true) {
        let sent_us = monotonic_ns() / 1000;
        let header = Header { sent_us, sequence };
        header.write(mover.work.params.wide_counters, datagram);
        match mover.socket.send(datagram) {
            Ok(_) => return Ok(true),
            Err(error) if is_passing(&error) || is_full(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

/// Receives until stopped. With `skip_rx_copy` only the header is copied.
pub(super) fn receive(mover: &Mover) -> io::Result<()> {
    let params = &mover.work.params;
    let wide = params.wide_counters;
    let copied_bytes = if params.skip_rx_copy {
        LONG_HEADER_BYTES
    } else {
        MAX_UDP_BLOCK_BYTES
    };
    let mut head = vec![0; copied_bytes];
    let mut arrivals = Arrivals::default();
    let mut total = 0;
    while !mover.stopped(false) {
        let length = match receive_head(&*mover.socket, &mut head) {
            Ok(length) => length,
            Err(error) if is_passing(&error) => continue,
            Err(error) => return Err(error),
        };
        // The length may exceed the buffer's (CVE-2025-54351). Too short for a header: a greeting sent twice.
        let Some(header) = Header::read(wide, &head[..length.min(head.len())]) else {
            continue;
        };
        arrivals.note(header, monotonic_ns() / 1000);
        total += length as u64;
        publish(mover, &arrivals, total);
        mover.work.goal.note_received(length);
    }
    Ok(())
}

fn publish(mover: &Mover, arrivals: &Arrivals, total_bytes: u64) {
    let counters = &mover.counters;
    let jitter_bits = arrivals.jitter_s.to_bits();
    counters.bytes.store(total_bytes, Ordering::Relaxed);
    counters.packets.store(arrivals.packets, Ordering::Relaxed);
    counters.lost.store(arrivals.lost, Ordering::Relaxed);
    counters
        .out_of_order
        .store(arrivals.out_of_order, Ordering::Relaxed);
    counters.jitter_s_bits.store(jitter_bits, Ordering::Relaxed);
}

/// ENOBUFS: the device's queue is full. iperf3 loses the datagram; we send it later.
fn is_full(error: &io::Error) -> bool {
    const ENOBUFS: i32 = 105;
    error.raw_os_error() == Some(ENOBUFS)
}
