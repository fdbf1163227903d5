//! A host's monotonic clock against the world's time.

const BILLION: i128 = 1_000_000_000;

/// Off by a constant, and a little too fast or too slow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostClock {
    /// What it shows at the world's time 0.
    pub(crate) offset_ns: u64,
    /// By how much it is too fast, parts per billion.
    pub(crate) rate_ppb: i64,
}

impl HostClock {
    /// What it shows at a time of the world.
    pub(crate) fn at(&self, world_ns: u64) -> u64 {
        let gained_ns = i128::from(world_ns) * i128::from(self.rate_ppb) / BILLION;
        let shown_ns = i128::from(self.offset_ns) + i128::from(world_ns) + gained_ns;
        u64::try_from(shown_ns).unwrap_or(0)
    }

    /// When, in the world's time, it shows this.
    pub(crate) fn world_ns(&self, shown_ns: u64) -> u64 {
        let since_ns = i128::from(shown_ns) - i128::from(self.offset_ns);
        let world_ns = since_ns * BILLION / (BILLION + i128::from(self.rate_ppb));
        u64::try_from(world_ns).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back_is_the_same_time() {
        for rate_ppb in [-200_000, 0, 200_000] {
            let clock = HostClock {
                offset_ns: 77_000_000_000,
                rate_ppb,
            };
            for world_ns in [0, 1_000_000_007, 3_600_000_000_000] {
                let back_ns = clock.world_ns(clock.at(world_ns));
                assert!(back_ns.abs_diff(world_ns) <= 1, "{rate_ppb} {world_ns}");
            }
        }
    }
}
