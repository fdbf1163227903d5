//! Disks that are busy all the time.

use crate::catalogue::phrases::percent;
use crate::catalogue::why::Reasoned;
use crate::catalogue::{Entry, Headline, proof};
use crate::words::plural;
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::{BusyDisk, BusyDisks};
use ew_model::units::{format_bytes, format_duration_ns};

impl Entry for BusyDisk {
    fn headline(&self, names: &Inventory) -> Headline {
        let waits = self.disk.await_ns.map_or(String::new(), |ns| {
            format!(", {} per request", format_duration_ns(ns))
        });
        Headline::new(format!(
            "{}: disk {} {} busy{waits}, the network is not its limit",
            names.name(self.host),
            self.disk.name,
            percent(self.disk.busy_share),
        ))
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        Reasoned::evidence(self, names)
    }

    fn next_step(&self, names: &Inventory) -> String {
        Reasoned::next_step(self, names)
    }
}

impl Entry for BusyDisks {
    fn headline(&self, _: &Inventory) -> Headline {
        Headline::new(format!(
            "{}: busiest disk {} busy (median), applications wait for disks before the network",
            plural(self.hosts, "host"),
            percent(self.busy_share),
        ))
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        Reasoned::evidence(&self.busiest, names)
    }

    fn next_step(&self, names: &Inventory) -> String {
        Reasoned::next_step(&self.busiest, names)
    }
}

impl Reasoned for BusyDisk {
    fn because(&self, _: &Inventory) -> String {
        format!(
            "disk {} saturated ({} busy)",
            self.disk.name,
            percent(self.disk.busy_share)
        )
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let name = names.name(self.host);
        let disk = &self.disk;
        vec![proof(
            format!(
                "{name}: {} busy {}, reads {}/s, writes {}/s",
                disk.name,
                percent(disk.busy_share),
                format_bytes(disk.read_bytes_per_sec as u64),
                format_bytes(disk.written_bytes_per_sec as u64),
            ),
            format!(
                "counters.parquet: host = {name}, source = disk, name = {}, busy_ms",
                disk.name
            ),
        )]
    }

    fn next_step(&self, _: &Inventory) -> String {
        "look who writes (`iotop -o`, `pidstat -d 1`) and whether the disk is healthy (`smartctl -a`, RAID rebuilds); the \
         network is not what a job on this host waits for"
            .into()
    }
}
