//! Bulk UDP that loses datagrams.

use super::{Case, evidence};
use crate::precision::confidence;
use crate::words::{count, plain};
use ew_model::Inventory;
use ew_model::analysis::{DatagramAnalysis, StageAnalysis};
use ew_model::finding::{Cause, Details, Evidence, Finding, Severity, Subject, Worded};
use ew_model::workload::{Pace, Workload};

/// Below this share a loss is in the report's tables and is no finding.
const SUBSTANTIAL: f64 = 0.01;

/// One finding per stage with a substantial loss.
pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    case.stages
        .iter()
        .zip(&case.observations.stages)
        .filter_map(|(stage, view)| {
            let datagrams = stage.datagrams?;
            let loss = datagrams.loss.filter(|loss| *loss >= SUBSTANTIAL)?;
            let is_paced = view.stage.workload.pace != Pace::default();
            let mut words = words(&stage.name, loss, is_paced);
            words.evidence = evidence_of(case.observations.inventory(), stage, &datagrams);
            add_fragments(&mut words, case, &view.stage.workload);
            Some(finding(loss, is_paced, words))
        })
        .collect()
}

/// Senders without a pace send what they can, and the surplus is lost by design: then the loss is
/// only worth knowing.
fn words(stage: &str, loss: f64, is_paced: bool) -> Worded {
    let (why, hint) = if is_paced {
        (
            "",
            "look at `nstat -az UdpRcvbufErrors` (the receiver was too slow) and at discards of the NIC and of the switch \
             ports; a lower rate shows whether the path is full or faulty",
        )
    } else {
        (
            ", sent as fast as the senders could",
            "set a rate below the path's: what is lost then is the network's doing, not surplus",
        )
    };
    Worded {
        sentence: format!("`{stage}`: {:.1}% of datagrams lost{why}", 100.0 * loss),
        evidence: Vec::new(),
        hint: hint.into(),
    }
}

fn finding(loss: f64, is_paced: bool, words: Worded) -> Finding {
    Finding {
        severity: if is_paced {
            Severity::Notice
        } else {
            Severity::Info
        },
        subject: Subject::Run,
        cause: Cause::Loss,
        symptom: None,
        measured: Some(plain(loss, "ratio")),
        expected: Some(plain(0.0, "ratio")),
        confidence: confidence(Cause::Loss),
        details: Details::Worded(words),
        cables: Vec::new(),
    }
}

/// A datagram that does not fit the MTU is lost with any of its fragments (RFC 791, section 3.2).
fn add_fragments(words: &mut Worded, case: &Case<'_>, workload: &Workload) {
    let framing = case.reference.datagrams();
    let fragments = framing.message(workload.message_bytes).packets;
    if fragments < 2 {
        return;
    }
    words.evidence.push(evidence(
        format!(
            "a datagram of {} bytes leaves in {fragments} fragments of MTU {}, and is lost with any of them",
            workload.message_bytes, framing.mtu_bytes
        ),
        "run.json: message size; events.jsonl: host-up, interfaces".into(),
    ));
    let whole_bytes = framing.payload_bytes();
    words.hint += &format!(
        "; datagrams of at most {whole_bytes} bytes need no fragments (`--set message-size={whole_bytes}`)"
    );
}

fn evidence_of(
    inventory: &Inventory,
    stage: &StageAnalysis,
    datagrams: &DatagramAnalysis,
) -> Vec<Evidence> {
    let name = &stage.name;
    let source = || format!("flows.parquet: stage `{name}`, datagrams_lost");
    let sent = datagrams.received.saturating_add(datagrams.lost);
    let mut found = vec![evidence(
        format!(
            "{} of {} never came",
            datagrams.lost,
            count(sent as usize, "datagram")
        ),
        source(),
    )];
    let worst = stage
        .pairs
        .iter()
        .filter_map(|pair| Some((pair.datagrams?.loss?, pair)))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    if let Some((loss, pair)) = worst.filter(|_| stage.pairs.len() > 1) {
        found.push(evidence(
            format!(
                "most of {} from {} to {}: {:.1}%",
                count(stage.pairs.len(), "pair"),
                inventory.name(pair.src),
                inventory.name(pair.dst),
                100.0 * loss
            ),
            source(),
        ));
    }
    found
}
