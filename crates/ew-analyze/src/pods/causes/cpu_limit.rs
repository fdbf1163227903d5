//! The kubelet's CPU limit, of either end.

use super::super::words::percent;
use super::Case;
use crate::telemetry::Quota;
use ew_model::HostId;
use ew_model::facts::HostSample;
use ew_model::finding::Evidence;
use ew_model::pods::{PodCause, PodCauseKind};

/// Share of the time in which a pod's CPU limit held it back.
const THROTTLED: f64 = 0.05;

/// A pod that its limit holds back.
struct Throttled {
    host: HostId,
    share: f64,
    quota: Quota,
}

pub(super) fn find(case: &Case<'_, '_, '_>) -> Option<PodCause> {
    let agents = Case::agents(case.found.stage).into_iter();
    let mut all: Vec<Throttled> = agents.filter_map(|host| throttled(case, host)).collect();
    all.sort_by(|a, b| b.share.total_cmp(&a.share));
    let most = all.first()?;
    let others = match all.len() {
        1 => String::new(),
        more => format!(" and {} more", more - 1),
    };
    Some(PodCause {
        kind: PodCauseKind::CpuLimit,
        words: format!(
            "CPU limit{} throttled pod {}{others} {} of the time",
            limit(&most.quota),
            case.name(most.host),
            percent(most.share)
        ),
        share: None,
        evidence: all.iter().map(|found| evidence(case, found)).collect(),
    })
}

fn throttled(case: &Case<'_, '_, '_>, host: HostId) -> Option<Throttled> {
    let mut quota = Quota::of(case.telemetry, host, case.found.index, case.found.stage);
    quota.counted = quota.counted.or_else(|| counted_over_all(case, host));
    let share = quota.held_back_share()?.min(1.0);
    (share >= THROTTLED).then_some(Throttled { host, share, quota })
}

/// Over all of the run: no reading lies in the stage's windows.
fn counted_over_all(case: &Case<'_, '_, '_>, host: HostId) -> Option<f64> {
    let counter = |sample: &HostSample| sample.causes.as_ref()?.cgroup.cpu_throttled_us;
    let samples = case.telemetry.samples(host);
    let (first, last) = (samples.first()?, samples.last()?);
    let passed_us = last.agent_ns.saturating_sub(first.agent_ns) as f64 / 1e3;
    let grown_us = counter(last)?.saturating_sub(counter(first)?) as f64;
    (passed_us > 0.0).then(|| grown_us / passed_us)
}

fn limit(quota: &Quota) -> String {
    let limit = quota.limit_cpus;
    limit.map_or_else(String::new, |cpus| format!(" ({cpus:.2} CPU)"))
}

fn evidence(case: &Case<'_, '_, '_>, found: &Throttled) -> Evidence {
    let name = case.name(found.host);
    match found.quota.reached {
        Some(reached) => case.evidence(
            format!(
                "pod {name}: used {:.2} CPU{}, and was ready without one {} of the time",
                reached.used_cpus,
                found.quota.limit_cpus.map_or_else(String::new, |cpus| format!(" of its {cpus:.2}")),
                percent(reached.waited)
            ),
            &format!("flows.parquet: src or dst = {name}, tx_cpu_engine_ns, rx_cpu_engine_ns, tx_cpu_engine_wait_ns, rx_cpu_engine_wait_ns"),
        ),
        None => case.evidence(
            format!(
                "pod {name}: throttled {} of the time{}",
                percent(found.share),
                limit(&found.quota)
            ),
            &format!("counters.parquet: host = {name}, source = cgroup, cpu_throttled_us"),
        ),
    }
}
