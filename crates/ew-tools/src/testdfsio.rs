//! Hadoop's own TestDFSIO: a MapReduce job, submitted with `yarn jar` or `hadoop jar`.
//!
//! The user's environment goes with it, and so does a Kerberos ticket. What the job printed is kept
//! line by line with its times; `ew-analyze` reads it.

use crate::discover::{find_program, is_executable};
use crate::process::{Cancel, End, run_to_end};
use ew_model::storage::{
    FileOutcome, FileRecord, LogLine, StorageOperation, StorageOrder, StorageReport, TestDfsio,
    TestDfsioLog,
};
use ew_sys::clock::{monotonic_ns, sleep_until_ns};
use ew_sys::process::{Signal, die_with_parent, kill_group, new_process_group};
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// Folder below the target that TestDFSIO makes and removes. It removes all of it.
const FOLDER: &str = "eastwest-testdfsio";
/// Programs that submit a job, the first that is found.
const PROGRAMS: [&str; 2] = ["yarn", "hadoop"];
/// Where distributions put Hadoop when neither HADOOP_HOME nor PATH has it.
const DEFAULT_HOMES: [&str; 6] = [
    "/usr/local/hadoop",
    "/opt/hadoop",
    "/usr/lib/hadoop-yarn",
    "/usr/lib/hadoop",
    "/usr/hdp/current/hadoop-client",
    "/opt/cloudera/parcels/CDH",
];
/// Where jars of MapReduce are, below a home or apart from it.
const DEFAULT_JARS: [&str; 6] = [
    "share/hadoop/mapreduce",
    "jars",
    ".",
    "/usr/lib/hadoop-mapreduce",
    "/usr/hdp/current/hadoop-mapreduce-client",
    "/opt/cloudera/parcels/CDH/jars",
];
const JAR_PREFIX: &str = "hadoop-mapreduce-client-jobclient";
const JAR_SUFFIX: &str = "tests.jar";
/// Lines of TestDFSIO's block; only its result file has them at a line's start.
const BLOCK: [&str; 8] = [
    "----- TestDFSIO -----",
    "Date & time:",
    "Number of files:",
    "Total MBytes processed:",
    "Throughput mb/sec:",
    "Average IO rate mb/sec:",
    "IO rate std deviation:",
    "Test exec time sec:",
];
/// Creating thousands of control files takes minutes; more than this, and nothing is submitted.
const SUBMIT_LIMIT_NS: u64 = 900_000_000_000;
/// `yarn application -kill` has to start a JVM and to be heard.
const KILL_LIMIT_NS: u64 = 25_000_000_000;
/// What is reported after the process's end.
const LAST_WORDS: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(50);
/// A longer line comes in pieces.
const MAX_LINE_BYTES: u64 = 1000;
/// Lines kept of a log's begin, and as many of its end.
pub(crate) const MAX_LINES: usize = 2000;
pub(crate) const MAX_RESULT_BYTES: usize = 64 << 10;
/// Lines that may wait to be read by us.
const MAX_WAITING: usize = 256;

/// Does a step by a job of Hadoop's, and returns what it printed. Progress goes to `say`, in words.
/// Blocks until the job is over; when `cancelled` is set, kills it.
#[must_use]
pub fn run_testdfsio(
    order: &StorageOrder,
    cancelled: &AtomicBool,
    say: &mut dyn FnMut(String),
) -> StorageReport {
    let mut report = StorageReport {
        step: order.step,
        ..StorageReport::default()
    };
    let settings = order.job.testdfsio.clone().unwrap_or_default();
    let hadoop = match Hadoop::find(&settings) {
        Ok(hadoop) => hadoop,
        Err(error) => {
            report.error = Some(error.to_string());
            return report;
        }
    };
    while monotonic_ns() < order.start_ns && !cancelled.load(Ordering::Relaxed) {
        let soon_ns = monotonic_ns() + POLL.as_nanos() as u64;
        sleep_until_ns(order.start_ns.min(soon_ns));
    }
    let words = arguments(order, &settings, &hadoop.jar);
    let mut log = Log::new(&hadoop.program, &words);
    let ended = submit(&hadoop, &words, cancelled, &mut log, say);
    log.kept.started_ns = log.began_ns.saturating_sub(order.start_ns);
    let outcome = match ended {
        Ok(Ended::Cancelled) => {
            report
                .notes
                .extend(log.application.map(|id| match log.is_killed {
                    true => format!("{id} was killed"),
                    false => {
                        format!("{id} may still run; end it with `yarn application -kill {id}`")
                    }
                }));
            FileOutcome::Cancelled
        }
        Ok(Ended::Exited(status)) => match failure(status, order.operation, &log.kept) {
            None => FileOutcome::Done,
            Some(error) => FileOutcome::Failed { error },
        },
        Err(error) => FileOutcome::Failed {
            error: error.to_string(),
        },
    };
    let record = |file: &u32| record(order, *file, &outcome);
    report.files = order.files.iter().map(record).collect();
    log.kept.lines.extend(log.tail);
    report.testdfsio = Some(Box::new(log.kept));
    report
}

/// The job knows no times of single files.
fn record(order: &StorageOrder, file: u32, outcome: &FileOutcome) -> FileRecord {
    let is_done = *outcome == FileOutcome::Done;
    let bytes = match order.operation {
        StorageOperation::Clean => 0,
        operation if operation.writes() => order.job.file_bytes,
        _ => order.present_bytes,
    };
    FileRecord {
        file,
        worker: 0,
        start_ns: 0,
        open_ns: None,
        first_byte_ns: None,
        io_ns: None,
        close_ns: None,
        bytes: if is_done { bytes } else { 0 },
        outcome: outcome.clone(),
    }
}

/// Why no job was submitted, or nothing is known of it.
#[derive(Debug, thiserror::Error)]
enum SubmitError {
    /// No Hadoop where it should be.
    #[error(
        "--hadoop {given}: neither a program nor a directory with bin/yarn or bin/hadoop on this host; give HADOOP_HOME"
    )]
    NotHadoop {
        /// As asked for.
        given: String,
    },
    /// No Hadoop in any default place.
    #[error(
        "no Hadoop on this host: no yarn or hadoop below HADOOP_HOME, in PATH or in the default directories; give --hadoop DIRECTORY, or another host with --submit-on"
    )]
    NoHadoop,
    /// No jar where it should be.
    #[error("--testdfsio-jar {given}: there is no such file on this host")]
    NotJar {
        /// As asked for.
        given: String,
    },
    /// No jar in any default place.
    #[error(
        "no {JAR_PREFIX}-*-{JAR_SUFFIX} next to {}: TestDFSIO is in it; give its path with --testdfsio-jar",
        program.display()
    )]
    NoJar {
        /// Hadoop's.
        program: PathBuf,
    },
    /// The program does not start.
    #[error("cannot start {}: {source}", program.display())]
    Start {
        /// Hadoop's.
        program: PathBuf,
        /// The system's.
        source: io::Error,
    },
    /// The program's end cannot be waited for.
    #[error(transparent)]
    Wait(io::Error),
    /// The program runs and submits nothing.
    #[error(
        "no job was submitted within {} s; the last line: {last_line}",
        SUBMIT_LIMIT_NS / 1_000_000_000
    )]
    Late {
        /// Of its output; `none` when there is none.
        last_line: String,
    },
}

/// What submits jobs on this host.
struct Hadoop {
    program: PathBuf,
    jar: PathBuf,
}

impl Hadoop {
    fn find(settings: &TestDfsio) -> Result<Self, SubmitError> {
        let program = find_hadoop(settings.hadoop.as_deref())?;
        let jar = match &settings.jar {
            Some(jar) if Path::new(jar).is_file() => PathBuf::from(jar),
            Some(jar) => {
                let given = jar.clone();
                return Err(SubmitError::NotJar { given });
            }
            None => find_jar(&program).ok_or_else(|| SubmitError::NoJar {
                program: program.clone(),
            })?,
        };
        Ok(Self { program, jar })
    }

    /// `yarn` next to what submitted.
    fn yarn(&self) -> PathBuf {
        let sibling = self.program.with_file_name("yarn");
        match is_executable(&sibling) {
            true => sibling,
            false => self.program.clone(),
        }
    }

    /// Whether YARN took the order.
    fn kill(&self, application: &str) -> bool {
        let mut command = Command::new(self.yarn());
        command.args(["application", "-kill", application]);
        let finished = run_to_end(command, monotonic_ns() + KILL_LIMIT_NS, &Cancel::default());
        finished.is_ok_and(|done| matches!(done.end, End::Exited(status) if status.success()))
    }
}

fn find_hadoop(given: Option<&str>) -> Result<PathBuf, SubmitError> {
    let below = |home: &Path| {
        let programs = PROGRAMS.iter().map(|name| home.join("bin").join(name));
        programs.into_iter().find(|path| is_executable(path))
    };
    if let Some(given) = given {
        let path = Path::new(given);
        let found = match path.is_dir() {
            true => below(path),
            false => is_executable(path).then(|| path.to_owned()),
        };
        let given = given.to_owned();
        return found.ok_or(SubmitError::NotHadoop { given });
    }
    let home = std::env::var_os("HADOOP_HOME").map(PathBuf::from);
    let by_path = || PROGRAMS.iter().find_map(|name| find_program(name));
    let by_default = || DEFAULT_HOMES.iter().find_map(|home| below(Path::new(home)));
    let found = home.and_then(|home| below(&home)).or_else(by_path);
    found.or_else(by_default).ok_or(SubmitError::NoHadoop)
}

fn find_jar(program: &Path) -> Option<PathBuf> {
    // A distribution's program may be a link into its home.
    let program = std::fs::canonicalize(program).unwrap_or_else(|_| program.to_owned());
    let homes = [std::env::var_os("HADOOP_MAPRED_HOME").map(PathBuf::from)];
    let own = program.parent().and_then(Path::parent).map(Path::to_owned);
    let homes: Vec<PathBuf> = homes.into_iter().chain([own]).flatten().collect();
    let folders = homes
        .iter()
        .flat_map(|home| DEFAULT_JARS.iter().map(|folder| home.join(folder)));
    let mut jars = folders.filter_map(|folder| {
        let entries = std::fs::read_dir(folder).ok()?;
        let paths = entries.flatten().map(|entry| entry.path());
        paths
            .filter(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                name.starts_with(JAR_PREFIX) && name.ends_with(JAR_SUFFIX)
            })
            .max()
    });
    jars.next()
}

/// The user's own settings come last, and win; that none moves the files, the command checked.
fn arguments(order: &StorageOrder, settings: &TestDfsio, jar: &Path) -> Vec<String> {
    let job = &order.job;
    let rest = job.target.strip_prefix("hdfs://").unwrap_or(&job.target);
    let (authority, directory) = rest.split_once('/').unwrap_or((rest, ""));
    let directory = match directory.trim_matches('/') {
        "" => format!("/{FOLDER}"),
        named => format!("/{named}/{FOLDER}"),
    };
    let mut defined = vec![
        format!("fs.defaultFS=hdfs://{authority}"),
        format!("test.build.data={directory}"),
    ];
    let replication = job.replication.map(|n| format!("dfs.replication={n}"));
    let block = job
        .block_bytes
        .map(|bytes| format!("dfs.blocksize={bytes}"));
    defined.extend(replication.into_iter().chain(block));
    defined.extend(settings.settings.iter().cloned());
    let mut words = vec!["jar".into(), jar.display().to_string(), "TestDFSIO".into()];
    words.extend(defined.into_iter().flat_map(|pair| ["-D".to_owned(), pair]));
    let (operation, bytes): (&[&str], u64) = match order.operation {
        StorageOperation::Write => (&["-write"], job.file_bytes),
        StorageOperation::Append => (&["-append"], job.file_bytes),
        StorageOperation::Read => (&["-read"], order.present_bytes),
        StorageOperation::RandomRead => (&["-read", "-random"], order.present_bytes),
        StorageOperation::Clean => (&["-clean"], 0),
    };
    words.extend(operation.iter().map(|&word| word.to_owned()));
    if order.operation != StorageOperation::Clean {
        let numbers = [
            ("-nrFiles", order.files.len().to_string()),
            ("-size", format!("{bytes}B")),
            ("-bufferSize", job.buffer_bytes.to_string()),
            // Nothing is left on the host.
            ("-resFile", "/dev/stdout".to_owned()),
        ];
        words.extend(
            numbers
                .into_iter()
                .flat_map(|(flag, word)| [flag.to_owned(), word]),
        );
    }
    words
}

/// How a process ended that was started.
enum Ended {
    Exited(ExitStatus),
    Cancelled,
}

/// A line of one of the two streams.
pub(crate) struct Line {
    pub(crate) at_ns: u64,
    pub(crate) text: String,
    pub(crate) is_stdout: bool,
}

/// What is kept of the output.
pub(crate) struct Log {
    began_ns: u64,
    pub(crate) kept: TestDfsioLog,
    /// The last lines, when the first ones are full.
    pub(crate) tail: VecDeque<LogLine>,
    application: Option<String>,
    is_killed: bool,
    /// Whether a job was submitted, to whomever.
    is_submitted: bool,
}

/// Ends with its group when dropped, so that no path leaks it.
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        // All fail only when it is over.
        let _ = kill_group(self.0.id(), Signal::Kill);
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn submit(
    hadoop: &Hadoop,
    words: &[String],
    cancelled: &AtomicBool,
    log: &mut Log,
    say: &mut dyn FnMut(String),
) -> Result<Ended, SubmitError> {
    let started = start(hadoop, words);
    let (mut child, lines) = started.map_err(|source| SubmitError::Start {
        program: hadoop.program.clone(),
        source,
    })?;
    let ended = loop {
        match lines.recv_timeout(POLL) {
            Ok(line) => log.take(line, say),
            Err(RecvTimeoutError::Timeout) => {}
            // Both streams are at their end, and so is the process, or soon.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(POLL),
        }
        if cancelled.load(Ordering::Relaxed) {
            break Ok(Ended::Cancelled);
        }
        if let Some(status) = child.0.try_wait().map_err(SubmitError::Wait)? {
            break Ok(Ended::Exited(status));
        }
        if !log.is_submitted && monotonic_ns() > log.began_ns + SUBMIT_LIMIT_NS {
            let last_line = log.last_line().to_owned();
            break Err(SubmitError::Late { last_line });
        }
    };
    if let Ok(Ended::Exited(_)) = ended {
        log.drain(&lines, say);
    } else {
        // Before its client is: that may be what holds it.
        log.kill(hadoop);
        drop(child);
        log.drain(&lines, say);
        log.kill(hadoop);
    }
    log.kept.length_ns = monotonic_ns() - log.began_ns;
    ended
}

fn start(hadoop: &Hadoop, words: &[String]) -> io::Result<(Reaped, Receiver<Line>)> {
    let mut command = Command::new(&hadoop.program);
    command.args(words).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    new_process_group(&mut command);
    die_with_parent(&mut command);
    let began_ns = monotonic_ns();
    let mut child = Reaped(command.spawn()?);
    let (sender, lines) = sync_channel(MAX_WAITING);
    if let Some(stdout) = child.0.stdout.take() {
        read_lines(stdout, true, began_ns, sender.clone())?;
    }
    if let Some(stderr) = child.0.stderr.take() {
        read_lines(stderr, false, began_ns, sender)?;
    }
    Ok((child, lines))
}

fn read_lines(
    pipe: impl Read + Send + 'static,
    is_stdout: bool,
    began_ns: u64,
    lines: SyncSender<Line>,
) -> io::Result<()> {
    let read = move || {
        let mut reader = BufReader::new(pipe);
        let mut bytes = Vec::new();
        while let Ok(1..) = reader
            .by_ref()
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut bytes)
        {
            let text = line_text(&bytes);
            let at_ns = monotonic_ns() - began_ns;
            let line = Line {
                at_ns,
                text,
                is_stdout,
            };
            if lines.send(line).is_err() {
                return;
            }
            bytes.clear();
        }
    };
    let named = std::thread::Builder::new().name("testdfsio".to_owned());
    named.spawn(read).map(|_| ())
}

/// A line without its end; a tab may be shown as nothing.
pub(crate) fn line_text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.trim_end().replace('\t', "        ")
}

impl Log {
    pub(crate) fn new(program: &Path, words: &[String]) -> Self {
        let program = program.display().to_string();
        Self {
            began_ns: monotonic_ns(),
            kept: TestDfsioLog {
                command: [program].into_iter().chain(words.iter().cloned()).collect(),
                ..TestDfsioLog::default()
            },
            tail: VecDeque::new(),
            application: None,
            is_killed: false,
            is_submitted: false,
        }
    }

    pub(crate) fn take(&mut self, line: Line, say: &mut dyn FnMut(String)) {
        let is_of_block = BLOCK
            .iter()
            .any(|part| line.text.trim_start().starts_with(part));
        if line.is_stdout && is_of_block {
            if self.kept.result.len() + line.text.len() < MAX_RESULT_BYTES {
                self.kept.result.push_str(&line.text);
                self.kept.result.push('\n');
            }
            return;
        }
        if line.text.is_empty() {
            return;
        }
        if self.application.is_none() {
            self.application = application(&line.text).map(str::to_owned);
        }
        self.is_submitted |= line.text.contains("Running job: ");
        if let Some(words) = progress(&line.text) {
            say(words.to_owned());
        }
        let line = LogLine {
            at_ns: line.at_ns,
            text: line.text,
        };
        if self.kept.lines.len() < MAX_LINES {
            return self.kept.lines.push(line);
        }
        self.tail.push_back(line);
        if self.tail.len() > MAX_LINES {
            self.tail.pop_front();
            self.kept.skipped_lines += 1;
        }
    }

    /// Both streams end with the process, unless it has left children behind.
    fn drain(&mut self, lines: &Receiver<Line>, say: &mut dyn FnMut(String)) {
        let end_ns = monotonic_ns() + LAST_WORDS.as_nanos() as u64;
        while monotonic_ns() < end_ns {
            match lines.recv_timeout(POLL) {
                Ok(line) => self.take(line, say),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    }

    fn kill(&mut self, hadoop: &Hadoop) {
        if let (Some(application), false) = (&self.application, self.is_killed) {
            self.is_killed = hadoop.kill(application);
        }
    }

    pub(crate) fn last_line(&self) -> &str {
        let last = self.tail.back().or(self.kept.lines.last());
        last.map_or("none", |line| without_prefix(&line.text))
    }
}

/// `Submitted application application_1795290427250_0001`.
fn application(line: &str) -> Option<&str> {
    let (_, id) = line.split_once("Submitted application ")?;
    let id = id.split_whitespace().next()?;
    let is_id =
        id.starts_with("application_") && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_id.then_some(id)
}

/// What is worth showing of a line, without its log's prefix.
fn progress(line: &str) -> Option<&str> {
    const SHOWN: [&str; 6] = [
        "map ",
        "creating control file",
        "Submitted application",
        "Running job",
        "Retrying connect to server",
        "Task Id :",
    ];
    let at = SHOWN.iter().find_map(|words| {
        let at = line.find(words)?;
        let is_percent = line[at..].contains("% reduce ");
        (*words != "map " || is_percent).then_some(at)
    })?;
    Some(line[at..].trim())
}

/// Why a job has no result. `None`: it has.
fn failure(status: ExitStatus, operation: StorageOperation, log: &TestDfsioLog) -> Option<String> {
    let has_block = || {
        let lines = log.lines.iter().map(|line| line.text.as_str());
        let mut lines = log.result.lines().chain(lines);
        lines.any(|line| line.contains("Throughput mb/sec:"))
    };
    let why = match status.success() {
        true if operation == StorageOperation::Clean || has_block() => return None,
        true => "it printed no result".to_owned(),
        false => cause(log).unwrap_or_else(|| "it printed no reason".into()),
    };
    let how = match status.code() {
        Some(code) => format!("exit code {code}"),
        None => status.to_string(),
    };
    Some(format!(
        "TestDFSIO ended with {how}: {why}; its log is in the run directory"
    ))
}

/// `2026-11-24 08:17:23,514 INFO mapreduce.Job: Job job_1 failed`: what comes after the logger's
/// name.
fn without_prefix(line: &str) -> &str {
    let levels = [" INFO ", " WARN ", " ERROR ", " FATAL "];
    let mut rests = levels.iter().filter_map(|level| line.split_once(level));
    let message = rests.next().and_then(|(_, rest)| rest.split_once(": "));
    message.map_or(line, |(_, message)| message).trim()
}

/// The job's own diagnosis, else the first exception.
fn cause(log: &TestDfsioLog) -> Option<String> {
    let text = |line: &LogLine| without_prefix(&line.text).to_owned();
    let with = |words: &str| {
        let mut lines = log.lines.iter();
        lines.find(|line| line.text.contains(words)).map(text)
    };
    let of_task = with("Error: ");
    let exception = || with("Exception: ").or_else(|| with("Error: "));
    let of_job = with("failed with state").map(|line| match &of_task {
        Some(task) => format!("{line} ({task})"),
        None => line,
    });
    of_job
        .or_else(exception)
        .or_else(|| log.lines.last().map(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::storage::StorageJob;
    use std::os::unix::fs::PermissionsExt;

    /// A directory with a `bin/yarn` of these lines, and a jar; removed at its end.
    struct Home(PathBuf);

    impl Home {
        fn new(name: &str, script: &str) -> Self {
            let name = format!("eastwest-testdfsio-{name}-{}", std::process::id());
            let home = std::env::temp_dir().join(name);
            let jars = home.join("share/hadoop/mapreduce");
            std::fs::create_dir_all(&jars).unwrap();
            std::fs::create_dir_all(home.join("bin")).unwrap();
            std::fs::write(
                jars.join("hadoop-mapreduce-client-jobclient-3.4.2-tests.jar"),
                "",
            )
            .unwrap();
            let program = home.join("bin/yarn");
            std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
            Self(home)
        }

        fn order(&self) -> StorageOrder {
            let settings = TestDfsio {
                hadoop: Some(self.0.display().to_string()),
                jar: None,
                settings: vec!["mapreduce.map.memory.mb=2048".into()],
            };
            StorageOrder {
                step: 3,
                operation: StorageOperation::Write,
                job: StorageJob {
                    target: "hdfs://nn:8020/bench".into(),
                    file_bytes: 1 << 20,
                    buffer_bytes: 1 << 16,
                    parallel: 1,
                    direct: false,
                    sync: true,
                    drop_cache: true,
                    verify: false,
                    seed: 0,
                    replication: Some(2),
                    block_bytes: None,
                    time_ns: None,
                    testdfsio: Some(settings),
                },
                files: vec![0, 1],
                present_bytes: 1 << 20,
                start_ns: 0,
            }
        }
    }

    impl Drop for Home {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_jobs_output_is_kept_and_its_progress_shown() {
        let script = "echo '1 INFO mapreduce.Job: Running job: job_1_1' >&2
            echo '2 INFO mapreduce.Job:  map 50% reduce 0%' >&2
            printf '\tLaunched map tasks=2\n' >&2
            printf '      Throughput mb/sec: 44.44\n'; echo \"$@\" >&2";
        let home = Home::new("whole", script);
        let mut said = Vec::new();
        let report = run_testdfsio(&home.order(), &AtomicBool::new(false), &mut |w| {
            said.push(w);
        });
        let done = report
            .files
            .iter()
            .map(|f| (f.file, f.bytes, f.outcome.clone()));
        let whole = |file| (file, 1 << 20, FileOutcome::Done);
        assert_eq!(done.collect::<Vec<_>>(), [whole(0), whole(1)]);
        let log = report.testdfsio.unwrap();
        assert_eq!(log.result, "      Throughput mb/sec: 44.44\n");
        let words = &log.lines.last().unwrap().text;
        let expected = "TestDFSIO -D fs.defaultFS=hdfs://nn:8020 -D test.build.data=/bench/eastwest-testdfsio -D dfs.replication=2 -D mapreduce.map.memory.mb=2048 -write -nrFiles 2 -size 1048576B -bufferSize 65536 -resFile /dev/stdout";
        assert!(
            words.starts_with("jar ") && words.ends_with(expected),
            "{words}"
        );
        assert!(said.contains(&"map 50% reduce 0%".to_owned()), "{said:?}");
    }

    /// A Kerberos ticket's cache is that of `KRB5CCNAME`, or of the user's id (kerberos(7)).
    #[test]
    fn a_job_has_the_agents_user_and_environment() {
        let script = "echo \"user $(id -u), path $PATH\" >&2; echo '  Throughput mb/sec: 1'";
        let home = Home::new("environment", script);
        let report = run_testdfsio(&home.order(), &AtomicBool::new(false), &mut |_| {});
        let path = std::env::var("PATH").unwrap();
        let expected = format!("user {}, path {path}", ew_sys::process::user());
        let log = report.testdfsio.unwrap();
        assert!(
            log.lines.iter().any(|line| line.text == expected),
            "{log:?}"
        );
    }

    #[test]
    fn a_job_that_fails_says_why() {
        let script = "echo '1 INFO mapreduce.Job: Job job_1_1 failed with state KILLED due to: no memory' >&2; exit 254";
        let home = Home::new("failed", script);
        let report = run_testdfsio(&home.order(), &AtomicBool::new(false), &mut |_| {});
        let expected = "TestDFSIO ended with exit code 254: Job job_1_1 failed with state KILLED due to: no memory; its log is in the run directory";
        let error = expected.to_owned();
        assert_eq!(report.files[1].outcome, FileOutcome::Failed { error });
        let silent = Home::new("silent", "exit 0");
        let report = run_testdfsio(&silent.order(), &AtomicBool::new(false), &mut |_| {});
        let FileOutcome::Failed { error } = &report.files[0].outcome else {
            panic!("{:?}", report.files);
        };
        assert!(error.contains("printed no result"), "{error}");
    }

    /// The client would go on for an hour; the job outlives its client.
    #[test]
    fn a_job_that_is_cancelled_is_killed() {
        let script = "case $1 in application) echo \"$3\" >\"$0.killed\"; exit 0;; esac
            echo '1 INFO impl.YarnClientImpl: Submitted application application_7_0001' >&2
            exec sleep 3600";
        let home = Home::new("killed", script);
        let cancelled = AtomicBool::new(false);
        let report = run_testdfsio(&home.order(), &cancelled, &mut |words| {
            if words.starts_with("Submitted") {
                cancelled.store(true, Ordering::Relaxed);
            }
        });
        assert_eq!(report.files[0].outcome, FileOutcome::Cancelled);
        assert_eq!(report.notes, ["application_7_0001 was killed"]);
        let killed = std::fs::read_to_string(home.0.join("bin/yarn.killed")).unwrap();
        assert_eq!(killed, "application_7_0001\n");
    }

    #[test]
    fn a_host_without_hadoop_is_named() {
        let home = Home::new("none", "exit 0");
        let mut order = home.order();
        order.job.testdfsio.as_mut().unwrap().hadoop = Some("/nonexistent".into());
        let report = run_testdfsio(&order, &AtomicBool::new(false), &mut |_| {});
        let words = report.error.unwrap();
        assert!(
            words.starts_with("--hadoop /nonexistent: neither"),
            "{words}"
        );
        std::fs::remove_dir_all(home.0.join("share")).unwrap();
        let report = run_testdfsio(&home.order(), &AtomicBool::new(false), &mut |_| {});
        let words = report.error.unwrap();
        assert!(words.contains("--testdfsio-jar"), "{words}");
    }
}
