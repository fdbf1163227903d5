//! The kubelet's CPU limit, of either end.

use super::case::{Case, of_unknown_share};
use ew_evidence::telemetry::{Cover, Quota};
use ew_model::HostId;
use ew_model::pods::{PodCause, PodCauseFacts, PodCpuLimit, ReachedLimit, ThrottledPod};

/// Share of the time in which a pod's CPU limit throttled it.
const THROTTLED: f64 = 0.05;

pub(super) fn find(case: &Case<'_, '_, '_>) -> Option<PodCause> {
    let agents = Case::agents(case.found.stage).into_iter();
    let mut pods: Vec<ThrottledPod> = agents.filter_map(|host| throttled(case, host)).collect();
    pods.sort_by(|a, b| b.throttled_share.total_cmp(&a.throttled_share));
    if pods.is_empty() {
        return None;
    }
    let found = PodCauseFacts::CpuLimit(PodCpuLimit { pods });
    Some(of_unknown_share(found))
}

fn throttled(case: &Case<'_, '_, '_>, host: HostId) -> Option<ThrottledPod> {
    let mut quota = Quota::of(case.telemetry, host, case.found.index, case.found.stage);
    quota.counted = quota.counted.or_else(|| counted_over_all(case, host));
    let throttled_share = quota.held_back_share()?;
    (throttled_share >= THROTTLED).then(|| ThrottledPod {
        host,
        throttled_share,
        limit_cpus: quota.limit_cpus,
        reached: quota.reached.map(|reached| ReachedLimit {
            used_cpus: reached.used_cpus,
            waited_share: reached.waited,
        }),
    })
}

/// Over all of the run: no reading lies in the stage's windows.
fn counted_over_all(case: &Case<'_, '_, '_>, host: HostId) -> Option<f64> {
    let samples = case.telemetry.samples(host);
    Cover::of_span(samples.first()?, samples.last()?)?.throttled_share()
}
