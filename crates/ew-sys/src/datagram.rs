//! Many datagrams with one system call: sendmmsg(2), recvmmsg(2), and trains that pass the kernel
//! as one (udp(7)).

use crate::socket_option::set_option;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::null_mut;

/// Most datagrams of one call.
pub const MAX_AT_ONCE: usize = 64;
/// Most segments of a train: `UDP_MAX_SEGMENTS` of include/linux/udp.h, as it was first.
pub const MAX_SEGMENTS: usize = 64;
/// Most payload of a datagram or train over IPv4: 65,535 less its headers (RFC 791, RFC 768).
pub const MAX_BYTES: usize = 65_507;

/// One received datagram, or train of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Payload that is in its slot.
    pub bytes: usize,
    /// Payload of each of its datagrams but the last, which may be shorter. As much as `bytes` when
    /// it is only one.
    pub segment_bytes: usize,
}

/// Control data of one message: space for the `UDP_GRO` one, aligned as the kernel wants it.
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

/// `CMSG_SPACE(sizeof(int))` on 64-bit Linux.
const CONTROL_BYTES: usize = 24;

/// Cuts all longer sends of this socket into datagrams of this length (`UDP_SEGMENT`, udp(7)); 0
/// ends it.
///
/// # Errors
/// The system's, on kernels before 4.18.
pub fn segment_sends(socket: &impl AsFd, datagram_bytes: u16) -> io::Result<()> {
    let bytes = libc::c_int::from(datagram_bytes);
    set_option(socket, libc::SOL_UDP, libc::UDP_SEGMENT, bytes)
}

/// Lets the kernel hand out datagrams of equal length that came in a row as one train (`UDP_GRO`,
/// udp(7)).
///
/// # Errors
/// The system's, on kernels before 5.0.
pub fn receive_trains(socket: &impl AsFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    set_option(socket, libc::SOL_UDP, libc::UDP_GRO, on)
}

/// Asks for a receive buffer of so many bytes, as many as this user may have: a privileged one all
/// of them, others at most `net.core.rmem_max` (socket(7)). What came of it is not reported; the
/// buffer never becomes smaller by this.
pub fn enlarge_receive_buffer(socket: &impl AsFd, bytes: u32) {
    let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    if set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes).is_err() {
        let _ = set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes);
    }
}

/// Sends the first `bytes` bytes of each of the first `count` slots of `slot_bytes` as a datagram
/// to the socket's peer, at most [`MAX_AT_ONCE`]. Returns how many were sent.
///
/// # Errors
/// The system's, when it was none; `WouldBlock` after the socket's send timeout.
pub fn send_many(
    socket: &impl AsFd,
    slots: &[u8],
    slot_bytes: usize,
    bytes: usize,
    count: usize,
) -> io::Result<usize> {
    let mut parts = [const { MaybeUninit::<libc::iovec>::uninit() }; MAX_AT_ONCE];
    let mut messages = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; MAX_AT_ONCE];
    let mut filled = 0;
    let slots = slots.chunks(slot_bytes.max(1)).take(count);
    for ((slot, part), message) in slots.zip(&mut parts).zip(&mut messages) {
        let datagram = &slot[..bytes.min(slot.len())];
        // The kernel only reads what is sent.
        let part = part.write(iovec(datagram.as_ptr().cast_mut(), datagram.len()));
        message.write(header(part, null_mut(), 0));
        filled += 1;
    }
    // SAFETY: the first `filled` messages are written; each points to one written part, which
    // points to a slice that is borrowed for the call.
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_fd().as_raw_fd(),
            messages.as_mut_ptr().cast(),
            filled as libc::c_uint,
            0,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Receives one datagram or train into each slot of `slot_bytes`, as many as there are, as there is
/// space for in `received`, and at most [`MAX_AT_ONCE`]. Waits for the first one only, or for none.
/// Longer ones are cut. Returns how many came.
///
/// # Errors
/// The system's, when none came; `WouldBlock` after the socket's receive timeout, or at once.
pub fn receive_many(
    socket: &impl AsFd,
    slots: &mut [u8],
    slot_bytes: usize,
    received: &mut [Received],
    waits: bool,
) -> io::Result<usize> {
    let mut parts = [const { MaybeUninit::<libc::iovec>::uninit() }; MAX_AT_ONCE];
    let mut controls = [const { MaybeUninit::<Control>::uninit() }; MAX_AT_ONCE];
    let mut messages = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; MAX_AT_ONCE];
    let mut prepared = 0;
    let slots = slots.chunks_exact_mut(slot_bytes.max(1)).zip(&*received);
    let heads = parts.iter_mut().zip(&mut controls).zip(&mut messages);
    for ((slot, _), ((part, control), message)) in slots.zip(heads) {
        let part = part.write(iovec(slot.as_mut_ptr(), slot.len()));
        let control = control.write(Control([0; CONTROL_BYTES]));
        message.write(header(part, control.0.as_mut_ptr().cast(), CONTROL_BYTES));
        prepared += 1;
    }
    let flags = match waits {
        true => libc::MSG_WAITFORONE,
        false => libc::MSG_DONTWAIT,
    };
    // SAFETY: the first `prepared` messages are written; each points to one written part, which
    // points to a slot that is borrowed for the call, and to control data of that length.
    let count = unsafe {
        libc::recvmmsg(
            socket.as_fd().as_raw_fd(),
            messages.as_mut_ptr().cast(),
            prepared,
            flags,
            null_mut(),
        )
    };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    for ((came, message), control) in received
        .iter_mut()
        .zip(&messages)
        .zip(&controls)
        .take(count)
    {
        // SAFETY: both were written above, and `count` is at most `prepared`.
        let (message, control) = unsafe { (message.assume_init_ref(), control.assume_init_ref()) };
        let bytes = message.msg_len as usize;
        let has_control = message.msg_hdr.msg_controllen > 0;
        let segment_bytes = has_control.then(|| control.segment_bytes()).flatten();
        *came = Received {
            bytes,
            segment_bytes: segment_bytes.unwrap_or(bytes),
        };
    }
    Ok(count)
}

fn iovec(start: *mut u8, bytes: usize) -> libc::iovec {
    libc::iovec {
        iov_base: start.cast(),
        iov_len: bytes,
    }
}

fn header(
    part: &mut libc::iovec,
    control: *mut libc::c_void,
    control_bytes: usize,
) -> libc::mmsghdr {
    // SAFETY: the struct is integers and pointers, for which zero is a value; the C library may pad
    // it.
    let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
    message.msg_hdr.msg_iov = part;
    message.msg_hdr.msg_iovlen = 1;
    message.msg_hdr.msg_control = control;
    message.msg_hdr.msg_controllen = control_bytes as _;
    message
}

impl Control {
    /// What the kernel reports about a train. `None` for anything else.
    fn segment_bytes(&self) -> Option<usize> {
        const DATA_AT: usize = size_of::<libc::cmsghdr>();
        // SAFETY: the memory is initialised, large and aligned enough for a cmsghdr, which is plain
        // integers.
        let head: libc::cmsghdr = unsafe { self.0.as_ptr().cast::<libc::cmsghdr>().read() };
        let is_train = (head.cmsg_level, head.cmsg_type) == (libc::SOL_UDP, libc::UDP_GRO);
        let bytes = self.0.get(DATA_AT..DATA_AT + size_of::<libc::c_int>())?;
        let bytes = libc::c_int::from_ne_bytes(bytes.try_into().ok()?);
        usize::try_from(bytes).ok().filter(|b| is_train && *b > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::Duration;

    #[test]
    fn many_are_sent_and_received_by_one_call_each() {
        let (near, far) = connected_pair();
        let slots: Vec<u8> = (0..40).collect();
        assert_eq!(send_many(&near, &slots, 10, 7, 3).unwrap(), 3);
        let mut got = [0; 48];
        let mut received = [Received::default(); 4];
        assert_eq!(
            receive_many(&far, &mut got, 12, &mut received, true).unwrap(),
            3
        );
        let each = Received {
            bytes: 7,
            segment_bytes: 7,
        };
        assert_eq!(received, [each, each, each, Received::default()]);
        assert_eq!(got[12..19], slots[10..17]);
        assert_eq!(got[24..31], slots[20..27]);
    }

    #[test]
    fn the_last_slot_may_be_short_and_long_datagrams_are_cut() {
        let (near, far) = connected_pair();
        assert_eq!(send_many(&near, &[1; 15], 10, 10, 9).unwrap(), 2);
        let mut received = [Received::default(); 2];
        let mut got = [0; 16];
        assert_eq!(
            receive_many(&far, &mut got, 8, &mut received, true).unwrap(),
            2
        );
        assert_eq!(received.map(|r| r.bytes), [8, 5]);
    }

    #[test]
    fn nothing_there_is_no_datagram() {
        let (_near, far) = connected_pair();
        far.set_nonblocking(true).unwrap();
        let mut received = [Received::default(); 2];
        let outcome = receive_many(&far, &mut [0; 16], 8, &mut received, true);
        assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let none = receive_many(&far, &mut [0; 4], 8, &mut received, true);
        assert!(!none.is_ok_and(|count| count > 0));
    }

    #[test]
    fn trains_are_cut_and_told() {
        let (near, far) = connected_pair();
        let options = segment_sends(&near, 100).and_then(|()| receive_trains(&far));
        if let Err(error) = options {
            println!("skipped: this kernel has no trains of datagrams: {error}");
            return;
        }
        let train: Vec<u8> = (0..250_u8).collect();
        assert_eq!(near.send(&train).unwrap(), 250);
        let (mut count, mut whole) = (0, Vec::new());
        while whole.len() < 250 {
            let mut got = [0; 2048];
            let mut received = [Received::default(); 2];
            let came = receive_many(&far, &mut got, 1024, &mut received, true).unwrap();
            for (slot, received) in got.chunks(1024).zip(&received).take(came) {
                assert!(received.segment_bytes <= 100);
                count += received.bytes.div_ceil(received.segment_bytes);
                whole.extend_from_slice(&slot[..received.bytes]);
            }
        }
        assert_eq!((count, whole), (3, train));
        segment_sends(&near, 0).unwrap();
        assert_eq!(near.send(&[1; 250]).unwrap(), 250);
        assert_eq!(far.recv(&mut [0; 1024]).unwrap(), 250);
    }

    fn connected_pair() -> (UdpSocket, UdpSocket) {
        let near = UdpSocket::bind("127.0.0.1:0").unwrap();
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        near.connect(far.local_addr().unwrap()).unwrap();
        far.connect(near.local_addr().unwrap()).unwrap();
        far.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        (near, far)
    }
}
