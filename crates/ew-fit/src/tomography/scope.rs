//! Where a bad path is.

use crate::Direction;
use std::collections::BTreeSet;

/// Where a bad path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// A member of one rack's uplinks.
    Rack(usize, Direction),
    /// A member of one pod's links to the others.
    Pod(usize, Direction),
    /// One of every rack's: a spine.
    Everywhere,
}

/// The pod of each rack; none where there are no pods.
#[derive(Clone, Debug, Default)]
pub struct Pods(pub(super) Vec<usize>);

impl Pods {
    /// The racks of one.
    pub fn racks(&self, pod: usize) -> Vec<usize> {
        let own = self.0.iter().enumerate().filter(|(_, of)| **of == pod);
        own.map(|(rack, _)| rack).collect()
    }

    /// The pods of two racks, where they differ.
    pub(super) fn between(&self, racks: (usize, usize)) -> Option<(usize, usize)> {
        let pods = (*self.0.get(racks.0)?, *self.0.get(racks.1)?);
        (pods.0 != pods.1).then_some(pods)
    }

    /// Those of several racks: the links of one rack alone are its uplinks, too.
    pub(super) fn of_several(&self) -> impl Iterator<Item = usize> {
        let pods: BTreeSet<usize> = self.0.iter().copied().collect();
        pods.into_iter().filter(|pod| self.racks(*pod).len() > 1)
    }
}

impl Scope {
    /// Whether connections between two racks may be over the path.
    pub(super) fn has(self, racks: (usize, usize), pods: &Pods) -> bool {
        let is_end = |direction: Direction, (from, to): (usize, usize), own: usize| {
            direction.has_tx() && from == own || direction.has_rx() && to == own
        };
        match self {
            Self::Rack(rack, direction) => is_end(direction, racks, rack),
            Self::Pod(pod, direction) => {
                let pods = pods.between(racks);
                pods.is_some_and(|pods| is_end(direction, pods, pod))
            }
            Self::Everywhere => true,
        }
    }
}
