//! The agent's control group has a CPU quota, and it ran out.

use crate::catalogue::phrases::{next_to_peers, percent};
use crate::catalogue::proof;
use crate::catalogue::why::Reasoned;
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::CpuQuota;

impl Reasoned for CpuQuota {
    fn because(&self, _: &Inventory) -> String {
        let quota = match (self.quota_us, self.period_us) {
            (Some(quota), Some(period)) if period > 0 => {
                format!(" ({:.2} CPU)", quota as f64 / period as f64)
            }
            _ => String::new(),
        };
        format!(
            "cgroup CPU limit{quota} throttled the agent {} of the time",
            percent(self.throttled_share.own)
        )
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let name = names.name(self.host);
        vec![proof(
            format!(
                "{name}: throttled for {} of the time{}; quota {} µs in {} µs",
                percent(self.throttled_share.own),
                next_to_peers(&self.throttled_share, percent),
                reported(self.quota_us),
                reported(self.period_us),
            ),
            format!("counters.parquet: host = {name}, source = cgroup, cpu_throttled_us"),
        )]
    }

    fn next_step(&self, _: &Inventory) -> String {
        "raise the quota (the pod's `limits.cpu`, the unit's `CPUQuota=`, or `cpu.max` of the group), or run the agent \
         outside the group to measure the network instead of the quota"
            .into()
    }
}

fn reported(value: Option<u64>) -> String {
    value.map_or("-".into(), |value| value.to_string())
}
