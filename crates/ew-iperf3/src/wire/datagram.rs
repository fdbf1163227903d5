//! UDP: the header of each datagram, and what a receiver concludes from them.

/// Header with a 32-bit sequence number.
pub const SHORT_HEADER_BYTES: usize = 12;
/// Header with a 64-bit sequence number.
pub const LONG_HEADER_BYTES: usize = 16;

/// Bytes of the two datagrams that make a UDP stream known.
pub const GREETING_BYTES: usize = 4;

/// What a client sends first on a UDP stream (`UDP_CONNECT_MSG` of iperf.h on a little-endian
/// host).
pub const GREETING: [u8; GREETING_BYTES] = *b"9876";
/// What a server answers (`UDP_CONNECT_REPLY`).
pub const REPLY: [u8; GREETING_BYTES] = *b"6789";
/// What servers before 3.9 answer: 987654321.
pub const LEGACY_REPLY: [u8; GREETING_BYTES] = [0xb1, 0x68, 0xde, 0x3a];
/// What clients before 3.9 send: 123456789.
const LEGACY_GREETING: [u8; GREETING_BYTES] = [0x15, 0xcd, 0x5b, 0x07];

/// The answer a client understands: the same byte order and age as its greeting.
#[must_use]
pub fn reply_to(greeting: [u8; GREETING_BYTES]) -> [u8; GREETING_BYTES] {
    let mut reversed_greeting = GREETING;
    reversed_greeting.reverse();
    if greeting == LEGACY_GREETING {
        LEGACY_REPLY
    } else if greeting == reversed_greeting {
        let mut reply = REPLY;
        reply.reverse();
        reply
    } else {
        REPLY
    }
}

/// Whether it is a server's answer to a greeting, in either byte order.
#[must_use]
pub fn is_reply(datagram: &[u8]) -> bool {
    let mut reversed: Vec<u8> = datagram.to_vec();
    reversed.reverse();
    [REPLY, LEGACY_REPLY]
        .iter()
        .any(|reply| datagram == reply || reversed == reply)
}

/// A datagram's header: when it was sent by the sender's clock, and its number in the stream, from
/// 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Time of sending by some clock of the sender, microseconds.
    pub sent_us: u64,
    /// Sequence number.
    pub sequence: u64,
}

impl Header {
    /// Bytes of a header.
    #[must_use]
    pub fn length(long: bool) -> usize {
        if long {
            LONG_HEADER_BYTES
        } else {
            SHORT_HEADER_BYTES
        }
    }

    /// Writes the header to the front of a datagram that is long enough.
    pub fn write(self, long: bool, datagram: &mut [u8]) {
        let length = Self::length(long);
        let Some(front) = datagram.get_mut(..length) else {
            return;
        };
        let seconds = (self.sent_us / 1_000_000) as u32;
        let microseconds = (self.sent_us % 1_000_000) as u32;
        front[..4].copy_from_slice(&seconds.to_be_bytes());
        front[4..8].copy_from_slice(&microseconds.to_be_bytes());
        if long {
            front[8..16].copy_from_slice(&self.sequence.to_be_bytes());
        } else {
            front[8..12].copy_from_slice(&(self.sequence as u32).to_be_bytes());
        }
    }

    /// Reads the header; nothing from a datagram that is too short for one.
    #[must_use]
    pub fn read(long: bool, datagram: &[u8]) -> Option<Self> {
        let word = |at: usize| -> Option<u64> {
            let bytes = datagram.get(at..at + 4)?.try_into().ok()?;
            Some(u64::from(u32::from_be_bytes(bytes)))
        };
        let sent_us = word(0)? * 1_000_000 + word(4)?;
        let sequence = if long {
            (word(8)? << 32) | word(12)?
        } else {
            word(8)?
        };
        Some(Self { sent_us, sequence })
    }
}

/// What a receiver knows of a stream of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Arrivals {
    /// Highest sequence number seen: how many datagrams the sender has sent.
    pub packets: u64,
    /// Datagrams that have not come: gaps, less what filled them later.
    pub lost: u64,
    /// Datagrams that came after one that was sent later.
    pub out_of_order: u64,
    /// Mean deviation of the transit time, seconds (RFC 1889, section 6.3.1 and A.8; the same in
    /// RFC 3550).
    pub jitter_s: f64,
    last_transit_us: Option<i64>,
}

impl Arrivals {
    /// Takes note of a datagram that came at this time of the receiver's clock, which need not be
    /// the sender's.
    pub fn note(&mut self, header: Header, now_us: u64) {
        if header.sequence > self.packets {
            self.lost = self.lost.saturating_add(header.sequence - self.packets - 1);
            self.packets = header.sequence;
        } else {
            self.out_of_order += 1;
            self.lost = self.lost.saturating_sub(1);
        }
        let transit_us = now_us
            .cast_signed()
            .wrapping_sub(header.sent_us.cast_signed());
        let last_us = self.last_transit_us.replace(transit_us);
        let deviation_us = last_us.map_or(0, |last_us| transit_us.wrapping_sub(last_us));
        self.jitter_s += (deviation_us.unsigned_abs() as f64 / 1e6 - self.jitter_s) / 16.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_the_wire() {
        let header = Header {
            sent_us: 12_000_034,
            sequence: 0x1_0000_0007,
        };
        let mut datagram = [0; LONG_HEADER_BYTES];
        header.write(true, &mut datagram);
        assert_eq!(datagram, [0, 0, 0, 12, 0, 0, 0, 34, 0, 0, 0, 1, 0, 0, 0, 7]);
        assert_eq!(Header::read(true, &datagram), Some(header));
        header.write(false, &mut datagram[..SHORT_HEADER_BYTES]);
        assert_eq!(Header::read(false, &datagram).map(|h| h.sequence), Some(7));
        assert_eq!(Header::read(false, &datagram[..11]), None);
        assert_eq!(Header::read(true, &datagram[..15]), None);
    }

    fn arrivals(sequences: &[u64]) -> Arrivals {
        let mut arrivals = Arrivals::default();
        for (index, sequence) in sequences.iter().enumerate() {
            let sent_us = *sequence * 1000;
            arrivals.note(
                Header {
                    sent_us,
                    sequence: *sequence,
                },
                1_000_000 + index as u64 * 1000,
            );
        }
        arrivals
    }

    #[test]
    fn gaps_are_losses_until_they_are_filled() {
        let gap = arrivals(&[1, 2, 5]);
        assert_eq!((gap.packets, gap.lost, gap.out_of_order), (5, 2, 0));
        let late = arrivals(&[1, 2, 5, 4]);
        assert_eq!((late.packets, late.lost, late.out_of_order), (5, 1, 1));
        let twice = arrivals(&[1, 1]);
        assert_eq!((twice.packets, twice.lost, twice.out_of_order), (1, 0, 1));
    }

    #[test]
    fn steady_datagrams_have_no_jitter() {
        assert_eq!(arrivals(&[1, 2, 3, 4]).jitter_s, 0.0);
        assert!(arrivals(&[1, 3, 4]).jitter_s > 0.0);
    }

    #[test]
    fn sequence_numbers_of_a_hostile_peer_do_not_overflow() {
        let hostile = arrivals(&[u64::MAX / 1000, 1, u64::MAX / 1000]);
        assert!(hostile.jitter_s.is_finite());
        let mut arrivals = Arrivals::default();
        for sequence in [u64::MAX, 0, u64::MAX] {
            arrivals.note(
                Header {
                    sent_us: u64::MAX,
                    sequence,
                },
                0,
            );
        }
        assert!(arrivals.jitter_s.is_finite());
    }

    #[test]
    fn replies_fit_the_greeting() {
        assert_eq!(reply_to(GREETING), REPLY);
        assert_eq!(reply_to(*b"6789"), *b"9876");
        assert_eq!(reply_to(LEGACY_GREETING), LEGACY_REPLY);
        assert!(is_reply(&REPLY) && is_reply(b"9876") && is_reply(&LEGACY_REPLY));
        assert!(!is_reply(b"678") && !is_reply(b""));
    }
}
