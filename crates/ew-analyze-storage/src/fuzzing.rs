//! What the fuzz target runs, and the test that replays its inputs: it panics when a promise is
//! broken and returns otherwise.

use crate::testdfsio;
use ew_model::storage::{LogLine, TestDfsioLog};

/// A second between lines.
const LINE_NS: u64 = 1_000_000_000;

/// What a job of TestDFSIO printed, as its result and as its log: no time is negative.
pub fn testdfsio_figures(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let lines = text.lines().zip(1..).map(|(line, number)| LogLine {
        at_ns: number * LINE_NS,
        text: line.to_owned(),
    });
    let lines: Vec<LogLine> = lines.collect();
    let log = TestDfsioLog {
        length_ns: lines.len() as u64 * LINE_NS,
        result: text.to_string(),
        lines,
        ..TestDfsioLog::default()
    };
    let (_, job) = testdfsio::analyze(&log, data.len() as u64);
    let phases = &job.phases;
    let times = [phases.submit_s, phases.launch_s, phases.map_s];
    let times = times.into_iter().chain([phases.reduce_s, phases.end_s]);
    assert!(times.flatten().all(|seconds| seconds >= 0.0));
    let _ = testdfsio::map_span(&log);
}
