//! Missing hosts.

use super::{golden, host};
use ew_model::HostId;
use ew_model::finding::Details;
use ew_model::finding::details::{Absence, AbsenceReason, HostsMissing};

#[test]
fn of_one_and_of_several_in_every_way() {
    insta::assert_snapshot!(golden(&cases()));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let (one, two) = (vec![host(2, 4)], vec![host(1, 2), host(2, 4)]);
    let refused = "ssh: connect to host r2h04 port 22: Connection refused";
    let silent = "no answer for 5 s";
    let all = (0..8).map(HostId).collect();
    let ended = HostsMissing {
        pod_ends: vec!["pod ew-r2h04 was evicted: node memory pressure".into()],
        ..missing(one.clone(), Absence::Lost, silent, 12)
    };
    let cases = [
        (
            "one never came up",
            missing(one.clone(), Absence::NeverCameUp, refused, 0),
        ),
        (
            "several never came up",
            missing(two.clone(), Absence::NeverCameUp, refused, 1),
        ),
        (
            "one was lost, and 1 flow",
            missing(one.clone(), Absence::Lost, silent, 1),
        ),
        ("one was lost, a pod", ended),
        (
            "several were lost",
            missing(two.clone(), Absence::Lost, silent, 30),
        ),
        ("one came back", missing(one, Absence::CameBack, silent, 2)),
        (
            "several came back",
            missing(two, Absence::CameBack, silent, 0),
        ),
        (
            "all eight were lost",
            missing(all, Absence::Lost, silent, 56),
        ),
    ];
    cases
        .map(|(case, found)| (case, Details::HostsMissing(found)))
        .to_vec()
}

fn missing(hosts: Vec<HostId>, absence: Absence, message: &str, flows: usize) -> HostsMissing {
    let reason = |host: &HostId| AbsenceReason {
        host: *host,
        message: message.into(),
    };
    HostsMissing {
        reasons: hosts.iter().take(3).map(reason).collect(),
        hosts,
        absence,
        missing_flows: flows,
        pod_ends: Vec::new(),
    }
}
