//! How streams share what they meet: weighted max-min by progressive filling (Bertsekas and
//! Gallager, Data Networks, 6.5.2), with a limit of its own for every stream. Written apart from
//! `ew_plan::expectation`, which the analysis uses: an error in one must not hide in the other.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Most resources on one stream's way: CPU, NIC, rack, pod, each at both ends.
const MAX_RESOURCES: usize = 8;

/// The resources that a stream uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Way {
    resources: [u32; MAX_RESOURCES],
    count: u8,
}

impl Way {
    pub(crate) fn push(&mut self, resource: u32) {
        self.resources[usize::from(self.count)] = resource;
        self.count += 1;
    }

    pub(crate) fn resources(&self) -> &[u32] {
        &self.resources[..usize::from(self.count)]
    }
}

/// What a stream wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    pub(crate) way: Way,
    /// Its part where it shares, relative to the others'. Above 0.
    pub(crate) weight: f64,
    /// What it takes at most; infinite for a greedy one.
    pub(crate) limit: f64,
}

/// What a stream gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Grant {
    pub(crate) rate: f64,
    /// The full resource that limits it; `None` when its own limit does.
    pub(crate) bottleneck: Option<u32>,
}

/// Shares in the order of the demands.
pub(crate) fn share(demands: &[Demand], capacities: &[f64]) -> Vec<Grant> {
    let mut filling = Filling::new(demands, capacities);
    while let Some(event) = filling.heap.pop() {
        filling.take(event);
    }
    filling.grants
}

struct Filling<'a> {
    demands: &'a [Demand],
    left: Vec<f64>,
    /// Sum of the weights of the open streams on each resource.
    open: Vec<f64>,
    /// Streams of each resource: `users[starts[r]..starts[r + 1]]`.
    starts: Vec<u32>,
    users: Vec<u32>,
    closed: Vec<bool>,
    grants: Vec<Grant>,
    heap: BinaryHeap<Event>,
}

/// At this level (rate over weight) a resource would be full, or a stream at its limit. Levels of
/// resources may be stale: they only rise, and are checked when they come up.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Event {
    level: f64,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Limit(u32),
    Full(u32),
}

impl<'a> Filling<'a> {
    fn new(demands: &'a [Demand], capacities: &[f64]) -> Self {
        let mut starts = vec![0_u32; capacities.len() + 1];
        let mut open = vec![0.0; capacities.len()];
        for demand in demands {
            for resource in demand.way.resources() {
                starts[*resource as usize + 1] += 1;
                open[*resource as usize] += demand.weight;
            }
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut users = vec![0; starts[capacities.len()] as usize];
        for (stream, demand) in (0..).zip(demands) {
            for resource in demand.way.resources() {
                let slot = &mut next[*resource as usize];
                users[*slot as usize] = stream;
                *slot += 1;
            }
        }
        let mut filling = Self {
            demands,
            left: capacities.to_vec(),
            open,
            starts,
            users,
            closed: vec![false; demands.len()],
            grants: demands
                .iter()
                .map(|demand| Grant {
                    rate: demand.limit,
                    bottleneck: None,
                })
                .collect(),
            heap: BinaryHeap::new(),
        };
        for resource in 0..capacities.len() as u32 {
            filling.push_full(resource);
        }
        for (stream, demand) in (0..).zip(demands) {
            if demand.limit.is_finite() {
                filling.heap.push(Event {
                    level: demand.limit / demand.weight,
                    what: What::Limit(stream),
                });
            }
        }
        filling
    }

    fn has_users(&self, resource: u32) -> bool {
        self.starts[resource as usize] < self.starts[resource as usize + 1]
    }

    /// Rounding leaves crumbs of weight on a resource whose streams are all closed.
    fn level(&self, resource: u32) -> Option<f64> {
        const CRUMB: f64 = 1e-9;
        let (left, open) = (self.left[resource as usize], self.open[resource as usize]);
        (open > CRUMB && left.is_finite()).then(|| left.max(0.0) / open)
    }

    fn push_full(&mut self, resource: u32) {
        if let Some(level) = self.level(resource).filter(|_| self.has_users(resource)) {
            self.heap.push(Event {
                level,
                what: What::Full(resource),
            });
        }
    }

    fn take(&mut self, event: Event) {
        match event.what {
            What::Limit(stream) => self.close(stream, event.level, None),
            What::Full(resource) => {
                let Some(level) = self.level(resource) else {
                    return;
                };
                if level > event.level * (1.0 + 1e-12) {
                    self.push_full(resource);
                    return;
                }
                let range = self.starts[resource as usize]..self.starts[resource as usize + 1];
                for at in range {
                    self.close(self.users[at as usize], level, Some(resource));
                }
                self.open[resource as usize] = 0.0;
            }
        }
    }

    fn close(&mut self, stream: u32, level: f64, bottleneck: Option<u32>) {
        if std::mem::replace(&mut self.closed[stream as usize], true) {
            return;
        }
        let demand = &self.demands[stream as usize];
        let rate = (level * demand.weight).min(demand.limit);
        self.grants[stream as usize] = Grant { rate, bottleneck };
        for resource in demand.way.resources() {
            self.left[*resource as usize] -= rate;
            self.open[*resource as usize] -= demand.weight;
        }
    }
}

// The heap gives the largest first, so the lowest level is the largest.
impl Ord for Event {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_level = other.level.total_cmp(&self.level);
        by_level.then(other.what.cmp(&self.what))
    }
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for Event {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn demand(resources: &[u32], weight: f64, limit: f64) -> Demand {
        let mut way = Way::default();
        resources.iter().for_each(|resource| way.push(*resource));
        Demand { way, weight, limit }
    }

    #[test]
    fn weights_divide_a_bottleneck_and_limits_leave_the_rest() {
        let greedy = f64::INFINITY;
        let demands = [
            demand(&[0], 1.0, greedy),
            demand(&[0], 3.0, greedy),
            demand(&[0], 1.0, 2.0),
        ];
        let rates: Vec<f64> = share(&demands, &[10.0]).iter().map(|g| g.rate).collect();
        assert_eq!(rates, [2.0, 6.0, 2.0]);
    }

    #[test]
    fn nothing_in_the_way_does_not_limit() {
        let grants = share(&[demand(&[0], 1.0, f64::INFINITY)], &[f64::INFINITY]);
        assert!(grants[0].rate.is_infinite());
        assert_eq!(share(&[], &[]), []);
    }

    proptest! {
        #[test]
        fn shares_are_weighted_max_min(
            capacities in proptest::collection::vec(1.0f64..100.0, 6),
            drawn in proptest::collection::vec((0u32..6, 0u32..6, 0.1f64..5.0, 0.5f64..60.0), 1..40),
        ) {
            let demands: Vec<Demand> = drawn.iter()
                .map(|(a, b, weight, limit)| match a == b {
                    true => demand(&[*a], *weight, *limit),
                    false => demand(&[*a, *b], *weight, *limit),
                }).collect();
            let grants = share(&demands, &capacities);
            let mut used = [0.0; 6];
            for (demand, grant) in demands.iter().zip(&grants) {
                prop_assert!(grant.rate <= demand.limit * (1.0 + 1e-9));
                for resource in demand.way.resources() {
                    used[*resource as usize] += grant.rate;
                }
            }
            for (used, capacity) in used.iter().zip(&capacities) {
                prop_assert!(*used <= capacity * (1.0 + 1e-6));
            }
            for (own, grant) in demands.iter().zip(&grants) {
                let Some(full) = grant.bottleneck else {
                    prop_assert!(grant.rate >= own.limit * (1.0 - 1e-9));
                    continue;
                };
                prop_assert!(own.way.resources().contains(&full));
                prop_assert!(used[full as usize] >= capacities[full as usize] * (1.0 - 1e-6));
                for (other, theirs) in demands.iter().zip(&grants) {
                    let shares = other.way.resources().contains(&full);
                    prop_assert!(!shares || theirs.rate / other.weight <= grant.rate / own.weight * (1.0 + 1e-6));
                }
            }
        }
    }
}
