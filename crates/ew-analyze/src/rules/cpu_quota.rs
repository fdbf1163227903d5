//! The agent's control group has a CPU quota, and it ran out.

use super::peers::{compared, of_stages, percent};
use super::why::{Reason, Suspect};
use super::{Case, evidence};
use ew_model::HostId;
use ew_model::finding::Cause;
use ew_model::telemetry::CgroupReading;

/// Share of the time that the group was throttled before it is a cause.
const HELD_BACK: f64 = 0.1;
/// And this many times its peers'.
const TIMES_PEERS: f64 = 3.0;

pub(super) fn explain(case: &Case<'_>, suspect: &Suspect) -> Option<Reason> {
    let host = suspect.host;
    let throttled = |host| of_stages(case, host, |stage| stage.throttled_share);
    let share = compared(case, host, throttled)?;
    if !share.stands_out(HELD_BACK, TIMES_PEERS) {
        return None;
    }
    let group = last_group(case, host)?;
    let quota = match (group.cpu_quota_us, group.cpu_period_us) {
        (Some(quota), Some(period)) if period > 0 => {
            format!(" ({:.2} CPU)", quota as f64 / period as f64)
        }
        _ => String::new(),
    };
    let name = case.observations.inventory().name(host);
    let held = percent(share.own);
    Some(Reason {
        cause: Cause::CpuQuota,
        because: format!(
            "cgroup CPU limit{quota} throttled the agent {held} of the time"
        ),
        evidence: vec![evidence(
            format!(
                "{name}: throttled for {held} of the time (summed over CPUs){}; quota {} µs in {} µs",
                share.against(percent),
                reported(group.cpu_quota_us),
                reported(group.cpu_period_us),
            ),
            format!("counters.parquet: host = {name}, source = cgroup, cpu_throttled_us"),
        )],
        hint: "raise the quota (the pod's `limits.cpu`, the unit's `CPUQuota=`, or `cpu.max` of the group), or run the agent \
               outside the group to measure the network instead of the quota"
            .into(),
    })
}

fn reported(value: Option<u64>) -> String {
    value.map_or("-".into(), |value| value.to_string())
}

fn last_group<'c>(case: &'c Case<'_>, host: HostId) -> Option<&'c CgroupReading> {
    let last = case.telemetry.samples(host).last()?;
    Some(&last.causes.as_ref()?.cgroup)
}
