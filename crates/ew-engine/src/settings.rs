//! A workload's settings of its sockets: applied, and compared with what the kernel made of them.
//!
//! The opening end applies everything before it connects. At the accepting end the receive buffer
//! and the segment size must be the listener's already, because they are negotiated in the
//! handshake: there the listener is made anew when a round needs another one ([`crate::acceptor`]);
//! the rest is applied to the accepted connection.

use ew_model::record::FigureNote;
use ew_model::workload::SocketSettings;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;

/// Connections that wait for the acceptor; the kernel cuts it to net.core.somaxconn.
pub(crate) const BACKLOG: i32 = 4096;
const ENOENT: i32 = 2;
const EPERM: i32 = 1;
const ENODEV: i32 = 19;

/// The settings of one round's sockets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings(pub(crate) SocketSettings);

/// What a listener must have before a connection comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListenerSettings {
    pub(crate) receive_buffer_bytes: Option<u32>,
    pub(crate) mss_bytes: Option<u32>,
    pub(crate) mptcp: bool,
}

impl Settings {
    /// A TCP socket that can be bound and connected. Multipath TCP falls back to plain TCP.
    pub(crate) fn tcp_socket(&self, peer: SocketAddr) -> io::Result<Socket> {
        let socket = tcp_socket(peer.ip(), self.0.mptcp)?;
        self.listener().apply(&socket);
        self.apply(&socket, peer.ip())?;
        Ok(socket)
    }

    /// What the accepting end's listener must have.
    pub(crate) fn listener(&self) -> ListenerSettings {
        ListenerSettings {
            receive_buffer_bytes: self.0.receive_buffer_bytes,
            mss_bytes: self.0.mss_bytes,
            mptcp: self.0.mptcp,
        }
    }

    /// Everything that can still be set on a connection.
    pub(crate) fn apply(&self, socket: &impl AsFd, peer: IpAddr) -> io::Result<()> {
        let socket = SockRef::from(socket);
        socket.set_tcp_nodelay(self.0.nodelay)?;
        self.apply_to_any(&socket, peer)?;
        if let Some(name) = &self.0.congestion {
            set_congestion(&socket, name)?;
        }
        Ok(())
    }

    /// What UDP sockets have, too: send buffer, DSCP, device.
    pub(crate) fn apply_to_any(&self, socket: &SockRef<'_>, peer: IpAddr) -> io::Result<()> {
        // Refusals of these are seen by `refused`.
        if let Some(bytes) = self.0.send_buffer_bytes {
            let _ = socket.set_send_buffer_size(bytes as usize);
        }
        if let Some(class) = self.0.traffic_class() {
            let _ = set_traffic_class(socket, peer, class);
        }
        match &self.0.device {
            Some(device) => bind_device(socket, device),
            None => Ok(()),
        }
    }

    /// What a reader must know about how the kernel took the settings.
    pub(crate) fn notes(&self, connection: &TcpStream) -> Vec<FigureNote> {
        let mut notes = Vec::new();
        if self.is_refused(connection).unwrap_or(true) {
            notes.push(FigureNote::SettingRefused);
        }
        if self.0.mptcp && !ew_sys::socket::is_multipath(connection) {
            notes.push(FigureNote::MptcpUnavailable);
        }
        notes
    }

    /// Whether a setting is not as asked for. The kernel doubles buffers (socket(7)) and takes the
    /// peer's segment size where it is smaller.
    fn is_refused(&self, connection: &TcpStream) -> io::Result<bool> {
        let socket = SockRef::from(connection);
        let SocketSettings {
            send_buffer_bytes,
            receive_buffer_bytes,
            mss_bytes,
            dscp,
            ..
        } = &self.0;
        let smaller =
            |asked: &Option<u32>, got: usize| asked.is_some_and(|bytes| got < bytes as usize * 2);
        Ok(smaller(send_buffer_bytes, socket.send_buffer_size()?)
            || smaller(receive_buffer_bytes, socket.recv_buffer_size()?)
            || mss_bytes.is_some_and(|mss| !socket.tcp_mss().is_ok_and(|got| got <= mss))
            || dscp.is_some_and(|dscp| !is_marked(&socket, connection, dscp)))
    }
}

impl ListenerSettings {
    /// A listener at the same port. Both must allow it for the moment (SO_REUSEPORT, socket(7)).
    pub(crate) fn listen_beside(self, old: &TcpListener) -> io::Result<TcpListener> {
        let address = old.local_addr()?;
        let socket = tcp_socket(address.ip(), self.mptcp)?;
        self.apply(&socket);
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(true)?;
        SockRef::from(old).set_reuse_port(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        Ok(socket.into())
    }

    /// Refusals are seen on the connections.
    pub(crate) fn apply(self, socket: &Socket) {
        if let Some(bytes) = self.receive_buffer_bytes {
            let _ = socket.set_recv_buffer_size(bytes as usize);
        }
        if let Some(mss) = self.mss_bytes {
            let _ = socket.set_tcp_mss(mss);
        }
    }
}

/// A socket for TCP with an address of this kind; multipath where that is asked for and the kernel
/// has it.
pub(crate) fn tcp_socket(address: IpAddr, mptcp: bool) -> io::Result<Socket> {
    let domain = match address {
        IpAddr::V4(_) => Domain::IPV4,
        IpAddr::V6(_) => Domain::IPV6,
    };
    if mptcp && let Ok(socket) = Socket::new(domain, Type::STREAM, Some(Protocol::MPTCP)) {
        return Ok(socket);
    }
    Socket::new(domain, Type::STREAM, Some(Protocol::TCP))
}

fn set_congestion(socket: &Socket, name: &str) -> io::Result<()> {
    let explain = |error: io::Error| match error.raw_os_error() {
        Some(ENOENT) => io::Error::other(format!(
            "this host has no congestion control `{name}`; load its module with `modprobe tcp_{name}`"
        )),
        Some(EPERM) => io::Error::other(format!(
            "congestion control `{name}` is for root only; allow it in net.ipv4.tcp_allowed_congestion_control"
        )),
        _ => io::Error::other(format!("congestion control `{name}`: {error}")),
    };
    socket.set_tcp_congestion(name.as_bytes()).map_err(explain)
}

fn bind_device(socket: &Socket, device: &str) -> io::Result<()> {
    let explain = |error: io::Error| match error.raw_os_error() {
        Some(ENODEV) => io::Error::other(format!("this host has no network device `{device}`")),
        _ => io::Error::other(format!("cannot bind to network device `{device}`: {error}")),
    };
    socket.bind_device(Some(device.as_bytes())).map_err(explain)
}

fn set_traffic_class(socket: &Socket, address: IpAddr, class: u32) -> io::Result<()> {
    match address {
        IpAddr::V4(_) => socket.set_tos_v4(class),
        IpAddr::V6(_) => socket.set_tclass_v6(class),
    }
}

/// The lower two bits are the kernel's for congestion notification.
fn is_marked(socket: &Socket, connection: &TcpStream, dscp: u8) -> bool {
    let byte = match connection.local_addr() {
        Ok(SocketAddr::V4(_)) => socket.tos_v4(),
        Ok(SocketAddr::V6(_)) => socket.tclass_v6(),
        Err(error) => Err(error),
    };
    byte.is_ok_and(|byte| byte >> 2 == u32::from(dscp))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn everything() -> Settings {
        Settings(SocketSettings {
            nodelay: true,
            send_buffer_bytes: Some(40_000),
            receive_buffer_bytes: Some(50_000),
            congestion: Some("reno".to_owned()),
            mss_bytes: Some(1000),
            dscp: Some(46),
            mptcp: false,
            device: None,
        })
    }

    /// A connection whose ends were made as the opener and the acceptor make them.
    fn connected(address: IpAddr, settings: &Settings) -> Option<(TcpStream, TcpStream)> {
        let Ok(plain) = TcpListener::bind((address, 0)) else {
            println!("skipped: this host has no address {address}");
            return None;
        };
        let listener = settings.listener().listen_beside(&plain).unwrap();
        drop(plain);
        let peer = listener.local_addr().unwrap();
        let near = settings.tcp_socket(peer).unwrap();
        near.connect(&peer.into()).unwrap();
        listener.set_nonblocking(false).unwrap();
        let far = listener.accept().unwrap().0;
        settings.apply(&far, address).unwrap();
        Some((near.into(), far))
    }

    #[test]
    fn both_ends_have_every_setting() {
        for address in ["127.0.0.1", "::1"] {
            let address: IpAddr = address.parse().unwrap();
            let Some(ends) = connected(address, &everything()) else {
                continue;
            };
            for end in [&ends.0, &ends.1] {
                let socket = SockRef::from(end);
                assert!(socket.tcp_nodelay().unwrap());
                assert_eq!(socket.send_buffer_size().unwrap(), 80_000);
                assert_eq!(socket.recv_buffer_size().unwrap(), 100_000);
                assert!(socket.tcp_congestion().unwrap().starts_with(b"reno"));
                assert!(socket.tcp_mss().unwrap() <= 1000);
                let byte = match address {
                    IpAddr::V4(_) => socket.tos_v4(),
                    IpAddr::V6(_) => socket.tclass_v6(),
                };
                assert_eq!(byte.unwrap(), 46 << 2);
                assert_eq!(everything().notes(end), []);
            }
        }
    }

    #[test]
    fn a_setting_that_is_not_there_is_noted() {
        let (near, _far) = connected("127.0.0.1".parse().unwrap(), &Settings::default()).unwrap();
        let lacking = |change: fn(&mut SocketSettings)| {
            let mut settings = Settings::default();
            change(&mut settings.0);
            settings.notes(&near)
        };
        assert_eq!(lacking(|_| ()), []);
        let refused = [FigureNote::SettingRefused];
        assert_eq!(lacking(|s| s.send_buffer_bytes = Some(1 << 30)), refused);
        assert_eq!(lacking(|s| s.receive_buffer_bytes = Some(1 << 30)), refused);
        assert_eq!(lacking(|s| s.mss_bytes = Some(100)), refused);
        assert_eq!(lacking(|s| s.dscp = Some(3)), refused);
        assert_eq!(lacking(|s| s.mptcp = true), [FigureNote::MptcpUnavailable]);
    }

    #[test]
    fn a_socket_can_be_bound_to_a_device() {
        let mut settings = Settings::default();
        settings.0.device = Some("lo".to_owned());
        match settings.tcp_socket(SocketAddr::from(([127, 0, 0, 1], 9))) {
            Ok(socket) => assert_eq!(socket.device().unwrap().unwrap(), b"lo"),
            Err(error) => println!("skipped: {error}"),
        }
    }
}
