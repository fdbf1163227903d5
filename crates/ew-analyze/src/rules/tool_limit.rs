//! What moves the bytes is the limit: a thread that uses one CPU whole, or a tool that has only
//! one.

use super::case::Case;
use super::peers::{compared, of_stages};
use super::suspect::Suspect;
use ew_evidence::criteria::{FULL, MORE_LEFT};
use ew_model::HostId;
use ew_model::finding::details::{BusyThread, SingleThread, Why};
use ew_model::workload::Tool;
use ew_stats::median;
use std::collections::BTreeMap;

/// From this version on iperf3 has a thread per stream.
const IPERF3_WITH_THREADS: (u32, u32) = (3, 16);

pub(super) fn explain(case: &Case<'_>, suspect: &Suspect) -> Option<Why> {
    engine(case, suspect.host).or_else(|| single_threaded(case, suspect.host))
}

fn engine(case: &Case<'_>, host: HostId) -> Option<Why> {
    let used = compared(case, host, |host| cpus_per_stream(case, host))?;
    if !used.exceeds(FULL, MORE_LEFT) {
        return None;
    }
    Some(Why::BusyThread(BusyThread {
        host,
        cpu_share: used.into(),
    }))
}

/// CPU time of the engine's threads over the window, per stream of the host, median over rounds.
fn cpus_per_stream(case: &Case<'_>, host: HostId) -> Option<f64> {
    let mut rounds: BTreeMap<_, (f64, usize)> = BTreeMap::new();
    for (row, end) in case.isolated_flows.ends.get(host.index())? {
        let Some(cpu) = end.cpu.filter(|_| end.window_ns > 0) else {
            continue;
        };
        let known = rounds.entry((row.stage, row.round)).or_insert((0.0, 0));
        // Every end of a host and round repeats the host's time.
        known.0 = cpu.engine_ns as f64 / end.window_ns as f64;
        known.1 += end.streams.len().max(1);
    }
    let shares = rounds
        .into_values()
        .map(|(cpus, streams)| cpus / streams as f64);
    median(&shares.collect::<Vec<_>>())
}

fn single_threaded(case: &Case<'_>, host: HostId) -> Option<Why> {
    let mut judged = case.observations.judged();
    if !judged.any(|stage| stage.stage.workload.tool == Tool::Iperf3) {
        return None;
    }
    let tools = &case.observations.run.facts.get(&host)?.tools;
    let (_, version) = tools.iter().find(|(name, _)| name == "iperf3")?;
    if iperf3_version(version)? >= IPERF3_WITH_THREADS {
        return None;
    }
    let busiest = |host| of_stages(case, host, |s| Some(s.busiest_cpu?.busy_share));
    let busy = compared(case, host, busiest)?;
    busy.exceeds(FULL, MORE_LEFT).then(|| {
        Why::SingleThread(SingleThread {
            host,
            version: version.clone(),
            busy_share: busy.into(),
        })
    })
}

/// The first two numbers of "iperf 3.12 (cJSON 1.7.15)".
fn iperf3_version(line: &str) -> Option<(u32, u32)> {
    let word = line
        .split_whitespace()
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let mut numbers = word.split(['.', '-', '+']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(iperf3_version("iperf 3.12 (cJSON 1.7.15)"), Some((3, 12)));
        assert_eq!(iperf3_version("iperf 3.18+ (cJSON)"), Some((3, 18)));
        assert_eq!(iperf3_version("iperf"), None);
    }
}
