//! `/proc/pressure/*`, see Documentation/accounting/psi.rst of the kernel.

use crate::file::FileBuffer;
use ew_model::telemetry::{Pressure, StallCounters};
use std::path::Path;

/// Stall times of the whole host.
pub(crate) fn pressure(root: &Path, buffer: &mut FileBuffer) -> Pressure {
    let mut stalls = |name: &str| {
        let text = buffer.read(root.join("proc/pressure").join(name))?;
        Some(StallCounters {
            some_us: total(text, "some")?,
            full_us: total(text, "full"),
        })
    };
    Pressure {
        cpu: stalls("cpu"),
        io: stalls("io"),
        memory: stalls("memory"),
    }
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`.
fn total(text: &str, kind: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(kind))?;
    line.split_once("total=")?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::recorded;

    #[test]
    fn kernels_with_and_without() {
        let now = pressure(&recorded("linux-6.12"), &mut FileBuffer::default());
        assert_eq!(now.io.unwrap().some_us, 1_234_567);
        assert_eq!(now.cpu.unwrap().full_us, Some(0));
        // CPU pressure has no `full` line before Linux 5.13.
        let older = pressure(&recorded("linux-5.14"), &mut FileBuffer::default());
        assert_eq!(older.cpu.unwrap().full_us, None);
        let old = pressure(&recorded("linux-4.18"), &mut FileBuffer::default());
        assert_eq!(old, Pressure::default());
    }
}
