//! TCP connect, request, response, close: a connection for every transaction. The sending end asks,
//! at a listener that the receiving end has for each stream.
//!
//! # How connections end
//! The responder sends its answer and the end of the connection in one segment. The requester, once
//! it has the whole answer, ends the connection with a reset: nobody waits in TIME-WAIT, so a local
//! port is free again at once, and a stream can go on for hours with any number of ports. Of the
//! other ways, an orderly end by the requester first would leave its ports in TIME-WAIT for a
//! minute, which is 470 connections a second; by the responder first, it fills its table of waiting
//! connections (`net.ipv4.tcp_max_tw_buckets`) within seconds. The reset is made with connect(2) to
//! nobody, so that one socket with its options and its registration in the epoll set serves all
//! connections of a stream. Per transaction that took 75 µs of CPU at both ends over loopback; 90
//! µs with a fresh socket each time and `SO_LINGER` 0, and 93 to 112 µs with a fresh socket and an
//! orderly end.
//!
//! The kernel chooses the local port at connect (`IP_BIND_ADDRESS_NO_PORT`): a new one each time,
//! so that the connections of a stream take all paths of a network that spreads them by their
//! ports. TCP fast open is not used: the handshake is what is measured.
//!
//! # Who may connect
//! A request begins with the stream's cookie, as far as it is long enough. Whoever sends something
//! else is closed at once. Whoever sends nothing is closed soon and keeps nobody waiting; where a
//! thread serves many streams, or its CPU is wanted, it is not even accepted for some seconds
//! (`TCP_DEFER_ACCEPT`).
//!
//! # Failures
//! A transaction whose connection fails is tried again after a pause, and its time goes on: a
//! failure is a long transaction. When nothing succeeds for a second the flow is over, with what
//! the system reported last.

mod prefix;
mod requester;
mod responder;

use super::cookie;
use super::machine::{Machine, Prepared, Slot};
use super::requests::Asking;
use crate::buffer::PageBuffer;
use crate::stream_error::StreamError;
use ew_model::workload::Workload;
use ew_proto::message::Role;
use std::net::TcpStream;
use std::sync::Arc;

const MIN_BUFFER_BYTES: usize = 4 * 1024;
const MAX_BUFFER_BYTES: usize = 1024 * 1024;
/// What comes in one segment on every path, so that a request that has begun to come has come, and
/// is answered in one call. Longer messages would keep a responder that blocks from its other
/// connections.
const ONE_SEGMENT_BYTES: usize = 1024;

pub(super) struct TcpConnections {
    asking: Asking,
    /// Read-only: what requests contain after the cookie, and responses.
    content: Arc<PageBuffer>,
}

impl TcpConnections {
    pub(super) fn new(workload: &Workload) -> Self {
        let asking = Asking::new(workload);
        let longest = asking.request_bytes.max(asking.response_bytes);
        Self {
            asking,
            content: Arc::new(PageBuffer::incompressible(longest.min(MAX_BUFFER_BYTES))),
        }
    }
}

impl Prepared for TcpConnections {
    fn machine(
        &self,
        slot: &Slot<'_>,
        _connection: Arc<TcpStream>,
    ) -> Result<Box<dyn Machine>, StreamError> {
        let content = Arc::clone(&self.content);
        Ok(match slot.stream.role {
            Role::Send => Box::new(requester::Requester::new(slot, self.asking, content)),
            Role::Receive => Box::new(responder::Responder::new(
                self.asking,
                content,
                cookie::fresh()?,
            )),
        })
    }

    fn buffer_bytes(&self, role: Role) -> usize {
        let message_bytes = match role {
            Role::Send => self.asking.response_bytes,
            Role::Receive => self.asking.request_bytes,
        };
        message_bytes.clamp(MIN_BUFFER_BYTES, MAX_BUFFER_BYTES)
    }

    fn may_block(&self) -> bool {
        self.asking.request_bytes <= ONE_SEGMENT_BYTES
            && self.asking.response_bytes <= ONE_SEGMENT_BYTES
    }

    fn data_is_on_the_connection(&self) -> bool {
        false
    }
}
