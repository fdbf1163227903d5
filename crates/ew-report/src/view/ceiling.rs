//! What a reference host's line can carry.

use crate::catalogue::basis::nic_source;
use crate::words::rate;
use ew_model::Analysis;

/// What rates were compared with: the line rate taken and the payload it can carry.
pub(super) fn ceiling_words(analysis: &Analysis) -> String {
    let basis = &analysis.basis;
    format!(
        "reference NIC rate {} ({}), max goodput {}",
        rate(basis.nic_bits_per_sec),
        nic_source(basis.nic_rate_source),
        rate(payload_ceiling(analysis)),
    )
}

/// Goodput that a reference host's line rate can carry, bits per second: line rate times
/// efficiency.
pub(crate) fn payload_ceiling(analysis: &Analysis) -> Option<f64> {
    let ceiling = analysis.basis.nic_bits_per_sec? * analysis.basis.efficiency;
    (ceiling.is_finite() && ceiling > 0.0).then_some(ceiling)
}
