//! The agent's control group has a CPU quota, and it ran out.

use super::case::Case;
use super::peers::{compared, of_stages};
use super::suspect::Suspect;
use ew_evidence::criteria::{THROTTLED, TIMES_PEERS};
use ew_model::HostId;
use ew_model::finding::details::{CpuQuota, Why};
use ew_model::telemetry::CgroupReading;

pub(super) fn explain(case: &Case<'_>, suspect: &Suspect) -> Option<Why> {
    let host = suspect.host;
    let throttled = |host| of_stages(case, host, |stage| stage.throttled_share);
    let share = compared(case, host, throttled)?;
    if !share.stands_out(THROTTLED, TIMES_PEERS) {
        return None;
    }
    let group = last_group(case, host)?;
    Some(Why::CpuQuota(CpuQuota {
        host,
        throttled_share: share.into(),
        quota_us: group.cpu_quota_us,
        period_us: group.cpu_period_us,
    }))
}

fn last_group<'c>(case: &'c Case<'_>, host: HostId) -> Option<&'c CgroupReading> {
    let last = case.telemetry.samples(host).last()?;
    Some(&last.causes.as_ref()?.cgroup)
}
