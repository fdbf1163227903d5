//! What racks reach among each other, in words.

use super::rate_words::RateWords;
use crate::catalogue::racks::undetermined;
use crate::figures::Figures;
use crate::words::{MISSING, knee, or_missing, rack_name, rate, ratio_with_interval};
use ew_model::Analysis;
use ew_model::analysis::RackPairAnalysis;

/// Up to this many rack pairs are listed.
const LISTED: usize = 40;

/// One direction between two racks.
pub(crate) struct RackPairWords {
    pub(crate) from: String,
    pub(crate) to: String,
    /// Per host.
    pub(crate) inside: RateWords,
    /// All hosts together.
    pub(crate) across: RateWords,
    pub(crate) oversubscription: String,
    pub(crate) uplink: String,
    pub(crate) full_at: String,
}

/// In the analysis' order.
pub(super) fn all(analysis: &Analysis) -> Vec<RackPairWords> {
    let inventory = analysis.inventory();
    let words = |pair: &RackPairAnalysis| RackPairWords {
        from: rack_name(inventory, pair.from),
        to: rack_name(inventory, pair.to),
        inside: RateWords::of(pair.inside_bits_per_sec),
        across: RateWords::of(pair.across_bits_per_sec),
        oversubscription: oversubscription(pair),
        uplink: rate(pair.uplink_bits_per_sec),
        full_at: or_missing(pair.knee_senders, knee),
    };
    analysis.rack_pairs.iter().map(words).collect()
}

/// The ratio with its interval; "none found" when the path did not limit; else why there is none.
fn oversubscription(pair: &RackPairAnalysis) -> String {
    match (pair.limited, pair.oversubscription, pair.details) {
        (Some(false), _, _) => "none found".into(),
        (_, Some(ratio), _) => ratio_with_interval(Some(ratio)),
        (_, None, Some(why)) => format!("{MISSING} ({})", undetermined(why)),
        (_, None, None) => MISSING.into(),
    }
}

pub(super) fn table(pairs: &[RackPairWords]) -> Figures {
    let row = |pair: &RackPairWords| {
        vec![
            pair.from.clone(),
            pair.to.clone(),
            pair.inside.short.clone(),
            pair.across.short.clone(),
            pair.oversubscription.clone(),
            pair.uplink.clone(),
            pair.full_at.clone(),
        ]
    };
    Figures {
        title: "Rack to rack",
        header: vec![
            "from",
            "to",
            "inside, per host",
            "across, sum",
            "oversubscription",
            "uplink",
            "full at",
        ],
        rows: pairs.iter().take(LISTED).map(row).collect(),
        left: 2,
        notes: Vec::new(),
    }
}
