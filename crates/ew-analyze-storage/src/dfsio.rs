//! The figures that Hadoop's TestDFSIO prints, by its own formulas (TestDFSIO.java, `IOMapperBase`,
//! `analyzeResult`).

use serde::{Deserialize, Serialize};

/// TestDFSIO counts in binary megabytes.
const MB: f64 = 1024.0 * 1024.0;

/// One file (one map task of TestDFSIO).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Task {
    /// Bytes read or written.
    pub bytes: u64,
    /// From after the open to after the close.
    pub io_ns: u64,
}

/// The block that TestDFSIO prints.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DfsioFigures {
    /// `Number of files`.
    pub files: usize,
    /// `Total MBytes processed`.
    pub total_mb: f64,
    /// `Throughput mb/sec`: all bytes over the sum of all tasks' times; the rate of one task, not
    /// of the cluster.
    pub throughput_mb_per_sec: f64,
    /// `Average IO rate mb/sec`: the arithmetic mean of the tasks' rates.
    pub average_io_rate_mb_per_sec: f64,
    /// `IO rate std deviation`: of the population.
    pub io_rate_std_deviation: f64,
}

/// TestDFSIO's own formulas. It counts time in whole milliseconds, and so does this. `None` without
/// a task.
#[must_use]
pub fn figures(tasks: &[Task]) -> Option<DfsioFigures> {
    if tasks.is_empty() {
        return None;
    }
    // A task of less than a millisecond divides by zero in TestDFSIO.
    let seconds = |task: &Task| (task.io_ns / 1_000_000).max(1) as f64 / 1e3;
    let mb = |task: &Task| task.bytes as f64 / MB;
    let total_mb: f64 = tasks.iter().map(mb).sum();
    let total_s: f64 = tasks.iter().map(seconds).sum();
    let rates = tasks.iter().map(|task| mb(task) / seconds(task));
    let count = tasks.len() as f64;
    let (sum, squares) = rates.fold((0.0, 0.0), |(sum, squares), rate| {
        (sum + rate, squares + rate * rate)
    });
    let mean = sum / count;
    Some(DfsioFigures {
        files: tasks.len(),
        total_mb,
        throughput_mb_per_sec: total_mb / total_s,
        average_io_rate_mb_per_sec: mean,
        io_rate_std_deviation: (squares / count - mean * mean).abs().sqrt(),
    })
}

/// The block in TestDFSIO's layout, label for label, so that scripts that look for
/// `Throughput mb/sec` go on working. `operation` is its word (`write`, `read`, `append`,
/// `random read`); `date` its `Date & time`.
#[must_use]
pub fn block(figures: &DfsioFigures, operation: &str, date: &str, exec_s: f64) -> String {
    let lines = [
        format!("----- TestDFSIO ----- : {operation}"),
        format!("            Date & time: {date}"),
        format!("        Number of files: {}", figures.files),
        format!(" Total MBytes processed: {}", short(figures.total_mb)),
        format!(
            "      Throughput mb/sec: {}",
            short(figures.throughput_mb_per_sec)
        ),
        format!(
            " Average IO rate mb/sec: {}",
            short(figures.average_io_rate_mb_per_sec)
        ),
        format!(
            "  IO rate std deviation: {}",
            short(figures.io_rate_std_deviation)
        ),
        format!("     Test exec time sec: {}", short(exec_s)),
    ];
    let mut text = lines.join("\n");
    text.push_str("\n\n");
    text
}

/// `DecimalFormat("#.##")`, with a 0 before the point.
fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tasks(mb_and_s: &[(u64, u64)]) -> Vec<Task> {
        let task = |(mb, s): &(u64, u64)| Task {
            bytes: mb << 20,
            io_ns: s * 1_000_000_000,
        };
        mb_and_s.iter().map(task).collect()
    }

    /// Four answers from four files: 44.44, 56.25 (27.24), and 100 as an aggregate.
    #[test]
    fn the_worked_vector() {
        let figures = figures(&tasks(&[(1000, 10), (1000, 20), (1000, 20), (1000, 40)])).unwrap();
        let text = block(&figures, "write", "Wed Sep 02 10:00:00 UTC 2026", 47.2);
        let expected = "\
----- TestDFSIO ----- : write
            Date & time: Wed Sep 02 10:00:00 UTC 2026
        Number of files: 4
 Total MBytes processed: 4000
      Throughput mb/sec: 44.44
 Average IO rate mb/sec: 56.25
  IO rate std deviation: 27.24
     Test exec time sec: 47.2

";
        assert_eq!(text, expected);
        assert_eq!(super::figures(&[]), None);
    }

    proptest! {
        #[test]
        fn harmonic_is_at_most_arithmetic(times in prop::collection::vec(1u64..100_000, 1..50)) {
            let tasks: Vec<Task> = times
                .iter()
                .map(|ms| Task { bytes: 1 << 20, io_ns: ms * 1_000_000 })
                .collect();
            let figures = figures(&tasks).unwrap();
            prop_assert!(figures.throughput_mb_per_sec <= figures.average_io_rate_mb_per_sec * (1.0 + 1e-9));
            prop_assert!(figures.io_rate_std_deviation >= 0.0);
        }
    }
}
