//! Moving bytes with less work than send(2) and recv(2) do: from a file, into nothing, at a pace
//! the kernel keeps.

use crate::socket_option::set_option;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::Ipv6Addr;
use std::os::fd::{AsFd, AsRawFd, FromRawFd};
use std::os::unix::fs::OpenOptionsExt;

/// `struct in6_flowlabel_req` of include/uapi/linux/in6.h, without options behind it.
#[derive(Clone, Copy)]
#[repr(C)]
struct FlowLabelRequest {
    destination: [u8; 16],
    /// In network order.
    label: u32,
    action: u8,
    share: u8,
    flags: u16,
    expires_s: u16,
    linger_s: u16,
    padding: u32,
}

/// `IPV6_FL_A_GET`, `IPV6_FL_S_ANY` and `IPV6_FL_F_CREATE` of include/uapi/linux/in6.h
const FLOW_LABEL_GET: u8 = 0;
const FLOW_LABEL_SHARED_BY_ANY: u8 = 255;
const FLOW_LABEL_CREATE: u16 = 1;

/// A file without a name that goes when it is closed, with this content in the page cache: in the
/// directory for temporary files, or in memory only where that has no such files. A disk's file
/// system caches what is written at once in large folios, which sendfile takes in fewer pieces than
/// pages of shared memory.
///
/// # Errors
/// The system's, for example when memory is short.
pub fn nameless_file(content: &[u8]) -> io::Result<File> {
    disk_file(content).or_else(|_| memory_file(content))
}

/// open(2), `O_TMPFILE`
fn disk_file(content: &[u8]) -> io::Result<File> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .mode(0o600)
        .custom_flags(libc::O_TMPFILE)
        .open(std::env::temp_dir())?;
    file.write_all(content)?;
    Ok(file)
}

/// memfd_create(2)
fn memory_file(content: &[u8]) -> io::Result<File> {
    // SAFETY: the name is a NUL-terminated string that lives for ever.
    let fd = unsafe { libc::memfd_create(c"eastwest".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just handed out this descriptor to nobody else.
    let mut file = unsafe { File::from_raw_fd(fd) };
    file.write_all(content)?;
    Ok(file)
}

/// Sends up to `count` bytes of the file from `offset` on without copying them through the process
/// (sendfile(2)).
///
/// # Errors
/// The system's; `WouldBlock` after the socket's send timeout.
pub fn send_file(
    socket: &impl AsFd,
    file: &File,
    offset: usize,
    count: usize,
) -> io::Result<usize> {
    let mut position = offset as libc::off_t;
    // SAFETY: both descriptors are borrowed for the call, and `position` is a valid address to read
    // and write.
    let sent = unsafe {
        libc::sendfile(
            socket.as_fd().as_raw_fd(),
            file.as_raw_fd(),
            &raw mut position,
            count,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Takes up to `count` bytes off a TCP socket without copying them anywhere (MSG_TRUNC, tcp(7)),
/// and waits for the first if it may and the socket blocks. 0 is the peer's end.
///
/// # Errors
/// The system's; `WouldBlock` after the socket's receive timeout, or at once.
pub fn receive_discarding(socket: &impl AsFd, count: usize, waits: bool) -> io::Result<usize> {
    let flags = match waits {
        true => libc::MSG_TRUNC,
        false => libc::MSG_TRUNC | libc::MSG_DONTWAIT,
    };
    // SAFETY: with MSG_TRUNC the kernel writes nothing for a TCP socket, so the pointer is not
    // used.
    let received = unsafe {
        libc::recv(
            socket.as_fd().as_raw_fd(),
            std::ptr::null_mut(),
            count,
            flags,
        )
    };
    usize::try_from(received).map_err(|_| io::Error::last_os_error())
}

/// Takes one datagram, of which only the first `head.len()` bytes are copied. Returns the whole
/// datagram's length, which may exceed the head's (MSG_TRUNC, udp(7)).
///
/// # Errors
/// The system's; `WouldBlock` after the socket's receive timeout.
pub fn receive_head(socket: &impl AsFd, head: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes at most `head.len()` bytes to `head`, whatever it returns.
    let received = unsafe {
        libc::recv(
            socket.as_fd().as_raw_fd(),
            head.as_mut_ptr().cast(),
            head.len(),
            libc::MSG_TRUNC,
        )
    };
    usize::try_from(received).map_err(|_| io::Error::last_os_error())
}

/// Lets the kernel keep a socket's sending at or below a rate (SO_MAX_PACING_RATE, socket(7));
/// needs no qdisc for TCP, the fq qdisc for UDP.
///
/// # Errors
/// The system's.
pub fn limit_pacing_rate(socket: &impl AsFd, bytes_per_sec: u64) -> io::Result<()> {
    set_option(
        socket,
        libc::SOL_SOCKET,
        libc::SO_MAX_PACING_RATE,
        bytes_per_sec,
    )
}

/// Sends IPv4 datagrams with the "don't fragment" bit and refuses longer ones (IP_MTU_DISCOVER,
/// ip(7)).
///
/// # Errors
/// The system's.
pub fn forbid_fragments(socket: &impl AsFd) -> io::Result<()> {
    let mode: libc::c_int = libc::IP_PMTUDISC_DO;
    set_option(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, mode)
}

/// Bytes of a TCP connection that were sent here and that the peer's kernel has not acknowledged
/// (SIOCOUTQ, tcp(7)).
///
/// # Errors
/// The system's.
pub fn unacknowledged_bytes(socket: &impl AsFd) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: SIOCOUTQ, which is TIOCOUTQ, writes one int.
    let status = unsafe {
        libc::ioctl(
            socket.as_fd().as_raw_fd(),
            libc::TIOCOUTQ as _,
            &raw mut bytes,
        )
    };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(usize::try_from(bytes).unwrap_or(0))
}

/// Has a socket send to `peer` with this IPv6 flow label of 20 bits (RFC 6437): reserves it with
/// the kernel (`IPV6_FLOWLABEL_MGR`, include/uapi/linux/in6.h). The address that the socket is
/// connected to carries it, too, in network order.
///
/// # Errors
/// The system's: EPERM where another user's process has reserved the label for itself.
pub fn reserve_flow_label(socket: &impl AsFd, peer: Ipv6Addr, label: u32) -> io::Result<()> {
    let request = FlowLabelRequest {
        destination: peer.octets(),
        label: label.to_be(),
        action: FLOW_LABEL_GET,
        share: FLOW_LABEL_SHARED_BY_ANY,
        flags: FLOW_LABEL_CREATE,
        expires_s: 0,
        linger_s: 0,
        padding: 0,
    };
    set_option(
        socket,
        libc::IPPROTO_IPV6,
        libc::IPV6_FLOWLABEL_MGR,
        request,
    )?;
    let on: libc::c_int = 1;
    set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_FLOWINFO_SEND, on)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn a_nameless_file_is_sent_from_any_offset_wherever_it_is_kept() {
        for make in [nameless_file, memory_file] {
            let file = make(b"0123456789").unwrap();
            let (near, mut far) = connected_pair();
            assert_eq!(send_file(&near, &file, 4, 3).unwrap(), 3);
            let mut got = [0; 3];
            far.read_exact(&mut got).unwrap();
            assert_eq!(&got, b"456");
        }
    }

    #[test]
    fn discarded_bytes_are_gone_and_counted() {
        let (mut near, far) = connected_pair();
        near.write_all(b"abcdef").unwrap();
        drop(near);
        let mut total = 0;
        loop {
            match receive_discarding(&far, 4, true).unwrap() {
                0 => break,
                count => total += count,
            }
        }
        assert_eq!(total, 6);
    }

    #[test]
    fn a_datagrams_length_is_told_beyond_its_head() {
        let (near, far) = (
            UdpSocket::bind("127.0.0.1:0"),
            UdpSocket::bind("127.0.0.1:0"),
        );
        let (near, far) = (near.unwrap(), far.unwrap());
        near.send_to(&[7; 100], far.local_addr().unwrap()).unwrap();
        let mut head = [0; 16];
        assert_eq!(receive_head(&far, &mut head).unwrap(), 100);
        assert_eq!(head, [7; 16]);
    }

    #[test]
    fn pace_and_fragmentation_can_be_set() {
        let (near, _far) = connected_pair();
        limit_pacing_rate(&near, 1_000_000).unwrap();
        forbid_fragments(&near).unwrap();
    }

    fn connected_pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }
}
