//! What the kernel reports about a socket besides its data: `MSG_ERRQUEUE` of recvmsg(2),
//! `struct sock_extended_err` of include/uapi/linux/errqueue.h.

use crate::socket_option::set_option;
use std::io;
use std::mem::size_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd};

/// `SO_EE_ORIGIN_ICMP` and `SO_EE_ORIGIN_ICMP6` of include/uapi/linux/errqueue.h.
const ORIGIN_ICMP: u8 = 2;
const ORIGIN_ICMP6: u8 = 3;

/// `struct sock_extended_err`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct ExtendedError {
    pub(crate) errno: u32,
    pub(crate) origin: u8,
    pub(crate) kind: u8,
    pub(crate) code: u8,
    pub(crate) pad: u8,
    pub(crate) info: u32,
    pub(crate) data: u32,
}

/// Space for a control message, aligned as one.
#[repr(C, align(8))]
struct Control([u8; 256]);

/// An error and, where a router or host sent it, who: `SO_EE_OFFENDER`.
pub(crate) struct Notification {
    pub(crate) error: ExtendedError,
    offender: Option<IpAddr>,
}

/// Makes the kernel keep the ICMP errors about a socket's packets: `IP_RECVERR` of ip(7),
/// `IPV6_RECVERR` of ipv6(7).
///
/// # Errors
/// The system's.
pub fn keep_icmp_errors(socket: &impl AsFd, is_ipv4: bool) -> io::Result<()> {
    let (level, option) = match is_ipv4 {
        true => (libc::IPPROTO_IP, libc::IP_RECVERR),
        false => (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
    };
    let on: libc::c_int = 1;
    set_option(socket, level, option, on)
}

/// Who sent an ICMP error about the socket's packets, the oldest that is there; never waits. For a
/// TCP socket that has not connected the kernel keeps them since Linux 5.11 (commit 45af29ca761c).
///
/// # Errors
/// The system's.
pub fn icmp_error_from(socket: &impl AsFd) -> io::Result<Option<IpAddr>> {
    while let Some(notification) = next_notification(socket)? {
        if matches!(notification.error.origin, ORIGIN_ICMP | ORIGIN_ICMP6) {
            return Ok(notification.offender);
        }
    }
    Ok(None)
}

/// The oldest notification, without waiting.
pub(crate) fn next_notification(socket: &impl AsFd) -> io::Result<Option<Notification>> {
    let mut control = Control([0; 256]);
    // SAFETY: msghdr is pointers and integers: all zeroes are a valid value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of::<Control>();
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    // SAFETY: `message` is a valid msghdr whose control buffer has the length in it.
    let status = unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut message, flags) };
    if status < 0 {
        let error = io::Error::last_os_error();
        return match error.kind() {
            io::ErrorKind::WouldBlock => Ok(None),
            _ => Err(error),
        };
    }
    // SAFETY: the kernel has filled `message`; its control buffer still lives.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    let least = size_of::<libc::cmsghdr>() + size_of::<ExtendedError>();
    // SAFETY: a header that is not null lies within the control buffer.
    if header.is_null() || unsafe { (*header).cmsg_len } < least {
        return Err(io::Error::other("a notification without content"));
    }
    // SAFETY: the message's data is `cmsg_len` long and lies within the control buffer.
    let data = unsafe {
        std::slice::from_raw_parts(
            libc::CMSG_DATA(header),
            (*header).cmsg_len - size_of::<libc::cmsghdr>(),
        )
    };
    let (error, offender) = data.split_at(size_of::<ExtendedError>());
    Ok(Some(Notification {
        // SAFETY: as many bytes as an ExtendedError has, integers all, which may lie unaligned.
        error: unsafe { error.as_ptr().cast::<ExtendedError>().read_unaligned() },
        offender: address(offender),
    }))
}

/// The address of a `struct sockaddr_in` or `sockaddr_in6`.
pub(crate) fn address(raw: &[u8]) -> Option<IpAddr> {
    let family = u16::from_ne_bytes(raw.first_chunk().copied()?);
    match i32::from(family) {
        libc::AF_INET => {
            let octets: [u8; 4] = raw.get(4..8)?.try_into().ok()?;
            Some(Ipv4Addr::from(octets).into())
        }
        libc::AF_INET6 => {
            let octets: [u8; 16] = raw.get(8..24)?.try_into().ok()?;
            Some(Ipv6Addr::from(octets).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn layouts_are_the_kernels() {
        assert_eq!(size_of::<ExtendedError>(), 16);
        let mut v4 = [0; 16];
        v4[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
        v4[4..8].copy_from_slice(&[198, 18, 0, 1]);
        assert_eq!(address(&v4), Some("198.18.0.1".parse().unwrap()));
        let mut v6 = [0; 28];
        v6[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
        v6[23] = 7;
        assert_eq!(address(&v6), Some("::7".parse().unwrap()));
        assert_eq!(address(&v6[..20]), None);
        assert_eq!(address(&[0; 16]), None);
    }

    #[test]
    fn a_refused_datagram_names_who_refused() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        keep_icmp_errors(&socket, true).unwrap();
        let unused = UdpSocket::bind("127.0.0.1:0").unwrap();
        let nobody = unused.local_addr().unwrap();
        drop(unused);
        assert_eq!(icmp_error_from(&socket).unwrap(), None);
        socket.send_to(b"?", nobody).unwrap();
        let begun = std::time::Instant::now();
        let mut offender = None;
        while offender.is_none() && begun.elapsed().as_secs() < 5 {
            offender = icmp_error_from(&socket).unwrap();
        }
        assert_eq!(offender, Some(nobody.ip()));
    }
}
