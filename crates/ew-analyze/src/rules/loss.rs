//! Bulk UDP that loses datagrams.

use super::case::Case;
use crate::finding::{finding_of, plain};
use ew_evidence::criteria::NEGLIGIBLE;
use ew_model::analysis::StageAnalysis;
use ew_model::finding::details::{DatagramLoss, DatagramLossOfPair, Fragments};
use ew_model::finding::{Cause, Details, Finding, Severity, Subject};
use ew_model::workload::{Pace, Workload};

/// One finding per stage with a substantial loss.
pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let stages = case.stages.iter().zip(&case.observations.stages);
    let lossy = stages.filter_map(|(stage, view)| loss(case, stage, &view.stage.workload));
    lossy.map(finding).collect()
}

fn loss(case: &Case<'_>, stage: &StageAnalysis, workload: &Workload) -> Option<DatagramLoss> {
    let datagrams = stage.datagrams?;
    let lost_share = datagrams.loss.filter(|loss| *loss >= NEGLIGIBLE)?;
    Some(DatagramLoss {
        stage: stage.name.clone(),
        is_paced: workload.pace != Pace::default(),
        lost_datagrams: datagrams.lost,
        sent_datagrams: datagrams.received.saturating_add(datagrams.lost),
        lost_share,
        worst_pair: worst_pair(stage).filter(|_| stage.pairs.len() > 1),
        pairs: stage.pairs.len(),
        fragments: fragments(case, workload),
    })
}

/// Senders without a pace send what they can, and the surplus is lost by design: then the loss is
/// only worth knowing.
fn finding(loss: DatagramLoss) -> Finding {
    Finding {
        measured: plain(loss.lost_share, "ratio"),
        expected: plain(0.0, "ratio"),
        ..finding_of(
            if loss.is_paced {
                Severity::Notice
            } else {
                Severity::Info
            },
            Subject::Run,
            Cause::Loss,
            Details::DatagramLoss(loss),
        )
    }
}

fn worst_pair(stage: &StageAnalysis) -> Option<DatagramLossOfPair> {
    let losses = stage.pairs.iter().filter_map(|pair| {
        Some(DatagramLossOfPair {
            src: pair.src,
            dst: pair.dst,
            lost_share: pair.datagrams?.loss?,
        })
    });
    losses.max_by(|a, b| a.lost_share.total_cmp(&b.lost_share))
}

/// A datagram that does not fit the MTU is lost with any of its fragments (RFC 791, section 3.2).
fn fragments(case: &Case<'_>, workload: &Workload) -> Option<Fragments> {
    let framing = case.reference.datagrams();
    let fragments = framing.message(workload.message_bytes).packets;
    (fragments > 1).then(|| Fragments {
        message_bytes: workload.message_bytes,
        fragments,
        mtu_bytes: framing.mtu_bytes,
        whole_bytes: framing.payload_bytes(),
    })
}
