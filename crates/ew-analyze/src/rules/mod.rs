//! One file per cause. A rule looks at the whole case and returns findings; it knows nothing of
//! other rules' findings. Rules for what makes a host slow also answer [`why`].

mod background_traffic;
mod bad_path;
mod below_link;
mod black_hole;
mod bond_member;
mod case;
mod collisions;
mod core_saturated;
mod cpu_quota;
mod disk;
mod faster_network;
mod host_connections;
mod host_missing;
mod incast;
mod isolated_flows;
mod latency;
mod line_rate;
mod link_speed;
mod loss;
mod lost_path;
mod measurement;
mod mtu;
mod nic_classes;
mod not_determined;
mod pairs_missing;
mod path_loss;
mod paths;
mod peers;
mod pod_uplinks;
mod receive_drops;
mod receive_window;
mod send_buffer;
mod shared_limit;
mod side_rates;
mod slow_at_times;
mod slow_host;
mod slow_pair;
mod starved_host;
mod stated_nic;
mod suspect;
mod tool_limit;
mod uplink;
mod why;

pub(crate) use case::Case;
pub(crate) use isolated_flows::IsolatedFlows;

use ew_evidence::basis::data_interface;
use ew_model::facts::SwitchPort;
use ew_model::finding::{Cable, Cause, Finding, Severity, Subject};

/// All findings, in the order of the rules.
pub(crate) fn findings(case: &Case<'_>) -> Vec<Finding> {
    if let Some(invalid) = measurement::find(case) {
        return [
            host_missing::find(case),
            pairs_missing::find(case),
            black_hole::find(case).into_iter().collect(),
            vec![invalid],
        ]
        .concat();
    }
    let mut findings = [
        host_missing::find(case),
        link_speed::find(case),
        slow_host::find(case),
        slow_at_times::find(case),
        stated_nic::find(case),
        below_link::find(case),
        host_connections::find(case),
        uplink::find(case),
        pod_uplinks::find(case),
        paths::find(case),
        bad_path::find(case).into_iter().collect(),
        black_hole::find(case).into_iter().collect(),
        lost_path::find(case),
        path_loss::find(case),
        slow_pair::find(case),
        background_traffic::find(case),
        disk::find(case),
        mtu::find(case),
        latency::find(case).into_iter().collect(),
        loss::find(case),
        incast::find(case),
        pairs_missing::find(case),
    ]
    .concat();
    findings.extend(nic_classes::find(case));
    findings.extend(faster_network::find(case));
    findings.extend(bond_member::find(case));
    findings.extend(starved_host::find(case, &findings));
    findings.extend(not_determined::find(case, &findings));
    findings.extend(line_rate::find(case, &findings));
    let mut findings = told_once(findings);
    findings.iter_mut().for_each(|f| add_cables(case, f));
    findings
}

/// Where the cables of the accused end.
fn add_cables(case: &Case<'_>, finding: &mut Finding) {
    let hosts = match finding.subject {
        Subject::Host { host } => vec![host],
        Subject::Pair { src, dst } => vec![src, dst],
        _ => return,
    };
    let run = case.observations.run;
    for host in hosts {
        let facts = run.facts.get(&host).zip(data_interface(run, host));
        let Some((facts, interface)) = facts.filter(|_| finding.severity > Severity::Info) else {
            continue;
        };
        let ports = facts.switch_ports(interface);
        finding
            .cables
            .extend(ports.map(|(link, SwitchPort { switch, port })| Cable {
                host,
                link: link.to_owned(),
                switch: switch.clone(),
                port: port.clone(),
            }));
    }
}

/// An odd MTU that makes its host slow is reported with the host.
fn told_once(findings: Vec<Finding>) -> Vec<Finding> {
    let explained = |subject: Subject| {
        findings
            .iter()
            .any(|f| f.cause == Cause::Mtu && f.symptom.is_some() && f.subject == subject)
    };
    let again = |f: &Finding| f.cause == Cause::Mtu && f.symptom.is_none() && explained(f.subject);
    let keep: Vec<bool> = findings.iter().map(|f| !again(f)).collect();
    let kept = findings.into_iter().zip(keep);
    kept.filter_map(|(finding, keep)| keep.then_some(finding))
        .collect()
}
