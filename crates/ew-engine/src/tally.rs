//! What is counted besides bytes: times, kept by one thread for one flow.

use ew_model::latency::Histogram as ModelHistogram;
use ew_model::record::{DatagramCounts, SizeTimes};
use ew_model::sizes::SizeClass;
use hdrhistogram::Histogram;

/// The longest time distinguished; longer ones count as this, but for the max and the sum.
const LONGEST_NS: u64 = 60_000_000_000;
/// Buckets are at most 1/128 of their times wide.
const SIGNIFICANT_DIGITS: u8 = 2;

/// Times in buckets. 30 KiB, made when the first time is recorded or by [`Times::allocate`].
#[derive(Debug, Default)]
pub(crate) struct Times {
    buckets: Option<Histogram<u64>>,
    sum_ns: u64,
    min_ns: u64,
    greatest_ns: u64,
}

/// One thread's counts of one flow.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// From when a request was due to its answer.
    pub(crate) times: Times,
    /// Open loop: from when it was really sent.
    pub(crate) uncorrected: Times,
    /// Of connecting.
    pub(crate) connect_times: Times,
    /// Of datagrams, from the sender's call to the receiver's.
    pub(crate) one_way_delays: Times,
    /// Of messages, by their class of size.
    pub(crate) sizes: Vec<Times>,
    /// One per receiving stream of datagrams, inside the window.
    pub(crate) datagrams: Vec<DatagramCounts>,
}

impl Tally {
    /// Allocates now for so many classes of sizes, so that recording does not.
    pub(crate) fn allocate_sizes(&mut self, classes: usize) {
        self.sizes.resize_with(classes, Times::default);
        self.sizes.iter_mut().for_each(Times::allocate);
    }
}

impl Times {
    /// Allocates now, so that recording does not.
    pub(crate) fn allocate(&mut self) {
        if self.buckets.is_none() {
            // The bounds are constants that it accepts.
            self.buckets = Histogram::new_with_bounds(1, LONGEST_NS, SIGNIFICANT_DIGITS).ok();
        }
    }

    pub(crate) fn record(&mut self, time_ns: u64) {
        self.allocate();
        if let Some(buckets) = &mut self.buckets {
            if buckets.is_empty() {
                self.min_ns = u64::MAX;
            }
            buckets.saturating_record(time_ns);
            self.sum_ns = self.sum_ns.saturating_add(time_ns);
            self.min_ns = self.min_ns.min(time_ns);
            self.greatest_ns = self.greatest_ns.max(time_ns);
        }
    }

    /// `None` when there was no time.
    pub(crate) fn to_model(&self) -> Option<ModelHistogram> {
        let buckets = self.buckets.as_ref().filter(|b| !b.is_empty())?;
        let recorded = buckets.iter_recorded();
        Some(ModelHistogram {
            buckets: recorded
                .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
                .collect(),
            sum_ns: self.sum_ns,
            min_ns: self.min_ns,
            max_ns: self.greatest_ns,
        })
    }
}

/// Merges the times of several threads; `None` when there are none.
pub(crate) fn merged<'a>(times: impl Iterator<Item = &'a Times>) -> Option<ModelHistogram> {
    let mut sum = ModelHistogram::default();
    for histogram in times.filter_map(Times::to_model) {
        sum.merge(&histogram);
    }
    (sum.count() > 0).then_some(sum)
}

/// Merges the times of each class of size, the classes' sizes given; those of which none was
/// completed are skipped.
pub(crate) fn sizes(classes: &[SizeClass], tallies: &[&Tally]) -> Vec<SizeTimes> {
    let of_class = |(index, class): (usize, &SizeClass)| {
        let times = tallies.iter().filter_map(|tally| tally.sizes.get(index));
        Some(SizeTimes {
            bytes: class.bytes,
            times: merged(times)?,
        })
    };
    classes.iter().enumerate().filter_map(of_class).collect()
}

/// Sums the streams' counts; the jitter is their mean. `None` when no stream counts datagrams.
pub(crate) fn datagrams<'a>(tallies: impl Iterator<Item = &'a Tally>) -> Option<DatagramCounts> {
    let mut sum = DatagramCounts::default();
    let mut streams = 0;
    for counts in tallies.flat_map(|tally| &tally.datagrams) {
        sum.received += counts.received;
        sum.lost += counts.lost;
        sum.reordered += counts.reordered;
        sum.duplicates += counts.duplicates;
        sum.jitter_ns += counts.jitter_ns;
        streams += 1;
    }
    sum.jitter_ns = sum.jitter_ns.checked_div(streams)?;
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_time_is_at_most_one_percent_off(time_ns in 1..LONGEST_NS) {
            let mut times = Times::default();
            times.record(time_ns);
            // Next to a larger one, so that the max does not correct the bucket's bound.
            times.record(LONGEST_NS);
            let reported = times.to_model().unwrap().quantile(0.5).unwrap();
            prop_assert!(reported >= time_ns && reported - time_ns <= time_ns / 100);
        }
    }

    #[test]
    fn least_greatest_and_sum_are_exact() {
        let mut times = [Times::default(), Times::default(), Times::default()];
        times[0].record(123_457);
        times[1].record(2 * LONGEST_NS);
        let sum = merged(times.iter()).unwrap();
        assert_eq!((sum.min_ns, sum.max_ns), (123_457, 2 * LONGEST_NS));
        assert_eq!((sum.count(), sum.sum_ns), (2, 2 * LONGEST_NS + 123_457));
        assert_eq!(merged(times[2..].iter()), None);
    }

    #[test]
    fn sizes_that_nobody_sent_are_left_out() {
        let class = |bytes| SizeClass { bytes, share: 0.5 };
        let mut tallies = [Tally::default(), Tally::default(), Tally::default()];
        tallies[0].allocate_sizes(2);
        tallies[1].allocate_sizes(2);
        tallies[0].sizes[1].record(10);
        tallies[1].sizes[1].record(20);
        let sums = sizes(&[class(1), class(2)], &tallies.iter().collect::<Vec<_>>());
        assert_eq!(sums.len(), 1);
        assert_eq!((sums[0].bytes, sums[0].times.count()), (2, 2));
    }

    #[test]
    fn jitter_is_the_mean_of_the_streams() {
        let counts = |received, jitter_ns| DatagramCounts {
            received,
            jitter_ns,
            ..DatagramCounts::default()
        };
        let tally = Tally {
            datagrams: vec![counts(5, 10), counts(6, 20)],
            ..Tally::default()
        };
        assert_eq!(datagrams([&tally].into_iter()), Some(counts(11, 15)));
        assert_eq!(datagrams([&Tally::default()].into_iter()), None);
    }
}
