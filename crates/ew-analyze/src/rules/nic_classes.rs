//! Hosts come in classes of NIC speed: a fact, and no fault of the slower ones.

use super::{Case, evidence};
use crate::basis::data_interface;
use crate::precision::confidence;
use crate::words::{count, host_list, plain};
use ew_model::HostId;
use ew_model::analysis::Estimate;
use ew_model::finding::{Cause, Evidence, Finding, Severity, Subject, Worded};
use ew_model::units::format_bits_per_sec;
use std::collections::BTreeSet;

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let classes = &case.network.classes;
    if classes.len() < 2 {
        return None;
    }
    let words = |(rate, hosts): &(Estimate, Vec<HostId>)| {
        format!(
            "{} at {}",
            count(hosts.len(), "host"),
            format_bits_per_sec(rate.value)
        )
    };
    let all: Vec<String> = classes.iter().map(words).collect();
    Some(Finding {
        severity: Severity::Info,
        subject: Subject::Run,
        cause: Cause::NicClasses,
        symptom: None,
        measured: Some(plain(classes.len() as f64, "count")),
        expected: None,
        confidence: confidence(Cause::NicClasses),
        details: Worded::details(format!("{} NIC classes: {}", classes.len(), all.join(", ")), classes.iter().map(|class| proof(case, class)).collect(), "nothing to do if intended; otherwise look at the negotiated speed of the slower hosts' links (`ethtool`)".into()),
        cables: Vec::new(),
    })
}

fn proof(case: &Case<'_>, (rate, hosts): &(Estimate, Vec<HostId>)) -> Evidence {
    let names = host_list(case.observations.inventory(), hosts.iter().copied());
    let speed = |host: &HostId| data_interface(case.observations.run, *host)?.speed_bits_per_sec;
    let speeds: BTreeSet<u64> = hosts
        .iter()
        .filter_map(speed)
        .map(|speed| speed as u64)
        .collect();
    let reported: Vec<String> = speeds
        .iter()
        .map(|speed| format_bits_per_sec(*speed as f64))
        .collect();
    let links = match reported.is_empty() {
        true => String::new(),
        false => format!("; link speed reported {}", reported.join(", ")),
    };
    evidence(
        format!(
            "{names}: median {} intra-rack{links}",
            format_bits_per_sec(rate.value)
        ),
        "flows.parquet: isolated flows".into(),
    )
}
