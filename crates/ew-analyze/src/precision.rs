//! How far findings of a cause can be relied on: how often they were right on networks whose truth
//! is known.
//!
//! Counted are notices and faults. Right is a finding about what is wrong, with the cause that is
//! the cause. The counts are those of docs/concepts/verdicts.md, which a test compares; where they
//! come from is in docs/benchmarks.md.

use ew_model::bounds::clopper_pearson;
use ew_model::finding::{Cause, Confidence};

/// What a cause's confidence rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Basis {
    /// Right findings of all.
    Counted(u64, u64),
    /// The run itself shows it; nothing is inferred.
    Shown,
    /// No network with this truth was measured often enough to count.
    NotMeasured,
}

/// From this share of right findings on, confidence is high; its 95% interval's lower end counts.
const HIGH: f64 = 0.9;
/// From this one on it is medium.
const MEDIUM: f64 = 0.5;

/// The word for a cause.
pub(crate) fn confidence(cause: Cause) -> Confidence {
    match basis(cause) {
        Basis::Shown => Confidence::High,
        Basis::NotMeasured => Confidence::Low,
        Basis::Counted(right, of) => of_counts(right, of),
    }
}

fn of_counts(right: u64, of: u64) -> Confidence {
    match clopper_pearson(right, of).0 {
        share if share >= HIGH => Confidence::High,
        share if share >= MEDIUM => Confidence::Medium,
        _ => Confidence::Low,
    }
}

fn basis(cause: Cause) -> Basis {
    let row = TABLE.iter().find(|(other, _)| *other == cause);
    row.map_or(Basis::NotMeasured, |(_, basis)| *basis)
}

/// Every cause, with its counts.
const TABLE: [(Cause, Basis); 32] = [
    (Cause::SlowHost, Basis::Counted(334, 334)),
    (Cause::SlowSender, Basis::Counted(322, 322)),
    (Cause::SlowReceiver, Basis::Counted(318, 318)),
    (Cause::Uplink, Basis::Counted(1307, 1354)),
    (Cause::BadPath, Basis::Counted(552, 582)),
    (Cause::LostPath, Basis::Counted(555, 572)),
    (Cause::ConnectionLimit, Basis::Counted(248, 248)),
    (Cause::ReceiveWindow, Basis::Counted(157, 157)),
    (Cause::CpuQuota, Basis::Counted(159, 159)),
    (Cause::Loss, Basis::Counted(32, 32)),
    (Cause::CoreSaturated, Basis::Counted(16, 20)),
    (Cause::SendBuffer, Basis::Counted(17, 17)),
    (Cause::Mtu, Basis::Counted(16, 16)),
    (Cause::BackgroundTraffic, Basis::Counted(18, 18)),
    (Cause::Disk, Basis::Counted(15, 15)),
    (Cause::HostMissing, Basis::Shown),
    (Cause::PairsMissing, Basis::Shown),
    (Cause::MeasurementQuality, Basis::Shown),
    (Cause::LineRate, Basis::Shown),
    (Cause::LinkSpeed, Basis::Shown),
    (Cause::FasterNetwork, Basis::Shown),
    (Cause::BondMember, Basis::Shown),
    (Cause::NicClasses, Basis::Shown),
    (Cause::HashCollisions, Basis::Shown),
    (Cause::PodNetwork, Basis::Shown),
    (Cause::Congestion, Basis::Shown),
    (Cause::SlowPair, Basis::NotMeasured),
    (Cause::ToolLimit, Basis::NotMeasured),
    (Cause::Latency, Basis::NotMeasured),
    (Cause::ReceiveDrops, Basis::NotMeasured),
    (Cause::BelowLinkSpeed, Basis::NotMeasured),
    (Cause::NotDetermined, Basis::NotMeasured),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// As findings.json spells it.
    fn word(cause: Cause) -> String {
        let word = serde_json::to_value(cause).unwrap();
        word.as_str().unwrap().to_owned()
    }

    #[test]
    fn the_published_table_is_this_one() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/concepts/verdicts.md");
        let text = std::fs::read_to_string(path).unwrap();
        let (_, section) = text.split_once("\n## Confidence\n").unwrap();
        let section = section.split("\n## ").next().unwrap();
        let rows: Vec<&str> = section
            .lines()
            .filter(|line| line.starts_with("| `"))
            .collect();
        let expected = TABLE.iter().map(|(cause, basis)| {
            let right = match basis {
                Basis::Counted(right, of) => format!("{right} of {of}"),
                Basis::Shown => "shown by the run".into(),
                Basis::NotMeasured => "not measured".into(),
            };
            format!(
                "| `{}` | {right} | {} |",
                word(*cause),
                confidence(*cause).word()
            )
        });
        assert_eq!(rows, expected.collect::<Vec<_>>());
    }

    #[test]
    fn a_word_needs_as_many_right_ones_as_its_bound_asks() {
        for (right, of, word) in [
            (200, 200, Confidence::High),
            (30, 30, Confidence::Medium),
            (6, 6, Confidence::Medium),
            (3, 3, Confidence::Low),
            (65, 100, Confidence::Medium),
            (50, 100, Confidence::Low),
        ] {
            assert_eq!(of_counts(right, of), word, "{right} of {of}");
        }
    }
}
