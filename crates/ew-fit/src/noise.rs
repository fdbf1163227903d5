//! How likely a figure is given its prediction: every constant of the noise.
//!
//! Nothing beats its link, so the kernel is tight above. A retransmission timeout takes any part of
//! a rate, so it is heavy below. Where the ends lacked CPU a low figure is what one expects, while
//! a high one still proves capacity.

use ew_evidence::criteria::{MIN_EFFECT, SURE};

/// Standard deviation of the logarithm of a flow's rate that has its bottleneck to itself, or of
/// the sum of all that share one: the min that is assumed. A run's own repeats may show more.
pub(super) const ISOLATED_SIGMA: f64 = 0.025;
/// The max that a run's own repeats may reach: what would be an effect is no noise.
pub(super) const MAX_ISOLATED_SIGMA: f64 = MIN_EFFECT;
/// How unevenly TCP splits a bottleneck between two streams: recorded collisions split 3 to 7.
/// Random loss makes it swing as much.
pub(super) const SPLIT_SIGMA: f64 = 0.45;
/// What other users of a bottleneck add to a sum that contains only a part of them.
pub(super) const PARTIAL_SIGMA: f64 = 0.25;

/// Share of flows that a timeout slows.
const TIMEOUTS: f64 = 0.08;
/// Mean of what a timeout takes, as a logarithm.
const TIMEOUT_SCALE: f64 = 0.35;
/// The same of what may take any part of the rate, as CPU starvation does.
pub const ANY_PART: f64 = 2.0;
/// Share of figures that may be anything, too high or too low, and the width of "anything" as a
/// logarithm.
pub const ANYTHING: f64 = 0.003;
const ANYTHING_SPAN: f64 = 8.0;
const SQRT_TWO_PI: f64 = 2.506_628_274_631;
/// Bisections of [`low_share`]: to a thousandth of a per cent.
const STEPS: usize = 20;

pub(super) use ew_evidence::quality::{HALF_STARVED, LITTLE_STARVATION};

/// Flows fit badly that give so much less than the kernel itself would in the mean, nats a flow.
pub(super) const MAX_DEFICIT: f64 = 0.10;

/// Flows of a round are not independent: log-likelihoods count by this much less.
pub const OVERDISPERSION: f64 = 1.5;

/// Logarithm of the [`density`].
pub(super) fn log_kernel(z: f64, sigma: f64, starvation: f64) -> f64 {
    density(z, sigma, starvation).ln()
}

/// Density of `z` = ln(measured / predicted).
pub(super) fn density(z: f64, sigma: f64, starvation: f64) -> f64 {
    let (low, scale) = timeouts(starvation);
    let standard = z / sigma;
    let core = (1.0 - low - ANYTHING) * (-0.5 * standard * standard).exp() / (sigma * SQRT_TWO_PI);
    let below = if z < 0.0 {
        low * (z / scale).exp() / scale
    } else {
        0.0
    };
    core + below + ANYTHING / ANYTHING_SPAN
}

/// The same where random loss makes flows swing: as often as not a window is long enough between
/// two losses to reach what the way carries, as steadily as without them.
pub(super) fn swinging_density(z: f64, steady: f64, swing: f64, starvation: f64) -> f64 {
    f64::midpoint(
        density(z, steady, starvation),
        density(z, swing, starvation),
    )
}

/// Share of figures that are as predicted and yet so low that they speak against that by more than
/// `nats`. Only timeouts are: of the core, at three deviations and more, there is a thousandth.
pub(super) fn low_share(sigma: f64, starvation: f64, nats: f64) -> f64 {
    let limit = log_kernel(0.0, sigma, starvation) - nats;
    let (mut low, mut high) = (-ANYTHING_SPAN, 0.0);
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        if log_kernel(middle, sigma, starvation) < limit {
            low = middle;
        } else {
            high = middle;
        }
    }
    let (share, scale) = timeouts(starvation);
    share * (low / scale).exp() + ANYTHING / 2.0
}

/// Share of flows that a timeout slows, and the mean of what it takes, as a logarithm. Starved ends
/// surely are slower, by any part of the rate.
fn timeouts(starvation: f64) -> (f64, f64) {
    (
        TIMEOUTS + (SURE - TIMEOUTS) * starvation,
        TIMEOUT_SCALE + (ANY_PART - TIMEOUT_SCALE) * starvation,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_low_share_is_the_mass_below_what_speaks_against_a_prediction() {
        for (sigma, starvation) in [(0.025, 0.0), (0.08, 0.0), (0.025, 0.5)] {
            let limit = log_kernel(0.0, sigma, starvation) - 4.5;
            let step = 1e-3;
            let is_low = |z: &f64| log_kernel(*z, sigma, starvation) < limit;
            let low = (-8_000..0).map(|i| f64::from(i) * step).filter(is_low);
            let mass: f64 = low.map(|z| density(z, sigma, starvation) * step).sum();
            let share = low_share(sigma, starvation, 4.5);
            assert!(
                (share / mass - 1.0).abs() < 0.1,
                "{sigma} {starvation}: {share} {mass}"
            );
        }
    }

    #[test]
    fn the_kernel_is_a_density() {
        for starvation in [0.0, 0.5, 1.0] {
            let step = 1e-3;
            let points = (-16_000..4_000).map(|i| f64::from(i) * step);
            let mass: f64 = points
                .map(|z| log_kernel(z, ISOLATED_SIGMA, starvation).exp() * step)
                .sum();
            assert!((mass - 1.0).abs() < 0.01, "{starvation}: {mass}");
        }
    }

    #[test]
    fn low_figures_weigh_less_where_cpu_was_missing_and_high_ones_the_same() {
        let accuses = |starvation: f64| {
            log_kernel(-0.7, 0.025, starvation) - log_kernel(0.0, 0.025, starvation)
        };
        assert!(accuses(0.0) < accuses(0.5) && accuses(0.5) < accuses(1.0));
        assert!(log_kernel(0.3, 0.025, 1.0) < log_kernel(-0.3, 0.025, 1.0));
    }
}
