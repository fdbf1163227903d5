//! `/proc/diskstats`, see Documentation/admin-guide/iostats.rst of the kernel.

use crate::file::FileBuffer;
use ew_model::telemetry::DiskCounters;
use std::path::Path;

/// Whatever the disk's own sector is, the kernel counts in these.
const SECTOR_BYTES: u64 = 512;

/// Whole disks that were ever used. Partitions are skipped by asking `/sys/block`, which lists
/// none; without it nothing is skipped.
pub(crate) fn disks(root: &Path, buffer: &mut FileBuffer) -> Vec<DiskCounters> {
    let text = buffer.read(root.join("proc/diskstats")).unwrap_or_default();
    let whole = root.join("sys/block");
    let know_whole = whole.exists();
    // The kernel writes the slash of a name such as cciss/c0d0 as an exclamation mark there.
    let is_whole = |name: &str| !know_whole || whole.join(name.replace('/', "!")).exists();
    let used = text.lines().filter_map(disk_line);
    used.filter(|d| (d.reads > 0 || d.writes > 0) && is_whole(&d.name))
        .collect()
}

/// `259 0 nvme0n1` and eleven numbers; four more since Linux 4.18 (discards), two more since 5.5
/// (flushes).
fn disk_line(line: &str) -> Option<DiskCounters> {
    let mut words = line.split_whitespace().skip(2);
    let name = words.next()?.to_owned();
    let numbers: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
    let number = |index: usize| numbers.get(index).copied();
    Some(DiskCounters {
        name,
        reads: number(0)?,
        read_bytes: number(2)?.saturating_mul(SECTOR_BYTES),
        read_ms: number(3)?,
        writes: number(4)?,
        written_bytes: number(6)?.saturating_mul(SECTOR_BYTES),
        write_ms: number(7)?,
        in_flight: number(8)?,
        busy_ms: number(9)?,
        weighted_ms: number(10)?,
        flushes: number(15),
        flush_ms: number(16),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::recorded;

    #[test]
    fn whole_disks_that_were_used() {
        let disks = disks(&recorded("linux-6.12"), &mut FileBuffer::default());
        let names: Vec<_> = disks.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["nvme0n1", "dm-0"]);
        assert_eq!(disks[0].read_bytes, 63_886_426 * 512);
        assert_eq!(
            (disks[0].busy_ms, disks[0].flushes),
            (185_992, Some(20_554))
        );
    }

    #[test]
    fn linux_4_18_tells_no_flushes() {
        let disks = disks(&recorded("linux-4.18"), &mut FileBuffer::default());
        assert_eq!(disks[0].name, "sda");
        assert_eq!((disks[0].writes, disks[0].flushes), (166, None));
        assert_eq!(disk_line("8 0 sda 1 2 3"), None);
    }
}
