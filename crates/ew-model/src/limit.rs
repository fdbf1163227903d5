//! What a link can do at best: everything that follows from its rate, the frames on it, a round
//! trip and a message's size.

use crate::ceiling::{Framing, MessageCost, Packet};
use serde::Serialize;

/// The window that can be announced without window scaling (RFC 9293, section 3.1; RFC 7323,
/// section 2).
const UNSCALED_WINDOW_BYTES: u64 = 65_535;
/// Linux counts its own bookkeeping into a socket's buffers: half of one is taken as usable
/// (tcp(7), `tcp_adv_win_scale` 1; since 6.6 measured per socket, beginning at one half).
const BUFFER_OVER_WINDOW: u64 = 2;

/// A link's limits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// The link's rate.
    pub link_bits_per_sec: f64,
    /// What is on it.
    pub framing: Framing,
    /// A full packet, layer by layer.
    pub packet: Packet,
    /// Payload over counted bytes.
    pub efficiency: f64,
    /// Payload at best.
    pub payload_bits_per_sec: f64,
    /// Full packets a second.
    pub packets_per_sec: f64,
    /// Minimum-size frames a second: 14.88 million on 10 Gb/s Ethernet.
    pub least_frames_per_sec: f64,
    /// Time that a full packet occupies the link.
    pub serialization_ns: f64,
    /// The same of a minimum-size frame.
    pub least_serialization_ns: f64,
    /// What a round trip asks for.
    pub window: WindowNeed,
    /// What messages that leave by themselves can reach. `None` when none was asked for.
    pub message: Option<MessageLimit>,
}

/// What must be on its way, and what hosts must keep for it, to fill a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WindowNeed {
    /// The round trip.
    pub rtt_ns: u64,
    /// Link rate times round trip: the bandwidth-delay product.
    pub bytes: u64,
    /// The same in full segments.
    pub segments: u64,
    /// What `net.ipv4.tcp_rmem` and `tcp_wmem` must allow (their third value), the kernel's own
    /// part included.
    pub kernel_buffer_bytes: u64,
    /// What to ask for by `SO_RCVBUF` or `SO_SNDBUF`, which the kernel doubles (socket(7));
    /// `net.core.rmem_max` and `wmem_max` must allow it.
    pub asked_buffer_bytes: u64,
    /// Whether the window needs scaling (`net.ipv4.tcp_window_scaling`, on by default).
    pub needs_scaling: bool,
}

/// What messages that leave by themselves can reach.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MessageLimit {
    /// What one costs.
    pub cost: MessageCost,
    /// How many a second fill the link.
    pub per_sec: f64,
    /// Their payload.
    pub payload_bits_per_sec: f64,
    /// Time that one occupies the link.
    pub serialization_ns: f64,
    /// How many a second one connection makes that waits for an answer a round trip later (tcp-rr):
    /// the round trip decides.
    pub per_sec_one_at_a_time: f64,
}

impl Limit {
    /// The limits of a link for packets of `framing`, a round trip, and messages of a size.
    #[must_use]
    pub fn new(
        link_bits_per_sec: f64,
        framing: &Framing,
        rtt_ns: u64,
        message_bytes: Option<u64>,
    ) -> Self {
        let packet = framing.full_packet();
        let min = framing.min_packet();
        let nanoseconds = |bytes: u32| f64::from(bytes) * 8e9 / link_bits_per_sec;
        Self {
            link_bits_per_sec,
            efficiency: framing.efficiency(),
            payload_bits_per_sec: link_bits_per_sec * framing.efficiency(),
            packets_per_sec: packet.per_sec(link_bits_per_sec),
            least_frames_per_sec: min.per_sec(link_bits_per_sec),
            serialization_ns: nanoseconds(packet.counted_bytes),
            least_serialization_ns: nanoseconds(min.counted_bytes),
            window: WindowNeed::new(link_bits_per_sec, packet.payload_bytes, rtt_ns),
            message: message_bytes
                .map(|bytes| MessageLimit::new(link_bits_per_sec, framing, rtt_ns, bytes)),
            framing: framing.clone(),
            packet,
        }
    }
}

impl WindowNeed {
    fn new(link_bits_per_sec: f64, segment_bytes: u32, rtt_ns: u64) -> Self {
        let bytes = (link_bits_per_sec * rtt_ns as f64 / 8e9).ceil() as u64;
        Self {
            rtt_ns,
            bytes,
            segments: bytes.div_ceil(u64::from(segment_bytes.max(1))),
            kernel_buffer_bytes: bytes.saturating_mul(BUFFER_OVER_WINDOW),
            asked_buffer_bytes: bytes,
            needs_scaling: bytes > UNSCALED_WINDOW_BYTES,
        }
    }
}

impl MessageLimit {
    fn new(link_bits_per_sec: f64, framing: &Framing, rtt_ns: u64, bytes: u64) -> Self {
        let cost = framing.message(bytes);
        let serialization_ns = cost.counted_bytes as f64 * 8e9 / link_bits_per_sec;
        let per_sec = 1e9 / serialization_ns;
        Self {
            cost,
            per_sec,
            payload_bits_per_sec: link_bits_per_sec * cost.efficiency(),
            serialization_ns,
            per_sec_one_at_a_time: per_sec.min(1e9 / (rtt_ns as f64).max(1.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_gigabit_ethernet() {
        let limit = Limit::new(10e9, &Framing::plain(1500), 100_000, None);
        assert_eq!((limit.payload_bits_per_sec / 1e6).round(), 9415.0);
        assert_eq!(limit.packets_per_sec.round(), 812_744.0);
        assert_eq!(limit.serialization_ns, 1230.4);
        assert_eq!(limit.window.bytes, 125_000);
        assert_eq!(limit.window.segments, 87);
        assert_eq!(limit.window.kernel_buffer_bytes, 250_000);
        assert!(limit.window.needs_scaling);
        assert_eq!(limit.message, None);
    }

    /// The figure that data sheets of switches give: 84 bytes a frame.
    #[test]
    fn least_frames_are_those_of_data_sheets() {
        let limit = Limit::new(10e9, &Framing::plain(9000), 0, None);
        assert_eq!(limit.least_frames_per_sec.round(), 14_880_952.0);
        assert!((limit.least_serialization_ns - 67.2).abs() < 1e-9);
    }

    #[test]
    fn one_request_at_a_time_waits_for_its_round_trip() {
        let limit = Limit::new(1e9, &Framing::plain(1500), 50_000, Some(64));
        let message = limit.message.unwrap();
        assert_eq!(message.per_sec_one_at_a_time, 20_000.0);
        assert_eq!(message.cost.counted_bytes, 154);
        assert!(message.per_sec > 800_000.0);
        assert!(!limit.window.needs_scaling);
    }
}
