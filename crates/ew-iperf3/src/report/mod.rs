//! What a test has to report: facts and figures here, iperf3's lines in [`text`], its JSON in
//! [`json`].

pub mod json;
pub mod text;

use crate::error::Error;
use crate::net::ends;
use crate::stream::Stream;
use crate::wire::cookie::Cookie;
use crate::wire::params::Params;
use crate::wire::results::{CpuPercent, ServerOutput};
use ew_sys::clock::realtime_ns;
use socket2::SockRef;
use std::io;
use std::net::{SocketAddr, TcpStream};

/// Which end reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Started the test.
    Client,
    /// Serves.
    Server,
}

/// What happens, in order. Whoever watches shows it.
#[derive(Clone, Debug)]
pub enum Event {
    /// A client is about to connect.
    Connecting {
        /// As the user wrote it.
        host: String,
        /// TCP port.
        port: u16,
    },
    /// A server has a client.
    Accepted {
        /// The control connection's other end.
        peer: SocketAddr,
    },
    /// Somebody has proved who they are, or not.
    Authenticated {
        /// Their identity as they report it.
        user: String,
        /// Whether they were believed.
        believed: bool,
    },
    /// All streams are connected.
    Started(Box<Head>),
    /// An interval is over.
    Interval(Interval),
    /// The test is over.
    Ended(Box<Ended>),
    /// Something is not as asked for.
    Warning(String),
    /// The test ended early.
    Failed(String),
}

/// Watches one test.
pub trait Observer: Send {
    /// Called on the thread that leads the test, never on one that moves bytes.
    fn observe(&mut self, event: &Event);
}

/// Watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn observe(&mut self, _event: &Event) {}
}

/// What is known before the first byte.
#[derive(Clone, Debug)]
pub struct Head {
    /// Which end.
    pub role: Role,
    /// The test.
    pub params: Params,
    /// As the user wrote it, or the client's address.
    pub host: String,
    /// The server's port as seen from here; at a server, the client's.
    pub port: u16,
    /// The client's cookie.
    pub cookie: String,
    /// Wall clock, milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Maximum segment size of the control connection, bytes; 0 when unknown.
    pub control_mss_bytes: u32,
    /// Socket buffers of the first stream as the kernel has them, bytes.
    pub send_buffer_bytes: usize,
    /// As above.
    pub receive_buffer_bytes: usize,
    /// All streams.
    pub streams: Vec<Connected>,
}

impl Head {
    /// Of a test that begins now.
    pub(crate) fn of(
        role: Role,
        params: &Params,
        cookie: &Cookie,
        control: &TcpStream,
        peer: SocketAddr,
        streams: &[Stream],
    ) -> Result<Self, Error> {
        let connected = streams.iter().map(|stream| Connected::of(stream, peer));
        let connected = connected.collect::<Result<_, _>>();
        let first = streams.first().map(|stream| &stream.socket);
        Ok(Self {
            role,
            params: params.clone(),
            host: peer.ip().to_string(),
            port: peer.port(),
            cookie: cookie.to_string(),
            started_unix_ms: realtime_ns() / 1_000_000,
            control_mss_bytes: SockRef::from(control).tcp_mss().unwrap_or(0),
            send_buffer_bytes: first.and_then(|s| s.send_buffer_size().ok()).unwrap_or(0),
            receive_buffer_bytes: first.and_then(|s| s.recv_buffer_size().ok()).unwrap_or(0),
            streams: connected.map_err(Error::StreamConnect)?,
        })
    }
}

/// A connected stream.
#[derive(Clone, Copy, Debug)]
pub struct Connected {
    /// Number shown.
    pub shown: u32,
    /// Whether this end sends.
    pub sends: bool,
    /// This end.
    pub local: SocketAddr,
    /// The other.
    pub remote: SocketAddr,
}

impl Connected {
    pub(crate) fn of(stream: &Stream, peer: SocketAddr) -> io::Result<Self> {
        let (local, remote) = ends(&stream.socket, peer)?;
        Ok(Self {
            shown: stream.shown,
            sends: stream.sends,
            local,
            remote,
        })
    }
}

/// Figures of a time span of one stream or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Start, seconds since the test's start or the end of the omitted time.
    pub start_s: f64,
    /// End, likewise.
    pub end_s: f64,
    /// Payload.
    pub bytes: u64,
    /// UDP: datagrams sent, or sent by the peer as far as the receiver knows.
    pub packets: u64,
    /// UDP: datagrams that did not come.
    pub lost: u64,
    /// UDP: datagrams that came late.
    pub out_of_order: u64,
    /// UDP: jitter at the end of the span, seconds.
    pub jitter_s: f64,
    /// TCP sender: retransmitted segments.
    pub retransmits: Option<u64>,
}

impl Figures {
    /// Seconds.
    #[must_use]
    pub fn duration_s(&self) -> f64 {
        (self.end_s - self.start_s).max(0.0)
    }

    /// Bits per second, 0 in no time.
    #[must_use]
    pub fn bits_per_sec(&self) -> f64 {
        let duration_s = self.duration_s();
        if duration_s > 0.0 {
            self.bytes as f64 * 8.0 / duration_s
        } else {
            0.0
        }
    }

    /// Share of lost datagrams, percent.
    #[must_use]
    pub fn lost_percent(&self) -> f64 {
        if self.packets > 0 {
            self.lost as f64 * 100.0 / self.packets as f64
        } else {
            0.0
        }
    }

    /// Over several streams: sums, and the mean jitter. The times are the first one's.
    #[must_use]
    pub fn sum<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        let mut count = 0;
        for figures in all {
            if count == 0 {
                (sum.start_s, sum.end_s) = (figures.start_s, figures.end_s);
            }
            count += 1;
            sum.bytes += figures.bytes;
            sum.packets += figures.packets;
            sum.lost += figures.lost;
            sum.out_of_order += figures.out_of_order;
            sum.jitter_s += figures.jitter_s;
            if let Some(retransmits) = figures.retransmits {
                sum.retransmits = Some(sum.retransmits.unwrap_or(0) + retransmits);
            }
        }
        sum.jitter_s /= f64::from(count.max(1));
        sum
    }
}

/// A TCP sender's state at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpState {
    /// Congestion window, bytes.
    pub congestion_window_bytes: u64,
    /// The peer's receive window, bytes; 0 when the kernel does not report.
    pub send_window_bytes: u64,
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: u32,
    /// Its variation, microseconds.
    pub rtt_variation_us: u32,
    /// Path MTU, bytes.
    pub path_mtu_bytes: u32,
}

/// One stream in one interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamInterval {
    /// Number shown.
    pub shown: u32,
    /// Whether this end sends.
    pub sends: bool,
    /// What was moved.
    pub figures: Figures,
    /// Of a TCP sender.
    pub tcp: Option<TcpState>,
}

/// All streams in one interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// Belongs to the time that does not count.
    pub omitted: bool,
    /// In the order the streams were made.
    pub streams: Vec<StreamInterval>,
}

/// What a TCP sender's state was over the whole test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpExtremes {
    /// Largest congestion window seen, bytes.
    pub max_congestion_window_bytes: u64,
    /// Largest window of the peer seen, bytes.
    pub max_send_window_bytes: u64,
    /// Round-trip times seen, microseconds.
    pub max_rtt_us: u32,
    /// Smallest.
    pub min_rtt_us: u32,
    /// Mean.
    pub mean_rtt_us: u32,
}

/// One stream over the whole test, as both ends saw it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamTotal {
    /// Number shown.
    pub shown: u32,
    /// Whether this end sends.
    pub sends: bool,
    /// The sender's figures. `None` when they are the peer's and it has not reported them.
    pub sender: Option<Figures>,
    /// The receiver's figures, likewise.
    pub receiver: Option<Figures>,
    /// When this end sends by TCP.
    pub extremes: TcpExtremes,
}

/// How a test ended.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// All streams.
    pub streams: Vec<StreamTotal>,
    /// CPU of this end.
    pub local_cpu: CpuPercent,
    /// CPU of the other end.
    pub remote_cpu: CpuPercent,
    /// Congestion control of this end's streams.
    pub local_congestion: Option<String>,
    /// Of the other end's.
    pub remote_congestion: Option<String>,
    /// What the server printed, when asked for.
    pub server_output: Option<ServerOutput>,
    /// Both ends have exchanged results; without, only this end's are known.
    pub complete: bool,
}

/// A whole test, for JSON and for whoever wants figures.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// As far as it came.
    pub connecting: Option<(String, u16)>,
    /// Likewise.
    pub head: Option<Head>,
    /// All intervals.
    pub intervals: Vec<Interval>,
    /// The summary.
    pub ended: Option<Ended>,
    /// What went wrong.
    pub error: Option<String>,
    /// Things that are not as asked for.
    pub warnings: Vec<String>,
    /// The client's address, at a server.
    pub accepted: Option<SocketAddr>,
}

/// Most intervals that are kept, times streams: a day of one stream by the second.
const MAX_KEPT_STREAM_INTERVALS: usize = 100_000;

impl Report {
    /// Keeps an interval, as long as these are not too many, each counted once per stream.
    pub(crate) fn keep(&mut self, interval: &Interval, most_stream_intervals: usize) {
        let most = most_stream_intervals / interval.streams.len().max(1);
        if self.intervals.len() < most {
            return self.intervals.push(interval.clone());
        }
        let cut = format!("only the first {most} intervals are reported");
        if !self.warnings.contains(&cut) {
            self.warnings.push(cut);
        }
    }
}

impl Observer for Report {
    fn observe(&mut self, event: &Event) {
        match event {
            Event::Connecting { host, port } => self.connecting = Some((host.clone(), *port)),
            Event::Accepted { peer } => self.accepted = Some(*peer),
            Event::Started(head) => self.head = Some((**head).clone()),
            Event::Interval(interval) => self.keep(interval, MAX_KEPT_STREAM_INTERVALS),
            Event::Ended(ended) => self.ended = Some((**ended).clone()),
            Event::Warning(text) => self.warnings.push(text.clone()),
            Event::Failed(text) => self.error = Some(text.clone()),
            Event::Authenticated { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_add_what_adds_and_average_jitter() {
        let one = Figures {
            end_s: 2.0,
            bytes: 10,
            packets: 4,
            lost: 1,
            jitter_s: 0.2,
            retransmits: Some(1),
            ..Figures::default()
        };
        let other = Figures {
            end_s: 3.0,
            jitter_s: 0.4,
            retransmits: None,
            ..one
        };
        let sum = Figures::sum([&one, &other]);
        assert_eq!((sum.bytes, sum.packets, sum.lost), (20, 8, 2));
        assert!((sum.jitter_s - 0.3).abs() < 1e-9);
        assert_eq!((sum.retransmits, sum.end_s), (Some(1), 2.0));
        assert_eq!(sum.lost_percent(), 25.0);
        assert_eq!(Figures::sum([]), Figures::default());
    }

    #[test]
    fn intervals_that_are_not_kept_are_mentioned_once() {
        let stream = StreamInterval {
            shown: 5,
            sends: true,
            figures: Figures::default(),
            tcp: None,
        };
        let interval = Interval {
            omitted: false,
            streams: vec![stream; 2],
        };
        let mut report = Report::default();
        for _ in 0..5 {
            report.keep(&interval, 7);
        }
        assert_eq!(report.intervals.len(), 3);
        assert_eq!(report.warnings, ["only the first 3 intervals are reported"]);
    }

    #[test]
    fn no_time_is_no_rate() {
        let figures = Figures {
            bytes: 5,
            ..Figures::default()
        };
        assert_eq!(figures.bits_per_sec(), 0.0);
        assert_eq!(figures.lost_percent(), 0.0);
    }
}
