//! `/proc/net/stat/nf_conntrack` and `nf_conntrack_max`, see the kernel's
//! Documentation/networking/nf_conntrack-sysctl.rst.

use crate::file::{FileBuffer, number, read_net};
use ew_model::telemetry::ConntrackCounters;
use std::path::Path;

/// Connection tracking in the calling thread's network namespace. `None` where the kernel tracks
/// nothing.
pub(crate) fn conntrack(root: &Path, buffer: &mut FileBuffer) -> Option<ConntrackCounters> {
    let text = read_net(buffer, root, "stat/nf_conntrack")?;
    let mut counters = sum_over_cpus(text)?;
    counters.max_entries = number(root.join("proc/sys/net/netfilter/nf_conntrack_max"));
    Some(counters)
}

/// A line of names, then one of hexadecimal counts per CPU. The table's size is the same in all of
/// them.
fn sum_over_cpus(text: &str) -> Option<ConntrackCounters> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next()?.split_whitespace().collect();
    let mut counters = ConntrackCounters::default();
    for line in lines {
        for (name, value) in names.iter().zip(line.split_whitespace()) {
            let Ok(value) = u64::from_str_radix(value, 16) else {
                continue;
            };
            match *name {
                "entries" => counters.entries = value,
                "insert_failed" => add(&mut counters.insert_failed, value),
                "drop" => add(&mut counters.dropped, value),
                "early_drop" => add(&mut counters.early_dropped, value),
                _ => {}
            }
        }
    }
    Some(counters)
}

fn add(sum: &mut u64, value: u64) {
    *sum = sum.saturating_add(value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::recorded;

    #[test]
    fn cpus_are_added_up_and_the_table_is_counted_once() {
        let counters = conntrack(&recorded("linux-6.12"), &mut FileBuffer::default()).unwrap();
        let expected = ConntrackCounters {
            entries: 0x3ff,
            max_entries: Some(1024),
            insert_failed: 0x11,
            dropped: 3,
            early_dropped: 0x20,
        };
        assert_eq!(counters, expected);
    }

    #[test]
    fn a_host_that_tracks_nothing() {
        let of = |tree| conntrack(&recorded(tree), &mut FileBuffer::default());
        assert_eq!((of("linux-5.14"), of("nothing-here")), (None, None));
        assert_eq!(sum_over_cpus(""), None);
    }
}
