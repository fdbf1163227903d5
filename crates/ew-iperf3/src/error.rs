//! What ends a test early.

use crate::auth::AuthError;
use crate::wire::frame::BadLength;
use crate::wire::refusal::Refusal;
use crate::wire::results::BadResults;
use std::io;
use std::net::SocketAddr;
use thiserror::Error;

/// Why a test, a client or a server could not do its work. The words of iperf3 where scripts look
/// for them.
#[derive(Debug, Error)]
pub enum Error {
    /// Nobody listens there, or the way is barred.
    #[error("unable to connect to server: {0}")]
    Connect(io::Error),
    /// The port is taken or may not be used.
    #[error("unable to start listener for connections on {address}: {error}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// The system's reason.
        error: io::Error,
    },
    /// A socket option could not be set.
    #[error("unable to set {option}: {error}")]
    Option {
        /// Which.
        option: &'static str,
        /// The system's reason.
        error: io::Error,
    },
    /// The kernel allows no socket buffer of this size.
    #[error(
        "socket buffer size not set correctly: {wanted} bytes were asked for and {actual} are allowed; raise \
         net.core.wmem_max and net.core.rmem_max, or ask for less"
    )]
    Window {
        /// Asked for, bytes.
        wanted: usize,
        /// Allowed, bytes.
        actual: usize,
    },
    /// The peer has gone.
    #[error("control socket has closed unexpectedly")]
    ControlClosed,
    /// The peer has gone as soon as it knew who asks.
    #[error(
        "control socket has closed unexpectedly: the server may not accept this user and password, or wants them padded \
         the other way (--use-pkcs1-padding for servers before 3.17)"
    )]
    Unauthorized,
    /// The control connection does not work.
    #[error("unable to use the control connection: {0}")]
    Control(io::Error),
    /// The peer keeps the connection and sends nothing.
    #[error("the peer did not {0} in time")]
    Silent(&'static str),
    /// A byte that is no state, or comes at the wrong moment.
    #[error("received an unknown control message ({0})")]
    Unexpected(u8),
    /// A message longer than any honest peer sends.
    #[error(transparent)]
    Length(#[from] BadLength),
    /// The peer's results.
    #[error("unable to receive results: {0}")]
    Results(#[from] BadResults),
    /// The server serves as many as it can.
    #[error("the server is busy running a test. try again later")]
    Busy,
    /// The server refuses this test.
    #[error("{0}")]
    Refused(Refusal),
    /// The server was stopped.
    #[error("the server has terminated")]
    ServerTerminated,
    /// The client was stopped.
    #[error("the client has terminated")]
    ClientTerminated,
    /// The client's host went away.
    #[error("the client has unexpectedly closed the connection")]
    ClientGone,
    /// Stopped by whoever runs it.
    #[error("interrupt - {0}")]
    Interrupted(&'static str),
    /// A stream could not be made.
    #[error("unable to connect stream: {0}")]
    StreamConnect(io::Error),
    /// A stream broke.
    #[error("unable to {verb} stream: {error}")]
    Stream {
        /// What was tried.
        verb: &'static str,
        /// The system's reason.
        error: String,
    },
    /// Results name a stream that is not there.
    #[error("the peer's results lack stream {0}")]
    StreamId(u32),
    /// Memory, threads or random bytes are short.
    #[error("test initialization failed: {0}")]
    Init(io::Error),
    /// Keys or users.
    #[error(transparent)]
    Auth(#[from] AuthError),
}

impl From<getrandom::Error> for Error {
    fn from(error: getrandom::Error) -> Self {
        Self::Init(io::Error::other(error))
    }
}

impl Error {
    pub(crate) fn option(option: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Option { option, error }
    }

    /// The number to send a client, when the server gives up for this reason and the client still
    /// listens.
    pub(crate) fn as_refusal(&self) -> Option<Refusal> {
        match self {
            Self::Refused(refusal) => Some(*refusal),
            Self::Option { error, .. } => Some(Refusal::CONGESTION.because(error)),
            Self::Window { .. } => Some(Refusal::WINDOW),
            Self::Length(_) => Some(Refusal::PARAMS),
            Self::Results(_) | Self::StreamId(_) => Some(Refusal::RESULTS),
            Self::Silent("open its streams") => Some(Refusal::STREAM_ACCEPT),
            Self::Stream { verb, .. } if *verb == "read from" => Some(Refusal::STREAM_READ),
            Self::Stream { .. } => Some(Refusal::STREAM_WRITE),
            _ => None,
        }
    }
}
