//! Whether peers' data ports can be reached, and how far away the peers are.

use crate::clock_wait::Cancel;
use crate::connect::{Opener, Opening};
use crate::data_ports::DataPorts;
use crate::hello::{ACK_BYTES, Ends, HELLO_BYTES, Hello, acknowledgement, same_secret};
use crate::round::RoundHost;
use crate::settings::Settings;
use ew_proto::message::{PortAnswer, PortCheck};
use ew_sys::clock::monotonic_ns;
use ew_sys::socket::tcp_info;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

/// Datagrams get lost: an unanswered probe is repeated after so long.
const PROBE_INTERVAL: Duration = Duration::from_millis(250);

/// Sends hello to every peer, to all at the same time; over UDP to those that TCP reaches. One
/// answer per peer.
pub(crate) fn check_ports(
    host: &RoundHost,
    check: &PortCheck,
    timeout: Duration,
) -> Vec<PortAnswer> {
    let mut answers = check_tcp(host, &check.peers, timeout);
    if check.with_udp {
        let reached = answers.iter().map(|answer| answer.error().is_none());
        let peers = check.peers.iter().copied().zip(reached);
        let peers: Vec<SocketAddr> = peers.filter(|(_, reached)| *reached).map(|p| p.0).collect();
        for (peer, error) in udp_errors(host, &peers, timeout) {
            let position = check.peers.iter().position(|asked| *asked == peer);
            if let Some(answer) = position.and_then(|position| answers.get_mut(position)) {
                *answer = PortAnswer::Unreached { error };
            }
        }
    }
    answers
}

fn ends(host: &RoundHost, peer: SocketAddr) -> Ends {
    Ends {
        opener: host.address,
        acceptor: peer.ip(),
    }
}

fn check_tcp(host: &RoundHost, peers: &[SocketAddr], timeout: Duration) -> Vec<PortAnswer> {
    let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
    let opener = Opener {
        source: host.address,
        settings: &Settings::default(),
        deadline_ns: monotonic_ns().saturating_add(timeout_ns),
        cancel: &Cancel::default(),
    };
    let opening =
        |peer: &SocketAddr| Opening::new(&Hello::Probe, ends(host, *peer), *peer, &host.token);
    let openings: Vec<_> = peers.iter().map(opening).collect();
    let mut answers = vec![
        PortAnswer::Reached {
            round_trip_ns: None
        };
        peers.len()
    ];
    opener.run(&openings, |index, outcome| {
        answers[index] = match outcome {
            Ok(socket) => PortAnswer::Reached {
                round_trip_ns: round_trip_ns(&socket),
            },
            Err(error) => PortAnswer::Unreached {
                error: error.to_string(),
            },
        };
    });
    answers
}

/// Between kernels, so that a busy host does not look far away.
fn round_trip_ns(socket: &TcpStream) -> Option<u64> {
    let reading = tcp_info(socket).ok()?;
    let min_rtt_us = reading.info.min_rtt_us?;
    Some(u64::from(min_rtt_us) * 1000)
}

/// A peer that was asked over UDP.
struct Asked {
    peer: SocketAddr,
    hello: [u8; HELLO_BYTES],
    /// What only it can answer.
    acknowledgement: [u8; ACK_BYTES],
}

/// Peers that answer no datagram, with the reason.
fn udp_errors(
    host: &RoundHost,
    peers: &[SocketAddr],
    timeout: Duration,
) -> Vec<(SocketAddr, String)> {
    let mut unanswered: Vec<Asked> = peers.iter().map(|peer| asked(host, *peer)).collect();
    let outcome = probe_socket(host).and_then(|socket| probe(&socket, &mut unanswered, timeout));
    let reason = match outcome {
        Err(error) => error.to_string(),
        Ok(()) => format!(
            "TCP connects, but no datagram is answered within {:.1} s; does a firewall drop UDP on the data ports?",
            timeout.as_secs_f64()
        ),
    };
    let error = |asked: Asked| (asked.peer, format!("UDP to {}: {reason}", asked.peer));
    unanswered.into_iter().map(error).collect()
}

fn asked(host: &RoundHost, peer: SocketAddr) -> Asked {
    let hello = Hello::Probe.encode(ends(host, peer), &host.token);
    Asked {
        peer,
        hello,
        acknowledgement: acknowledgement(&hello, &host.token),
    }
}

/// In the range of data ports, like the sockets of flows.
fn probe_socket(host: &RoundHost) -> io::Result<UdpSocket> {
    let domain = Domain::for_address(SocketAddr::new(host.address, 0));
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    DataPorts::new(host.ports).bind(host.address, None, |at| socket.bind(&at.into()))?;
    Ok(socket.into())
}

/// Asks until all have answered or time is over; leaves those that have not.
fn probe(socket: &UdpSocket, unanswered: &mut Vec<Asked>, timeout: Duration) -> io::Result<()> {
    let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
    let deadline_ns = monotonic_ns().saturating_add(timeout_ns);
    while !unanswered.is_empty() && monotonic_ns() < deadline_ns {
        for asked in &*unanswered {
            // What cannot be sent now, or was refused before, is tried again.
            let _ = socket.send_to(&asked.hello, asked.peer);
        }
        take_answers(socket, unanswered)?;
    }
    Ok(())
}

/// Until all have answered or the next probes are due.
fn take_answers(socket: &UdpSocket, unanswered: &mut Vec<Asked>) -> io::Result<()> {
    let interval_ns = u64::try_from(PROBE_INTERVAL.as_nanos()).unwrap_or(u64::MAX);
    let due_ns = monotonic_ns() + interval_ns;
    let mut answer = [0; ACK_BYTES + 1];
    while !unanswered.is_empty() {
        let left_ns = due_ns.saturating_sub(monotonic_ns());
        if left_ns == 0 {
            break;
        }
        socket.set_read_timeout(Some(Duration::from_nanos(left_ns)))?;
        // Errors are those of earlier datagrams, such as a refusal, or the end of the wait.
        if let Ok((length, from)) = socket.recv_from(&mut answer) {
            let is_from = |asked: &Asked| {
                asked.peer == from && same_secret(&asked.acknowledgement, &answer[..length])
            };
            unanswered.retain(|asked| !is_from(asked));
        }
    }
    Ok(())
}
