//! How sure a count of successes makes one.

/// The 95% interval of a probability after `successes` in `trials` (Clopper and Pearson 1934):
/// exact, never too narrow.
#[must_use]
pub fn clopper_pearson(successes: u64, trials: u64) -> (f64, f64) {
    const EACH_SIDE: f64 = 0.025;
    if trials == 0 {
        return (0.0, 1.0);
    }
    let successes = successes.min(trials);
    let low = match successes {
        0 => 0.0,
        _ => root(|p| 1.0 - at_most(successes - 1, trials, p), EACH_SIDE),
    };
    let high = match successes == trials {
        true => 1.0,
        false => root(|p| -at_most(successes, trials, p), -EACH_SIDE),
    };
    (low, high)
}

/// Where a rising function reaches a value between 0 and 1, by halving.
fn root(function: impl Fn(f64) -> f64, value: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        match function(middle) < value {
            true => low = middle,
            false => high = middle,
        }
    }
    f64::midpoint(low, high)
}

/// Probability of at most `count` successes (binomial), summed from logarithms so that nothing
/// underflows.
fn at_most(count: u64, trials: u64, p: f64) -> f64 {
    let (success, failure) = (p.ln(), (-p).ln_1p());
    let mut ways = 0.0;
    let mut sum = 0.0;
    for k in 0..=count {
        if k > 0 {
            ways += ((trials - k + 1) as f64 / k as f64).ln();
        }
        sum += (ways + k as f64 * success + (trials - k) as f64 * failure).exp();
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_are_the_published_ones() {
        let near = |(low, high): (f64, f64), l: f64, h: f64| {
            assert!(
                (low - l).abs() < 5e-4 && (high - h).abs() < 5e-4,
                "{low} {high}"
            );
        };
        near(clopper_pearson(98, 100), 0.9296, 0.9976);
        near(clopper_pearson(50, 50), 0.9289, 1.0);
        near(clopper_pearson(0, 149), 0.0, 0.0245);
        near(clopper_pearson(6, 7), 0.4213, 0.9964);
        assert_eq!(clopper_pearson(0, 0), (0.0, 1.0));
    }
}
