//! Bulk TCP: one end sends as fast as it can, the other receives.

use super::{Broken, Driver, Link, Prepared};
use crate::buffer::PageBuffer;
use ew_model::workload::Workload;
use ew_proto::message::Role;
use std::sync::Arc;

const LEAST_RECEIVE_BYTES: usize = 256 * 1024;
/// The first send is small, so that senders that share a CPU start within microseconds of each other.
const FIRST_SEND_BYTES: usize = 1024;
const MOST_RECEIVE_BYTES: usize = 1024 * 1024;

pub(super) struct TcpStreams {
    /// Read-only, so that all senders share one that stays in the cache.
    content: Arc<PageBuffer>,
    receive_bytes: usize,
}

struct Sender {
    content: Arc<PageBuffer>,
}

struct Receiver {
    buffer: PageBuffer,
}

impl TcpStreams {
    pub(super) fn new(workload: &Workload) -> Self {
        let message_bytes = workload.message_bytes as usize;
        Self {
            content: Arc::new(PageBuffer::incompressible(message_bytes)),
            receive_bytes: message_bytes.clamp(LEAST_RECEIVE_BYTES, MOST_RECEIVE_BYTES),
        }
    }
}

impl Prepared for TcpStreams {
    fn driver(&self, role: Role) -> Result<Box<dyn Driver>, String> {
        Ok(match role {
            Role::Send => Box::new(Sender {
                content: Arc::clone(&self.content),
            }),
            Role::Receive => Box::new(Receiver {
                buffer: PageBuffer::faulted_in(self.receive_bytes),
            }),
        })
    }
}

impl Driver for Sender {
    fn run(&mut self, link: &mut Link<'_>) -> Result<(), Broken> {
        link.start();
        let content = self.content.as_slice();
        let sent = link.send(&content[..content.len().min(FIRST_SEND_BYTES)])?;
        link.lane.add_sent(sent as u64);
        link.settle();
        link.await_others();
        while !link.stops() {
            let sent = link.send(self.content.as_slice())?;
            link.lane.add_sent(sent as u64);
        }
        Ok(())
    }
}

impl Driver for Receiver {
    fn run(&mut self, link: &mut Link<'_>) -> Result<(), Broken> {
        while !link.stops() {
            let received = link.receive(self.buffer.as_mut_slice())?;
            link.lane.add_received(received as u64);
        }
        Ok(())
    }
}
