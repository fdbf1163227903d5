//! What Hadoop's own TestDFSIO printed: its figures, and how long the job took around them.
//!
//! At small sizes most of its time is the job's: JVMs, scheduling, shuffle, commit. That hides the
//! bend of a fan-in, so it is shown apart from the I/O time.

use super::dfsio::DfsioFigures;
use ew_model::storage::{LogLine, StorageStep, TestDfsioLog};
use serde::{Deserialize, Serialize};

/// A job of TestDFSIO. Times that its log does not show are `None`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HadoopJob {
    /// `job_1795290427250_0001`; of one that ran in its client's own JVM `job_local...`.
    pub job: Option<String>,
    /// Of YARN.
    pub application: Option<String>,
    /// The command line.
    pub command: Vec<String>,
    /// `Test exec time sec`: from the job's submission to its end, seconds. `None`: there is no
    /// result.
    pub exec_s: Option<f64>,
    /// From the start of the client's process to its end, seconds.
    pub process_s: f64,
    /// Its parts, one after the other, seconds.
    pub phases: Phases,
    /// Map tasks that moved files, and how long they took.
    pub tasks: Tasks,
    /// Bytes over the map phase, which is more than the I/O: a lower bound of the cluster's
    /// aggregate.
    pub map_phase_bytes_per_sec: Option<f64>,
}

/// Seconds of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phases {
    /// Client's JVM, control files, submission.
    pub submit_s: Option<f64>,
    /// Until the application master runs.
    pub launch_s: Option<f64>,
    /// From there to the last map task's end.
    pub map_s: Option<f64>,
    /// Shuffle, reduce and commit.
    pub reduce_s: Option<f64>,
    /// Until the client's end.
    pub end_s: Option<f64>,
}

/// Counters of a job's tasks, and the I/O in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tasks {
    /// `Launched map tasks`.
    pub maps: Option<u64>,
    /// `Failed map tasks` and `Killed map tasks`: attempts that had to be repeated.
    pub lost_maps: u64,
    /// `Total time spent by all map tasks`, seconds, summed over them.
    pub map_s: Option<f64>,
    /// `Total time spent by all reduce tasks`, seconds.
    pub reduce_s: Option<f64>,
    /// The I/O time of all of them, seconds: TestDFSIO's bytes over its throughput.
    pub io_s: Option<f64>,
}

/// A job's figures and its times. `bytes` are those of its files.
#[must_use]
pub fn analyze(log: &TestDfsioLog, bytes: u64) -> (Option<DfsioFigures>, HadoopJob) {
    let block = Block::of(log);
    let figures = block.figures();
    let phases = phases(log);
    let counter = |name: &str| counter(&log.lines, name);
    let seconds = |name: &str| counter(name).map(|ms| ms as f64 / 1e3);
    let lost = ["Failed map tasks", "Killed map tasks"];
    let io_s = figures.filter(|found| found.throughput_mb_per_sec > 0.0);
    let tasks = Tasks {
        maps: counter("Launched map tasks"),
        lost_maps: lost
            .into_iter()
            .filter_map(counter)
            .fold(0, u64::saturating_add),
        map_s: seconds("Total time spent by all map tasks (ms)"),
        reduce_s: seconds("Total time spent by all reduce tasks (ms)"),
        io_s: io_s.map(|found| found.total_mb / found.throughput_mb_per_sec),
    };
    let is_whole = figures.is_some() && bytes > 0;
    let map_s = phases.map_s.filter(|seconds| is_whole && *seconds > 0.0);
    let job = HadoopJob {
        job: word_after(log, "Running job: ").map(str::to_owned),
        application: word_after(log, "Submitted application ").map(str::to_owned),
        command: log.command.clone(),
        exec_s: block.exec_s,
        process_s: log.length_ns as f64 / 1e9,
        phases,
        tasks,
        map_phase_bytes_per_sec: map_s.map(|seconds| bytes as f64 / seconds),
    };
    (figures, job)
}

/// What TestDFSIO prints at its end.
#[derive(Default)]
struct Block {
    files: Option<f64>,
    total_mb: Option<f64>,
    throughput: Option<f64>,
    average: Option<f64>,
    deviation: Option<f64>,
    exec_s: Option<f64>,
}

impl Block {
    /// Of its result file, else of its log. Labels are those of TestDFSIO.java.
    fn of(log: &TestDfsioLog) -> Self {
        let lines = || {
            let logged = log.lines.iter().map(|line| line.text.as_str());
            log.result.lines().chain(logged)
        };
        let value = |label: &str| {
            let mut found = lines().filter_map(|line| line.split_once(label));
            found.next()?.1.trim().parse::<f64>().ok()
        };
        Self {
            files: value("Number of files:"),
            total_mb: value("Total MBytes processed:"),
            throughput: value("Throughput mb/sec:"),
            average: value("Average IO rate mb/sec:"),
            deviation: value("IO rate std deviation:"),
            exec_s: value("Test exec time sec:"),
        }
    }

    fn figures(&self) -> Option<DfsioFigures> {
        Some(DfsioFigures {
            files: self.files.filter(|files| *files >= 0.0)? as usize,
            total_mb: self.total_mb?,
            throughput_mb_per_sec: self.throughput?,
            average_io_rate_mb_per_sec: self.average?,
            io_rate_std_deviation: self.deviation?,
        })
    }
}

/// By the time at which the lines came, whatever the log's layout.
fn phases(log: &TestDfsioLog) -> Phases {
    let at = |words: &[&str]| {
        let mut lines = log.lines.iter();
        let line = lines.find(|line| words.iter().all(|part| line.text.contains(part)))?;
        Some(line.at_ns)
    };
    let submitted = at(&["Running job: "]);
    let running = at(&["running in uber mode"]);
    let mapped = at(&[" map 100% "]);
    let completed = at(&["completed successfully"]);
    let between = |from: Option<u64>, to: Option<u64>| {
        let length_ns = to?.saturating_sub(from?);
        Some(length_ns as f64 / 1e9)
    };
    Phases {
        submit_s: between(Some(0), submitted),
        launch_s: between(submitted, running),
        map_s: between(running, mapped),
        reduce_s: between(mapped, completed),
        end_s: between(completed, Some(log.length_ns)),
    }
}

/// When map tasks ran, from the step's common start: begin and length, ns. `None`: the log does not
/// show it.
pub(crate) fn map_span(log: &TestDfsioLog) -> Option<(u64, u64)> {
    let phases = phases(log);
    let began_s = phases.submit_s? + phases.launch_s?;
    let ns = |seconds: f64| (seconds * 1e9) as u64;
    let began_ns = log.started_ns.saturating_add(ns(began_s));
    Some((began_ns, ns(phases.map_s?)))
}

/// `    Launched map tasks=8`.
fn counter(lines: &[LogLine], name: &str) -> Option<u64> {
    let mut values = lines.iter().filter_map(|line| {
        let (found, value) = line.text.trim().rsplit_once('=')?;
        (found == name).then(|| value.parse().ok()).flatten()
    });
    values.next()
}

fn word_after<'a>(log: &'a TestDfsioLog, words: &str) -> Option<&'a str> {
    let mut found = log
        .lines
        .iter()
        .filter_map(|line| line.text.split_once(words));
    found.next()?.1.split_whitespace().next()
}

pub(super) fn log_of(step: &StorageStep) -> Option<&TestDfsioLog> {
    let mut reports = step.reports.iter().map(|(_, report)| report);
    reports.find_map(|report| report.testdfsio.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a real job (Hadoop 3.4.2): 4 files of 8 MiB on two hosts.
    const WRITE: &str = include_str!("fixtures/testdfsio-write.log");

    /// With the times that its lines carry, which are of one hour.
    fn log(text: &str) -> TestDfsioLog {
        let mut at_ns = 0;
        let line = |line: &str| {
            at_ns = logged_ns(line).unwrap_or(at_ns);
            let text = line.replace('\t', "        ");
            LogLine { at_ns, text }
        };
        TestDfsioLog {
            lines: text.lines().map(line).collect(),
            length_ns: 50_000_000_000,
            ..TestDfsioLog::default()
        }
    }

    /// From 07:57:19 on.
    fn logged_ns(line: &str) -> Option<u64> {
        let clock = line.get(14..23)?;
        let (minute, rest) = clock.split_once(':')?;
        let (second, ms) = rest.split_once(',')?;
        let number = |text: &str| text.parse::<u64>().ok();
        let ms = number(minute)? * 60_000 + number(second)? * 1000 + number(ms)?;
        Some((ms - (57 * 60_000 + 19_000)) * 1_000_000)
    }

    /// Character by character, so that scripts that read the one read the other.
    #[test]
    fn our_block_is_the_real_one() {
        let prefix = "INFO fs.TestDFSIO: ";
        let lines = WRITE
            .lines()
            .filter_map(|line| Some(line.split_once(prefix)?.1));
        let real: Vec<&str> = lines.skip_while(|l| !l.starts_with("-----")).collect();
        let (figures, job) = analyze(&log(WRITE), 32 << 20);
        let date = "Tue Nov 24 07:58:08 UTC 2026";
        let ours =
            super::super::dfsio::block(&figures.unwrap(), "write", date, job.exec_s.unwrap());
        assert_eq!(ours.lines().collect::<Vec<_>>(), real);
    }

    #[test]
    fn a_real_jobs_log_is_read() {
        let (figures, job) = analyze(&log(WRITE), 32 << 20);
        let figures = figures.unwrap();
        assert_eq!((figures.files, figures.total_mb), (4, 32.0));
        assert_eq!(figures.throughput_mb_per_sec, 9.96);
        assert_eq!(figures.average_io_rate_mb_per_sec, 10.0);
        assert_eq!(figures.io_rate_std_deviation, 0.67);
        assert_eq!(job.exec_s, Some(46.06));
        assert_eq!(job.job.as_deref(), Some("job_1795506768148_0001"));
        let application = "application_1795506768148_0001";
        assert_eq!(job.application.as_deref(), Some(application));
        let near = |found: Option<f64>, expected: f64| {
            assert!(
                (found.unwrap() - expected).abs() < 1e-6,
                "{found:?} {expected}"
            );
        };
        near(job.phases.submit_s, 6.206);
        near(job.phases.launch_s, 16.957);
        near(job.phases.map_s, 15.289);
        near(job.phases.reduce_s, 10.556);
        near(job.phases.end_s, 50.0 - 49.008);
        near(job.tasks.io_s, 32.0 / 9.96);
        assert_eq!(job.tasks.maps, Some(4));
        assert!(job.tasks.map_s > job.tasks.io_s);
        near(job.map_phase_bytes_per_sec, f64::from(32 << 20) / 15.289);
    }

    /// The result file counts before the log, and one label alone is no figure.
    #[test]
    fn the_result_file_comes_first_and_a_part_of_it_is_no_figure() {
        let mut log = log(WRITE);
        log.result = "      Throughput mb/sec: 44.44\n".into();
        assert_eq!(analyze(&log, 1).0.unwrap().throughput_mb_per_sec, 44.44);
        log.lines.clear();
        let (figures, job) = analyze(&log, 1);
        assert_eq!(figures, None);
        assert_eq!(job.phases.map_s, None);
        assert_eq!(job.map_phase_bytes_per_sec, None);
    }
}
