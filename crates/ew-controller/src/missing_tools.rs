//! Tools that hosts do not have: reported once, before anything starts.

use ew_model::inventory::{HostId, Inventory};
use ew_model::plan::{Plan, Stage};
use ew_model::tools::ServerPorts;
use ew_model::workload::Tool;
use ew_plan::inventory::fold;
use std::collections::BTreeSet;

/// Takes the stages out of the plan of which the missing tools leave nothing, and returns per tool
/// which hosts lack it, what does not run for that, and how to install it. Where some flows of a
/// stage can run it stays, and the others will be missing in it.
pub(crate) fn leave_out(
    plan: &mut Plan,
    inventory: &Inventory,
    has_tool: impl Fn(HostId, Tool) -> bool,
) -> Vec<String> {
    let mut reported = Vec::new();
    for tool in Tool::ALL {
        let (mut lacking, mut left_out) = (BTreeSet::new(), Vec::new());
        plan.stages.retain(|stage| {
            if stage.workload.tool != tool {
                return true;
            }
            let (hosts, can_run) = without(stage, |host| has_tool(host, tool));
            lacking.extend(hosts);
            if !can_run {
                left_out.push(stage.sweep.as_ref().unwrap_or(&stage.name).clone());
            }
            can_run
        });
        // All sizes of a sweep are one test.
        left_out.dedup();
        if !lacking.is_empty() {
            let hosts = fold(lacking.iter().map(|id| inventory.name(*id)));
            reported.push(words(tool.name(), &hosts, &left_out));
        }
    }
    reported
}

/// The hosts that lack the stage's tool, and whether any flow can run all the same.
fn without(stage: &Stage, has_it: impl Fn(HostId) -> bool) -> (BTreeSet<HostId>, bool) {
    let has_server = stage.workload.server_ports() != ServerPorts::None;
    let (mut lacking, mut can_run) = (BTreeSet::new(), false);
    for flow in stage.rounds.iter().flat_map(|round| &round.flows) {
        let ends = [Some(flow.client()), has_server.then(|| flow.server())];
        let without = ends.into_iter().flatten().filter(|host| !has_it(*host));
        let without: Vec<HostId> = without.collect();
        can_run |= without.is_empty();
        lacking.extend(without);
    }
    (lacking, can_run)
}

fn words(tool: &str, hosts: &str, left_out: &[String]) -> String {
    let what = match left_out {
        [] => "its flows will be missing".to_owned(),
        tests => format!("skipped: {}", tests.join(", ")),
    };
    format!(
        "{tool} is not installed on {hosts}; {what}; `eastwest tools --hosts {hosts} --tool {tool}` shows how to install it"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::inventory::Host;

    /// Three hosts, of which those from this one on have ping alone.
    fn plan_without(first: u32, tests: &str) -> (Vec<String>, Vec<String>) {
        let yaml = format!("name: t\ntests: [{tests}]\n");
        let scenario = ew_plan::scenario::parse(&yaml, "t", &[]).unwrap();
        let host = |name: &str| Host {
            name: name.into(),
            address: None,
            rack: None,
        };
        let inventory = Inventory {
            hosts: ["a", "b", "c"].map(host).into(),
            racks: Vec::new(),
        };
        let mut plan = ew_plan::plan(&scenario, &inventory, 1).unwrap();
        let reported = leave_out(&mut plan, &inventory, |host, tool| {
            host.0 < first || matches!(tool, Tool::Engine | Tool::Ping)
        });
        (plan.stages.into_iter().map(|s| s.name).collect(), reported)
    }

    #[test]
    fn what_some_hosts_can_run_stays() {
        let (left, reported) = plan_without(
            2,
            "{name: theirs, pattern: mesh, tool: netperf}, {name: ours, pattern: mesh}, \
             {name: icmp, pattern: mesh, tool: ping, workload: ping}",
        );
        assert_eq!(left, ["theirs", "ours", "icmp"]);
        assert_eq!(reported.len(), 1, "{reported:?}");
        assert!(
            reported[0].starts_with("netperf is not installed on c; its flows will be missing")
        );
    }

    #[test]
    fn what_nobody_can_run_is_left_out_and_told_once() {
        let (left, reported) = plan_without(
            1,
            "{name: first, pattern: mesh, tool: iperf3}, {name: ours, pattern: mesh}, \
             {name: sizes, pattern: mesh, tool: iperf3, sizes: [64, 1k]}",
        );
        assert_eq!(left, ["ours"]);
        assert_eq!(reported.len(), 1, "{reported:?}");
        let words = "iperf3 is not installed on b,c; skipped: first, sizes; `eastwest tools";
        assert!(reported[0].starts_with(words), "{reported:?}");
    }
}
