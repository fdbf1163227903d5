//! Whether two samples differ, by how much, and how sure that is: rank tests and what belongs to
//! them. No distribution is assumed; where samples are small the tests are exact, ties included.

use crate::gamma::ln_gamma;
use crate::{Dice, MIN_FOR_INTERVAL, Z_95, sorted};
use ew_model::analysis::Estimate;

/// Up to this many values a test enumerates all arrangements; above it the normal approximation is
/// as good.
const MAX_EXACT: usize = 50;
/// Resamplings of a bootstrap.
const RESAMPLES: usize = 2000;
/// Fewer hosts cannot be resampled to any use.
const MIN_HOSTS: usize = 4;

/// Two-sided p-value of Wilcoxon's signed-rank test: that differences have their middle at 0. Zeros
/// are skipped (Wilcoxon 1945); equal sizes get their mean rank, and the distribution is that of
/// these very ranks. `None` when nothing is left.
#[must_use]
pub fn signed_rank(differences: &[f64]) -> Option<f64> {
    let nonzero: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    if nonzero.is_empty() {
        return None;
    }
    let ranks = doubled_ranks(&nonzero.iter().map(|d| d.abs()).collect::<Vec<_>>());
    let positive: usize = ranks
        .iter()
        .zip(&nonzero)
        .filter(|(_, difference)| **difference > 0.0)
        .map(|(rank, _)| *rank)
        .sum();
    if nonzero.len() > MAX_EXACT {
        let mean: f64 = ranks.iter().map(|r| *r as f64).sum::<f64>() / 2.0;
        let variance = ranks.iter().map(|r| (*r as f64).powi(2)).sum::<f64>() / 4.0;
        // Doubled ranks: a step of 1 is 2 here, so the continuity correction of one half is 1.
        return Some(two_sided_normal(positive as f64 - mean, variance, 1.0));
    }
    Some(two_sided(&signed_rank_counts(&ranks), positive))
}

/// Two-sided p-value of the test of Mann, Whitney and Wilcoxon: that values of `a` are as often
/// above values of `b` as below. `None` when a side is empty.
#[must_use]
pub fn rank_sum(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    let ranks = doubled_ranks(&all);
    let sum: usize = ranks[..a.len()].iter().sum();
    let n = all.len();
    if n > MAX_EXACT {
        let total: f64 = ranks.iter().map(|r| *r as f64).sum();
        let mean_rank = total / n as f64;
        let spread: f64 = ranks.iter().map(|r| (*r as f64 - mean_rank).powi(2)).sum();
        // Variance of a sum of values selected without replacement.
        let (m, k) = (a.len() as f64, b.len() as f64);
        let variance = spread * m * k / (n as f64 * (n as f64 - 1.0));
        return Some(two_sided_normal(sum as f64 - m * mean_rank, variance, 1.0));
    }
    Some(two_sided(&rank_sum_counts(&ranks, a.len()), sum))
}

/// Whether [`rank_sum`] of so many values could be below 5% at all.
#[must_use]
pub fn rank_sum_can_tell(a: usize, b: usize) -> bool {
    let arrangements = (0..a.min(b)).fold(1.0, |product, i| {
        product * (a + b - i) as f64 / (i + 1) as f64
    });
    a > 0 && b > 0 && 2.0 / arrangements < 0.05
}

/// The middle of differences after Hodges and Lehmann: the median of the means of all pairs (Walsh
/// averages), with the 95% interval that belongs to [`signed_rank`]; none below six. `None`
/// without values.
#[must_use]
pub fn paired_shift(differences: &[f64]) -> Option<Estimate> {
    let values = sorted(differences);
    let n = values.len();
    let pairs = n * (n + 1) / 2;
    let walsh = |rank: usize| {
        select(&values, &values, rank, |limit| {
            count_walsh_at_most(&values, limit)
        })
    };
    let low_rank = (n >= MIN_FOR_INTERVAL).then(|| signed_rank_low(n));
    estimate(n, pairs, low_rank, walsh)
}

/// How far `b` lies above `a`, after Hodges and Lehmann: the median of all differences of a value
/// of `b` and one of `a`, with the 95% interval that belongs to [`rank_sum`]; none where that
/// could show nothing. `None` when a side is empty.
#[must_use]
pub fn shift(a: &[f64], b: &[f64]) -> Option<Estimate> {
    let (below, above) = (sorted(a), sorted(b));
    let negated: Vec<f64> = below.iter().rev().map(|v| -v).collect();
    let pairs = below.len() * above.len();
    let difference = |rank: usize| {
        select(&negated, &above, rank, |limit| {
            count_sums_at_most(&negated, &above, 2.0 * limit)
        })
        .map(|half| 2.0 * half)
    };
    let can_tell = rank_sum_can_tell(a.len(), b.len());
    let low_rank = can_tell.then(|| rank_sum_low(a.len(), b.len()));
    estimate(a.len().min(b.len()), pairs, low_rank, difference)
}

/// Adjusts p-values for their number after Benjamini and Hochberg (1995): what is below q has at
/// most a share q of false ones.
#[must_use]
pub fn adjusted(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*b].total_cmp(&p_values[*a]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut min: f64 = 1.0;
    for (at, index) in order.iter().enumerate() {
        let rank = p_values.len() - at;
        min = min.min(p_values[*index] * p_values.len() as f64 / rank as f64);
        adjusted[*index] = min;
    }
    adjusted
}

/// The same where some tests could not be made: those do not count.
#[must_use]
pub fn adjusted_where_known(p_values: &[Option<f64>]) -> Vec<Option<f64>> {
    let known: Vec<f64> = p_values.iter().copied().flatten().collect();
    let mut q_values = adjusted(&known).into_iter();
    p_values
        .iter()
        .map(|p_value| p_value.and_then(|_| q_values.next()))
        .collect()
}

/// A 95% interval of the median over flows that allows for flows of one host being alike: hosts
/// are selected with replacement, and a flow counts as often as both its hosts were selected
/// (percentile bootstrap). `flows` are (source, destination, value) with hosts below `hosts`.
/// `None` with fewer than four hosts.
#[must_use]
pub fn interval_over_hosts(
    flows: &[(usize, usize, f64)],
    hosts: usize,
    seed: u64,
) -> Option<(f64, f64)> {
    if hosts < MIN_HOSTS || flows.is_empty() {
        return None;
    }
    let mut flows = flows.to_vec();
    flows.sort_by(|a, b| a.2.total_cmp(&b.2));
    let mut dice = Dice(seed);
    let mut medians = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        let mut drawn = vec![0_u64; hosts];
        for _ in 0..hosts {
            drawn[dice.below(hosts)] += 1;
        }
        medians.extend(weighted_median(&flows, &drawn));
    }
    let medians = sorted(&medians);
    let at = |share: f64| {
        let rank = (share * medians.len() as f64) as usize;
        medians
            .get(rank.min(medians.len().saturating_sub(1)))
            .copied()
    };
    Some((at(0.025)?, at(0.975)?))
}

/// Arithmetic mean with the 95% interval of Student's t; none for a single value. `None` without
/// values.
#[must_use]
pub fn mean_estimate(values: &[f64]) -> Option<Estimate> {
    if values.is_empty() {
        return None;
    }
    let n = values.len() as f64;
    let value = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - value).powi(2)).sum();
    let half =
        (values.len() > 1).then(|| student_t(values.len() - 1) * (squares / (n - 1.0) / n).sqrt());
    Some(Estimate {
        value,
        low: half.map(|half| value - half),
        high: half.map(|half| value + half),
        samples: values.len() as u32,
    })
}

/// 97.5% point of Student's t: tabled up to ten degrees of freedom, above by Cornish and Fisher's
/// expansion (Abramowitz and Stegun, 26.7.5), which is exact to three decimals there.
pub fn student_t(degrees: usize) -> f64 {
    const TABLE: [f64; 10] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    ];
    if let Some(tabled) = TABLE.get(degrees.saturating_sub(1)) {
        return *tabled;
    }
    let n = degrees as f64;
    let terms = [
        (Z_95.powi(3) + Z_95) / 4.0,
        (5.0 * Z_95.powi(5) + 16.0 * Z_95.powi(3) + 3.0 * Z_95) / 96.0,
        (3.0 * Z_95.powi(7) + 19.0 * Z_95.powi(5) + 17.0 * Z_95.powi(3) - 15.0 * Z_95) / 384.0,
    ];
    Z_95 + terms[0] / n + terms[1] / n.powi(2) + terms[2] / n.powi(3)
}

/// Two-sided p-value of Student's t with `degrees` of freedom, which need not be whole: the
/// incomplete beta function (Abramowitz and Stegun, 26.7.1). Without end it is the normal
/// distribution's.
pub fn two_sided_t(t: f64, degrees: f64) -> f64 {
    /// From here on the two differ by less than anybody reports.
    const NORMAL_FROM: f64 = 1e6;
    if degrees > NORMAL_FROM {
        return error_complement(t.abs() / std::f64::consts::SQRT_2);
    }
    incomplete_beta(degrees / 2.0, 0.5, degrees / (degrees + t * t))
}

/// The regularised incomplete beta function (Abramowitz and Stegun, 26.5.8 for the continued
/// fraction, 26.5.2 for where it converges fast).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln();
    front.exp() * beta_fraction(a, b, x) / a
}

/// By Lentz's method (Numerical Recipes, section 6.4).
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const MAX_TERMS: u32 = 300;
    const MIN: f64 = 1e-30;
    let away_from_zero = |value: f64| if value.abs() < MIN { MIN } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for m in (1..=MAX_TERMS).map(f64::from) {
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut step = 1.0;
        for term in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + term * d);
            c = away_from_zero(1.0 + term / c);
            step = c * d;
            fraction *= step;
        }
        if (step - 1.0).abs() < 1e-12 {
            break;
        }
    }
    fraction
}

/// Ranks from 1, times two so that mean ranks of equal values are whole.
fn doubled_ranks(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0; values.len()];
    let mut begin = 0;
    while begin < order.len() {
        let value = values[order[begin]];
        let equal = order[begin..].iter().take_while(|i| values[**i] == value);
        let end = begin + equal.count().max(1);
        for index in &order[begin..end] {
            ranks[*index] = begin + 1 + end;
        }
        begin = end;
    }
    ranks
}

/// In how many of the 2^n choices of signs the positive ranks sum up to each number.
fn signed_rank_counts(ranks: &[usize]) -> Vec<f64> {
    let mut counts = vec![0.0; ranks.iter().sum::<usize>() + 1];
    counts[0] = 1.0;
    for rank in ranks {
        for sum in (*rank..counts.len()).rev() {
            counts[sum] += counts[sum - rank];
        }
    }
    counts
}

/// In how many choices of `chosen` of the ranks they sum up to each number.
fn rank_sum_counts(ranks: &[usize], chosen: usize) -> Vec<f64> {
    let total = ranks.iter().sum::<usize>();
    let mut counts = vec![vec![0.0; total + 1]; chosen + 1];
    counts[0][0] = 1.0;
    for rank in ranks {
        for taken in (1..=chosen).rev() {
            let (fewer, more) = counts.split_at_mut(taken);
            for sum in *rank..=total {
                more[0][sum] += fewer[taken - 1][sum - rank];
            }
        }
    }
    counts.pop().unwrap_or_default()
}

/// Twice the smaller tail, the observed value included.
fn two_sided(counts: &[f64], observed: usize) -> f64 {
    let total: f64 = counts.iter().sum();
    let below: f64 = counts[..=observed].iter().sum();
    let above: f64 = counts[observed..].iter().sum();
    (2.0 * below.min(above) / total).min(1.0)
}

fn two_sided_normal(distance: f64, variance: f64, continuity: f64) -> f64 {
    if variance <= 0.0 {
        return 1.0;
    }
    let z = (distance.abs() - continuity).max(0.0) / variance.sqrt();
    error_complement(z / std::f64::consts::SQRT_2)
}

/// The complementary error function, exact to 1.2e-7 relative (Numerical Recipes, section 6.2:
/// Chebyshev fit).
fn error_complement(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.5 * x.abs());
    const COEFFICIENTS: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let fit = COEFFICIENTS.iter().rev().fold(0.0, |sum, c| sum * t + c);
    let value = t * (-x * x + fit).exp();
    if x < 0.0 { 2.0 - value } else { value }
}

/// The rank of the Walsh average that is the interval's low end: as many of them lie outside as the
/// test allows.
fn signed_rank_low(n: usize) -> usize {
    if n > MAX_EXACT {
        let n = n as f64;
        let mean = n * (n + 1.0) / 4.0;
        let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        return (mean - Z_95 * deviation).floor().max(1.0) as usize;
    }
    let ranks: Vec<usize> = (1..=n).collect();
    low_rank(&signed_rank_counts(&ranks))
}

fn rank_sum_low(a: usize, b: usize) -> usize {
    if a + b > MAX_EXACT {
        let (m, k) = (a as f64, b as f64);
        let deviation = (m * k * (m + k + 1.0) / 12.0).sqrt();
        return (m * k / 2.0 - Z_95 * deviation).floor().max(1.0) as usize;
    }
    let ranks: Vec<usize> = (1..=a + b).collect();
    // The lowest sum is that of the lowest ranks; the statistic counts from there.
    let min = a * (a + 1) / 2;
    let counts = rank_sum_counts(&ranks, a);
    low_rank(&counts[min.min(counts.len() - 1)..])
}

/// The lowest number whose lower tail reaches 2.5%, and at least 1.
fn low_rank(counts: &[f64]) -> usize {
    let total: f64 = counts.iter().sum();
    let mut tail = 0.0;
    let below = counts.iter().take_while(|count| {
        tail += **count;
        tail < 0.025 * total
    });
    below.count().max(1)
}

/// An estimate from order statistics of `pairs` values: their median, and the ends by `low_rank`.
fn estimate(
    samples: usize,
    pairs: usize,
    low_rank: Option<usize>,
    at: impl Fn(usize) -> Option<f64>,
) -> Option<Estimate> {
    if pairs == 0 {
        return None;
    }
    let middle = f64::midpoint(at(pairs.div_ceil(2))?, at(pairs / 2 + 1)?);
    let ends = low_rank.and_then(|rank| Some((at(rank)?, at(pairs + 1 - rank)?)));
    Some(Estimate {
        value: middle,
        low: ends.map(|(low, _)| low),
        high: ends.map(|(_, high)| high),
        samples: samples as u32,
    })
}

/// The `rank`-th smallest (from 1) mean of a value of `a` and one of `b`, both ascending, by
/// halving: there may be too many means for memory.
fn select(a: &[f64], b: &[f64], rank: usize, count: impl Fn(f64) -> usize) -> Option<f64> {
    let mut low = f64::midpoint(*a.first()?, *b.first()?);
    let mut high = f64::midpoint(*a.last()?, *b.last()?);
    if count(low) >= rank {
        return Some(low);
    }
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return Some(high);
        }
        if count(middle) >= rank {
            high = middle;
        } else {
            low = middle;
        }
    }
}

/// How many means of two values (each also with itself) are at most `limit`.
fn count_walsh_at_most(values: &[f64], limit: f64) -> usize {
    let ordered = count_sums_at_most(values, values, 2.0 * limit);
    let own = values.iter().filter(|v| 2.0 * **v <= 2.0 * limit).count();
    // Each pair of different values was counted in both orders.
    (ordered - own) / 2 + own
}

/// How many sums of a value of `a` and one of `b`, both ascending, are at most `limit`.
fn count_sums_at_most(a: &[f64], b: &[f64], limit: f64) -> usize {
    let mut fitting = b.len();
    let mut count = 0;
    for value in a {
        while fitting > 0 && value + b[fitting - 1] > limit {
            fitting -= 1;
        }
        count += fitting;
    }
    count
}

/// The median of flows, ascending, each as often as both its hosts were selected.
fn weighted_median(flows: &[(usize, usize, f64)], drawn: &[u64]) -> Option<f64> {
    let weight = |flow: &(usize, usize, f64)| drawn[flow.0] * drawn[flow.1];
    let total: u64 = flows.iter().map(weight).sum();
    let mut seen = 0;
    let middle = flows.iter().find(|flow| {
        seen += weight(flow);
        2 * seen >= total && weight(flow) > 0
    });
    middle.map(|flow| flow.2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(value: f64, expected: f64) -> bool {
        (value - expected).abs() < 1e-6
    }

    /// Hamilton's depression scale before and after, Hollander and Wolfe (1973), table 3.1.
    const BEFORE: [f64; 9] = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];
    #[expect(clippy::approx_constant, reason = "a patient's 3.14")]
    const AFTER: [f64; 9] = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29];
    /// Permeability of the membrane, Hollander and Wolfe (1973), table 4.1.
    const AT_TERM: [f64; 10] = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
    const EARLIER: [f64; 5] = [1.15, 0.88, 0.90, 0.74, 1.21];

    /// R: wilcox.test(before, after, paired = TRUE, conf.int = TRUE).
    #[test]
    fn signed_ranks_are_the_textbooks() {
        let differences: Vec<f64> = BEFORE.iter().zip(AFTER).map(|(b, a)| b - a).collect();
        assert!(near(signed_rank(&differences).unwrap(), 0.039_062_5));
        let shift = paired_shift(&differences).unwrap();
        assert!(near(shift.value, 0.46), "{shift:?}");
        assert!(
            near(shift.low.unwrap(), 0.01) && near(shift.high.unwrap(), 0.786),
            "{shift:?}"
        );
        assert_eq!(signed_rank(&[0.0, 0.0]), None);
        assert!(near(
            signed_rank(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0]).unwrap(),
            2.0 / 64.0
        ));
    }

    /// R: wilcox.test(at term, earlier, conf.int = TRUE): W = 35, p = 0.2544.
    #[test]
    fn rank_sums_are_the_textbooks() {
        let p = rank_sum(&AT_TERM, &EARLIER).unwrap();
        assert!((p - 0.254_4).abs() < 5e-5, "{p}");
        assert!(
            near(p, rank_sum(&EARLIER, &AT_TERM).unwrap()),
            "sides do not matter"
        );
        let shift = shift(&EARLIER, &AT_TERM).unwrap();
        assert!(near(shift.value, 0.305), "{shift:?}");
        assert!(
            near(shift.low.unwrap(), -0.15) && near(shift.high.unwrap(), 0.76),
            "{shift:?}"
        );
        assert!(near(
            rank_sum(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]).unwrap(),
            0.1
        ));
        assert!(near(rank_sum(&[7.0; 4], &[7.0; 4]).unwrap(), 1.0));
        assert_eq!(rank_sum(&[], &[1.0]), None);
    }

    #[test]
    fn what_is_too_little_to_tell() {
        assert!(!rank_sum_can_tell(3, 3) && rank_sum_can_tell(4, 4));
        assert!(rank_sum_can_tell(3, 5) && !rank_sum_can_tell(1, 30));
        assert!(rank_sum_can_tell(2, 8) && !rank_sum_can_tell(0, 9));
        assert_eq!(shift(&[1.0, 2.0, 3.0], &[2.0, 3.0, 4.0]).unwrap().low, None);
        assert_eq!(paired_shift(&[1.0; 5]).unwrap().low, None);
        assert_eq!(paired_shift(&[]), None);
    }

    /// The example of Benjamini and Hochberg (1995): four of fifteen at 5%.
    #[test]
    fn false_discoveries_are_the_papers() {
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0,
        ];
        let q = adjusted(&p);
        assert_eq!(q.iter().filter(|q| **q < 0.05).count(), 4);
        // R: p.adjust(p, "BH").
        let expected = [0.0015, 0.003, 0.0095, 0.035_625, 0.0603, 0.063_857_142_857];
        assert!(q.iter().zip(expected).all(|(q, e)| near(*q, e)), "{q:?}");
        assert!(adjusted(&[]).is_empty());
    }

    /// Any table of Student's t, two-sided 5%.
    #[test]
    fn students_t_is_the_table() {
        for (degrees, t) in [
            (1, 12.706),
            (5, 2.571),
            (11, 2.201),
            (15, 2.131),
            (30, 2.042),
            (120, 1.980),
        ] {
            assert!(
                (student_t(degrees) - t).abs() < 1.5e-3,
                "{degrees}: {}",
                student_t(degrees)
            );
        }
        let mean = mean_estimate(&[9.0, 10.0, 11.0]).unwrap();
        assert!(near(mean.value, 10.0));
        assert!((mean.high.unwrap() - 12.484).abs() < 1e-3, "{mean:?}");
        assert_eq!(mean_estimate(&[3.0]).unwrap().low, None);
    }

    /// R: 2 * pt(-t, df).
    #[test]
    fn p_values_of_students_t_are_the_tables() {
        for (t, degrees, p) in [
            (12.706_205, 1.0, 0.05),
            (4.302_653, 2.0, 0.05),
            (2.228_139, 10.0, 0.05),
            (3.169_273, 10.0, 0.01),
            (1.0, 1.0, 0.5),
            (0.0, 7.0, 1.0),
            (1.959_964, f64::INFINITY, 0.05),
            (1.984_217, 99.0, 0.05),
        ] {
            let got = two_sided_t(t, degrees);
            assert!((got - p).abs() < 2e-5, "{t} {degrees}: {got}, not {p}");
        }
    }

    #[test]
    fn large_samples_go_on_where_small_ones_end() {
        let values = |n: usize| -> Vec<f64> { (0..n).map(|i| i as f64 - n as f64 * 0.4).collect() };
        let (exact, normal) = (signed_rank(&values(50)), signed_rank(&values(51)));
        assert!(
            (exact.unwrap() - normal.unwrap()).abs() < 0.02,
            "{exact:?} {normal:?}"
        );
        let of = |n: usize| {
            let b: Vec<f64> = (0..n).map(|i| i as f64 + 3.5).collect();
            rank_sum(&(0..n).map(|i| i as f64).collect::<Vec<_>>(), &b).unwrap()
        };
        assert!((of(25) - of(26)).abs() < 0.02, "{} {}", of(25), of(26));
        assert!(signed_rank_low(50).abs_diff(signed_rank_low(51)) < 25);
        assert!((error_complement(1.0) - 0.157_299_207).abs() < 1e-7);
    }

    #[test]
    fn flows_of_one_odd_host_widen_the_interval() {
        let mesh = |odd: f64| -> Vec<(usize, usize, f64)> {
            let pairs = (0..6).flat_map(|a| (0..6).map(move |b| (a, b)));
            let value = |a: usize, b: usize| {
                if a == 0 || b == 0 {
                    odd
                } else {
                    0.1 * (a as f64)
                }
            };
            pairs
                .filter(|(a, b)| a != b)
                .map(|(a, b)| (a, b, value(a, b)))
                .collect()
        };
        let (low, high) = interval_over_hosts(&mesh(-5.0), 6, 7).unwrap();
        assert!(low < -1.0 && high > 0.0, "{low} {high}");
        assert_eq!(
            interval_over_hosts(&mesh(0.0), 6, 7),
            interval_over_hosts(&mesh(0.0), 6, 7)
        );
        assert_eq!(interval_over_hosts(&mesh(0.0)[..2], 3, 7), None);
    }

    proptest! {
        #[test]
        fn walsh_averages_are_those_of_a_list(values in prop::collection::vec(-1e3f64..1e3, 1..40)) {
            let mut all = Vec::new();
            for (i, a) in values.iter().enumerate() {
                all.extend(values[..=i].iter().map(|b| f64::midpoint(*a, *b)));
            }
            let expected = crate::median(&all).unwrap();
            let got = paired_shift(&values).unwrap();
            prop_assert!((got.value - expected).abs() < 1e-9 * expected.abs().max(1.0), "{got:?} {expected}");
            if let (Some(low), Some(high)) = (got.low, got.high) {
                prop_assert!(low <= got.value && got.value <= high);
            }
        }

        #[test]
        fn shifts_are_those_of_a_list(
            a in prop::collection::vec(-1e3f64..1e3, 1..30),
            b in prop::collection::vec(-1e3f64..1e3, 1..30),
        ) {
            let all: Vec<f64> = b.iter().flat_map(|b| a.iter().map(move |a| b - a)).collect();
            let expected = crate::median(&all).unwrap();
            let got = shift(&a, &b).unwrap().value;
            prop_assert!((got - expected).abs() < 1e-9 * expected.abs().max(1.0), "{got} {expected}");
        }

        #[test]
        fn p_values_are_probabilities(
            a in prop::collection::vec(-3i8..3, 1..20),
            b in prop::collection::vec(-3i8..3, 1..20),
        ) {
            let (a, b): (Vec<f64>, Vec<f64>) = (a.into_iter().map(f64::from).collect(), b.into_iter().map(f64::from).collect());
            let p = rank_sum(&a, &b).unwrap();
            prop_assert!(p > 0.0 && p <= 1.0);
            prop_assert!(signed_rank(&a).is_none_or(|p| p > 0.0 && p <= 1.0));
        }
    }
}
