//! Whether the rounds ran as planned: if most did not, that is the result, and nobody is to blame.

use super::peers::percent;
use super::{Case, evidence};
use crate::precision::confidence;
use crate::words::{count, plain};
use ew_model::finding::{Cause, Finding, Severity, Subject, Worded};

/// Share of the rounds on hosts without CPU that is worth a remedy although they count.
const MOSTLY: f64 = 0.5;

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let quality = &case.network.quality;
    if !quality.is_invalid() {
        return None;
    }
    let rounds = count(quality.full_rounds, "round");
    let void = quality.void_rounds;
    let (late, missing) = (percent(quality.late_share), percent(quality.missing_share));
    let is_starved = quality.starved_share > MOSTLY;
    let why = if is_starved {
        ". Cause: hosts CPU-starved"
    } else {
        ""
    };
    Some(Finding {
        severity: Severity::Notice,
        subject: Subject::Run,
        cause: Cause::MeasurementQuality,
        symptom: None,
        measured: Some(plain(void as f64 / quality.full_rounds.max(1) as f64, "share")),
        expected: Some(plain(0.0, "share")),
        confidence: confidence(Cause::MeasurementQuality),
        details: Worded::details(format!("measurement invalid: {void} of {rounds} void ({late} of flows late, {missing} missing){why}"), vec![evidence(
            format!(
                "{void} of {rounds} with at least half of the hosts: over 10% of the flows missing or started later than 10% of the window; \
                 {} of these rounds CPU-starved",
                percent(quality.starved_share)
            ),
            "flows.parquet: tx_start_skew_ns, rx_start_skew_ns, tx_cpu_engine_wait_ns, tx_cpu_steal_ns".into(),
        )], "free CPU on the hosts (stop other work, fewer virtual machines per machine), measure fewer hosts at a time, or lengthen the \
               window (`--set duration=10s`), then run again"
            .into()),
        cables: Vec::new(),
    })
}
