//! Hosts come in classes of NIC speed: a fact, and no fault of the slower ones.

use super::case::Case;
use crate::finding::{finding_of, plain};
use ew_evidence::basis::data_interface;
use ew_model::HostId;
use ew_model::analysis::Estimate;
use ew_model::finding::details::{NicClass, NicClasses};
use ew_model::finding::{Cause, Details, Finding, Severity, Subject};
use std::collections::BTreeSet;

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let classes = &case.network.classes;
    if classes.len() < 2 {
        return None;
    }
    Some(Finding {
        measured: plain(classes.len() as f64, "count"),
        ..finding_of(
            Severity::Info,
            Subject::Run,
            Cause::NicClasses,
            Details::NicClasses(NicClasses {
                classes: classes.iter().map(|found| class(case, found)).collect(),
            }),
        )
    })
}

fn class(case: &Case<'_>, (rate, hosts): &(Estimate, Vec<HostId>)) -> NicClass {
    let speed = |host: &HostId| data_interface(case.observations.run, *host)?.speed_bits_per_sec;
    let speeds = hosts.iter().filter_map(speed).map(|speed| speed as u64);
    let speeds: BTreeSet<u64> = speeds.collect();
    NicClass {
        hosts: hosts.clone(),
        bits_per_sec: rate.value,
        link_speeds_bits_per_sec: speeds.iter().map(|speed| *speed as f64).collect(),
    }
}
