//! `/proc/meminfo` and `/proc/vmstat`, see proc(5).

use crate::file::FileBuffer;
use ew_model::telemetry::MemoryReading;
use std::path::Path;

/// Memory and swap.
pub(crate) fn memory(root: &Path, buffer: &mut FileBuffer) -> MemoryReading {
    let mut memory = MemoryReading::default();
    let text = buffer.read(root.join("proc/meminfo")).unwrap_or_default();
    for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let field = match name {
            "MemTotal" => &mut memory.total_bytes,
            "MemAvailable" => &mut memory.available_bytes,
            "MemFree" => &mut memory.free_bytes,
            "Dirty" => &mut memory.dirty_bytes,
            "SwapTotal" => &mut memory.swap_total_bytes,
            "SwapFree" => &mut memory.swap_free_bytes,
            _ => continue,
        };
        *field = kibibytes(value);
    }
    let text = buffer.read(root.join("proc/vmstat")).unwrap_or_default();
    for (name, value) in text.lines().filter_map(|line| line.split_once(' ')) {
        let field = match name {
            "pswpin" => &mut memory.swapped_in_pages,
            "pswpout" => &mut memory.swapped_out_pages,
            "oom_kill" => &mut memory.oom_kills,
            _ => continue,
        };
        *field = value.trim().parse().ok();
    }
    memory
}

/// `    1234 kB`.
fn kibibytes(value: &str) -> Option<u64> {
    let number = value.trim().strip_suffix("kB")?.trim();
    number.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::recorded;

    #[test]
    fn recorded_hosts() {
        let now = memory(&recorded("linux-6.12"), &mut FileBuffer::default());
        assert_eq!(now.total_bytes, Some(24_643_692 * 1024));
        assert_eq!(now.swapped_out_pages, Some(4321));
        assert_eq!(now.oom_kills, Some(2));
        let old = memory(&recorded("linux-4.18"), &mut FileBuffer::default());
        assert_eq!(old.available_bytes, Some(7_000_000 * 1024));
        let none = memory(&recorded("nothing-here"), &mut FileBuffer::default());
        assert_eq!(none, MemoryReading::default());
    }
}
