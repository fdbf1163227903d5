//! Sockets, prepared as a test wants them.

use crate::error::Error;
use crate::wire::params::{Params, Protocol};
use ew_sys::transfer::{forbid_fragments, limit_pacing_rate, reserve_flow_label};
use socket2::{Domain, SockAddr, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, TcpStream, UdpSocket};
use std::time::Duration;

/// Space next to a datagram in a socket buffer that is too small for it (`UDP_BUFFER_EXTRA` of
/// iperf.h).
const UDP_BUFFER_EXTRA_BYTES: usize = 1024;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 512;

/// How a client gets to its server.
#[derive(Clone, Debug)]
pub struct Route {
    /// The server.
    pub server: SocketAddr,
    /// Source address.
    pub bind: Option<IpAddr>,
    /// Network device (SO_BINDTODEVICE).
    pub device: Option<String>,
    /// First local port of the streams; 0 leaves it to the kernel.
    pub stream_port: u16,
    /// How long to try.
    pub connect_timeout: Duration,
    /// Multipath TCP (RFC 8684) instead of TCP, on the control connection too.
    pub multipath: bool,
}

impl Route {
    /// The control connection.
    pub(crate) fn control(&self) -> Result<TcpStream, Error> {
        let socket = self.socket(Type::STREAM, 0).map_err(Error::Connect)?;
        let server = SockAddr::from(self.server);
        let connected = socket.connect_timeout(&server, self.connect_timeout);
        connected.map_err(Error::Connect)?;
        Ok(socket.into())
    }

    /// A stream's socket; its local port is by its index.
    pub(crate) fn stream(&self, params: &Params, index: usize) -> Result<Socket, Error> {
        let kind = match params.protocol {
            Protocol::Tcp => Type::STREAM,
            Protocol::Udp => Type::DGRAM,
        };
        let port = match self.stream_port {
            0 => 0,
            first => first.saturating_add(u16::try_from(index).unwrap_or(u16::MAX)),
        };
        let socket = self.socket(kind, port).map_err(Error::StreamConnect)?;
        prepare(&socket, params, self.server.ip())?;
        let server = SockAddr::from(labelled(&socket, params.flow_label, self.server)?);
        let connected = match params.protocol {
            Protocol::Tcp => socket.connect_timeout(&server, self.connect_timeout),
            Protocol::Udp => socket.connect(&server),
        };
        connected.map_err(Error::StreamConnect)?;
        Ok(socket)
    }

    fn socket(&self, kind: Type, port: u16) -> io::Result<Socket> {
        let protocol = protocol(kind, self.multipath);
        let socket = Socket::new(Domain::for_address(self.server), kind, protocol)?;
        if let Some(device) = &self.device {
            socket.bind_device(Some(device.as_bytes()))?;
        }
        if self.bind.is_some() || port > 0 {
            socket.set_reuse_address(true)?;
            let address = self
                .bind
                .unwrap_or_else(|| unspecified_like(self.server.ip()));
            socket.bind(&SockAddr::from(SocketAddr::new(address, port)))?;
        }
        Ok(socket)
    }
}

/// Sets what the parameters ask for. For TCP before connecting, so that the handshake knows window
/// and segment size.
pub(crate) fn prepare(socket: &Socket, params: &Params, peer: IpAddr) -> Result<(), Error> {
    if params.tos > 0 {
        let tos = u32::from(params.tos);
        let set = match peer.to_canonical() {
            IpAddr::V4(_) => socket.set_tos_v4(tos),
            IpAddr::V6(_) => socket.set_tclass_v6(tos),
        };
        set.map_err(Error::option("the type of service"))?;
    }
    if params.window_bytes > 0 {
        set_window(socket, params.window_bytes)?;
    }
    if params.fq_bits_per_sec > 0 {
        limit_pacing_rate(socket, params.fq_bits_per_sec / 8)
            .map_err(Error::option("the pacing rate"))?;
    }
    match params.protocol {
        Protocol::Tcp => prepare_tcp(socket, params),
        Protocol::Udp => prepare_udp(socket, params, peer),
    }
}

/// A listening TCP socket. `[::]` takes IPv4 as well, unless `only_v6`; a `multipath` one takes
/// plain TCP as well.
pub(crate) fn listen(address: SocketAddr, only_v6: bool, multipath: bool) -> Result<Socket, Error> {
    let make = || -> io::Result<Socket> {
        let socket = bound(address, Type::STREAM, only_v6, multipath)?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    make().map_err(|error| Error::Listen { address, error })
}

/// The UDP socket on which streams make themselves known.
pub(crate) fn udp_listener(address: SocketAddr, only_v6: bool) -> Result<UdpSocket, Error> {
    let make = || -> io::Result<UdpSocket> {
        let socket = bound(address, Type::DGRAM, only_v6, false)?;
        socket.set_nonblocking(true)?;
        Ok(socket.into())
    };
    make().map_err(|error| Error::Listen { address, error })
}

/// A UDP socket between exactly these two addresses; the kernel prefers it to the listener for what
/// comes from the peer.
pub(crate) fn udp_pair(local: SocketAddr, peer: SocketAddr) -> io::Result<UdpSocket> {
    let socket = bound(canonical(local), Type::DGRAM, false, false)?;
    socket.connect(&SockAddr::from(canonical(peer)))?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// IPv4 where it is IPv4 in IPv6's clothes. A link-local address keeps its interface.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(ip.into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

/// A socket's two addresses. Of one whose peer has gone already, the peer's is known otherwise.
pub(crate) fn ends(socket: &Socket, known: SocketAddr) -> io::Result<(SocketAddr, SocketAddr)> {
    let local = socket.local_addr()?.as_socket();
    let local = local.ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable))?;
    let peer = socket.peer_addr().ok().and_then(|peer| peer.as_socket());
    Ok((canonical(local), canonical(peer.unwrap_or(known))))
}

/// The server's address with the flow label in it, which the socket then sends with.
fn labelled(socket: &Socket, flow_label: u32, server: SocketAddr) -> Result<SocketAddr, Error> {
    match server {
        _ if flow_label == 0 => Ok(server),
        SocketAddr::V4(_) => {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "the server's is IPv4");
            Err(Error::option("the IPv6 flow label")(error))
        }
        SocketAddr::V6(server) => {
            let (ip, port, scope) = (*server.ip(), server.port(), server.scope_id());
            reserve_flow_label(socket, ip, flow_label)
                .map_err(Error::option("the IPv6 flow label"))?;
            Ok(SocketAddrV6::new(ip, port, flow_label.to_be(), scope).into())
        }
    }
}

/// `None` is TCP or UDP by the kind.
fn protocol(kind: Type, multipath: bool) -> Option<socket2::Protocol> {
    (multipath && kind == Type::STREAM).then_some(socket2::Protocol::MPTCP)
}

fn bound(address: SocketAddr, kind: Type, only_v6: bool, multipath: bool) -> io::Result<Socket> {
    let protocol = protocol(kind, multipath);
    let socket = Socket::new(Domain::for_address(address), kind, protocol)?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(only_v6)?;
    }
    socket.bind(&SockAddr::from(address))?;
    Ok(socket)
}

fn prepare_tcp(socket: &Socket, params: &Params) -> Result<(), Error> {
    if params.nodelay {
        socket
            .set_tcp_nodelay(true)
            .map_err(Error::option("TCP_NODELAY"))?;
    }
    if params.mss_bytes > 0 {
        socket
            .set_tcp_mss(params.mss_bytes)
            .map_err(Error::option("the TCP MSS"))?;
    }
    if !params.congestion.is_empty() {
        let name = params.congestion.as_bytes();
        let set = socket.set_tcp_congestion(name);
        set.map_err(Error::option(
            "TCP_CONGESTION (is the algorithm's module loaded?)",
        ))?;
    }
    Ok(())
}

fn prepare_udp(socket: &Socket, params: &Params, peer: IpAddr) -> Result<(), Error> {
    if params.dont_fragment && peer.to_canonical().is_ipv4() {
        forbid_fragments(socket).map_err(Error::option("\"don't fragment\""))?;
    }
    let needed = params.block_bytes + UDP_BUFFER_EXTRA_BYTES;
    let have = socket.send_buffer_size().unwrap_or(0);
    if params.window_bytes == 0 && have < needed {
        set_window(socket, needed)?;
    }
    Ok(())
}

fn set_window(socket: &Socket, wanted: usize) -> Result<(), Error> {
    let set = || -> io::Result<usize> {
        socket.set_send_buffer_size(wanted)?;
        socket.set_recv_buffer_size(wanted)?;
        Ok(socket.send_buffer_size()?.min(socket.recv_buffer_size()?))
    };
    let actual = set().map_err(Error::option("the socket buffer size"))?;
    if actual < wanted {
        return Err(Error::Window { wanted, actual });
    }
    Ok(())
}

fn unspecified_like(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ipv4_in_ipv6_is_changed() {
        let link_local = SocketAddrV6::new("fe80::1".parse().unwrap(), 5201, 0, 3);
        assert_eq!(canonical(link_local.into()), link_local.into());
        let mapped: SocketAddr = "[::ffff:198.18.0.1]:5201".parse().unwrap();
        assert_eq!(canonical(mapped), "198.18.0.1:5201".parse().unwrap());
    }
}
