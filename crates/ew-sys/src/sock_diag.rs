//! All sockets of the network namespace, by `NETLINK_SOCK_DIAG` (sock_diag(7),
//! include/uapi/linux/inet_diag.h).
//!
//! Needs no privilege: every user may list every socket and its TCP_INFO. Who holds a socket is not
//! reported; its inode is.

use crate::netlink::{Netlink, attributes, u16_at, u32_at};
use crate::socket::RawTcpInfo;
use ew_model::telemetry::{TcpSocket, UdpSocket};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const NETLINK_SOCK_DIAG: i32 = 4;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// The older request, which lists both families in one walk of the kernel's table: the walk is what
/// costs, 1 ms and more on a host with much memory, however few sockets there are.
const TCPDIAG_GETSOCK: u16 = 18;
/// `SKNLGRP_INET_TCP_DESTROY`, `SKNLGRP_INET6_TCP_DESTROY`.
const GROUPS_TCP_DESTROY: [u32; 2] = [1, 3];

const ATTRIBUTE_INFO: u16 = 2;
const ATTRIBUTE_SOCKET_MEMORY: u16 = 7;
/// Position of `SK_MEMINFO_DROPS` in the u32s of `INET_DIAG_SKMEMINFO`.
const MEMORY_DROPS: usize = 8;

/// All states but TIME_WAIT (6) and SYN_RECV (3): those carry nothing, and a busy server has many
/// of them.
const STATES: u32 = 0xfff & !(1 << 6) & !(1 << 3);
/// `struct inet_diag_msg`.
const MESSAGE_BYTES: usize = 72;

/// Lists sockets.
#[derive(Debug)]
pub struct SocketLister {
    netlink: Netlink,
}

/// Learns of TCP sockets that die, with their last counters.
#[derive(Debug)]
pub struct TcpDeaths {
    netlink: Netlink,
}

impl SocketLister {
    /// For the network namespace of the calling thread.
    ///
    /// # Errors
    /// The system's, for example on kernels without sock_diag.
    pub fn open() -> io::Result<Self> {
        Ok(Self {
            netlink: Netlink::open(NETLINK_SOCK_DIAG)?,
        })
    }

    /// Fills `found` with every TCP socket, listeners too.
    ///
    /// # Errors
    /// The system's, for example on kernels without tcp_diag.
    pub fn tcp(&mut self, found: &mut Vec<TcpSocket>) -> io::Result<()> {
        let both = self.netlink.dump(
            TCPDIAG_GETSOCK,
            &old_request(ATTRIBUTE_INFO),
            &mut |_, body| {
                found.extend(tcp_socket(body));
            },
        );
        if both.is_ok() {
            return Ok(());
        }
        found.clear();
        self.list(libc::IPPROTO_TCP, ATTRIBUTE_INFO, &mut |body| {
            found.extend(tcp_socket(body));
        })
    }

    /// Adds every UDP socket to `found`.
    ///
    /// # Errors
    /// The system's, for example on kernels without udp_diag.
    pub fn udp(&mut self, found: &mut Vec<UdpSocket>) -> io::Result<()> {
        self.list(libc::IPPROTO_UDP, ATTRIBUTE_SOCKET_MEMORY, &mut |body| {
            found.extend(udp_socket(body));
        })
    }

    fn list(
        &mut self,
        protocol: i32,
        attribute: u16,
        each: &mut dyn FnMut(&[u8]),
    ) -> io::Result<()> {
        for family in [libc::AF_INET, libc::AF_INET6] {
            let request = request(family as u8, protocol as u8, attribute);
            let listed = self
                .netlink
                .dump(SOCK_DIAG_BY_FAMILY, &request, &mut |_, body| each(body));
            // A host without IPv6 has no sockets of it.
            if family == libc::AF_INET {
                listed?;
            }
        }
        Ok(())
    }
}

impl TcpDeaths {
    /// From now on, for the network namespace of the calling thread.
    ///
    /// # Errors
    /// The system's, on kernels before 4.2.
    pub fn open() -> io::Result<Self> {
        let mut netlink = Netlink::open(NETLINK_SOCK_DIAG)?;
        for group in GROUPS_TCP_DESTROY {
            netlink.join(group)?;
        }
        Ok(Self { netlink })
    }

    /// Adds what died since the last call to `found`; the inode is 0. Returns how often the kernel
    /// had to drop some.
    ///
    /// # Errors
    /// The system's.
    pub fn drain(&mut self, found: &mut Vec<TcpSocket>) -> io::Result<u64> {
        self.netlink
            .drain(&mut |_, body| found.extend(tcp_socket(body)))
    }
}

/// `struct inet_diag_req_v2`.
fn request(family: u8, protocol: u8, attribute: u16) -> [u8; 56] {
    let mut request = [0; 56];
    request[0] = family;
    request[1] = protocol;
    request[2] = 1 << (attribute - 1);
    request[4..8].copy_from_slice(&STATES.to_ne_bytes());
    request
}

/// `struct inet_diag_req`: families and address lengths are 0, for all.
fn old_request(attribute: u16) -> [u8; 60] {
    let mut request = [0; 60];
    request[3] = 1 << (attribute - 1);
    request[52..56].copy_from_slice(&STATES.to_ne_bytes());
    request
}

pub(crate) fn tcp_socket(body: &[u8]) -> Option<TcpSocket> {
    let head = Head::parse(body)?;
    let (info, length) = attributes(body.get(MESSAGE_BYTES..)?)
        .find(|(kind, _)| *kind == ATTRIBUTE_INFO)
        .map(|(_, bytes)| (RawTcpInfo::from_bytes(bytes), bytes.len()))
        .unwrap_or_default();
    let counts = info.counts(length);
    Some(TcpSocket {
        cookie: head.cookie,
        local: head.local,
        remote: head.remote,
        state: head.state,
        inode: head.inode,
        uid: head.uid,
        pid: None,
        receive_queue: head.receive_queue,
        send_queue: head.send_queue,
        acked_bytes: counts.acked_bytes,
        received_bytes: counts.received_bytes,
        data_segments_out: counts.data_segments_out,
        info: info.decode(length).info,
    })
}

pub(crate) fn udp_socket(body: &[u8]) -> Option<UdpSocket> {
    let head = Head::parse(body)?;
    let memory =
        attributes(body.get(MESSAGE_BYTES..)?).find(|(kind, _)| *kind == ATTRIBUTE_SOCKET_MEMORY);
    Some(UdpSocket {
        cookie: head.cookie,
        local: head.local,
        remote: head.remote,
        inode: head.inode,
        pid: None,
        receive_queue: head.receive_queue,
        send_queue: head.send_queue,
        drops: memory.and_then(|(_, bytes)| u32_at(bytes, MEMORY_DROPS * 4)),
    })
}

/// The fixed part, `struct inet_diag_msg`.
struct Head {
    state: u8,
    local: SocketAddr,
    remote: SocketAddr,
    cookie: u64,
    receive_queue: u32,
    send_queue: u32,
    uid: u32,
    inode: u32,
}

impl Head {
    fn parse(body: &[u8]) -> Option<Self> {
        let family = *body.first()?;
        let port = |at| Some(u16::from_be(u16_at(body, at)?));
        Some(Self {
            state: *body.get(1)?,
            local: SocketAddr::new(address(family, body.get(8..24)?)?, port(4)?),
            remote: SocketAddr::new(address(family, body.get(24..40)?)?, port(6)?),
            cookie: u64::from(u32_at(body, 44)?) | u64::from(u32_at(body, 48)?) << 32,
            receive_queue: u32_at(body, 56)?,
            send_queue: u32_at(body, 60)?,
            uid: u32_at(body, 64)?,
            inode: u32_at(body, 68)?,
        })
    }
}

/// IPv4 in an IPv6 socket is shown as IPv4, as programs such as ss do not, but people expect.
fn address(family: u8, bytes: &[u8]) -> Option<IpAddr> {
    let bytes: [u8; 16] = bytes.try_into().ok()?;
    match i32::from(family) {
        libc::AF_INET => Some(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).into()),
        libc::AF_INET6 => Some(Ipv6Addr::from(bytes).to_canonical()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_connection_and_what_it_carried_are_listed() {
        let (mut near, mut far) = connected_pair();
        near.write_all(&[1; 5000]).unwrap();
        far.read_exact(&mut [0; 5000]).unwrap();
        let mut found = Vec::new();
        SocketLister::open().unwrap().tcp(&mut found).unwrap();
        let receiver = find(&found, &far).unwrap();
        assert_eq!(receiver.received_bytes, Some(5000));
        assert_eq!(receiver.state, TcpSocket::ESTABLISHED);
        assert!(receiver.inode > 0 && receiver.cookie > 0);
        let sender = find(&found, &near).unwrap();
        assert!(sender.data_segments_out >= Some(1));
        assert!(sender.info.path_mtu_bytes > 1000);
    }

    #[test]
    fn both_requests_list_the_same() {
        let (near, _far) = connected_pair();
        let mut lister = SocketLister::open().unwrap();
        let mut by_family = Vec::new();
        let add = &mut |body: &[u8]| by_family.extend(tcp_socket(body));
        lister.list(libc::IPPROTO_TCP, ATTRIBUTE_INFO, add).unwrap();
        let mut at_once = Vec::new();
        lister.tcp(&mut at_once).unwrap();
        let cookie = |all: &[TcpSocket]| find(all, &near).map(|s| s.cookie);
        assert!(cookie(&by_family).is_some());
        assert_eq!(cookie(&by_family), cookie(&at_once));
    }

    #[test]
    fn a_death_tells_the_last_counters() {
        let mut deaths = TcpDeaths::open().unwrap();
        let (mut near, mut far) = connected_pair();
        let (local, remote) = (far.local_addr().unwrap(), far.peer_addr().unwrap());
        near.write_all(&[1; 777]).unwrap();
        far.read_exact(&mut [0; 777]).unwrap();
        // The receiver closes second, so that it does not have to wait out TIME_WAIT.
        drop(near);
        assert_eq!(far.read(&mut [0; 1]).unwrap(), 0);
        drop(far);
        let mut found = Vec::new();
        for _ in 0..500 {
            deaths.drain(&mut found).unwrap();
            let dead = found
                .iter()
                .find(|s| s.local == local && s.remote == remote);
            if let Some(dead) = dead {
                assert_eq!(dead.received_bytes.map(|b| b / 777), Some(1));
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("the death was not reported within 5 s: {found:?}");
    }

    #[test]
    fn udp_sockets_tell_their_queue_and_drops() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        sender
            .send_to(&[1; 100], socket.local_addr().unwrap())
            .unwrap();
        let mut found = Vec::new();
        SocketLister::open().unwrap().udp(&mut found).unwrap();
        let local = socket.local_addr().unwrap();
        let listed = found.iter().find(|s| s.local == local).unwrap();
        assert!(listed.receive_queue >= 100, "{listed:?}");
        assert_eq!(listed.drops, Some(0));
    }

    #[test]
    fn short_answers_are_no_socket() {
        for length in 0..MESSAGE_BYTES {
            assert_eq!(tcp_socket(&vec![2; length]), None);
        }
        assert_eq!(tcp_socket(&[99; MESSAGE_BYTES]), None, "unknown family");
        let bare = tcp_socket(&[2; MESSAGE_BYTES]).unwrap();
        assert_eq!((bare.acked_bytes, bare.received_bytes), (None, None));
    }

    fn find<'list>(found: &'list [TcpSocket], socket: &TcpStream) -> Option<&'list TcpSocket> {
        let (local, remote) = (socket.local_addr().ok()?, socket.peer_addr().ok()?);
        found
            .iter()
            .find(|s| s.local == local && s.remote == remote)
    }

    fn connected_pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }
}
