//! The two ways to drive streams: one that has a thread for itself, and many that share one.

pub(crate) mod blocking;
pub(crate) mod polled;

use crate::arrivals::Member;
use crate::buffer::PageBuffer;
use crate::shared::RoundShared;
use crate::stream::Stream;
use crate::stream_error::StreamError;
use crate::tally::Tally;
use crate::workload::machine::{Broken, Io, Poll, Prepared};
use std::io::ErrorKind;

/// What the streams of a thread share.
pub(crate) struct Scratch {
    pub(crate) buffer: PageBuffer,
    /// One per flow that has streams here, by the flow's index in the round.
    pub(crate) tallies: Vec<(usize, Tally)>,
}

impl Scratch {
    /// For the streams of one thread.
    pub(crate) fn new<'a>(
        prepared: &dyn Prepared,
        streams: impl Iterator<Item = &'a Stream>,
    ) -> Self {
        let mut flows = Vec::new();
        let mut buffer_bytes = 0;
        for stream in streams {
            flows.push(stream.flow);
            buffer_bytes = buffer_bytes.max(prepared.buffer_bytes(stream.role));
        }
        flows.sort_unstable();
        flows.dedup();
        Self {
            // Some send what is in it.
            buffer: PageBuffer::incompressible(buffer_bytes),
            tallies: flows
                .into_iter()
                .map(|flow| (flow, Tally::default()))
                .collect(),
        }
    }

    /// Where the flow's tally is.
    fn tally_index(&self, flow: usize) -> usize {
        self.tallies.partition_point(|(other, _)| *other < flow)
    }

    fn io<'a>(
        &'a mut self,
        shared: &'a RoundShared,
        stream: &'a Stream,
        tally: usize,
        poll: Poll<'a>,
    ) -> Io<'a> {
        Io {
            shared,
            stream,
            counters: &stream.counters,
            buffer: self.buffer.as_mut_slice(),
            tally: &mut self.tallies[tally].1,
            poll,
        }
    }

    /// The machine's last words.
    fn finish(&mut self, mut member: Member) {
        let index = self.tally_index(member.stream.flow);
        let tally = &mut self.tallies[index].1;
        member.machine.finish(&member.stream, tally);
    }
}

/// Notes why a stream ended. Once the round stops it is the peer's end of the round, or our own
/// shutdown.
fn note_end(shared: &RoundShared, stream: &Stream, broken: Broken) {
    if shared.is_stopping() {
        return;
    }
    let kind = broken.error.kind();
    let error = StreamError::Broken {
        action: broken.action,
        peer: stream.peer,
        source: broken.error,
    };
    match kind {
        // A peer that stops while data is on its way to it resets the connection.
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
            stream.stopped_by_peer(&error);
        }
        _ => stream.fail(&error),
    }
}
