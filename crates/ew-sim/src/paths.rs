//! Which member a connection takes: by a hash of its 5-tuple, as switches and bonded hosts do.

use std::net::IpAddr;

/// What a switch hashes (IP protocol and addresses, ports), in the direction of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FiveTuple {
    pub(crate) src: IpAddr,
    pub(crate) dst: IpAddr,
    pub(crate) src_port: u16,
    pub(crate) dst_port: u16,
}

impl FiveTuple {
    /// Of the acknowledgements.
    pub(crate) fn reversed(self) -> Self {
        Self {
            src: self.dst,
            dst: self.src,
            src_port: self.dst_port,
            dst_port: self.src_port,
        }
    }

    /// Uniform over 64 bits; another switch's seed gives an independent value.
    pub(crate) fn hash(self, seed: u64) -> u64 {
        let ports = u64::from(self.src_port) << 16 | u64::from(self.dst_port);
        let parts = [fold(self.src), fold(self.dst), ports];
        parts.iter().fold(mix(seed), |hash, part| mix(hash ^ part))
    }
}

fn fold(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            mix((bits >> 64) as u64) ^ bits as u64
        }
    }
}

/// The finaliser of SplitMix64.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The member of a weighted group that a hash falls on. `None` when all weights are 0.
pub(crate) fn pick(hash: u64, weights: impl Iterator<Item = u64> + Clone) -> Option<usize> {
    let total: u64 = weights.clone().sum();
    let mut left = hash.checked_rem(total)?;
    weights.enumerate().find_map(|(member, weight)| {
        if left < weight {
            return Some(member);
        }
        left -= weight;
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuple(src_port: u16) -> FiveTuple {
        FiveTuple {
            src: "198.18.1.10".parse().unwrap(),
            dst: "198.18.2.10".parse().unwrap(),
            src_port,
            dst_port: 5001,
        }
    }

    #[test]
    fn ports_spread_evenly_and_stay() {
        let mut counts = [0; 4];
        for port in (32_768..60_000).step_by(2) {
            let member = pick(tuple(port).hash(1), [1_u64; 4].into_iter()).unwrap();
            assert_eq!(
                pick(tuple(port).hash(1), [1_u64; 4].into_iter()),
                Some(member)
            );
            counts[member] += 1;
        }
        assert!(
            counts.iter().all(|count| (3200..3600).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn weights_and_members_that_are_gone_count() {
        let mut counts = [0; 3];
        for port in 1..30_000 {
            counts[pick(tuple(port).hash(2), [1, 0, 2].into_iter()).unwrap()] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!((1.9..2.1).contains(&(f64::from(counts[2]) / f64::from(counts[0]))));
        assert_eq!(pick(7, [0, 0].into_iter()), None);
    }

    #[test]
    fn switches_choose_apart() {
        let same = (1..4000).filter(|port| tuple(*port).hash(1) % 2 == tuple(*port).hash(2) % 2);
        assert!((1800..2200).contains(&same.count()));
    }
}
