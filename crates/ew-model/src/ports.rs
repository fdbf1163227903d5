//! Source ports of streams: chosen from a seed, so that a hashed path can be asked for again.

use crate::inventory::HostId;
use crate::place::FlowId;
use std::ops::RangeInclusive;

/// Where source ports are chosen from: the dynamic ports of RFC 6335, section 6.
pub const SOURCE_PORTS: RangeInclusive<u16> = 49_152..=65_535;

/// Ports of one parity in [`SOURCE_PORTS`].
const PER_PARITY: u64 = 8_192;

/// The seed of a flow's ports that is the same in every round in which the same client meets the
/// same server.
#[must_use]
pub fn pinned_seed(plan_seed: u64, client: HostId, server: HostId) -> u64 {
    mixed(plan_seed ^ mixed(u64::from(client.0) << 32 | u64::from(server.0)))
}

/// The seed of a flow's ports that no other flow of the plan has.
#[must_use]
pub fn fresh_seed(plan_seed: u64, flow: FlowId) -> u64 {
    mixed(plan_seed ^ mixed(!u64::from(flow.0)))
}

/// The source port of a flow's stream. Neighbouring streams have ports of different parity, since
/// some switches hash ports of one parity to half of their members, and the ports of up to 16,384
/// streams all differ. `attempt` counts from 0: the ports to take where the ones before were busy.
#[must_use]
pub fn source_port(seed: u64, stream: u32, attempt: u32) -> u16 {
    let draw = mixed(seed ^ mixed(u64::from(attempt)));
    let stream = u64::from(stream);
    let parity = (draw ^ stream) & 1;
    // An odd stride visits every slot of a power of two once.
    let stride = draw >> 16 & 0xffff | 1;
    let slot = (draw >> 32).wrapping_add((stream / 2).wrapping_mul(stride)) % PER_PARITY;
    *SOURCE_PORTS.start() + (slot * 2 + parity) as u16
}

/// SplitMix64's finaliser (Steele, Lea, Flood, OOPSLA 2014): every bit of the result hangs on every
/// bit of the value.
#[must_use]
pub fn mixed(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_flows_ports_differ_and_have_both_parities() {
        for flow in 0..50 {
            let seed = fresh_seed(7, FlowId(flow));
            let ports: Vec<u16> = (0..2_000).map(|s| source_port(seed, s, 0)).collect();
            let distinct: BTreeSet<_> = ports.iter().collect();
            assert_eq!(distinct.len(), ports.len());
            assert!(ports.iter().all(|port| SOURCE_PORTS.contains(port)));
            assert!(ports.windows(2).all(|pair| pair[0] % 2 != pair[1] % 2));
        }
    }

    #[test]
    fn pinned_ports_are_those_of_the_pair_and_fresh_ones_of_the_flow() {
        let pinned = |seed, a, b| source_port(pinned_seed(seed, HostId(a), HostId(b)), 0, 0);
        assert_eq!(pinned(1, 2, 3), pinned(1, 2, 3));
        assert_ne!(pinned(1, 2, 3), pinned(1, 3, 2));
        assert_ne!(pinned(1, 2, 3), pinned(2, 2, 3));
        let fresh: BTreeSet<u16> = (0..100)
            .map(|flow| source_port(fresh_seed(1, FlowId(flow)), 0, 0))
            .collect();
        assert!(fresh.len() > 95, "{}", fresh.len());
    }

    #[test]
    fn a_busy_port_has_a_substitute() {
        let attempts: BTreeSet<u16> = (0..8).map(|n| source_port(5, 0, n)).collect();
        assert!(attempts.len() > 6);
    }
}
