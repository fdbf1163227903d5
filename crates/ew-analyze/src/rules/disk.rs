//! A disk of one host is busy all the time, or the disks of all.

use super::case::Case;
use super::peers::{compared, is_judged, of_stages};
use super::suspect::Suspect;
use crate::finding::{finding_of, plain};
use ew_evidence::criteria::{FULL, MORE_LEFT};
use ew_model::HostId;
use ew_model::analysis::DiskShare;
use ew_model::finding::details::{BusyDisk, BusyDisks, Why};
use ew_model::finding::{Cause, Details, Finding, Severity, Subject};
use ew_stats::median;

/// The run's own bytes touch no disk, so a full one explains a slow host only by what it does to
/// the rest of the host.
pub(super) fn explain(case: &Case<'_>, suspect: &Suspect) -> Option<Why> {
    let disk = full_disk(case, suspect.host)?;
    Some(Why::BusyDisk(BusyDisk {
        host: suspect.host,
        disk,
    }))
}

/// Full disks of hosts that move their bytes as their peers do; else those of all hosts, which may
/// be one and the same.
pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let hosts = case
        .observations
        .inventory()
        .host_ids()
        .filter(|host| !case.network.is_slow(*host));
    let found: Vec<Finding> = hosts.filter_map(|host| finding(case, host)).collect();
    if found.is_empty() {
        return everywhere(case).into_iter().collect();
    }
    found
}

/// The disks of most hosts are full, so that none stands out.
fn everywhere(case: &Case<'_>) -> Option<Finding> {
    let hosts = case.observations.inventory().host_ids();
    let busy: Vec<(HostId, f64)> = hosts
        .filter_map(|host| Some((host, busy_share(case, host)?)))
        .collect();
    let shares: Vec<f64> = busy.iter().map(|(_, share)| *share).collect();
    let middle = median(&shares).filter(|middle| shares.len() > 1 && *middle >= FULL)?;
    let busiest = busy.iter().max_by(|a, b| a.1.total_cmp(&b.1))?.0;
    let disk = busiest_disk(case, busiest)?;
    Some(Finding {
        measured: plain(middle, "share"),
        ..finding_of(
            Severity::Notice,
            Subject::Run,
            Cause::Disk,
            Details::BusyDisks(BusyDisks {
                hosts: busy.len(),
                busy_share: middle,
                busiest: BusyDisk {
                    host: busiest,
                    disk,
                },
            }),
        )
    })
}

fn finding(case: &Case<'_>, host: HostId) -> Option<Finding> {
    let disk = full_disk(case, host)?;
    Some(Finding {
        measured: plain(disk.busy_share, "share"),
        ..finding_of(
            Severity::Notice,
            Subject::Host { host },
            Cause::Disk,
            Details::BusyDisk(BusyDisk { host, disk }),
        )
    })
}

/// The host's disk, where it is full and the peers' are not.
fn full_disk(case: &Case<'_>, host: HostId) -> Option<DiskShare> {
    let busy = compared(case, host, |host| busy_share(case, host))?;
    let stands_out = busy.peers.is_some() && busy.exceeds(FULL, MORE_LEFT);
    stands_out.then(|| busiest_disk(case, host)).flatten()
}

fn busy_share(case: &Case<'_>, host: HostId) -> Option<f64> {
    of_stages(case, host, |s| Some(s.disk.as_ref()?.busy_share))
}

/// As it was in the capacity test in which it was busiest.
fn busiest_disk(case: &Case<'_>, host: HostId) -> Option<DiskShare> {
    let stages = case.hosts.get(host.index())?.stages.iter();
    let judged = stages.filter(|stage| is_judged(case, stage.stage as usize));
    let disks = judged.filter_map(|stage| stage.disk.clone());
    disks.max_by(|a, b| a.busy_share.total_cmp(&b.busy_share))
}
