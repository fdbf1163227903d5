//! Moving bytes between the network and a process's own pages without copying: `MSG_ZEROCOPY` for
//! sending (Documentation/networking/msg_zerocopy.rst), `TCP_ZEROCOPY_RECEIVE` for receiving
//! (include/uapi/linux/tcp.h).

use crate::error_queue::{Notification, next_notification};
use crate::socket_option::{get_option, set_option};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// `SO_EE_ORIGIN_ZEROCOPY` of include/uapi/linux/errqueue.h.
const ORIGIN_ZEROCOPY: u8 = 5;
/// `SO_EE_CODE_ZEROCOPY_COPIED` of include/uapi/linux/errqueue.h.
const CODE_COPIED: u8 = 1;
/// `TCP_ZEROCOPY_RECEIVE` of include/uapi/linux/tcp.h.
const TCP_ZEROCOPY_RECEIVE: libc::c_int = 35;

/// Sends that the kernel has finished with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completions {
    /// Whose pages are free again.
    pub sends: u32,
    /// Whether the kernel copied some of them after all.
    pub copied: bool,
}

/// What one receive brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mapped {
    /// Bytes that are in the mapping until the next receive.
    pub mapped_bytes: usize,
    /// Bytes that come next and do not fill pages: to be received in the ordinary way.
    pub unmapped_bytes: usize,
}

/// An address range into which a TCP socket's received pages are mapped.
#[derive(Debug)]
pub struct ReceiveMapping {
    address: *mut libc::c_void,
    length: usize,
}

// SAFETY: the range belongs to the mapping alone, and is not tied to a thread.
unsafe impl Send for ReceiveMapping {}

/// `struct tcp_zerocopy_receive` of include/uapi/linux/tcp.h up to `flags`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct RawReceive {
    address: u64,
    length: u32,
    recv_skip_hint: u32,
    inq: u32,
    err: i32,
    copybuf_address: u64,
    copybuf_len: i32,
    flags: u32,
}

/// Lets [`send_zerocopy`] be used on a socket.
///
/// # Errors
/// The kernel has no `SO_ZEROCOPY` (4.14) or not for this socket.
pub fn allow_zerocopy(socket: &impl AsFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    set_option(socket, libc::SOL_SOCKET, libc::SO_ZEROCOPY, on)
}

/// Sends from the caller's pages. What is sent is what is in the pages when the network takes them,
/// which may be later; [`completions`] shows when it has.
///
/// # Errors
/// The system's; ENOBUFS when too many sends are not completed (`net.core.optmem_max`).
pub fn send_zerocopy(socket: &impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: `bytes` is valid for the call. The kernel holds the pages beyond it, so that they
    // stay memory of this process whatever it does with its address range.
    let sent = unsafe {
        libc::send(
            socket.as_fd().as_raw_fd(),
            bytes.as_ptr().cast(),
            bytes.len(),
            libc::MSG_ZEROCOPY | libc::MSG_NOSIGNAL,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Takes all notifications that are there, without waiting.
///
/// # Errors
/// The system's.
pub fn completions(socket: &impl AsFd) -> io::Result<Completions> {
    let mut sum = Completions::default();
    while let Some(Notification { error, .. }) = next_notification(socket)? {
        if error.origin == ORIGIN_ZEROCOPY {
            // A range of sends, first and last.
            sum.sends += error.data.wrapping_sub(error.info).wrapping_add(1);
            sum.copied |= error.code & CODE_COPIED != 0;
        }
    }
    Ok(sum)
}

impl ReceiveMapping {
    /// For receives of up to this many bytes, a multiple of the page size.
    ///
    /// # Errors
    /// The kernel cannot map this socket's data.
    pub fn new(socket: &impl AsFd, length: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ,
                libc::MAP_SHARED,
                socket.as_fd().as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { address, length })
    }

    /// Maps what has come in whole pages, in the place of what was mapped before. Never waits.
    ///
    /// # Errors
    /// The system's; EIO at the peer's end of stream.
    pub fn receive(&mut self, socket: &impl AsFd) -> io::Result<Mapped> {
        let wanted = RawReceive {
            address: self.address as u64,
            length: self.length as u32,
            ..RawReceive::default()
        };
        let (level, name) = (libc::IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE);
        // SAFETY: plain integers, which name a range that is this mapping's and nobody's else.
        let (raw, _) = unsafe { get_option(socket, level, name, wanted)? };
        // Newer kernels hand on a reset here, once.
        if raw.err != 0 {
            return Err(io::Error::from_raw_os_error(-raw.err));
        }
        Ok(Mapped {
            mapped_bytes: raw.length as usize,
            unmapped_bytes: raw.recv_skip_hint as usize,
        })
    }
}

impl Drop for ReceiveMapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new` and nothing borrows from it.
        unsafe { libc::munmap(self.address, self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::{Interest, wait_ready};
    use std::io::{Read, Write};
    use std::mem::{offset_of, size_of};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn layouts_are_the_kernels() {
        assert_eq!(offset_of!(RawReceive, copybuf_address), 24);
        assert_eq!(size_of::<RawReceive>(), 40);
    }

    #[test]
    fn a_send_completes_when_its_bytes_were_taken() {
        let (near, mut far) = connected_pair();
        allow_zerocopy(&near).unwrap();
        let bytes = vec![7; 20_000];
        let sent = send_zerocopy(&near, &bytes).unwrap();
        let mut got = vec![0; sent];
        far.read_exact(&mut got).unwrap();
        assert_eq!(got, bytes[..sent]);
        let begun = std::time::Instant::now();
        let mut done = Completions::default();
        while done.sends == 0 && begun.elapsed().as_secs() < 5 {
            done = completions(&near).unwrap();
        }
        // Loopback always copies.
        let expected = Completions {
            sends: 1,
            copied: true,
        };
        assert_eq!(done, expected);
        assert_eq!(completions(&near).unwrap(), Completions::default());
    }

    #[test]
    fn received_bytes_are_mapped_or_left() {
        let (mut near, far) = connected_pair();
        let mut mapping = match ReceiveMapping::new(&far, 1 << 20) {
            Ok(mapping) => mapping,
            Err(error) => return println!("skipped: this kernel cannot map sockets: {error}"),
        };
        assert_eq!(mapping.receive(&far).unwrap(), Mapped::default());
        near.write_all(&[1; 1000]).unwrap();
        far.peek(&mut [0]).unwrap();
        let part = mapping.receive(&far).unwrap();
        assert_eq!((part.mapped_bytes, part.unmapped_bytes), (0, 1000));
    }

    #[test]
    fn a_reset_is_an_error() {
        let (near, far) = connected_pair();
        let mut mapping = match ReceiveMapping::new(&far, 1 << 20) {
            Ok(mapping) => mapping,
            Err(error) => return println!("skipped: this kernel cannot map sockets: {error}"),
        };
        let near = socket2::Socket::from(near);
        near.set_linger(Some(std::time::Duration::ZERO)).unwrap();
        drop(near);
        let interest = Interest {
            fd: far.as_fd(),
            write: false,
        };
        wait_ready(&[interest], std::time::Duration::from_secs(5)).unwrap();
        let error = mapping.receive(&far).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }

    fn connected_pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }
}
