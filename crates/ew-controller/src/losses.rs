//! Many hosts that fall silent together: the load may have cost them their management network, and
//! it ends before anybody else notices.

use std::collections::VecDeque;

/// Fewer hosts than this fail by themselves.
const MIN_HOSTS: usize = 4;
/// Share of the hosts that were up.
const MANY: f64 = 0.1;
/// Losses this close together are one.
const TOGETHER_NS: u64 = 5_000_000_000;

/// When hosts that were up were lost.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    at_ns: VecDeque<u64>,
    /// Hosts that were up before the first of these.
    up: usize,
}

impl Losses {
    /// A host was lost of so many that were up. Returns why the run must end, if so.
    pub(crate) fn add(&mut self, now_ns: u64, up: usize) -> Option<String> {
        while self
            .at_ns
            .front()
            .is_some_and(|at_ns| at_ns + TOGETHER_NS < now_ns)
        {
            self.at_ns.pop_front();
        }
        if self.at_ns.is_empty() {
            self.up = up;
        }
        self.at_ns.push_back(now_ns);
        let lost = self.at_ns.len();
        let is_many = lost >= MIN_HOSTS && lost as f64 > MANY * self.up as f64;
        is_many.then(|| {
            format!(
                "{lost} of {} hosts fell silent within {} s",
                self.up,
                TOGETHER_NS / 1_000_000_000
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reasons(losses: &[(u64, usize)]) -> usize {
        let mut all = Losses::default();
        let reason = |(at_ns, up): &(u64, usize)| all.add(at_ns * 1_000_000_000, *up);
        usize::from(losses.iter().filter_map(reason).next().is_some())
    }

    #[test]
    fn only_many_hosts_at_once_end_the_run() {
        let together = |hosts: usize, up: usize| -> Vec<(u64, usize)> {
            (0..hosts).map(|lost| (100, up - lost)).collect()
        };
        assert_eq!(reasons(&together(3, 4)), 0, "three hosts of four");
        assert_eq!(reasons(&together(4, 8)), 1);
        assert_eq!(reasons(&together(8, 8)), 1);
        assert_eq!(reasons(&together(4, 40)), 0, "a tenth");
        assert_eq!(reasons(&together(5, 40)), 1);
        let one_by_one: Vec<_> = (0..8).map(|lost| (10 * lost, 8 - lost as usize)).collect();
        assert_eq!(reasons(&one_by_one), 0);
    }
}
