//! TCP: plain send and recv of large blocks, sendfile, or receiving without a copy.

use super::pace::Pace;
use super::{Mover, is_passing};
use ew_sys::transfer::{memory_file, receive_discarding, send_file};
use std::io::{self, Read};
use std::sync::atomic::Ordering;

/// Sends until stopped, or until the goal grants nothing more.
pub(super) fn send(mover: &Mover) -> io::Result<()> {
    let params = &mover.work.params;
    let block = &mover.work.content;
    if params.zerocopy {
        let file = memory_file(block)?;
        send_blocks(mover, |from, count| {
            send_file(&*mover.socket, &file, from, count)
        })
    } else {
        send_blocks(mover, |from, count| {
            mover.socket.send(&block[from..from + count])
        })
    }
}

/// Receives until stopped, or until the peer closes.
pub(super) fn receive(mover: &Mover) -> io::Result<()> {
    let params = &mover.work.params;
    if params.skip_rx_copy {
        return receive_blocks(mover, || {
            receive_discarding(&*mover.socket, params.block_bytes, true)
        });
    }
    let mut buffer = vec![0; params.block_bytes];
    receive_blocks(mover, || (&*mover.socket).read(&mut buffer))
}

fn send_blocks(
    mover: &Mover,
    mut send_part: impl FnMut(usize, usize) -> io::Result<usize>,
) -> io::Result<()> {
    let params = &mover.work.params;
    mover.work.gate.pass();
    let mut pace = Pace::new(params.bits_per_sec, params.burst);
    let mut total = 0;
    while pace.wait(|| mover.stopped(true)) {
        let wanted = mover.work.goal.reserve(params.block_bytes);
        if wanted == 0 {
            return Ok(());
        }
        let mut sent = 0;
        while sent < wanted && !mover.stopped(true) {
            match send_part(sent, wanted - sent) {
                Ok(count) => {
                    sent += count;
                    total += count as u64;
                    mover.counters.bytes.store(total, Ordering::Relaxed);
                }
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        pace.note(sent);
        mover.work.goal.note_sent(sent);
    }
    Ok(())
}

fn receive_blocks(
    mover: &Mover,
    mut receive_some: impl FnMut() -> io::Result<usize>,
) -> io::Result<()> {
    mover.work.gate.pass();
    let mut total = 0;
    while !mover.stopped(false) {
        match receive_some() {
            Ok(0) => return Ok(()),
            Ok(count) => {
                total += count as u64;
                mover.counters.bytes.store(total, Ordering::Relaxed);
                mover.work.goal.note_received(count);
            }
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
