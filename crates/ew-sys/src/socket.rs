//! Socket options and TCP_INFO, and waiting for several sockets at once.

use crate::socket_option::{get_option, set_option};
use ew_model::record::TcpInfo;
use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

/// `TCPI_OPT_TIMESTAMPS` of include/uapi/linux/tcp.h.
const OPTION_TIMESTAMPS: u8 = 1;

/// One reading of a connection's `TCP_INFO`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpReading {
    /// The fields that are recorded.
    pub info: TcpInfo,
    /// `tcpi_bytes_acked`: payload the peer has acknowledged. `None` on kernels before 4.1.
    pub acked_bytes: Option<u64>,
    /// `tcpi_retransmits`: retransmission timeouts in a row that the peer has not answered.
    pub unanswered_timeouts: u8,
    /// `tcpi_dsack_dups`: segments that the peer reported to have got twice (RFC 2883), since the
    /// connection's birth. `None` on kernels before 4.19.
    pub duplicates: Option<u32>,
    /// `tcpi_last_ack_recv`: time since the peer was heard at all, ms.
    pub since_last_ack_ms: u32,
    /// `tcpi_last_data_recv`: time since the peer's last payload, ms.
    pub since_last_data_ms: u32,
    /// `tcpi_snd_wnd`: what the peer's window allows to be in flight, bytes. `None` on kernels
    /// before 5.4.
    pub send_window_bytes: Option<u32>,
}

/// A socket and what to wait for on it.
#[derive(Clone, Copy, Debug)]
pub struct Interest<'fd> {
    /// The socket.
    pub fd: BorrowedFd<'fd>,
    /// Wait until it can be written to (a connect is over) instead of read from.
    pub write: bool,
}

/// Who is at the other end of a Unix socket: the user id as of its connect(2) or listen(2)
/// (`SO_PEERCRED`, unix(7)).
///
/// # Errors
/// The system's, for example when it is no Unix socket.
pub fn peer_user(socket: &impl AsFd) -> io::Result<u32> {
    let nobody = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    let (level, name) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    // SAFETY: plain integers.
    let (credentials, _) = unsafe { get_option(socket, level, name, nobody)? };
    Ok(credentials.uid)
}

/// Reads `TCP_INFO`. Fields the running kernel does not return are `None`.
///
/// # Errors
/// The system's, for example when the socket is not TCP.
pub fn tcp_info(socket: &impl AsFd) -> io::Result<TcpReading> {
    let (raw, length) = raw_tcp_info(socket)?;
    let mut reading = raw.decode(length);
    reading.info.send_buffer_bytes = send_buffer_bytes(socket);
    Ok(reading)
}

/// `tcpi_bytes_received`: payload that has come in order since the connection's birth, whether it
/// was read or waits for that. `None` on kernels before 4.1.
///
/// # Errors
/// The system's, for example when the socket is not TCP.
pub fn tcp_received_bytes(socket: &impl AsFd) -> io::Result<Option<u64>> {
    let (raw, length) = raw_tcp_info(socket)?;
    Ok(raw.counts(length).received_bytes)
}

/// The structure, and how much of it the kernel filled.
fn raw_tcp_info(socket: &impl AsFd) -> io::Result<(RawTcpInfo, usize)> {
    let (level, name) = (libc::IPPROTO_TCP, libc::TCP_INFO);
    // SAFETY: plain integers.
    unsafe { get_option(socket, level, name, RawTcpInfo::default()) }
}

/// `SO_SNDBUF` of socket(7).
fn send_buffer_bytes(socket: &impl AsFd) -> Option<u64> {
    let initial: libc::c_int = 0;
    // SAFETY: a plain integer.
    let read = unsafe { get_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, initial) };
    u64::try_from(read.ok()?.0).ok()
}

/// Lets many connections to different peers share a local port: the port is chosen at connect, not
/// at bind (`IP_BIND_ADDRESS_NO_PORT`, ip(7); also honoured on IPv6 sockets).
///
/// # Errors
/// The system's, on kernels before 4.2.
pub fn choose_port_at_connect(socket: &impl AsFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    let name = libc::IP_BIND_ADDRESS_NO_PORT;
    set_option(socket, libc::IPPROTO_IP, name, on)
}

/// The CPU that last handled a packet of this socket (`SO_INCOMING_CPU`, socket(7)). `None` before
/// the first.
#[must_use]
pub fn incoming_cpu(socket: &impl AsFd) -> Option<usize> {
    let nowhere: libc::c_int = -1;
    // SAFETY: a plain integer.
    let read = unsafe { get_option(socket, libc::SOL_SOCKET, libc::SO_INCOMING_CPU, nowhere) };
    usize::try_from(read.ok()?.0).ok()
}

/// Whether a connection is multipath TCP and has not fallen back to plain TCP: only then the kernel
/// answers `MPTCP_INFO` (include/uapi/linux/mptcp.h).
#[must_use]
pub fn is_multipath(socket: &impl AsFd) -> bool {
    const SOL_MPTCP: libc::c_int = 284;
    const MPTCP_INFO: libc::c_int = 1;
    // As long as the struct is on any kernel; its content is not read.
    let info = [0_u64; 32];
    // SAFETY: plain integers.
    unsafe { get_option(socket, SOL_MPTCP, MPTCP_INFO, info) }.is_ok()
}

/// Waits until a socket is ready, has failed or was closed by its peer, or the time is over. One
/// flag per interest; all are false after the time or a signal.
///
/// # Errors
/// The system's, for example when there are more sockets than the process may open.
pub fn wait_ready(interests: &[Interest<'_>], timeout: Duration) -> io::Result<Vec<bool>> {
    let mut entries: Vec<libc::pollfd> = interests.iter().map(poll_entry).collect();
    poll(&mut entries, timeout)?;
    Ok(entries.iter().map(|entry| entry.revents != 0).collect())
}

/// The same for reading, from `MOST` sockets at most, and without allocating: whether the first one
/// is ready.
///
/// # Errors
/// The system's.
pub fn await_readable<'fd, const MOST: usize>(
    sockets: impl Iterator<Item = BorrowedFd<'fd>>,
    timeout: Duration,
) -> io::Result<bool> {
    // poll(2) ignores what is no descriptor.
    let nobody = libc::pollfd {
        fd: -1,
        events: 0,
        revents: 0,
    };
    let mut entries = [nobody; MOST];
    for (entry, fd) in entries.iter_mut().zip(sockets) {
        *entry = poll_entry(&Interest { fd, write: false });
    }
    poll(&mut entries, timeout)?;
    Ok(entries.first().is_some_and(|entry| entry.revents != 0))
}

/// poll(2). Nothing has happened after a signal.
fn poll(entries: &mut [libc::pollfd], timeout: Duration) -> io::Result<()> {
    // Rounded up, so that a wait for less than a millisecond is not a busy loop.
    let timeout_ms = timeout.as_micros().div_ceil(1000).min(i32::MAX as u128) as libc::c_int;
    // SAFETY: `entries` is a valid array of its own length; every fd is borrowed for the call.
    let status = unsafe {
        libc::poll(
            entries.as_mut_ptr(),
            entries.len() as libc::nfds_t,
            timeout_ms,
        )
    };
    let error = io::Error::last_os_error();
    match status {
        ..0 if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        ..0 => Err(error),
        _ => Ok(()),
    }
}

fn poll_entry(interest: &Interest<'_>) -> libc::pollfd {
    libc::pollfd {
        fd: interest.fd.as_raw_fd(),
        events: if interest.write {
            libc::POLLOUT
        } else {
            libc::POLLIN
        },
        revents: 0,
    }
}

/// `struct tcp_info` of include/uapi/linux/tcp.h up to `tcpi_snd_wnd`. The C library's own copy
/// ends far earlier; what an older kernel does not fill stays zero and is reported by the returned
/// length.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct RawTcpInfo {
    state: u8,
    ca_state: u8,
    retransmits: u8,
    probes: u8,
    backoff: u8,
    options: u8,
    window_scales: u8,
    rate_flags: u8,
    rto: u32,
    ato: u32,
    snd_mss: u32,
    rcv_mss: u32,
    unacked: u32,
    sacked: u32,
    lost: u32,
    retrans: u32,
    fackets: u32,
    last_data_sent: u32,
    last_ack_sent: u32,
    last_data_recv: u32,
    last_ack_recv: u32,
    pmtu: u32,
    rcv_ssthresh: u32,
    rtt: u32,
    rttvar: u32,
    snd_ssthresh: u32,
    snd_cwnd: u32,
    advmss: u32,
    reordering: u32,
    rcv_rtt: u32,
    rcv_space: u32,
    total_retrans: u32,
    pacing_rate: u64,
    max_pacing_rate: u64,
    bytes_acked: u64,
    bytes_received: u64,
    segs_out: u32,
    segs_in: u32,
    notsent_bytes: u32,
    min_rtt: u32,
    data_segs_in: u32,
    data_segs_out: u32,
    delivery_rate: u64,
    busy_time: u64,
    rwnd_limited: u64,
    sndbuf_limited: u64,
    delivered: u32,
    delivered_ce: u32,
    bytes_sent: u64,
    bytes_retrans: u64,
    dsack_dups: u32,
    reord_seen: u32,
    rcv_ooopack: u32,
    snd_wnd: u32,
}

/// The field when the returned length covers it.
macro_rules! field_within {
    ($raw:expr, $length:expr, $field:ident, $kind:ty) => {
        (offset_of!(RawTcpInfo, $field) + size_of::<$kind>() <= $length).then_some($raw.$field)
    };
}

/// Counters of a connection since its birth.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TcpCounts {
    pub(crate) acked_bytes: Option<u64>,
    pub(crate) received_bytes: Option<u64>,
    pub(crate) data_segments_out: Option<u32>,
}

impl RawTcpInfo {
    /// From a netlink attribute, which may be shorter or longer than the structure known here.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let mut raw = Self::default();
        let length = bytes.len().min(size_of::<Self>());
        // SAFETY: `raw` is plain integers, for which every bit pattern is a value, and `length`
        // fits both.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), (&raw mut raw).cast::<u8>(), length);
        }
        raw
    }

    /// What the returned length covers.
    pub(crate) fn counts(&self, length: usize) -> TcpCounts {
        TcpCounts {
            acked_bytes: field_within!(self, length, bytes_acked, u64),
            received_bytes: field_within!(self, length, bytes_received, u64),
            data_segments_out: field_within!(self, length, data_segs_out, u32),
        }
    }

    pub(crate) fn decode(&self, length: usize) -> TcpReading {
        TcpReading {
            info: TcpInfo {
                total_retransmits: self.total_retrans,
                rtt_us: self.rtt,
                rtt_variation_us: self.rttvar,
                // The kernel reports "no sample yet" with all bits set.
                min_rtt_us: field_within!(self, length, min_rtt, u32)
                    .filter(|rtt| *rtt != u32::MAX),
                congestion_window_segments: self.snd_cwnd,
                send_mss_bytes: self.snd_mss,
                receive_mss_bytes: self.rcv_mss,
                path_mtu_bytes: self.pmtu,
                delivery_rate_bytes_per_sec: field_within!(self, length, delivery_rate, u64),
                busy_us: field_within!(self, length, busy_time, u64),
                receive_window_limited_us: field_within!(self, length, rwnd_limited, u64),
                send_buffer_limited_us: field_within!(self, length, sndbuf_limited, u64),
                send_buffer_bytes: None,
                retransmitted_bytes: field_within!(self, length, bytes_retrans, u64),
                timestamps: self.options & OPTION_TIMESTAMPS != 0,
            },
            acked_bytes: field_within!(self, length, bytes_acked, u64),
            unanswered_timeouts: self.retransmits,
            duplicates: field_within!(self, length, dsack_dups, u32),
            since_last_ack_ms: self.last_ack_recv,
            since_last_data_ms: self.last_data_recv,
            send_window_bytes: field_within!(self, length, snd_wnd, u32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn layout_is_the_kernels() {
        // Offsets of include/uapi/linux/tcp.h on every 64-bit Linux.
        assert_eq!(offset_of!(RawTcpInfo, rto), 8);
        assert_eq!(offset_of!(RawTcpInfo, total_retrans), 100);
        assert_eq!(offset_of!(RawTcpInfo, pacing_rate), 104);
        assert_eq!(offset_of!(RawTcpInfo, min_rtt), 148);
        assert_eq!(offset_of!(RawTcpInfo, delivery_rate), 160);
        assert_eq!(offset_of!(RawTcpInfo, bytes_retrans), 208);
        assert_eq!(offset_of!(RawTcpInfo, dsack_dups), 216);
        assert_eq!(offset_of!(RawTcpInfo, snd_wnd), 228);
    }

    #[test]
    fn fields_beyond_the_returned_length_are_none() {
        let raw = RawTcpInfo {
            min_rtt: 7,
            delivery_rate: 8,
            options: OPTION_TIMESTAMPS,
            ..RawTcpInfo::default()
        };
        let old = raw.decode(offset_of!(RawTcpInfo, min_rtt) + 3);
        assert_eq!(old.info.min_rtt_us, None);
        assert_eq!(old.acked_bytes, Some(0));
        assert!(old.info.timestamps);
        let newer = raw.decode(offset_of!(RawTcpInfo, delivery_rate));
        assert_eq!(newer.info.min_rtt_us, Some(7));
        assert_eq!(newer.info.delivery_rate_bytes_per_sec, None);
        assert_eq!(
            raw.decode(size_of::<RawTcpInfo>()).info.retransmitted_bytes,
            Some(0)
        );
    }

    #[test]
    fn a_loopback_connection_has_sensible_figures() {
        let (mut near, mut far) = connected_pair();
        near.write_all(&[1; 1000]).unwrap();
        far.read_exact(&mut [0; 1000]).unwrap();
        let reading = tcp_info(&near).unwrap();
        assert!(reading.info.send_mss_bytes > 500);
        assert!(reading.info.path_mtu_bytes > reading.info.send_mss_bytes);
        assert!(reading.acked_bytes.unwrap_or(0) <= 1001);
    }

    #[test]
    fn what_nobody_has_read_has_come() {
        let (mut near, far) = connected_pair();
        near.write_all(&[1; 1000]).unwrap();
        let interest = Interest {
            fd: far.as_fd(),
            write: false,
        };
        wait_ready(&[interest], Duration::from_secs(5)).unwrap();
        assert_eq!(tcp_received_bytes(&far).unwrap(), Some(1000));
    }

    #[test]
    fn a_udp_socket_is_refused() {
        assert!(tcp_info(&UdpSocket::bind("127.0.0.1:0").unwrap()).is_err());
    }

    #[test]
    fn a_packet_was_handled_somewhere() {
        let (mut near, mut far) = connected_pair();
        near.write_all(b"x").unwrap();
        far.read_exact(&mut [0]).unwrap();
        assert!(incoming_cpu(&far).is_some());
    }

    #[test]
    fn plain_tcp_is_not_multipath() {
        let (near, far) = connected_pair();
        assert!(!is_multipath(&near) && !is_multipath(&far));
    }

    #[test]
    fn waiting_tells_which_socket_is_ready() {
        let (mut near, far) = connected_pair();
        let (silent, _other) = connected_pair();
        near.write_all(b"x").unwrap();
        let interests = [
            Interest {
                fd: silent.as_fd(),
                write: false,
            },
            Interest {
                fd: far.as_fd(),
                write: false,
            },
        ];
        let ready = wait_ready(&interests, Duration::from_secs(5)).unwrap();
        assert_eq!(ready, [false, true]);
    }

    #[test]
    fn the_first_of_some_sockets_is_readable_or_not() {
        let (mut near, far) = connected_pair();
        let (silent, _other) = connected_pair();
        near.write_all(b"x").unwrap();
        let both = [far.as_fd(), silent.as_fd()];
        let patience = Duration::from_secs(5);
        assert!(await_readable::<3>(both.into_iter(), patience).unwrap());
        assert!(!await_readable::<3>(both.into_iter().rev(), patience).unwrap());
        assert!(!await_readable::<1>([silent.as_fd()].into_iter(), Duration::ZERO).unwrap());
    }

    #[test]
    fn the_port_can_be_left_to_connect() {
        let socket = socket2::Socket::new(socket2::Domain::IPV6, socket2::Type::STREAM, None);
        // Hosts without IPv6 have nothing to test here.
        if let Ok(socket) = socket {
            choose_port_at_connect(&socket).unwrap();
        }
    }

    fn connected_pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }
}
