//! A CPU of a host had no time left.

use crate::catalogue::phrases::{next_to_peers, percent};
use crate::catalogue::proof;
use crate::catalogue::why::Reasoned;
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::{CpuTaker, Extent, FullCpu, LateSampler, StarvedThreads};
use ew_model::units::format_duration_ns;

const LOOK: &str = "look at `top -1` on the host: what runs on the CPU that eastwest is bound to, and with which priority \
                    (`ps -eo pid,cls,rtprio,psr,pcpu,comm --sort -pcpu`); then at `taskset -p` and cpusets";

impl Reasoned for FullCpu {
    fn because(&self, _: &Inventory) -> String {
        let (share, taker) = match self.taker {
            CpuTaker::Softirq => (self.cpu.softirq_share, "softirq"),
            CpuTaker::Steal => (self.cpu.steal_share, "hypervisor steal"),
            CpuTaker::Programs => (self.cpu.user_share, "programs"),
            CpuTaker::Kernel => (self.cpu.system_share, "kernel"),
        };
        format!("CPU {} saturated, {} {taker}", self.cpu.cpu, percent(share))
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let name = names.name(self.host);
        let cpu = &self.cpu;
        vec![proof(
            format!(
                "{name}: CPU {} {} busy{} (programs {}, kernel {}, softirq {}, stolen {})",
                cpu.cpu,
                percent(cpu.busy_share),
                next_to_peers(&self.busy_share, percent),
                percent(cpu.user_share),
                percent(cpu.system_share),
                percent(cpu.softirq_share),
                percent(cpu.steal_share),
            ),
            format!(
                "hosts.parquet: host = {name}, kind = cpu, name = {}, stage `{}`",
                cpu.cpu, self.stage
            ),
        )]
    }

    fn next_step(&self, _: &Inventory) -> String {
        match self.taker {
            CpuTaker::Softirq => {
                "spread the NIC's queues over CPUs (`ethtool -L`, irqbalance or `smp_affinity`), switch on RPS/RFS where the NIC has one \
                 queue, and look at GRO (`ethtool -k`)"
            }
            CpuTaker::Steal => {
                "the machine below is overcommitted: move this virtual machine or its neighbours, or give it CPUs of its own"
            }
            CpuTaker::Programs => {
                "look at `top -1` on the host while it runs: what else uses the CPU, and whether it is pinned there"
            }
            CpuTaker::Kernel => {
                "use more streams (`--set streams=4`), larger messages or zero-copy; look at `perf top` on the host"
            }
        }
        .into()
    }
}

impl Reasoned for StarvedThreads {
    fn because(&self, _: &Inventory) -> String {
        format!(
            "CPU-starved, its I/O threads waited for a CPU {} of the time",
            percent(self.waited_share.own.min(1.0))
        )
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let name = names.name(self.host);
        vec![proof(
            format!(
                "{name}: threads waited for a CPU for {} of the windows, summed over threads, {}{}",
                percent(self.waited_share.own),
                extent(self.extent),
                next_to_peers(&self.waited_share, percent),
            ),
            format!(
                "flows.parquet: src or dst = {name}, tx_cpu_engine_wait_ns and rx_cpu_engine_wait_ns"
            ),
        )]
    }

    fn next_step(&self, _: &Inventory) -> String {
        LOOK.into()
    }
}

impl Reasoned for LateSampler {
    fn because(&self, _: &Inventory) -> String {
        format!(
            "CPU-starved, eastwest's sampler woke {} late",
            duration(self.late_ns.own)
        )
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let name = names.name(self.host);
        vec![proof(
            format!(
                "{name}: readings began {} late, {}{}",
                duration(self.late_ns.own),
                extent(self.extent),
                next_to_peers(&self.late_ns, duration)
            ),
            format!("hosts.parquet: host = {name}, late_ns"),
        )]
    }

    fn next_step(&self, _: &Inventory) -> String {
        LOOK.into()
    }
}

fn extent(extent: Extent) -> &'static str {
    match extent {
        Extent::Mostly => "in the median",
        Extent::AtTimes => "at least in a quarter of them",
    }
}

fn duration(ns: f64) -> String {
    format_duration_ns(ns as u64)
}
