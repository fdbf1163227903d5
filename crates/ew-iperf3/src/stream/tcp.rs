//! TCP: plain send and recv of large blocks, sendfile, or receiving without a copy; from and into a
//! user's file.

use super::blocks::Blocks;
use super::file::{self, FileBlocks};
use super::mover::{Mover, is_passing};
use super::pace::Pace;
use super::work::FileUse;
use ew_sys::transfer::{nameless_file, receive_discarding, send_file};
use socket2::Socket;
use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::atomic::Ordering;

/// The same block every time.
struct OneBlock<'s>(&'s Socket, &'s [u8]);

/// The same block every time, out of the page cache.
struct CachedBlock<'s>(&'s Socket, File);

/// Sends until stopped, or until the goal grants nothing more, or to the end of the file.
pub(super) fn send(mover: &Mover) -> io::Result<()> {
    let (params, socket) = (&mover.work.params, &*mover.socket);
    let block = &mover.work.content[..];
    if let Some(FileUse::Sent(path)) = &mover.work.file {
        return send_blocks(mover, FileBlocks::open(socket, path, params.block_bytes)?);
    }
    match params.zerocopy {
        true => send_blocks(mover, CachedBlock(socket, nameless_file(block)?)),
        false => send_blocks(mover, OneBlock(socket, block)),
    }
}

impl Blocks for OneBlock<'_> {
    fn load(&mut self, wanted: usize) -> io::Result<usize> {
        Ok(wanted)
    }

    fn send_part(&self, from: usize, count: usize) -> io::Result<usize> {
        self.0.send(&self.1[from..from + count])
    }
}

impl Blocks for CachedBlock<'_> {
    fn load(&mut self, wanted: usize) -> io::Result<usize> {
        Ok(wanted)
    }

    fn send_part(&self, from: usize, count: usize) -> io::Result<usize> {
        send_file(self.0, &self.1, from, count)
    }
}

/// Receives until stopped, or until the peer closes.
pub(super) fn receive(mover: &Mover) -> io::Result<()> {
    let params = &mover.work.params;
    let mut buffer = vec![0; params.block_bytes];
    // A file has all that came, also where the client wants receivers that do not copy.
    if let Some(FileUse::Written(path)) = &mover.work.file {
        let mut file = file::create(path, mover.index)?;
        return receive_blocks(mover, || {
            let count = (&*mover.socket).read(&mut buffer)?;
            file.write_all(&buffer[..count])?;
            Ok(count)
        });
    }
    if params.skip_rx_copy {
        return receive_blocks(mover, || {
            receive_discarding(&*mover.socket, params.block_bytes, true)
        });
    }
    receive_blocks(mover, || (&*mover.socket).read(&mut buffer))
}

fn send_blocks(mover: &Mover, mut blocks: impl Blocks) -> io::Result<()> {
    let params = &mover.work.params;
    mover.work.gate.pass();
    let mut pace = Pace::new(params.bits_per_sec, params.burst);
    let mut total = 0;
    while pace.wait(|| mover.stopped(true)) {
        let wanted = mover.work.goal.reserve(params.block_bytes);
        if wanted == 0 {
            return Ok(());
        }
        let loaded = blocks.load(wanted)?;
        if loaded == 0 {
            mover.work.goal.note_source_end(params.streams);
            return Ok(());
        }
        let mut sent = 0;
        while sent < loaded && !mover.stopped(true) {
            match blocks.send_part(sent, loaded - sent) {
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
