//! TCP connections that live for one exchange only, made and ended by the tens of thousands in a
//! second.

use crate::socket_option::set_option;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

/// Ends a connection with a reset and makes its socket fit for another connect: connect(2) with the
/// family AF_UNSPEC dissolves the association. Options, address and epoll registrations of the
/// socket stay; a local port that was chosen at connect is free at once, and no end of the
/// connection waits in TIME-WAIT.
///
/// # Errors
/// The system's, for kinds of sockets that cannot do so.
pub fn dissolve(socket: &impl AsFd) -> io::Result<()> {
    let nobody = libc::sockaddr {
        sa_family: libc::AF_UNSPEC as libc::sa_family_t,
        sa_data: [0; 14],
    };
    // SAFETY: the pointer and the length describe one sockaddr that lives through the call.
    let status = unsafe {
        libc::connect(
            socket.as_fd().as_raw_fd(),
            &raw const nobody,
            size_of::<libc::sockaddr>() as libc::socklen_t,
        )
    };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// A listener's connections are reported only when their first data has come (`TCP_DEFER_ACCEPT`,
/// tcp(7)), or after about this time.
///
/// # Errors
/// The system's.
pub fn accept_with_data(listener: &impl AsFd, seconds: u8) -> io::Result<()> {
    let seconds = libc::c_int::from(seconds);
    set_option(listener, libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, seconds)
}

/// Takes what has come, and never waits, whether or not the socket is a blocking one. 0 is the
/// peer's end.
///
/// # Errors
/// The system's; `WouldBlock` when nothing has come.
pub fn receive_now(socket: &impl AsFd, into: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes at most `into.len()` bytes to `into`.
    let received = unsafe {
        libc::recv(
            socket.as_fd().as_raw_fd(),
            into.as_mut_ptr().cast(),
            into.len(),
            libc::MSG_DONTWAIT,
        )
    };
    usize::try_from(received).map_err(|_| io::Error::last_os_error())
}

/// Sends as much as fits, and never waits, where the end of the connection or more data follows at
/// once: a last part that does not fill a segment leaves together with that (`MSG_MORE`, send(2)).
///
/// # Errors
/// The system's; `WouldBlock` when nothing fits.
pub fn send_before_more(socket: &impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the kernel reads `bytes.len()` bytes of `bytes`.
    let sent = unsafe {
        libc::send(
            socket.as_fd().as_raw_fd(),
            bytes.as_ptr().cast(),
            bytes.len(),
            libc::MSG_DONTWAIT | libc::MSG_MORE | libc::MSG_NOSIGNAL,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::SockRef;
    use std::io::{ErrorKind, Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_dissolved_socket_connects_again() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut near = TcpStream::connect(address).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        dissolve(&near).unwrap();
        let ended = far.read(&mut [0]).unwrap_err();
        assert_eq!(ended.kind(), ErrorKind::ConnectionReset);
        SockRef::from(&near).connect(&address.into()).unwrap();
        near.write_all(b"again").unwrap();
        let mut heard = [0; 5];
        let (mut far, _) = listener.accept().unwrap();
        far.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"again");
    }

    #[test]
    fn connections_are_told_with_their_data() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        accept_with_data(&listener, 1).unwrap();
        listener.set_nonblocking(true).unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let early = listener.accept().unwrap_err();
        assert_eq!(early.kind(), ErrorKind::WouldBlock);
        near.write_all(b"ask").unwrap();
        listener.set_nonblocking(false).unwrap();
        let (far, _) = listener.accept().unwrap();
        let mut heard = [0; 8];
        assert_eq!(receive_now(&far, &mut heard).unwrap(), 3);
        let nothing = receive_now(&far, &mut heard).unwrap_err();
        assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
        assert_eq!(send_before_more(&far, b"answer").unwrap(), 6);
        drop(far);
        let mut answer = Vec::new();
        near.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, b"answer");
    }
}
