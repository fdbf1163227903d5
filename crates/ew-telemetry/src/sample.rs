//! Raw counters at one instant.

use crate::net_dev::interface_counters;
use crate::proc_stat::cpu_counters;
use ew_model::facts::HostSample;
use std::path::Path;

/// Reads the host's counters below `root`. `now_ns` and `late_ns` are recorded as given: the caller's monotonic clock, and how
/// far it was behind its schedule.
#[must_use]
pub fn sample(root: &Path, now_ns: u64, late_ns: u64) -> HostSample {
    HostSample {
        agent_ns: now_ns,
        late_ns,
        cpus: cpu_counters(root),
        interfaces: interface_counters(root),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A recorded tree.
    pub(crate) fn recorded(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data")
            .join(name)
    }

    #[test]
    fn a_recorded_host() {
        let sample = sample(&recorded("host"), 5, 6);
        assert_eq!((sample.agent_ns, sample.late_ns), (5, 6));
        // CPU 2 is offline.
        let cpus: Vec<_> = sample.cpus.iter().map(|c| c.cpu).collect();
        assert_eq!(cpus, [0, 1, 3]);
        assert_eq!(sample.cpus[1].softirq_ticks, Some(90_731));
        let names: Vec<_> = sample.interfaces.iter().map(|i| i.name.as_str()).collect();
        assert_eq!(names, ["eth0", "bond0.12"]);
        assert_eq!(sample.interfaces[0].rx_bytes, 18_446_744_073_709);
        assert_eq!(sample.interfaces[1].tx_drops, 7);
    }

    #[test]
    fn the_threads_own_network_goes_first() {
        let sample = sample(&recorded("thread"), 0, 0);
        let names: Vec<_> = sample.interfaces.iter().map(|i| i.name.as_str()).collect();
        assert_eq!(names, ["inside0"]);
    }

    #[test]
    fn an_empty_tree_has_no_counters() {
        let sample = sample(&recorded("nothing-here"), 0, 0);
        assert!(sample.cpus.is_empty() && sample.interfaces.is_empty());
    }

    #[test]
    fn this_host_has_counters() {
        assert!(!sample(Path::new("/"), 0, 0).cpus.is_empty());
    }
}
