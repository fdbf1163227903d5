//! Hosts that are all slow alike, and what limits them.

use crate::catalogue::phrases::percent;
use crate::catalogue::why::Reasoned;
use crate::catalogue::{Entry, Headline, proof};
use crate::words::plural;
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::{BelowLinkSpeed, SharedLimit, SingleConnections};
use ew_model::units::{format_bits_per_sec, format_duration_ns};

impl Entry for BelowLinkSpeed {
    fn headline(&self, names: &Inventory) -> Headline {
        let what = format!(
            "{}: {} of line rate ({} of {})",
            plural(self.hosts, "host"),
            percent(self.bits_per_sec / self.goodput_bits_per_sec),
            format_bits_per_sec(self.bits_per_sec),
            format_bits_per_sec(self.goodput_bits_per_sec),
        );
        match &self.limit {
            Some(limit) => Headline::new(what).because(limit.because(names)),
            None => Headline::new(format!("{what}. Cause not determined")),
        }
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        match &self.limit {
            Some(limit) => limit.evidence(names),
            None => vec![proof(
                "no counter of the hosts stands out",
                "hosts.parquet, flows.parquet",
            )],
        }
    }

    fn next_step(&self, names: &Inventory) -> String {
        match &self.limit {
            Some(limit) => limit.next_step(names),
            None => "run with more connections (`--set streams=8`) and longer (`--set duration=10s`); look at provider limits and bonds"
                .into(),
        }
    }
}

impl Entry for SingleConnections {
    fn headline(&self, names: &Inventory) -> Headline {
        let (of, who) = match self.host {
            Some(host) => (format!("{}: ", names.name(host)), "it does"),
            None => (String::new(), "hosts do"),
        };
        Headline::new(format!(
            "{of}single connections: {} of what {who} with several ({} vs {})",
            percent(self.bits_per_sec / self.several_bits_per_sec),
            format_bits_per_sec(self.bits_per_sec),
            format_bits_per_sec(self.several_bits_per_sec),
        ))
        .because(self.limit.because(names))
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        self.limit.evidence(names)
    }

    fn next_step(&self, names: &Inventory) -> String {
        self.limit.next_step(names)
    }
}

impl Reasoned for SharedLimit {
    fn because(&self, _: &Inventory) -> String {
        match self {
            Self::Connection { bits_per_sec, .. } => format!(
                "each connection limited to {}",
                format_bits_per_sec(*bits_per_sec)
            ),
            Self::CpuQuota { throttled_share } => format!(
                "cgroup CPU limit throttled the agents {} of the time",
                percent(*throttled_share)
            ),
            Self::FullThreads { .. } => "one core per connection saturated".into(),
            Self::ReceiveWindow {
                limited_share,
                round_trip_ns,
            } => {
                let round_trip = round_trip_ns.map_or(String::new(), |ns| {
                    format!(", RTT {}", format_duration_ns(ns))
                });
                format!(
                    "receive window limited {} of busy time{round_trip}",
                    percent(*limited_share)
                )
            }
            Self::SendBuffer { limited_share } => format!(
                "send buffer limited {} of busy time",
                percent(*limited_share)
            ),
            Self::Shaper {
                discipline,
                bits_per_sec,
                ..
            } => format!(
                "the hosts' own tc {discipline} shapers, {}",
                format_bits_per_sec(*bits_per_sec)
            ),
        }
    }

    fn evidence(&self, _: &Inventory) -> Vec<Evidence> {
        vec![match self {
            Self::Connection {
                bits_per_sec,
                several_bits_per_sec,
            } => proof(
                format!(
                    "isolated flows of one connection: {}; of several: {}",
                    format_bits_per_sec(*bits_per_sec),
                    format_bits_per_sec(*several_bits_per_sec)
                ),
                "flows.parquet: isolated flows by streams",
            ),
            Self::CpuQuota { throttled_share } => proof(
                format!(
                    "median over hosts: throttled {} of the windows",
                    percent(*throttled_share)
                ),
                "counters.parquet: source = cgroup, cpu_throttled_us",
            ),
            Self::FullThreads { cpu_share } => proof(
                format!(
                    "I/O threads: median {} of a CPU per connection",
                    percent(*cpu_share)
                ),
                "flows.parquet: tx_cpu_engine_ns and rx_cpu_engine_ns over the window",
            ),
            Self::ReceiveWindow { limited_share, .. } => proof(
                format!(
                    "median over isolated flows: limited by the receive window {} of busy time",
                    percent(*limited_share)
                ),
                "flows.parquet: receive_window_limited_us over busy_us",
            ),
            Self::SendBuffer { limited_share } => proof(
                format!(
                    "median over isolated flows: limited by the send buffer {} of busy time",
                    percent(*limited_share)
                ),
                "flows.parquet: send_buffer_limited_us over busy_us",
            ),
            Self::Shaper {
                discipline,
                bits_per_sec,
                link_bits_per_sec,
            } => proof(
                format!(
                    "median over hosts: {discipline} lets {} pass; the link is {}",
                    format_bits_per_sec(*bits_per_sec),
                    format_bits_per_sec(*link_bits_per_sec)
                ),
                "counters.parquet: source = qdisc, rate_bytes_per_sec",
            ),
        }]
    }

    fn next_step(&self, _: &Inventory) -> String {
        match self {
            Self::Connection { .. } => {
                "use more connections per host; a provider's per-flow cap or one LAG member limits each"
            }
            Self::CpuQuota { .. } => "raise or remove the CPU limit of the agents' control group",
            Self::FullThreads { .. } => {
                "use more connections (`--set streams=8`), so that more cores share the work"
            }
            Self::ReceiveWindow { .. } => {
                "raise `net.ipv4.tcp_rmem` and `net.core.rmem_max` to twice bandwidth times round trip"
            }
            Self::SendBuffer { .. } => {
                "raise `net.ipv4.tcp_wmem` and `net.core.wmem_max` to twice bandwidth times round trip"
            }
            Self::Shaper { .. } => {
                "`tc -s qdisc` on the hosts shows the shaper; remove it or set its rate to the link's if nobody wants it"
            }
        }
        .into()
    }
}
