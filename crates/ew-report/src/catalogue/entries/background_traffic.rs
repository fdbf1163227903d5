//! Traffic that is not the run's takes a part of a host's link.

use crate::catalogue::phrases::percent;
use crate::catalogue::why::Reasoned;
use crate::catalogue::{Entry, Headline, proof};
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::{BackgroundTraffic, Directions, TrafficOwner};
use ew_model::units::format_bits_per_sec;

impl Entry for BackgroundTraffic {
    fn headline(&self, names: &Inventory) -> Headline {
        Headline::new(format!(
            "{}: background traffic. {}",
            names.name(self.host),
            of_nic(self)
        ))
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        Reasoned::evidence(self, names)
    }

    fn next_step(&self, names: &Inventory) -> String {
        Reasoned::next_step(self, names)
    }
}

impl Reasoned for BackgroundTraffic {
    fn because(&self, _: &Inventory) -> String {
        format!("background traffic, {}", of_nic(self))
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let name = names.name(self.host);
        vec![match &self.process {
            Some(process) => owned(self, process, name),
            None => unowned(self, name),
        }]
    }

    fn next_step(&self, _: &Inventory) -> String {
        match &self.process {
            Some(_) => {
                "stop it, move it, or limit it for the time of a measurement; or take its share as given and state the rest as \
                 `expect.nic`"
            }
            None => {
                "look for UDP, other network namespaces (containers) and kernel traffic (NFS, Ceph, iSCSI) on the host: `eastwest \
                 top` there, `ss -uapn`, `nfsstat`"
            }
        }
        .into()
    }
}

/// "rsync (pid 812) sends 58 Mb/s to 198.18.0.9, 29% of the NIC".
fn of_nic(found: &BackgroundTraffic) -> String {
    format!(
        "{}, {} of the NIC",
        who_does_what(found),
        percent(found.link_share)
    )
}

/// "rsync (pid 812) sends 58 Mb/s to 198.18.0.9".
fn who_does_what(found: &BackgroundTraffic) -> String {
    let rate = format_bits_per_sec(found.bits_per_sec);
    let (does, towards) = match found.direction {
        Directions::Rx => ("receives", "from"),
        _ => ("sends", "to"),
    };
    let Some(process) = &found.process else {
        return format!("traffic without a visible TCP socket {does} {rate}");
    };
    let pid = process
        .pid
        .map_or(String::new(), |pid| format!(" (pid {pid})"));
    let peer = process
        .peer
        .map_or(String::new(), |peer| format!(" {towards} {peer}"));
    let name = match process.command.as_str() {
        "" => "a hidden process",
        command => command,
    };
    format!("{name}{pid} {does} {rate}{peer}")
}

fn owned(found: &BackgroundTraffic, process: &TrafficOwner, name: &str) -> Evidence {
    let pid = process.pid.map_or("-".into(), |pid| pid.to_string());
    proof(
        format!(
            "{name}: {}, while the run's stages went on",
            who_does_what(found)
        ),
        format!("traffic.parquet: host = {name}, pid = {pid}"),
    )
}

fn unowned(found: &BackgroundTraffic, name: &str) -> Evidence {
    proof(
        format!(
            "{name}: the data interface carried {} more than the run's flows, their headers and acknowledgements",
            format_bits_per_sec(found.bits_per_sec)
        ),
        format!(
            "hosts.parquet: host = {name}, kind = interface, against traffic.parquet: host = {name}"
        ),
    )
}
