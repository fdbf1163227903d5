//! The first bytes of a data connection: who it is for, and proof that it belongs to the run.

use ew_model::plan::{FlowId, RoundIndex, StageIndex};
use ew_proto::message::{Role, RunToken};

/// Length of a hello on the wire.
pub(crate) const HELLO_BYTES: usize = 40;
/// What the accepting end answers when the connection is the round's.
pub(crate) const ACK: u8 = 0xa5;
/// First bytes of a hello: a name and the version of this layout.
pub(crate) const MAGIC: [u8; 8] = *b"ewdata\x00\x01";

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

/// What the opener of a connection says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hello {
    /// It is a stream, and this is the opener's part in it.
    Stream { key: StreamKey, role: Role },
    /// It only asks whether the port can be reached.
    Probe,
}

impl Hello {
    /// Layout, big endian: magic 8, token 16, stage 4, round 4, flow 4, stream 2, role 1, zero 1.
    pub(crate) fn encode(&self, token: &RunToken) -> [u8; HELLO_BYTES] {
        let (key, role) = match self {
            Self::Stream { key, role } => (*key, role_byte(*role)),
            Self::Probe => (StreamKey::zero(), ROLE_PROBE),
        };
        let mut wire = [0; HELLO_BYTES];
        wire[..8].copy_from_slice(&MAGIC);
        wire[8..24].copy_from_slice(&token.0);
        wire[24..28].copy_from_slice(&key.stage.0.to_be_bytes());
        wire[28..32].copy_from_slice(&key.round.0.to_be_bytes());
        wire[32..36].copy_from_slice(&key.flow.0.to_be_bytes());
        wire[36..38].copy_from_slice(&key.stream.to_be_bytes());
        wire[38] = role;
        wire
    }

    /// `None` when the magic, the token, the role or the padding is wrong.
    pub(crate) fn decode(wire: &[u8; HELLO_BYTES], token: &RunToken) -> Option<Self> {
        if wire[..8] != MAGIC || !same_secret(&wire[8..24], &token.0) || wire[39] != 0 {
            return None;
        }
        let key = StreamKey {
            stage: StageIndex(read_u32(wire, 24)),
            round: RoundIndex(read_u32(wire, 28)),
            flow: FlowId(read_u32(wire, 32)),
            stream: u16::from_be_bytes([wire[36], wire[37]]),
        };
        match wire[38] {
            ROLE_SEND => Some(Self::Stream {
                key,
                role: Role::Send,
            }),
            ROLE_RECEIVE => Some(Self::Stream {
                key,
                role: Role::Receive,
            }),
            ROLE_PROBE => Some(Self::Probe),
            _ => None,
        }
    }
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

/// Compares in a time that does not depend on where the difference is, so that a token cannot be guessed byte by byte.
fn same_secret(left: &[u8], right: &[u8]) -> bool {
    let difference = left
        .iter()
        .zip(right)
        .fold(0, |seen, (a, b)| std::hint::black_box(seen | (a ^ b)));
    left.len() == right.len() && difference == 0
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
            prop_assert_eq!(Hello::decode(&hello.encode(&TOKEN), &TOKEN), Some(hello));
        }

        #[test]
        fn a_wrong_bit_in_magic_or_token_is_refused(bit in 0_usize..24 * 8) {
            let mut wire = Hello::Probe.encode(&TOKEN);
            wire[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(Hello::decode(&wire, &TOKEN), None);
        }

        #[test]
        fn noise_is_refused(wire: [u8; HELLO_BYTES]) {
            prop_assert_eq!(Hello::decode(&wire, &TOKEN), None);
        }
    }

    #[test]
    fn a_probe_is_understood() {
        let wire = Hello::Probe.encode(&TOKEN);
        assert_eq!(Hello::decode(&wire, &TOKEN), Some(Hello::Probe));
    }

    #[test]
    fn a_start_that_differs_is_known_early() {
        assert!(may_become_hello(b""));
        assert!(may_become_hello(b"ewd"));
        assert!(!may_become_hello(b"GET / HTTP/1.1"));
    }
}
