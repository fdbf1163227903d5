//! What the fuzz targets run, and the tests that replay their inputs: each panics when a promise is
//! broken and returns otherwise.

use crate::file::FileBuffer;
use crate::frequency::FrequencyReader;
use crate::interrupts::InterruptReader;
use crate::net_dev::device_lines;
use crate::processes::{ProcessReader, name_and_parent, pids};
use crate::{cgroup, conntrack, cpu, disks, facts, file, lldp, memory, pressure, protocols};
use std::path::Path;

/// Two readings of a host whose files are below a directory, the later ones below `later` in it,
/// where there is that: whatever the kernel reports, and whatever it reports next.
pub fn host_tree(root: &Path) {
    let mut readers = Readers::default();
    readers.read(root);
    readers.read(&root.join("later"));
    let _ = facts::facts_below(root);
    let _ = facts::hardware(root);
    let _ = crate::other_work(root, &[]);
    let _ = lldp::of_networkd(root);
}

/// Readers of files that go on from one reading to the next.
#[derive(Default)]
struct Readers {
    buffer: FileBuffer,
    processes: ProcessReader,
    interrupts: InterruptReader,
}

impl Readers {
    fn read(&mut self, root: &Path) {
        let buffer = &mut self.buffer;
        let cpus = cpu::cpus(root, buffer);
        let _ = FrequencyReader::default().latest_hz(root, buffer, &cpus);
        let text = file::read_net(buffer, root, "dev").unwrap_or_default();
        assert!(device_lines(text).count() <= text.lines().count());
        let _ = protocols::protocols(root, buffer);
        let _ = memory::memory(root, buffer);
        let _ = disks::disks(root, buffer);
        let _ = pressure::pressure(root, buffer);
        let _ = cgroup::cgroup(root, buffer);
        let _ = conntrack::conntrack(root, buffer);
        let raised = self.interrupts.read(root, buffer);
        assert!(raised.iter().all(|interrupt| !interrupt.per_cpu.is_empty()));
        let processes = self.processes.read(root, buffer);
        assert!(self.processes.refused() <= processes.len());
        for pid in pids(root) {
            let name = name_and_parent(root, buffer, pid);
            assert!(name.is_none_or(|(name, _)| !name.contains(char::is_control)));
        }
    }
}

/// What switches send (LLDP), as systemd-networkd keeps it, and as lldpd's client prints it.
pub fn lldp(data: &[u8]) {
    for frame in lldp::saved_frames(data) {
        let port = lldp::switch_port_in(frame);
        assert!(port.is_none_or(|port| !port.switch.is_empty() && !port.port.is_empty()));
    }
    let _ = lldp::switch_port_in(data);
    if let Ok(answer) = serde_json::from_slice(data) {
        let _ = lldp::of_lldpd(&answer);
    }
}
