//! Readings of hosts' counters, bounded in memory. Counters only grow, so of readings in a row the
//! first and the last have what they grew by; those in between show it over time.

use ew_model::HostId;
use ew_model::facts::HostSample;
use ew_model::plan::StageIndex;
use ew_model::record::FlowRecord;
use std::collections::BTreeMap;

/// What all readings take at most, about: of a thousand hosts 100 each.
const MAX_HELD_BYTES: usize = 384 << 20;
/// The first time, readings are skipped that are closer to each other.
const MIN_SPACING_NS: u64 = 1_000_000_000;
/// Readings farther apart than an hour are too few to be many.
const MAX_SPACING_NS: u64 = 3600 * 1_000_000_000;

/// Readings of all hosts, in order of time.
type Samples = BTreeMap<HostId, Vec<HostSample>>;

/// Takes readings into a run. Where they are too many, it skips readings of all hosts alike, but
/// none next to where a stage's load began or ended.
#[derive(Debug)]
pub(crate) struct Thinning {
    held_bytes: usize,
    limit_bytes: usize,
    spacing_ns: u64,
    /// From when to when a host had load of a stage, its agent's clock.
    loads_ns: BTreeMap<HostId, BTreeMap<StageIndex, (u64, u64)>>,
}

impl Default for Thinning {
    fn default() -> Self {
        Self::to(MAX_HELD_BYTES)
    }
}

impl Thinning {
    fn to(limit_bytes: usize) -> Self {
        Self {
            held_bytes: 0,
            limit_bytes,
            spacing_ns: MIN_SPACING_NS,
            loads_ns: BTreeMap::new(),
        }
    }

    pub(crate) fn take_flow(&mut self, flow: &FlowRecord) {
        for (host, end) in [(flow.src, &flow.sender), (flow.dst, &flow.receiver)] {
            let Some((end, start_ns)) = end.as_ref().and_then(|e| Some((e, e.window_start_ns?)))
            else {
                continue;
            };
            let end_ns = start_ns.saturating_add(end.window_ns);
            let of_host = self.loads_ns.entry(host).or_default();
            let load = of_host.entry(flow.stage).or_insert((start_ns, end_ns));
            *load = (load.0.min(start_ns), load.1.max(end_ns));
        }
    }

    pub(crate) fn take_sample(
        &mut self,
        samples: &mut Samples,
        host: HostId,
        mut sample: HostSample,
    ) {
        // What is read has spare space in every list.
        sample.cpus.shrink_to_fit();
        sample.interfaces.shrink_to_fit();
        if let Some(causes) = &mut sample.causes {
            // For the tables alone.
            causes.interrupts = Vec::new();
            causes.softnet.shrink_to_fit();
            causes.traffic.shrink_to_fit();
            causes.disks.shrink_to_fit();
            causes.qdiscs.shrink_to_fit();
        }
        self.held_bytes += sample.held_bytes();
        samples.entry(host).or_default().push(sample);
        if self.held_bytes > self.limit_bytes {
            self.thin(samples);
        }
    }

    /// Down to half, so that it is not done for every reading.
    fn thin(&mut self, samples: &mut Samples) {
        loop {
            for (host, own) in samples.iter_mut() {
                let loads = self.loads_ns.get(host).into_iter().flatten();
                let edges: Vec<u64> = loads.flat_map(|(_, (from, to))| [*from, *to]).collect();
                thin_host(own, self.spacing_ns, &edges);
            }
            let held = samples.values().flatten();
            self.held_bytes = held.map(HostSample::held_bytes).sum();
            if self.held_bytes <= self.limit_bytes / 2 || self.spacing_ns >= MAX_SPACING_NS {
                break;
            }
            self.spacing_ns *= 2;
        }
        // All that are left are next to the edges of stages.
        self.limit_bytes = self.limit_bytes.max(2 * self.held_bytes);
    }
}

/// Skips readings, but so that no gap becomes longer than `spacing_ns`, and none goes over an edge.
fn thin_host(samples: &mut Vec<HostSample>, spacing_ns: u64, edges: &[u64]) {
    let times: Vec<u64> = samples.iter().map(|sample| sample.agent_ns).collect();
    let mut following = times.iter().skip(1);
    let mut before = None;
    samples.retain(|sample| {
        let (from, to) = (before, following.next());
        let is_skipped = from.zip(to).is_some_and(|(from, to): (u64, &u64)| {
            let has_edge = edges.iter().any(|edge| (from..=*to).contains(edge));
            to.saturating_sub(from) <= spacing_ns && !has_edge
        });
        if !is_skipped {
            before = Some(sample.agent_ns);
        }
        !is_skipped
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn at(second: u64) -> HostSample {
        HostSample {
            agent_ns: second * S,
            ..HostSample::default()
        }
    }

    fn seconds(samples: &[HostSample]) -> Vec<u64> {
        samples.iter().map(|s| s.agent_ns / S).collect()
    }

    #[test]
    fn gaps_grow_to_the_spacing_but_not_over_an_edge() {
        let mut samples: Vec<HostSample> = (0..=20).map(at).collect();
        thin_host(&mut samples, 4 * S, &[9 * S + S / 2]);
        assert_eq!(seconds(&samples), [0, 4, 8, 9, 10, 14, 18, 20]);
        thin_host(&mut samples, 4 * S, &[9 * S + S / 2]);
        assert_eq!(seconds(&samples), [0, 4, 8, 9, 10, 14, 18, 20]);
        thin_host(&mut samples, S, &[]);
        assert_eq!(samples.len(), 8);
    }

    #[test]
    fn readings_are_bounded_and_all_hosts_have_as_many() {
        let limit_bytes = 200 * at(0).held_bytes();
        let mut thinning = Thinning::to(limit_bytes);
        let of_stage = BTreeMap::from([(StageIndex(0), (500 * S + 1, 520 * S + 1))]);
        thinning.loads_ns.insert(HostId(0), of_stage);
        let mut samples = Samples::new();
        for second in 0..1000 {
            for host in [0, 1] {
                thinning.take_sample(&mut samples, HostId(host), at(second));
            }
            let held = samples.values().flatten().map(HostSample::held_bytes);
            assert!(held.sum::<usize>() <= limit_bytes);
        }
        let [first, second] = [0, 1].map(|host| seconds(&samples[&HostId(host)]));
        for kept in [&first, &second] {
            assert_eq!((kept.first(), kept.last()), (Some(&0), Some(&999)));
            // More than half of the limit were too many, and a doubled spacing leaves half of them.
            assert!(kept.len() >= 25, "{kept:?}");
        }
        for edge in [500, 501, 520, 521] {
            assert!(first.contains(&edge), "{first:?}");
        }
    }

    #[test]
    fn next_to_edges_all_stay() {
        let mut thinning = Thinning::to(10 * at(0).held_bytes());
        let of_stages = (0..100).map(|stage| {
            let second = u64::from(stage);
            (StageIndex(stage), (second * S + 1, second * S + 2))
        });
        thinning.loads_ns.insert(HostId(0), of_stages.collect());
        let mut samples = Samples::new();
        for second in 0..100 {
            thinning.take_sample(&mut samples, HostId(0), at(second));
        }
        assert_eq!(samples[&HostId(0)].len(), 100);
    }
}
