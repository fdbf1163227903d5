//! The first bytes of a data connection: who it is for, and proof that both ends belong to the run.
//!
//! The run's token never travels. The opener proves itself by a code over what it asks for, from
//! whom and of whom; the accepting end by a code over that hello, which nobody else can make
//! either. So a program that takes a dead agent's port learns nothing that opens another
//! connection, and is no peer.

use ew_model::plan::{FlowId, RoundIndex, StageIndex};
use ew_proto::message::{Role, RunToken};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::net::{IpAddr, Ipv6Addr};

/// Length of a hello on the wire.
pub(crate) const HELLO_BYTES: usize = 72;
/// Length of what the accepting end answers when the connection is the round's.
pub(crate) const ACK_BYTES: usize = 16;
/// First bytes of a hello: a name and the version of this layout.
pub(crate) const MAGIC: [u8; 8] = *b"ewdata\x00\x02";

const CODE_BYTES: usize = 16;
const ROLE_SEND: u8 = 1;
const ROLE_RECEIVE: u8 = 2;
const ROLE_PROBE: u8 = 3;

/// One stream of one flow of one round: what a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StreamKey {
    pub(crate) stage: StageIndex,
    pub(crate) round: RoundIndex,
    pub(crate) flow: FlowId,
    pub(crate) stream: u16,
}

/// What the opener of a connection sends about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hello {
    /// It is a stream, and this is the opener's part in it.
    Stream { key: StreamKey, role: Role },
    /// It only asks whether the port can be reached.
    Probe,
}

/// Between whom, by the addresses of the run's inventory: those on the wire may be translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) opener: IpAddr,
    pub(crate) acceptor: IpAddr,
}

impl Hello {
    /// Layout, big endian: magic 8, code 16, stage 4, round 4, flow 4, stream 2, role 1, zero 1,
    /// the opener's address 16, the acceptor's 16 (IPv4 as IPv6, RFC 4291, section 2.5.5.2). The
    /// code is HMAC-SHA256 (RFC 2104) with the token over all else, cut to 16 bytes.
    pub(crate) fn encode(&self, ends: Ends, token: &RunToken) -> [u8; HELLO_BYTES] {
        let (key, role) = match self {
            Self::Stream { key, role } => (*key, role_byte(*role)),
            Self::Probe => (StreamKey::zero(), ROLE_PROBE),
        };
        let mut wire = [0; HELLO_BYTES];
        wire[..8].copy_from_slice(&MAGIC);
        wire[24..28].copy_from_slice(&key.stage.0.to_be_bytes());
        wire[28..32].copy_from_slice(&key.round.0.to_be_bytes());
        wire[32..36].copy_from_slice(&key.flow.0.to_be_bytes());
        wire[36..38].copy_from_slice(&key.stream.to_be_bytes());
        wire[38] = role;
        wire[40..56].copy_from_slice(&octets(ends.opener));
        wire[56..72].copy_from_slice(&octets(ends.acceptor));
        let code = code_of(token, b"hello", &[&wire[..8], &wire[24..]]);
        wire[8..24].copy_from_slice(&code);
        wire
    }

    /// What it is and between whom. `None` when the magic, the code, the role or the padding is
    /// wrong.
    pub(crate) fn decode(wire: &[u8; HELLO_BYTES], token: &RunToken) -> Option<(Self, Ends)> {
        let code = code_of(token, b"hello", &[&wire[..8], &wire[24..]]);
        if wire[..8] != MAGIC || !same_secret(&wire[8..24], &code) || wire[39] != 0 {
            return None;
        }
        let key = StreamKey {
            stage: StageIndex(read_u32(wire, 24)),
            round: RoundIndex(read_u32(wire, 28)),
            flow: FlowId(read_u32(wire, 32)),
            stream: u16::from_be_bytes([wire[36], wire[37]]),
        };
        let hello = match wire[38] {
            ROLE_SEND => Self::Stream {
                key,
                role: Role::Send,
            },
            ROLE_RECEIVE => Self::Stream {
                key,
                role: Role::Receive,
            },
            ROLE_PROBE => Self::Probe,
            _ => return None,
        };
        let ends = Ends {
            opener: address(wire, 40),
            acceptor: address(wire, 56),
        };
        Some((hello, ends))
    }
}

/// What only the agent that was meant can answer to a hello.
pub(crate) fn acknowledgement(hello: &[u8; HELLO_BYTES], token: &RunToken) -> [u8; ACK_BYTES] {
    code_of(token, b"ack", &[hello])
}

impl StreamKey {
    fn zero() -> Self {
        Self {
            stage: StageIndex(0),
            round: RoundIndex(0),
            flow: FlowId(0),
            stream: 0,
        }
    }
}

/// Whether the first bytes of a connection can still become a hello.
pub(crate) fn may_become_hello(start: &[u8]) -> bool {
    let compared = start.len().min(MAGIC.len());
    start[..compared] == MAGIC[..compared]
}

/// Compares in a time that does not depend on where the difference is, so that a code cannot be
/// guessed byte by byte.
pub(crate) fn same_secret(left: &[u8], right: &[u8]) -> bool {
    let difference = left
        .iter()
        .zip(right)
        .fold(0, |seen, (a, b)| std::hint::black_box(seen | (a ^ b)));
    left.len() == right.len() && difference == 0
}

fn code_of(token: &RunToken, purpose: &[u8], parts: &[&[u8]]) -> [u8; CODE_BYTES] {
    // A key of the hash's block length, which the keyed hash takes as it is.
    let mut key = hmac::digest::Key::<Hmac<Sha256>>::default();
    key[..token.0.len()].copy_from_slice(&token.0);
    let mut mac = Hmac::<Sha256>::new(&key);
    mac.update(purpose);
    parts.iter().for_each(|part| mac.update(part));
    let mut code = [0; CODE_BYTES];
    code.copy_from_slice(&mac.finalize().into_bytes()[..CODE_BYTES]);
    code
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

fn address(wire: &[u8; HELLO_BYTES], at: usize) -> IpAddr {
    let mut octets = [0; 16];
    octets.copy_from_slice(&wire[at..at + 16]);
    IpAddr::V6(Ipv6Addr::from(octets)).to_canonical()
}

fn role_byte(role: Role) -> u8 {
    match role {
        Role::Send => ROLE_SEND,
        Role::Receive => ROLE_RECEIVE,
    }
}

fn read_u32(wire: &[u8; HELLO_BYTES], at: usize) -> u32 {
    u32::from_be_bytes([wire[at], wire[at + 1], wire[at + 2], wire[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TOKEN: RunToken = RunToken([7; 16]);

    fn ends() -> Ends {
        Ends {
            opener: "198.18.0.1".parse().unwrap(),
            acceptor: "2001:db8::2".parse().unwrap(),
        }
    }

    proptest! {
        #[test]
        fn what_is_said_is_understood(stage: u32, round: u32, flow: u32, stream: u16, sends: bool) {
            let hello = Hello::Stream {
                key: StreamKey {
                    stage: StageIndex(stage),
                    round: RoundIndex(round),
                    flow: FlowId(flow),
                    stream,
                },
                role: if sends { Role::Send } else { Role::Receive },
            };
            let wire = hello.encode(ends(), &TOKEN);
            prop_assert_eq!(Hello::decode(&wire, &TOKEN), Some((hello, ends())));
        }

        #[test]
        fn any_wrong_bit_is_refused_and_its_acknowledgement_differs(bit in 0_usize..HELLO_BYTES * 8) {
            let honest = Hello::Probe.encode(ends(), &TOKEN);
            let mut wire = honest;
            wire[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(Hello::decode(&wire, &TOKEN), None);
            prop_assert_ne!(acknowledgement(&wire, &TOKEN), acknowledgement(&honest, &TOKEN));
        }

        #[test]
        fn noise_is_refused(wire: [u8; 32], rest: [u8; 32], last: [u8; 8]) {
            let mut noise = [0; HELLO_BYTES];
            noise[..32].copy_from_slice(&wire);
            noise[32..64].copy_from_slice(&rest);
            noise[64..].copy_from_slice(&last);
            prop_assert_eq!(Hello::decode(&noise, &TOKEN), None);
        }
    }

    #[test]
    fn another_runs_hello_is_refused_and_the_token_does_not_travel() {
        let wire = Hello::Probe.encode(ends(), &TOKEN);
        assert_eq!(Hello::decode(&wire, &RunToken([8; 16])), None);
        assert!(!wire.windows(16).any(|bytes| bytes == TOKEN.0));
        assert_ne!(acknowledgement(&wire, &TOKEN), wire[8..24]);
    }

    #[test]
    fn a_start_that_differs_is_known_early() {
        assert!(may_become_hello(b""));
        assert!(may_become_hello(b"ewd"));
        assert!(!may_become_hello(b"GET / HTTP/1.1"));
    }
}
