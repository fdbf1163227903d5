//! Robust statistics: medians, spreads and intervals that assume no distribution.

mod gamma;
pub mod significance;
mod splitmix;

pub use splitmix::{Dice, splitmix};

use ew_model::analysis::Estimate;
use gamma::ln_gamma;

/// Fewest samples for which a 95% interval of a median exists (2 x 2^-6 < 5%).
pub const MIN_FOR_INTERVAL: usize = 6;

/// Up to so many values ranks are exact; above, the normal approximation is as good.
const MAX_EXACT: usize = 1000;

/// The median absolute deviation of a normal distribution, in standard deviations.
pub const MAD_OF_NORMAL: f64 = 0.674_49;

/// 97.5% point of the normal distribution.
pub const Z_95: f64 = 1.959_964;

/// The values in ascending order, NaN last.
#[must_use]
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Median: the mean of the two middle values when their number is even. `None` without values.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// The order statistic at `ceil(share x n)`: for three values or fewer and a share of 0.75 it is
/// the largest.
#[must_use]
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let sorted = sorted(values);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied()
}

/// Median absolute deviation from the median, unscaled.
#[must_use]
pub fn mad(values: &[f64]) -> Option<f64> {
    let center = median(values)?;
    let distances: Vec<f64> = values.iter().map(|v| (v - center).abs()).collect();
    median(&distances)
}

/// The standard deviation that normal values with this median absolute deviation have; 0 without
/// values. Up to half of them may be outliers.
pub fn robust_sigma(values: &[f64]) -> f64 {
    mad(values).map_or(0.0, |mad| mad / MAD_OF_NORMAL)
}

/// Ranks (from 1) whose order statistics contain the median with at least 95%, from the binomial
/// distribution with p = 1/2 (exact up to 1000 values, normal approximation above). `None` below
/// six values.
#[must_use]
pub fn median_interval_ranks(n: usize) -> Option<(usize, usize)> {
    if n < MIN_FOR_INTERVAL {
        return None;
    }
    let low = if n > MAX_EXACT {
        let n = n as f64;
        (n / 2.0 - 0.98 * n.sqrt()).floor() as usize
    } else {
        exact_low_rank(n)
    };
    Some((low, n + 1 - low))
}

/// The max k for which both tails outside [x_k, x_(n+1-k)] together contain at most 5%.
fn exact_low_rank(n: usize) -> usize {
    let mut probability = 0.5_f64.powi(n as i32);
    let mut tail = 0.0;
    let mut rank = 0;
    for k in 0..n / 2 {
        tail += probability;
        if 2.0 * tail > 0.05 {
            break;
        }
        rank = k + 1;
        probability *= (n - k) as f64 / (k + 1) as f64;
    }
    rank.max(1)
}

/// Median with its exact order-statistic 95% interval: n = 6 gives [x1, x6], 10 [x2, x9], 20 [x6,
/// x15], 30 [x10, x21]; below six there is none. `None` without values.
#[must_use]
pub fn median_estimate(values: &[f64]) -> Option<Estimate> {
    let value = median(values)?;
    let sorted = sorted(values);
    let ranks = median_interval_ranks(sorted.len());
    Some(Estimate {
        value,
        low: ranks.map(|(low, _)| sorted[low - 1]),
        high: ranks.map(|(_, high)| sorted[high - 1]),
        samples: sorted.len() as u32,
    })
}

/// Median with a 95% interval between order statistics: of few values whole ones have far more (n =
/// 8: 99.2% from x1 to x8, and 93.0% from x2 to x7). None below six. `None` without values.
///
/// After Hettmansperger and Sheather (Statistics and Probability Letters 4:75, 1986). Of n values B
/// lie below the median, binomial with p = 1/2, so \[x_d, x_(n+1-d)\] contains it with g_d = 1 - 2
/// P(B < d). The low end is the last x_d with g_d >= 95%, and a part of the way from there to
/// x_(d+1). It is above the median if B < d, and with B = d if the median is nearer to x_d than
/// that part. With B = d, x_d is the nearest of d values below the median, and x_(d+1) the nearest
/// of n - d above. Where the density hardly changes from one to the other, both distances are
/// exponential, with rates d and n - d. The part for which this happens in the share I = (g_d -
/// 95%) / (g_d - g_(d+1)) of cases is (n - d) I / (d + (n - 2d) I).
#[must_use]
pub fn interpolated_median_estimate(values: &[f64]) -> Option<Estimate> {
    let whole = median_estimate(values)?;
    let sorted = sorted(values);
    let Some((low, high)) = median_interval_ranks(sorted.len()) else {
        return Some(whole);
    };
    let part = part_to_next_rank(sorted.len(), low);
    let between = |outer: f64, inner: f64| outer + part * (inner - outer);
    Some(Estimate {
        low: Some(between(sorted[low - 1], sorted[low])),
        high: Some(between(sorted[high - 1], sorted[high - 2])),
        ..whole
    })
}

/// The part of the way from the low end's rank to the next. None of many values, which are close.
fn part_to_next_rank(n: usize, rank: usize) -> f64 {
    if n > MAX_EXACT {
        return 0.0;
    }
    let contains = |rank: usize| 2.0 * binomial_at_least(rank, n, 0.5) - 1.0;
    let share = (contains(rank) - 0.95) / (contains(rank) - contains(rank + 1));
    let (below, above) = (rank as f64, (n - rank) as f64);
    above * share / (below + (above - below) * share)
}

/// Share of which `hits` of `count` are a random sample, with its 95% score interval (Wilson, J.
/// Am. Stat. Assoc. 22:209, 1927). `None` without samples.
#[must_use]
pub fn share_estimate(hits: usize, count: usize) -> Option<Estimate> {
    if count == 0 {
        return None;
    }
    let (n, share) = (count as f64, hits as f64 / count as f64);
    let center = share + Z_95 * Z_95 / (2.0 * n);
    let half = Z_95 * (share * (1.0 - share) / n + (Z_95 / (2.0 * n)).powi(2)).sqrt();
    let scale = 1.0 + Z_95 * Z_95 / n;
    Some(Estimate {
        value: share,
        low: Some(((center - half) / scale).max(0.0)),
        high: Some(((center + half) / scale).min(1.0)),
        samples: count as u32,
    })
}

/// Probability of at least `hits` of `count` independent tries that each succeed with `share`.
#[must_use]
pub fn binomial_at_least(hits: usize, count: usize, share: f64) -> f64 {
    let odds = share / (1.0 - share);
    let mut probability = (1.0 - share).powi(count as i32);
    let mut below = 0.0;
    for k in 0..hits.min(count + 1) {
        below += probability;
        probability *= odds * (count - k) as f64 / (k + 1) as f64;
    }
    (1.0 - below).max(0.0)
}

/// Probability of at least `count` rare, independent events of which there are `mean` on average
/// (Poisson). Sums the terms on the far side of `count` from the mean, of which few are large.
#[must_use]
pub fn poisson_at_least(count: usize, mean: f64) -> f64 {
    if count == 0 || mean <= 0.0 {
        return if count == 0 { 1.0 } else { 0.0 };
    }
    let first = if count as f64 > mean {
        count
    } else {
        count - 1
    };
    let mut k = first as f64;
    let mut term = (k * mean.ln() - mean - ln_gamma(k + 1.0)).exp();
    let mut sum = 0.0;
    while term > sum * f64::EPSILON {
        sum += term;
        if first == count {
            k += 1.0;
            term *= mean / k;
        } else {
            term *= k / mean;
            k -= 1.0;
        }
    }
    let tail = if first == count { sum } else { 1.0 - sum };
    tail.clamp(0.0, 1.0)
}

/// One estimate of what is alike: the median of the values, with an interval that contains all of
/// theirs, and as many samples as the one with the fewest.
#[must_use]
pub fn together(estimates: &[Estimate]) -> Estimate {
    let all = |figure: fn(&Estimate) -> Option<f64>| -> Option<Vec<f64>> {
        estimates.iter().map(figure).collect()
    };
    let values: Vec<f64> = estimates.iter().map(|estimate| estimate.value).collect();
    Estimate {
        value: median(&values).unwrap_or(1.0),
        low: all(|estimate| estimate.low).and_then(|lows| lows.into_iter().reduce(f64::min)),
        high: all(|estimate| estimate.high).and_then(|highs| highs.into_iter().reduce(f64::max)),
        samples: estimates
            .iter()
            .map(|estimate| estimate.samples)
            .min()
            .unwrap_or(0),
    }
}

/// An estimate in another unit or times a count.
#[must_use]
pub fn scaled(estimate: &Estimate, factor: f64) -> Estimate {
    Estimate {
        value: estimate.value * factor,
        low: estimate.low.map(|v| v * factor),
        high: estimate.high.map(|v| v * factor),
        samples: estimate.samples,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Against Newcombe's table (Stat. Med. 17:857, 1998): 81 of 263 and 0 of 20.
    #[test]
    fn tails_of_counts() {
        assert!((binomial_at_least(2, 3, 0.5) - 0.5).abs() < 1e-12);
        assert!((binomial_at_least(1, 1, 0.06) - 0.06).abs() < 1e-12);
        assert!((binomial_at_least(0, 5, 0.3) - 1.0).abs() < 1e-12);
        // 1 - e^-2 (1 + 2 + 2)
        assert!((poisson_at_least(3, 2.0) - 0.323_323_583).abs() < 1e-8);
        assert!((poisson_at_least(1000, 1000.0) - 0.504_205).abs() < 1e-5);
        assert!((poisson_at_least(1, 0.0)).abs() < 1e-12);
        // Means of which e^-mean is no number any more.
        assert!((poisson_at_least(900, 800.0) - 2.759_134_1e-4).abs() < 1e-9);
        assert!(poisson_at_least(2000, 744.0) < 1e-300);
        assert!((poisson_at_least(700, 800.0) - 0.999_8).abs() < 1e-4);
    }

    #[test]
    fn a_share_has_the_published_interval() {
        let is_near = |found: Option<f64>, truth: f64| (found.unwrap() - truth).abs() < 5e-5;
        let some = share_estimate(81, 263).unwrap();
        assert!(
            is_near(some.low, 0.2553) && is_near(some.high, 0.3662),
            "{some:?}"
        );
        let none = share_estimate(0, 20).unwrap();
        assert!(
            is_near(none.low, 0.0) && is_near(none.high, 0.1611),
            "{none:?}"
        );
        assert!(share_estimate(0, 0).is_none());
    }

    #[test]
    fn intervals_are_the_published_order_statistics() {
        let published = [
            (6, (1, 6)),
            (10, (2, 9)),
            (20, (6, 15)),
            (30, (10, 21)),
            (50, (18, 33)),
            (100, (40, 61)),
        ];
        for (n, ranks) in published {
            assert_eq!(median_interval_ranks(n), Some(ranks), "n = {n}");
        }
        assert_eq!(median_interval_ranks(5), None);
    }

    /// (n - d) I / (d + (n - 2d) I): n = 8 has d = 1, I = (254/256 - 95%) / (16/256) = 27/40.
    #[test]
    fn ends_lie_between_order_statistics_as_published() {
        for (n, low, part) in [
            (6, 1, 5.0 / 14.0),
            (8, 1, 189.0 / 202.0),
            (10, 2, 73.0 / 111.0),
        ] {
            let values: Vec<f64> = (1..=n).map(f64::from).collect();
            let found = interpolated_median_estimate(&values).unwrap();
            let expected = f64::from(low) + part;
            assert!((found.low.unwrap() - expected).abs() < 1e-9, "{found:?}");
            let high = f64::from(n + 1) - expected;
            assert!((found.high.unwrap() - high).abs() < 1e-9, "{found:?}");
        }
        let few = interpolated_median_estimate(&[1.0; 5]).unwrap();
        assert_eq!((few.low, few.high), (None, None));
        assert_eq!(interpolated_median_estimate(&[]), None);
        let many: Vec<f64> = (0..2000).map(f64::from).collect();
        assert_eq!(interpolated_median_estimate(&many), median_estimate(&many));
    }

    /// Share of 20,000 samples whose interval contains the median; its standard error is 0.15%.
    fn coverage(n: usize, middle: f64, of: impl Fn(f64) -> f64) -> f64 {
        const SAMPLES: u64 = 20_000;
        let uniform = |seed: u64| (splitmix(seed) as f64 + 0.5) / 2.0_f64.powi(64);
        let contains = |sample: &u64| {
            let seeds = (0..n as u64).map(|at| sample << 8 | at);
            let values: Vec<f64> = seeds.map(|seed| of(uniform(seed))).collect();
            let estimate = interpolated_median_estimate(&values).unwrap();
            estimate.low.unwrap() <= middle && middle <= estimate.high.unwrap()
        };
        (0..SAMPLES).filter(contains).count() as f64 / SAMPLES as f64
    }

    #[test]
    fn interpolated_intervals_contain_the_median_in_95_of_100_samples() {
        let double_exponential = |u: f64| {
            let size = -(1.0 - (2.0 * u - 1.0).abs()).ln();
            size.copysign(u - 0.5)
        };
        for n in [6, 8, 10, 12, 20] {
            for (name, covered) in [
                ("double exponential", coverage(n, 0.0, double_exponential)),
                ("even", coverage(n, 0.5, |u| u)),
                ("skewed", coverage(n, 2.0_f64.ln(), |u| -(1.0 - u).ln())),
                (
                    "heavy tails",
                    coverage(n, 0.0, |u| (std::f64::consts::PI * (u - 0.5)).tan()),
                ),
            ] {
                assert!((covered - 0.95).abs() < 0.01, "{name}, n = {n}: {covered}");
            }
        }
    }

    #[test]
    fn large_samples_do_not_underflow() {
        let (low, high) = median_interval_ranks(100_000).unwrap();
        assert!((49_680..49_700).contains(&low), "{low}");
        assert_eq!(low + high, 100_001);
        let (near, _) = median_interval_ranks(1000).unwrap();
        let (above, _) = median_interval_ranks(1001).unwrap();
        assert!(near.abs_diff(above) <= 1);
    }

    #[test]
    fn medians_and_spread() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(mad(&[1.0, 1.0, 2.0, 9.0, 4.0]), Some(1.0));
        assert_eq!(quantile(&[1.0, 2.0, 3.0], 0.75), Some(3.0));
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0], 0.75), Some(3.0));
        let sigma = robust_sigma(&[1.0, 1.0, 2.0, 9.0, 4.0]);
        assert!((sigma - 1.4826).abs() < 1e-3, "{sigma}");
        assert_eq!(robust_sigma(&[]), 0.0);
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_sample_median(values in prop::collection::vec(0.1f64..1e9, 6..200)) {
            let estimate = median_estimate(&values).unwrap();
            prop_assert!(estimate.low.unwrap() <= estimate.value);
            prop_assert!(estimate.value <= estimate.high.unwrap());
            let narrower = interpolated_median_estimate(&values).unwrap();
            prop_assert!(estimate.low <= narrower.low && narrower.high <= estimate.high);
            prop_assert!(narrower.low.unwrap() <= narrower.value);
            prop_assert!(narrower.value <= narrower.high.unwrap());
        }

        #[test]
        fn quantiles_are_members(values in prop::collection::vec(-1e3f64..1e3, 1..50), share in 0.0f64..1.0) {
            prop_assert!(values.contains(&quantile(&values, share).unwrap()));
        }
    }
}
