//! The kernel's netlink sockets: requests that are answered by a list, and groups that report
//! events.
//!
//! Layouts are those of include/uapi/linux/netlink.h. Answers are parsed as untrusted bytes: a
//! message that does not fit is skipped, never trusted.

use crate::socket_option::set_option;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, Read};
use std::mem::size_of;
use std::time::Duration;

/// The kernel fills at most this much in one answer (32 KiB); events are smaller.
const BUFFER_BYTES: usize = 64 << 10;
/// Space for events between two readings; the kernel may grant less.
const EVENT_BUFFER_BYTES: usize = 4 << 20;
/// A kernel that does not answer must not stop the reader.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

const HEADER_BYTES: usize = 16;
const FLAG_REQUEST: u16 = 0x01;
const FLAG_DUMP: u16 = 0x300;
const MESSAGE_ERROR: u16 = 2;
const MESSAGE_DONE: u16 = 3;
/// `NLA_TYPE_MASK`: the two highest bits of an attribute's type are flags.
const ATTRIBUTE_TYPE_MASK: u16 = 0x3fff;

/// A netlink socket, for the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
    buffer: Vec<u8>,
    sequence: u32,
}

impl Netlink {
    /// Opens a socket of a netlink family, for example `NETLINK_ROUTE`.
    ///
    /// # Errors
    /// The system's: the kernel lacks the family, or too many files are open.
    pub fn open(family: i32) -> io::Result<Self> {
        let socket = Socket::new(
            Domain::from(libc::AF_NETLINK),
            Type::RAW,
            Some(Protocol::from(family)),
        )?;
        socket.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        socket.bind(&any_address()?)?;
        Ok(Self {
            socket,
            buffer: vec![0; BUFFER_BYTES],
            sequence: 0,
        })
    }

    /// Joins a group of events, which [`Netlink::drain`] then returns. From then on the socket
    /// never blocks.
    ///
    /// # Errors
    /// The system's: the kernel lacks the group, or it needs privilege.
    pub fn join(&mut self, group: u32) -> io::Result<()> {
        // What is granted is enough or is not: losses are reported.
        let _ = self.socket.set_recv_buffer_size(EVENT_BUFFER_BYTES);
        let option = libc::NETLINK_ADD_MEMBERSHIP;
        set_option(&self.socket, libc::SOL_NETLINK, option, group)?;
        self.socket.set_nonblocking(true)
    }

    /// Asks for a list and hands over each answer's type and body.
    ///
    /// # Errors
    /// The system's, the kernel's refusal, or that it did not answer in time.
    pub fn dump(
        &mut self,
        kind: u16,
        body: &[u8],
        each: &mut dyn FnMut(u16, &[u8]),
    ) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = request(kind, self.sequence, body);
        self.socket.send(&request)?;
        loop {
            let length = (&self.socket).read(&mut self.buffer)?;
            for message in messages(&self.buffer[..length]) {
                if message.sequence != self.sequence {
                    continue;
                }
                match message.kind {
                    MESSAGE_DONE => return Ok(()),
                    MESSAGE_ERROR => return error_of(message.body),
                    kind => each(kind, message.body),
                }
            }
        }
    }

    /// Hands over all events that came, without waiting. Returns how often the kernel had to drop
    /// some because the buffer was full.
    ///
    /// # Errors
    /// The system's.
    pub fn drain(&mut self, each: &mut dyn FnMut(u16, &[u8])) -> io::Result<u64> {
        let mut overruns = 0;
        loop {
            match (&self.socket).read(&mut self.buffer) {
                Ok(length) => {
                    for message in messages(&self.buffer[..length]) {
                        each(message.kind, message.body);
                    }
                }
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => overruns += 1,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(overruns),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The attributes of a message's body behind its fixed part: (type, value).
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(bytes, 0)?);
        let kind = u16_at(bytes, 2)? & ATTRIBUTE_TYPE_MASK;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// A number of the host's byte order.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// A number of the host's byte order.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// A number of the host's byte order.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// Lets the kernel choose the socket's number. A socket without one hears no events.
fn any_address() -> io::Result<SockAddr> {
    // SAFETY: the closure writes a whole sockaddr_nl and its length.
    let ((), address) = unsafe {
        SockAddr::try_init(|storage, length| {
            // SAFETY: sockaddr_nl is integers: all zeroes are a valid value, "any".
            let mut any: libc::sockaddr_nl = std::mem::zeroed();
            any.nl_family = libc::AF_NETLINK as libc::sa_family_t;
            storage.cast::<libc::sockaddr_nl>().write(any);
            *length = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
            Ok(())
        })
    }?;
    Ok(address)
}

pub(crate) struct Message<'bytes> {
    kind: u16,
    sequence: u32,
    pub(crate) body: &'bytes [u8],
}

fn request(kind: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
    bytes.extend(((HEADER_BYTES + body.len()) as u32).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend((FLAG_REQUEST | FLAG_DUMP).to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(body);
    bytes
}

pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let length = u32_at(bytes, 0)? as usize;
        let message = Message {
            kind: u16_at(bytes, 4)?,
            sequence: u32_at(bytes, 8)?,
            body: bytes.get(HEADER_BYTES..length)?,
        };
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    })
}

/// `struct nlmsgerr`: 0 is an acknowledgement, else a negated errno.
pub(crate) fn error_of(body: &[u8]) -> io::Result<()> {
    match u32_at(body, 0).map(|code| code as i32) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(code.saturating_neg())),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_and_lying_messages_end_the_list() {
        let whole = request(18, 7, &[1, 2, 3, 4]);
        let mut two = whole.clone();
        two.extend(&whole);
        assert_eq!(messages(&two).count(), 2);
        assert_eq!(messages(&two[..whole.len() + 5]).count(), 1);
        let mut lying = whole.clone();
        lying[..4].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(messages(&lying).count(), 0);
        // Shorter than its own header.
        lying[..4].copy_from_slice(&3_u32.to_ne_bytes());
        assert_eq!(messages(&lying).count(), 0);
    }

    #[test]
    fn attributes_are_padded_and_bounded() {
        let mut bytes = vec![7, 0, 2, 0, b'a', b'b', b'c', 0];
        bytes.extend([8, 0, 3, 0x80, 1, 2, 3, 4]);
        bytes.extend([200, 0, 4, 0]);
        let found: Vec<_> = attributes(&bytes).collect();
        assert_eq!(
            found,
            [(2, &b"abc"[..]), (3, &[1, 2, 3, 4][..])],
            "flags are no part of the type, and what does not fit is skipped"
        );
        assert_eq!(attributes(&[0, 0, 0, 0]).count(), 0);
    }

    #[test]
    fn a_refusal_is_the_kernels_error() {
        let error = error_of(&(-libc::EPERM).to_ne_bytes()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert!(error_of(&[0; 4]).is_ok() && error_of(&[]).is_err());
    }
}
