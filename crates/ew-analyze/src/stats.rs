//! Robust statistics: medians, spreads and intervals that assume no distribution.

use ew_model::analysis::Estimate;

/// Fewest samples for which a 95% interval of a median exists (2 x 2^-6 < 5%).
pub const MIN_FOR_INTERVAL: usize = 6;

/// Up to so many values ranks are exact; above, the normal approximation is as good.
const MAX_EXACT: usize = 1000;

/// Makes the median absolute deviation of a normal sample its standard deviation (1 / 0.6745).
const MAD_TO_SIGMA: f64 = 0.6745;

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

/// Modified z-score after Iglewicz and Hoaglin: 0.6745 (x - median) / MAD. The spread is never
/// taken below `min_mad`, so that a run without any noise gives a finite score.
#[must_use]
pub fn modified_z(value: f64, center: f64, mad: f64, min_mad: f64) -> f64 {
    MAD_TO_SIGMA * (value - center) / mad.max(min_mad)
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

/// Share of which `hits` of `count` are a random sample, with its 95% score interval (Wilson, J.
/// Am. Stat. Assoc. 22:209, 1927). `None` without samples.
#[must_use]
pub fn share_estimate(hits: usize, count: usize) -> Option<Estimate> {
    const Z: f64 = 1.959_964;
    if count == 0 {
        return None;
    }
    let (n, share) = (count as f64, hits as f64 / count as f64);
    let center = share + Z * Z / (2.0 * n);
    let half = Z * (share * (1.0 - share) / n + (Z / (2.0 * n)).powi(2)).sqrt();
    let scale = 1.0 + Z * Z / n;
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
/// (Poisson), by the terms' logarithms.
#[must_use]
pub fn poisson_at_least(count: usize, mean: f64) -> f64 {
    let mut log_term = -mean;
    let mut below = 0.0;
    for k in 0..count {
        below += log_term.exp();
        log_term += (mean / (k + 1) as f64).ln();
    }
    (1.0 - below).max(0.0)
}

/// Ratio of two medians, conservatively: the quotient of their 95% intervals, [a.low / b.high,
/// a.high / b.low], which contains the true ratio with more than 90% for independent samples and in
/// practice with more than 95%, as both errors must point apart. It is then widened by
/// `systematic` (0.02 is 2%) on either side for what repetition cannot show. No interval when one
/// side has none.
#[must_use]
pub fn ratio_estimate(above: &Estimate, below: &Estimate, systematic: f64) -> Option<Estimate> {
    if below.value <= 0.0 {
        return None;
    }
    let low = match (above.low, below.high) {
        (Some(a), Some(b)) if b > 0.0 => Some(a / b / (1.0 + systematic)),
        _ => None,
    };
    let high = match (above.high, below.low) {
        (Some(a), Some(b)) if b > 0.0 => Some(a / b * (1.0 + systematic)),
        _ => None,
    };
    let whole = low.is_some() && high.is_some();
    Some(Estimate {
        value: above.value / below.value,
        low: low.filter(|_| whole),
        high: high.filter(|_| whole),
        samples: above.samples.min(below.samples),
    })
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
        assert!(modified_z(0.9, 1.0, 0.0, 0.01).is_finite());
    }

    #[test]
    fn a_ratio_keeps_both_sides_doubt() {
        let above = median_estimate(&[98.0, 99.0, 100.0, 100.0, 101.0, 102.0]).unwrap();
        let below = median_estimate(&[24.0, 25.0, 25.0, 25.0, 25.0, 26.0]).unwrap();
        let ratio = ratio_estimate(&above, &below, 0.0).unwrap();
        assert!((ratio.value - 4.0).abs() < 1e-9);
        assert_eq!(ratio.low, Some(98.0 / 26.0));
        assert_eq!(ratio.high, Some(102.0 / 24.0));
        let few = median_estimate(&[25.0; 5]).unwrap();
        assert_eq!(ratio_estimate(&above, &few, 0.02).unwrap().low, None);
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_sample_median(values in prop::collection::vec(0.1f64..1e9, 6..200)) {
            let estimate = median_estimate(&values).unwrap();
            prop_assert!(estimate.low.unwrap() <= estimate.value);
            prop_assert!(estimate.value <= estimate.high.unwrap());
        }

        #[test]
        fn quantiles_are_members(values in prop::collection::vec(-1e3f64..1e3, 1..50), share in 0.0f64..1.0) {
            prop_assert!(values.contains(&quantile(&values, share).unwrap()));
        }
    }
}
