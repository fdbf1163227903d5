//! Where a round's threads run.

use crate::arrivals::Member;
use crate::shared::RoundShared;
use crate::stream::Stream;
use crate::stream_error::StreamError;
use ew_model::record::FigureNote;
use ew_model::workload::Placement;
use std::net::IpAddr;
use std::sync::Arc;

/// Puts the calling thread, the round's `number`th, where the workload wants it. Where the host
/// does not report what is near, the streams have a note.
pub(crate) fn place(
    shared: &RoundShared,
    number: usize,
    streams: &[Arc<Stream>],
) -> Result<(), StreamError> {
    match &shared.workload.placement {
        Placement::Free | Placement::NearReceiveQueue => Ok(()),
        Placement::Cpus(cpus) => match cpus.get(number % cpus.len().max(1)) {
            Some(cpu) => run_on(&[*cpu as usize]),
            None => Err(StreamError::NoCpus),
        },
        Placement::NearNic => match cpus_near(shared.address) {
            Some(cpus) => run_on(&cpus),
            None => {
                note(streams.iter());
                Ok(())
            }
        },
    }
}

/// Puts the calling thread next to the CPU that handles what its first stream receives, when the
/// workload wants that.
pub(crate) fn follow_queue(shared: &RoundShared, members: &[Member]) {
    if shared.workload.placement != Placement::NearReceiveQueue {
        return;
    }
    let cpu = members.iter().find_map(|member| {
        let connection = member.stream.connection()?;
        ew_sys::socket::incoming_cpu(&*connection)
    });
    if cpu.is_none_or(|cpu| run_on(&[cpu]).is_err()) {
        note(members.iter().map(|member| &member.stream));
    }
}

fn run_on(cpus: &[usize]) -> Result<(), StreamError> {
    ew_sys::thread::run_on_cpus(cpus).map_err(|source| StreamError::Placement {
        cpus: cpus.to_vec(),
        source,
    })
}

fn note<'a>(streams: impl Iterator<Item = &'a Arc<Stream>>) {
    for stream in streams {
        stream.note(FigureNote::SettingRefused);
    }
}

/// The CPUs of the NUMA node that the interface with this address is attached to. `None` where
/// there is no such node: virtual interfaces, and hosts with one node.
fn cpus_near(address: IpAddr) -> Option<Vec<usize>> {
    let interfaces = ew_sys::net::interfaces().ok()?;
    let nic = interfaces
        .iter()
        .find(|i| i.facts.addresses.contains(&address))?;
    let node = read_number(&format!(
        "/sys/class/net/{}/device/numa_node",
        nic.facts.name
    ))?;
    let list = std::fs::read_to_string(format!("/sys/devices/system/node/node{node}/cpulist"));
    parse_cpu_list(list.ok()?.trim())
}

/// The kernel reports -1 where it does not know.
fn read_number(path: &str) -> Option<u32> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// `0-3,8,10-11`, as the kernel writes it (Documentation/admin-guide/cputopology.rst).
fn parse_cpu_list(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_read() {
        assert_eq!(
            parse_cpu_list("0-2,8,10-11"),
            Some(vec![0, 1, 2, 8, 10, 11])
        );
        assert_eq!(parse_cpu_list("5"), Some(vec![5]));
        assert_eq!(parse_cpu_list(""), None);
        assert_eq!(parse_cpu_list("a-b"), None);
    }

    #[test]
    fn loopback_is_near_no_node() {
        assert_eq!(cpus_near(IpAddr::from([127, 0, 0, 1])), None);
    }
}
