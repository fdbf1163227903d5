//! A host's monotonic clock against the world's time.

const BILLION: i128 = 1_000_000_000;

/// Off by a constant, a little too fast or too slow, and standing still while its host is
/// suspended (`CLOCK_MONOTONIC`, clock_gettime(2)).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HostClock {
    /// What it shows at the world's time 0.
    pub(crate) offset_ns: u64,
    /// By how much it is too fast, parts per billion.
    pub(crate) rate_ppb: i64,
    /// From when on it stands still, and for how long.
    pub(crate) suspended_ns: Option<(u64, u64)>,
}

impl HostClock {
    /// What it shows at a time of the world.
    pub(crate) fn at(&self, world_ns: u64) -> u64 {
        let run_ns = match self.suspended_ns {
            Some((from_ns, for_ns)) if world_ns > from_ns => {
                world_ns.saturating_sub(for_ns).max(from_ns)
            }
            _ => world_ns,
        };
        let gained_ns = i128::from(run_ns) * i128::from(self.rate_ppb) / BILLION;
        let shown_ns = i128::from(self.offset_ns) + i128::from(run_ns) + gained_ns;
        u64::try_from(shown_ns).unwrap_or(0)
    }

    /// When, in the world's time, it shows this for the first time.
    pub(crate) fn world_ns(&self, shown_ns: u64) -> u64 {
        let since_ns = i128::from(shown_ns) - i128::from(self.offset_ns);
        let run_ns = since_ns * BILLION / (BILLION + i128::from(self.rate_ppb));
        let run_ns = u64::try_from(run_ns).unwrap_or(0);
        match self.suspended_ns {
            Some((from_ns, for_ns)) if run_ns > from_ns => run_ns + for_ns,
            _ => run_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn there_and_back_is_the_same_time() {
        for rate_ppb in [-200_000, 0, 200_000] {
            for suspended_ns in [None, Some((5 * S, 7 * S))] {
                let clock = HostClock {
                    offset_ns: 77 * S,
                    rate_ppb,
                    suspended_ns,
                };
                for world_ns in [0, S + 7, 4 * S, 13 * S, 3600 * S] {
                    let back_ns = clock.world_ns(clock.at(world_ns));
                    assert!(back_ns.abs_diff(world_ns) <= 1, "{clock:?} {world_ns}");
                }
            }
        }
    }

    #[test]
    fn it_stands_still_while_its_host_is_suspended() {
        let clock = HostClock {
            suspended_ns: Some((5 * S, 7 * S)),
            ..HostClock::default()
        };
        let shown = [4, 5, 6, 12, 13].map(|s| clock.at(s * S) / S);
        assert_eq!(shown, [4, 5, 5, 5, 6]);
    }
}
