//! A disk of one host is busy all the time, or the disks of all.

use super::peers::{compared, is_judged, of_stages, percent};
use super::why::{Reason, Suspect};
use super::{Case, evidence};
use crate::precision::confidence;
use crate::stats::median;
use crate::words::{count, plain};
use ew_model::HostId;
use ew_model::analysis::DiskShare;
use ew_model::finding::{Cause, Evidence, Finding, Severity, Subject, Worded};
use ew_model::units::{format_bytes, format_duration_ns};

/// Share of the time with requests in flight from which on a disk is full.
const FULL: f64 = 0.9;
/// Its peers' is busy less by this.
const BUSIER: f64 = 0.3;

const HINT: &str = "look who writes (`iotop -o`, `pidstat -d 1`) and whether the disk is healthy (`smartctl -a`, RAID rebuilds); the \
                    network is not what a job on this host waits for";

/// The run's own bytes touch no disk, so a full one explains a slow host only by what it does to
/// the rest of the host.
pub(super) fn explain(case: &Case<'_>, suspect: &Suspect) -> Option<Reason> {
    let disk = full_disk(case, suspect.host)?;
    Some(Reason {
        cause: Cause::Disk,
        because: format!(
            "disk {} saturated ({} busy)",
            disk.name,
            percent(disk.busy_share)
        ),
        evidence: vec![proof(case, suspect.host, &disk)],
        hint: HINT.into(),
    })
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
        severity: Severity::Notice,
        subject: Subject::Run,
        cause: Cause::Disk,
        symptom: None,
        measured: Some(plain(middle, "share")),
        expected: None,
        confidence: confidence(Cause::Disk),
        details: Worded::details(
            format!(
                "{}: busiest disk {} busy (median), applications wait for disks before the network",
                count(busy.len(), "host"),
                percent(middle),
            ),
            vec![proof(case, busiest, &disk)],
            HINT.into(),
        ),
        cables: Vec::new(),
    })
}

fn finding(case: &Case<'_>, host: HostId) -> Option<Finding> {
    let disk = full_disk(case, host)?;
    let name = case.observations.inventory().name(host);
    let waits = disk.await_ns.map_or(String::new(), |ns| {
        format!(", {} per request", format_duration_ns(ns))
    });
    Some(Finding {
        severity: Severity::Notice,
        subject: Subject::Host { host },
        cause: Cause::Disk,
        symptom: None,
        measured: Some(plain(disk.busy_share, "share")),
        expected: None,
        confidence: confidence(Cause::Disk),
        details: Worded::details(
            format!(
                "{name}: disk {} {} busy{waits}, the network is not its limit",
                disk.name,
                percent(disk.busy_share),
            ),
            vec![proof(case, host, &disk)],
            HINT.into(),
        ),
        cables: Vec::new(),
    })
}

/// The host's disk, where it is full and the peers' are not.
fn full_disk(case: &Case<'_>, host: HostId) -> Option<DiskShare> {
    let busy = compared(case, host, |host| busy_share(case, host))?;
    let stands_out = busy.peers.is_some() && busy.exceeds(FULL, BUSIER);
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

fn proof(case: &Case<'_>, host: HostId, disk: &DiskShare) -> Evidence {
    let name = case.observations.inventory().name(host);
    evidence(
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
    )
}
