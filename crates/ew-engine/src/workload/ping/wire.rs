//! ICMP echo on the wire (RFC 792, page 14; RFC 4443, section 4), and the two kinds of sockets that
//! carry it.
//!
//! An echo's data begins with the stream's cookie and the echo's number, 8 bytes each, big endian.

use crate::stream_error::StreamError;
use socket2::{Domain, Protocol, SockFilter, Socket, Type};
use std::io;
use std::net::IpAddr;

/// Length of an ICMP header.
pub(super) const HEADER_BYTES: usize = 8;
/// What echoes need in their data.
pub(super) const MIN_DATA_BYTES: usize = 16;
/// Longer ones do not fit an IPv4 packet of 65,535 bytes.
pub(super) const MAX_DATA_BYTES: usize = 65_507;
/// Of IPv4, with all options (RFC 791, section 3.1).
pub(super) const MAX_IP_HEADER_BYTES: usize = 60;

const REQUEST_V4: u8 = 8;
const REPLY_V4: u8 = 0;
const REQUEST_V6: u8 = 128;
const REPLY_V6: u8 = 129;
const CHECKSUM: std::ops::Range<usize> = 2..4;
const ID: std::ops::Range<usize> = 4..6;
const SEQUENCE: std::ops::Range<usize> = 6..8;
const COOKIE: std::ops::Range<usize> = 8..16;
const NUMBER: std::ops::Range<usize> = 16..24;

/// What a socket receives of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dialect {
    pub(super) is_v6: bool,
    /// The process sees all of the host's ICMP, with IPv4 headers, and makes IPv4 checksums itself
    /// (raw(7)). Otherwise the kernel chooses the identifier and hands over what has it (icmp(7)).
    pub(super) is_raw: bool,
}

/// One stream's echoes.
#[derive(Clone, Debug)]
pub(super) struct Echo {
    dialect: Dialect,
    cookie: u64,
    /// Header and data.
    packet: Vec<u8>,
}

/// A socket for echoes: a datagram socket where the user's group may have one, else a raw one.
pub(super) fn open(address: IpAddr) -> Result<(Socket, Dialect), StreamError> {
    let is_v6 = address.is_ipv6();
    let (domain, protocol) = match address {
        IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4),
        IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6),
    };
    let socket = |kind| Socket::new(domain, kind, Some(protocol));
    let dialect = |is_raw| Dialect { is_v6, is_raw };
    let datagram = match socket(Type::DGRAM) {
        Ok(opened) => return Ok((opened, dialect(false))),
        Err(error) => error,
    };
    match socket(Type::RAW) {
        Ok(opened) => Ok((opened, dialect(true))),
        Err(source) => Err(StreamError::IcmpSocket { datagram, source }),
    }
}

impl Echo {
    /// The data is the cookie, the number, and what `content` has behind as many bytes.
    pub(super) fn new(dialect: Dialect, cookie: u64, content: &[u8]) -> Self {
        let mut packet = vec![0; HEADER_BYTES + content.len()];
        packet[0] = match dialect.is_v6 {
            true => REQUEST_V6,
            false => REQUEST_V4,
        };
        packet[HEADER_BYTES..].copy_from_slice(content);
        packet[ID].copy_from_slice(&id_of(cookie).to_be_bytes());
        packet[COOKIE].copy_from_slice(&cookie.to_be_bytes());
        Self {
            dialect,
            cookie,
            packet,
        }
    }

    /// The packet of this number.
    pub(super) fn request(&mut self, number: u64) -> &[u8] {
        let packet = &mut self.packet;
        packet[SEQUENCE].copy_from_slice(&(number as u16).to_be_bytes());
        packet[NUMBER].copy_from_slice(&number.to_be_bytes());
        if self.dialect.is_raw && !self.dialect.is_v6 {
            packet[CHECKSUM].fill(0);
            let sum = checksum(packet);
            packet[CHECKSUM].copy_from_slice(&sum.to_be_bytes());
        }
        packet
    }

    /// The number of the echo that a received packet answers. `None`: it is somebody else's, or
    /// something else.
    pub(super) fn answered(&self, received: &[u8]) -> Option<u64> {
        let packet = match self.dialect.is_raw && !self.dialect.is_v6 {
            true => behind_ipv4_header(received)?,
            false => received,
        };
        let reply = match self.dialect.is_v6 {
            true => REPLY_V6,
            false => REPLY_V4,
        };
        let is_reply = packet.len() == self.packet.len() && packet[..2] == [reply, 0];
        // The kernel has put another identifier in its place for datagram sockets, and takes care
        // of it.
        let is_ours = is_reply
            && (!self.dialect.is_raw || packet[ID] == self.packet[ID])
            && packet[COOKIE] == self.cookie.to_be_bytes();
        let number = packet.get(NUMBER).filter(|_| is_ours)?;
        Some(u64::from_be_bytes(number.try_into().ok()?))
    }

    /// Keeps other programs' packets off a raw socket, so that many streams do not each read all
    /// (the kernel's Documentation/networking/filter.rst). For a raw socket of IPv4 a packet begins
    /// with the IP header.
    pub(super) fn filter(&self, socket: &Socket) -> io::Result<()> {
        if !self.dialect.is_raw {
            return Ok(());
        }
        let (reply, load_byte, load_half) = match self.dialect.is_v6 {
            true => (REPLY_V6, 0x30, 0x28),
            false => (REPLY_V4, 0x50, 0x48),
        };
        socket.attach_filter(&[
            // X = length of the IPv4 header.
            SockFilter::new(0xb1, 0, 0, 0),
            SockFilter::new(load_byte, 0, 0, 0),
            SockFilter::new(0x15, 0, 3, u32::from(reply)),
            SockFilter::new(load_half, 0, 0, ID.start as u32),
            SockFilter::new(0x15, 0, 1, u32::from(id_of(self.cookie))),
            SockFilter::new(0x06, 0, 0, u32::MAX),
            SockFilter::new(0x06, 0, 0, 0),
        ])
    }
}

fn id_of(cookie: u64) -> u16 {
    cookie as u16
}

/// The header's length is in its low four bits, in words of four bytes (RFC 791, section 3.1).
fn behind_ipv4_header(packet: &[u8]) -> Option<&[u8]> {
    let words = usize::from(packet.first()? & 0x0f);
    packet.get(words * 4..).filter(|_| words >= 5)
}

/// The ones' complement of the ones' complement sum of all 16-bit words (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0_u64;
    for pair in bytes.chunks(2) {
        let low = pair.get(1).copied().unwrap_or(0);
        sum += u64::from(u16::from_be_bytes([pair[0], low]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DIALECTS: [Dialect; 4] = [
        dialect(false, false),
        dialect(false, true),
        dialect(true, false),
        dialect(true, true),
    ];

    const fn dialect(is_v6: bool, is_raw: bool) -> Dialect {
        Dialect { is_v6, is_raw }
    }

    /// What a host answers, as a socket gets it.
    fn reply(dialect: Dialect, request: &[u8]) -> Vec<u8> {
        let mut packet = request.to_vec();
        packet[0] = if dialect.is_v6 { REPLY_V6 } else { REPLY_V4 };
        if dialect.is_raw && !dialect.is_v6 {
            let mut header = vec![0; 20];
            header[0] = 0x45;
            return [header, packet].concat();
        }
        packet
    }

    proptest! {
        #[test]
        fn answers_are_known_by_their_numbers(which in 0_usize..4, cookie: u64, number: u64, length in 16_usize..200) {
            let mut echo = Echo::new(DIALECTS[which], cookie, &vec![7; length]);
            let received = reply(DIALECTS[which], echo.request(number));
            prop_assert_eq!(echo.answered(&received), Some(number));
        }

        #[test]
        fn others_answers_are_nobodys(which in 0_usize..4, cookie: u64, other: u64, number: u64) {
            prop_assume!(cookie != other);
            let mut foreign = Echo::new(DIALECTS[which], other, &[7; 56]);
            let received = reply(DIALECTS[which], foreign.request(number));
            let own = Echo::new(DIALECTS[which], cookie, &[7; 56]);
            prop_assert_eq!(own.answered(&received), None);
        }

        #[test]
        fn noise_is_nobodys(which in 0_usize..4, bytes: Vec<u8>) {
            let echo = Echo::new(DIALECTS[which], 1, &[7; 16]);
            prop_assert_eq!(echo.answered(&bytes), None);
        }

        #[test]
        fn parts_and_requests_are_no_answers(which in 0_usize..4, kept in 0_usize..64, number: u64) {
            let mut echo = Echo::new(DIALECTS[which], 9, &[7; 56]);
            let request = echo.request(number).to_vec();
            let whole = reply(DIALECTS[which], &request);
            prop_assert_eq!(echo.answered(&whole[..kept.min(whole.len() - 1)]), None);
            prop_assert_eq!(echo.answered(&request), None);
        }

        #[test]
        fn a_packet_with_its_checksum_sums_to_zero(number: u64, length in 16_usize..99) {
            let mut echo = Echo::new(dialect(false, true), 3, &vec![200; length]);
            prop_assert_eq!(checksum(echo.request(number)), 0);
        }
    }

    #[test]
    fn a_wrong_identifier_is_ignored_where_the_kernel_does_not_see_to_it() {
        for dialect in DIALECTS {
            let mut echo = Echo::new(dialect, 0x0102_0304, &[7; 56]);
            let mut received = reply(dialect, echo.request(5));
            let at = received.len() - 56 - HEADER_BYTES + ID.start;
            received[at] ^= 1;
            let expected = (!dialect.is_raw).then_some(5);
            assert_eq!(echo.answered(&received), expected, "{dialect:?}");
        }
    }

    #[test]
    fn the_checksum_is_that_of_the_rfc() {
        // The example of RFC 1071, section 3.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(checksum(&bytes), !0xddf2);
    }
}
