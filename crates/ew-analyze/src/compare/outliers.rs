//! Which of many changes are outliers: by a spread that all of them show together.

use ew_stats::significance::two_sided_t;
use ew_stats::{MAD_OF_NORMAL, median};

/// Fewer have no common spread.
pub(super) const MIN_PEERS: usize = 4;
/// What the median absolute deviation makes of a normal sample: as much as a standard deviation of
/// 37% of it (Rousseeuw and Croux 1993, section 2).
const EFFICIENCY: f64 = 0.367_4;
/// Min spread that is assumed, however steady the figures are: 0.1%.
const MIN_SPREAD: f64 = 0.001;

/// Two-sided p-values of every deviation from the middle of its group against the spread of all,
/// which is robust: up to half of them may be outliers. Student's t, with the degrees of freedom
/// that the spread is worth, one less for every group's middle. `None` where there are too few.
pub(super) fn p_values(deviations: &[f64], groups: usize) -> Vec<Option<f64>> {
    let n = deviations.len();
    let sizes: Vec<f64> = deviations.iter().map(|d| d.abs()).collect();
    let Some(middle) = median(&sizes).filter(|_| n >= MIN_PEERS) else {
        return vec![None; n];
    };
    // Of few values it is too small on average (Croux and Rousseeuw 1992, section 3).
    let of_few = n as f64 / (n as f64 - 0.8 * groups as f64);
    let spread = (middle / MAD_OF_NORMAL * of_few).max(MIN_SPREAD);
    let degrees = EFFICIENCY * (n as f64 - groups as f64);
    let p_value = |size: &f64| Some(two_sided_t(size / spread, degrees));
    sizes.iter().map(p_value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_a_hundred_stands_out_and_one_of_three_does_not() {
        let mut many: Vec<f64> = (0..100)
            .map(|i| 0.01 * (f64::from(i) / 49.5 - 1.0))
            .collect();
        many[17] = -0.22;
        let p_values = p_values(&many, 1);
        assert!(p_values[17].unwrap() < 1e-6, "{:?}", p_values[17]);
        assert!(p_values[0].unwrap() > 0.05);
        assert_eq!(super::p_values(&[0.0, 0.1, 5.0], 1), [None; 3]);
    }

    #[test]
    fn what_is_the_same_to_a_thousandth_is_the_same() {
        let p_values = p_values(&[0.0, 0.0, 0.0, 0.0, 0.0, 0.000_5], 1);
        assert!(p_values.iter().all(|p| p.unwrap() > 0.5), "{p_values:?}");
    }
}
