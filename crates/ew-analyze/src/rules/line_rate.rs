//! Nothing is wrong, and the hosts' links are full: that is the limit of the run.

use super::case::Case;
use super::peers::of_stages;
use crate::finding::{finding_of, plain};
use ew_evidence::criteria::MIN_EFFECT;
use ew_model::HostId;
use ew_model::analysis::HostStageAnalysis;
use ew_model::finding::details::LineRate;
use ew_model::finding::{Cause, Details, Finding, Severity, Subject};

/// Only where the link's rate is known from elsewhere than the run itself, and nothing else limits
/// it.
pub(super) fn find(case: &Case<'_>, found: &[Finding]) -> Option<Finding> {
    let link = case.reference.basis.nic_bits_per_sec?;
    if case.reference.discovered || found.iter().any(|f| f.severity > Severity::Info) {
        return None;
    }
    let shares: Vec<(HostId, f64)> = case
        .observations
        .inventory()
        .host_ids()
        .filter_map(|host| Some((host, of_stages(case, host, fuller_share)?)))
        .collect();
    let full: Vec<f64> = shares
        .iter()
        .map(|(_, share)| *share)
        .filter(|s| *s >= 1.0 - MIN_EFFECT)
        .collect();
    let middle = ew_stats::median(&full).filter(|_| 2 * full.len() > shares.len())?;
    Some(Finding {
        measured: plain(middle, "share"),
        expected: plain(1.0, "share"),
        ..finding_of(
            Severity::Info,
            Subject::Run,
            Cause::LineRate,
            Details::LineRate(LineRate {
                hosts: full.len(),
                link_bits_per_sec: link,
                wire_share: middle,
            }),
        )
    })
}

fn fuller_share(stage: &HostStageAnalysis) -> Option<f64> {
    let shares = [stage.tx_link_share(), stage.rx_link_share()];
    shares.into_iter().flatten().max_by(f64::total_cmp)
}
