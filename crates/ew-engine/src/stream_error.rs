//! Why a stream does not move data, or no longer.

use crate::connect::ConnectError;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// What keeps a stream from its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StreamError {
    /// Its connection could not be opened.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The peer did not open its connection.
    #[error("{verb} {peer}: no connection came before the round's start")]
    Missed {
        /// Of this end: connect, or accept from.
        verb: &'static str,
        /// With a port where this end connects.
        peer: String,
    },
    /// The round was given up before the connection came.
    #[error("{verb} {peer}: aborted")]
    Aborted {
        /// As in [`StreamError::Missed`].
        verb: &'static str,
        /// As in [`StreamError::Missed`].
        peer: String,
    },
    /// The system refuses what the stream needs of its connection.
    #[error("connection with {peer}: {source}")]
    Connection {
        /// Its other end.
        peer: SocketAddr,
        /// The system's.
        source: io::Error,
    },
    /// The peer's offer did not come.
    #[error("receive from {peer}: {source}")]
    NoOffer {
        /// Whose.
        peer: SocketAddr,
        /// The system's, or that the peer closed the connection.
        source: io::Error,
    },
    /// It ended before it was stopped.
    #[error("{action} {peer}: {source}")]
    Broken {
        /// As in [`crate::workload::machine::Broken`].
        action: &'static str,
        /// Its other end.
        peer: SocketAddr,
        /// The system's, or the peer's.
        source: io::Error,
    },
    /// Threads shall run on CPUs of an empty list.
    #[error("cannot place threads: the list of CPUs is empty")]
    NoCpus,
    /// Its thread may not run where it shall.
    #[error("cannot run a thread on CPUs {cpus:?} of this host: {source}")]
    Placement {
        /// Where it shall run.
        cpus: Vec<usize>,
        /// The system's.
        source: io::Error,
    },
    /// There is no thread for it.
    #[error("cannot start a thread for streams: {0}; raise the limit of processes (ulimit -u)")]
    Thread(#[source] io::Error),
    /// Its thread cannot wait for several connections.
    #[error("cannot watch a thread's connections: {0}; raise the limit of open files (ulimit -n)")]
    Watch(#[source] io::Error),
    /// A workload that was to run without a connection does not.
    #[error("this workload needs a connection")]
    Alone,
    /// The peer's Service does not contain its port.
    #[error("{peer}: the Service does not lead to port {port}")]
    Service {
        /// At the Service.
        peer: SocketAddr,
        /// As the peer offered it.
        port: u16,
    },
    /// No cookie.
    #[error("this host gives no random numbers: {0}")]
    Random(#[from] getrandom::Error),
    /// No socket for datagrams to the peer.
    #[error("UDP socket for {peer}: {source}")]
    UdpSocket {
        /// Whom it is for.
        peer: IpAddr,
        /// The system's.
        source: io::Error,
    },
    /// The own socket's port is not known.
    #[error("UDP socket: {0}")]
    UdpPort(#[source] io::Error),
    /// There is no way to the peer's socket.
    #[error("UDP to {peer}: {source}")]
    UdpPeer {
        /// Where its socket is.
        peer: SocketAddr,
        /// The system's.
        source: io::Error,
    },
    /// No listener for the stream's connections.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Of this host.
        address: IpAddr,
        /// The system's.
        source: io::Error,
    },
    /// No socket for echoes.
    #[error(
        "ping: this host gives the agent no ICMP socket, neither for datagrams ({datagram}) nor raw ({source}); allow the agent's group with `sysctl -w net.ipv4.ping_group_range='0 2147483647'`, or run the agent with CAP_NET_RAW"
    )]
    IcmpSocket {
        /// The system's, of the first kind.
        datagram: io::Error,
        /// The system's, of the second kind.
        source: io::Error,
    },
    /// The socket for echoes cannot be used for this peer.
    #[error("ping {peer}: {source}")]
    Ping {
        /// Whom it is for.
        peer: IpAddr,
        /// The system's.
        source: io::Error,
    },
    /// Messages shall come at a load that nobody gave.
    #[error("the load of this flow is not known")]
    NoLoad,
}
