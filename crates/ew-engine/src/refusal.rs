//! Why a round is refused before it begins.

use ew_model::plan::FlowId;
use ew_sys::datagram::MAX_BYTES;
use std::io;
use std::ops::RangeInclusive;

pub(crate) const MAX_STREAMS: usize = 16_384;
/// Requests a stream keeps in flight.
pub(crate) const MAX_OUTSTANDING: u32 = 65_536;
pub(crate) const MAX_MESSAGE_BYTES: u64 = 64 * 1024 * 1024;
pub(crate) const MIN_INTERVAL_NS: u64 = 1_000_000;

/// What a round asks for that the engine does not do, or not on this host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Messages or answers of a length that is not possible.
    #[error("message size {bytes} bytes; 1 to {MAX_MESSAGE_BYTES} are possible")]
    MessageSize {
        /// As asked for.
        bytes: u64,
    },
    /// More requests in flight than a stream keeps, or none.
    #[error("{requests} outstanding requests; 1 to {MAX_OUTSTANDING} are possible")]
    Outstanding {
        /// As asked for.
        requests: u32,
    },
    /// A rate of requests that is no rate.
    #[error("{rate} requests per second are not possible")]
    RequestRate {
        /// As asked for.
        rate: f64,
    },
    /// A rate of bits that is no rate.
    #[error("a stream cannot go at {bits_per_sec} b/s")]
    StreamRate {
        /// As it follows for one stream.
        bits_per_sec: f64,
    },
    /// More streams than a host runs, or none.
    #[error("{flows} flows of {streams} streams; a host runs 1 to {MAX_STREAMS} streams at a time")]
    Streams {
        /// Of the round, at this host.
        flows: usize,
        /// Of each flow.
        streams: u32,
    },
    /// More sockets than the process may open.
    #[error(
        "{sockets} sockets for the streams of this host need {needed} open files, and its limit is {limit}; raise it with `ulimit -n {needed}` for the user that runs the agent"
    )]
    OpenFiles {
        /// Of the streams.
        sockets: usize,
        /// What they and the process need.
        needed: u64,
        /// Of the process.
        limit: u64,
    },
    /// A round that would begin before it connects, or be measured before it begins.
    #[error("its connect, start and window times are not in order")]
    Times,
    /// Intervals shorter than counters are read.
    #[error("interval {interval_ns} ns; at least {MIN_INTERVAL_NS}, or 0 for none")]
    Interval {
        /// As asked for.
        interval_ns: u64,
    },
    /// Two accepted flows with one number.
    #[error("flow {} is there twice", flow.0)]
    FlowTwice {
        /// Which.
        flow: FlowId,
    },
    /// Datagrams without space for what they begin with, or that no IP packet holds.
    #[error("{what} of {bytes} bytes; over UDP {least} to {MAX_BYTES} are possible")]
    DatagramSize {
        /// What they are.
        what: &'static str,
        /// As asked for.
        bytes: u64,
        /// What they begin with.
        least: usize,
    },
    /// Answers longer than their requests, over UDP.
    #[error(
        "responses of {response_bytes} bytes to requests of {request_bytes}: over UDP a responder never sends more than it received; make requests as long as responses"
    )]
    LongResponses {
        /// As asked for.
        request_bytes: usize,
        /// As asked for.
        response_bytes: usize,
    },
    /// Echoes without space for their number, or that no IP packet holds.
    #[error(
        "ping with {bytes} bytes of data; {} to {} are possible",
        possible.start(), possible.end()
    )]
    EchoSize {
        /// As asked for.
        bytes: u64,
        /// What there may be.
        possible: RangeInclusive<u64>,
    },
    /// What is sent as a file is nowhere to be kept.
    #[error("cannot keep {bytes} bytes in a file, nor in memory only: {source}")]
    ContentFile {
        /// One message.
        bytes: usize,
        /// The system's.
        source: io::Error,
    },
}
