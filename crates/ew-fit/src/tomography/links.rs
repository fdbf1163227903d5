//! Links between switches by the addresses of their ends.
//!
//! A link has a network of its own with two addresses: those of a /31 or /127 differ in the last
//! bit (RFC 3021, RFC 6164), those of a /30 or /126 in the last two. A switch's links are
//! numbered in order.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bits in which the ends of a link differ, of networks of two addresses and of four.
const ENDS: [u128; 2] = [0b1, 0b11];

/// The hop above a rack's own switch, from 0: the far end of one of the switch's links.
pub(super) const ABOVE_RACK: usize = 1;

/// Ends of racks' links that were seen on the way from one rack to another.
#[derive(Debug, Default)]
pub(super) struct Ends {
    /// Where something left to, by the rack that sends.
    far: BTreeMap<usize, BTreeSet<IpAddr>>,
    /// Where it arrived, at the switch of the rack that receives, which may not answer: by that
    /// rack, and by where it left to.
    near: BTreeMap<usize, BTreeMap<Way, BTreeSet<IpAddr>>>,
}

/// The rack that sends, and the far end of the link, whose router may not answer.
type Way = (usize, Option<IpAddr>);

impl Ends {
    /// Takes the routers on the way from a rack to another; the last is that one's own switch.
    pub(super) fn add(&mut self, (from, to): (usize, usize), routers: &[Option<IpAddr>]) {
        let far = routers.get(ABOVE_RACK).copied().flatten();
        self.far.entry(from).or_default().extend(far);
        let ways = self.near.entry(to).or_default();
        let near = routers.get(ABOVE_RACK + 1..).and_then(|more| *more.last()?);
        ways.entry((from, far)).or_default().extend(near);
    }

    /// Links over which something arrived at a rack, where ends are numbered by link.
    pub(super) fn links_into(&self, rack: usize) -> Option<usize> {
        let (near, _) = self.near_in_use(rack)?;
        Some(near.len())
    }

    /// The one link over which nothing leaves a rack, although others arrive over it: by its near
    /// end, else by what others call its router.
    pub(super) fn unused_out_of(&self, rack: usize) -> Vec<(usize, IpAddr)> {
        let Some((near, in_use)) = self.near_in_use(rack) else {
            return Vec::new();
        };
        let unused: Vec<(usize, IpAddr)> =
            near.difference(&in_use).map(|end| (rack, *end)).collect();
        if !unused.is_empty() {
            return unused;
        }
        let ways = self.near.get(&rack).into_iter().flatten();
        let unused = ways.filter(|(_, near)| near.is_disjoint(&in_use));
        unused
            .filter_map(|((from, router), _)| Some((*from, (*router)?)))
            .collect()
    }

    /// The near ends of a rack's links, and those over which something leaves, too.
    fn near_in_use(&self, rack: usize) -> Option<(BTreeSet<IpAddr>, BTreeSet<IpAddr>)> {
        let near = self.near.get(&rack)?.values().flatten().copied().collect();
        let in_use = in_use(self.far.get(&rack)?, &near)?;
        Some((near, in_use))
    }
}

/// The near ends of links whose far ends are in use. `None` where ends are not numbered by link,
/// so that it is not known which belong together.
fn in_use(far: &BTreeSet<IpAddr>, near: &BTreeSet<IpAddr>) -> Option<BTreeSet<IpAddr>> {
    let in_use = |bits: u128| {
        let is_used = |near: &&IpAddr| far.contains(&other_end(**near, bits));
        let used: BTreeSet<IpAddr> = near.iter().filter(is_used).copied().collect();
        (used.len() == far.len()).then_some(used)
    };
    ENDS.into_iter().find_map(in_use)
}

fn other_end(end: IpAddr, bits: u128) -> IpAddr {
    of_number(end, number(end) ^ bits)
}

/// The one address that a switch's links skip: all others are as far apart as the rest, of at least
/// three.
pub(super) fn skipped(ends: &BTreeSet<IpAddr>) -> Option<IpAddr> {
    let ends: Vec<IpAddr> = ends.iter().copied().collect();
    let steps: Vec<u128> = (ends.windows(2))
        .map(|pair| number(pair[1]).abs_diff(number(pair[0])))
        .collect();
    let step = *steps.iter().min()?;
    let mut longer = (0..steps.len()).filter(|at| steps[*at] != step);
    let (at, None) = (longer.next()?, longer.next()) else {
        return None;
    };
    (steps.len() > 1 && steps[at] == 2 * step).then(|| of_number(ends[at], number(ends[at]) + step))
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => address.into(),
    }
}

/// Of the same family.
fn of_number(like: IpAddr, number: u128) -> IpAddr {
    match like {
        IpAddr::V4(_) => Ipv4Addr::from(number as u32).into(),
        IpAddr::V6(_) => Ipv6Addr::from(number).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(rack: u8, last: u8) -> IpAddr {
        IpAddr::from([198, 19, rack, last])
    }

    /// Of rack 1: where it leaves to, and, over which routers of rack 2, it receives.
    fn unused_out_of(far: &[u8], near: &[(Option<u8>, Option<u8>)]) -> Vec<(usize, IpAddr)> {
        let mut ends = Ends::default();
        for last in far {
            ends.add((1, 2), &[None, Some(address(1, *last)), None]);
        }
        for (router, near) in near {
            let near = near.map(|last| address(1, last));
            let router = router.map(|last| address(2, last));
            ends.add((2, 1), &[None, router, near]);
        }
        ends.unused_out_of(1)
    }

    #[test]
    fn a_link_that_is_used_one_way_has_one_end_without_the_other() {
        let seen = |all: &[u8]| -> Vec<(Option<u8>, Option<u8>)> {
            let way = |last: &u8| (Some(last - 1), Some(*last));
            all.iter().map(way).collect()
        };
        let of = |last: u8| vec![(1, address(1, last))];
        let networks_of_four = unused_out_of(&[1, 5, 13], &seen(&[2, 6, 10, 14]));
        assert_eq!(networks_of_four, of(10));
        let networks_of_two = unused_out_of(&[0, 2, 6], &seen(&[1, 3, 5, 7]));
        assert_eq!(networks_of_two, of(5));
        let all_used = unused_out_of(&[1, 5], &seen(&[2, 6]));
        assert!(all_used.is_empty(), "{all_used:?}");
        let one_address = unused_out_of(&[1, 5], &[(Some(1), Some(77)), (Some(5), Some(77))]);
        assert!(one_address.is_empty(), "{one_address:?}");
    }

    #[test]
    fn a_link_that_is_used_one_way_has_one_end_that_does_not_answer() {
        let nothing_returns_over_it = unused_out_of(&[1], &[(Some(1), Some(2)), (Some(5), None)]);
        assert_eq!(nothing_returns_over_it, [(2, address(2, 5))]);
        let router_has_no_way_back = unused_out_of(&[1], &[(Some(1), Some(2)), (None, Some(6))]);
        assert_eq!(router_has_no_way_back, [(1, address(1, 6))]);
    }

    #[test]
    fn ends_of_other_families_are_numbers_too() {
        let end = |last: u16| IpAddr::from([0xfd, 0, 0, 0, 0, 0, 0, last]);
        let (far, near) = (BTreeSet::from([end(1)]), BTreeSet::from([end(2), end(6)]));
        assert_eq!(in_use(&far, &near), Some(BTreeSet::from([end(2)])));
    }

    #[test]
    fn a_gap_in_even_steps_is_one_address() {
        let skipped = |last: &[u8]| skipped(&last.iter().map(|last| address(1, *last)).collect());
        let of = |last: u8| Some(address(1, last));
        assert_eq!(skipped(&[1, 5, 13]), of(9));
        assert_eq!(skipped(&[1, 9, 13, 17]), of(5));
        assert_eq!(
            skipped(&[1, 5, 9]),
            None,
            "the last or the first may be lost, or none"
        );
        assert_eq!(skipped(&[1, 9]), None);
        assert_eq!(skipped(&[1, 5, 13, 21]), None);
        assert_eq!(skipped(&[1, 5, 17]), None);
        assert_eq!(skipped(&[]), None);
    }
}
