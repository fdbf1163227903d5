//! What a run of many hosts costs the controller, the disk, the analysis and the page: hosts that
//! are not there, through the controller's real links, sessions, recorder and analysis.
//!
//! ```text
//! cargo run --release -p ew-controller --example thousand_hosts
//!     [--hosts 1000] [--cpus 128] [--samples 600] [--speed 4] [--runs-dir DIR]
//! ```
//! A sample is that of a second, and comes `--speed` times as often. Prints each figure next to its
//! bar; `bench/thousand.sh` builds and runs it.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it talks to who runs it"
)]

mod agent;
mod sample;

use ew_controller::{AbortLimits, Job, LaunchOptions, RelayChoice};
use ew_fleet::Local;
use ew_model::event::RunEvent;
use ew_model::inventory::{Host, Inventory, Rack, RackId};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

const BUILD: &str = "thousand-hosts";
const HOSTS_PER_RACK: usize = 25;
const STREAMS: u32 = 8;
const WINDOW: Duration = Duration::from_secs(2);
/// A window, its warm-up and its gap.
const ROUND_S: f64 = 2.4;
const MB: u64 = 1_000_000;
/// What a synthetic host reads of its task.
const TASK: &str = "THOUSAND_HOSTS_TASK";

struct Options {
    hosts: usize,
    cpus: u32,
    samples: u32,
    speed: u32,
    runs_dir: PathBuf,
}

/// What is compared with a bar.
struct Figure {
    what: &'static str,
    measured: String,
    bar: String,
    is_met: bool,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.first().map(String::as_str) {
        Some("agent") => serve(),
        Some("report") => words
            .get(1)
            .map_or(Err("report DIR".into()), |dir| report(Path::new(dir))),
        _ => options(&words).and_then(|options| measure(&options)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn options(words: &[String]) -> Result<Options, Box<dyn Error>> {
    let mut options = Options {
        hosts: 1000,
        cpus: 128,
        samples: 600,
        speed: 4,
        runs_dir: PathBuf::from("runs"),
    };
    for pair in words.chunks(2) {
        let [name, value] = pair else {
            return Err(format!("{} needs a value", pair[0]).into());
        };
        match name.as_str() {
            "--hosts" => options.hosts = value.parse()?,
            "--cpus" => options.cpus = value.parse()?,
            "--samples" => options.samples = value.parse()?,
            "--speed" => options.speed = value.parse()?,
            "--runs-dir" => options.runs_dir = PathBuf::from(value),
            _ => {
                return Err(
                    format!("{name} is not known; see the first lines of the source").into(),
                );
            }
        }
    }
    Ok(options)
}

fn serve() -> Result<(), Box<dyn Error>> {
    let task = std::env::var(TASK)?;
    agent::serve(BUILD, serde_json::from_str(&task)?);
    Ok(())
}

fn measure(options: &Options) -> Result<(), Box<dyn Error>> {
    let task = serde_json::to_string(&agent::Task {
        cpus: options.cpus,
        samples: options.samples,
        read: sample::read(),
    })?;
    let binary = std::env::current_exe()?.canonicalize()?;
    let launcher = Local {
        binary: binary.clone(),
    };
    let launcher = Tasked { launcher, task };
    let job = job(options, launcher)?;
    let (mut samples, mut lost, mut ran) = (0_u64, 0_u64, Duration::ZERO);
    let began = Instant::now();
    let finished = ew_controller::run(&job, &mut |_, event| match event {
        RunEvent::RunFinished { .. } => ran = began.elapsed(),
        RunEvent::HostSampled { .. } => samples += 1,
        RunEvent::EventsLost { count } => lost += count,
        RunEvent::Warning { message } => eprintln!("warning: {message}"),
        RunEvent::HostFailed { host, message } | RunEvent::HostLost { host, message } => {
            eprintln!("{host}: {message}");
        }
        _ => {}
    })?;
    let after = began.elapsed() - ran;
    let run = &finished.analysis.run;
    let figures = figures(
        &finished.dir,
        run.controller_peak_bytes,
        run.controller_cpu_ns,
        ran,
    )?;
    let (hosts, cpus) = (options.hosts, options.cpus);
    println!(
        "{hosts} hosts x {cpus} CPUs x {} samples, {} times as often",
        options.samples, options.speed
    );
    println!(
        "shown {samples} samples, not recorded {lost}; run {:.1} s, tables and analysis after it {:.1} s",
        ran.as_secs_f64(),
        after.as_secs_f64()
    );
    figures.iter().for_each(Figure::print);
    // In a process of its own, whose memory is the analysis' alone.
    let reported = Command::new(binary)
        .arg("report")
        .arg(&finished.dir)
        .status()?;
    if !reported.success() {
        return Err("the report failed".into());
    }
    Ok(())
}

/// Of the run itself.
fn figures(
    dir: &Path,
    peak_bytes: Option<u64>,
    cpu_ns: Option<u64>,
    ran: Duration,
) -> Result<Vec<Figure>, Box<dyn Error>> {
    let peak_bytes = peak_bytes.ok_or("no peak memory was recorded")?;
    let cpu_s = cpu_ns.ok_or("no CPU time was recorded")? as f64 / 1e9;
    let events_bytes = std::fs::metadata(dir.join("events.jsonl"))?.len();
    Ok(vec![
        Figure::of_bytes("controller, peak memory", peak_bytes, 500 * MB),
        Figure {
            what: "controller, CPU time",
            measured: format!("{cpu_s:.1} s"),
            bar: format!("{:.0} s (one core)", ran.as_secs_f64()),
            is_met: cpu_s <= ran.as_secs_f64(),
        },
        Figure::of_bytes("events.jsonl", events_bytes, 1000 * MB),
    ])
}

/// Reads a run, analyses it and makes its page.
fn report(dir: &Path) -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    let run = ew_store::load(dir)?;
    let loaded_s = began.elapsed().as_secs_f64();
    let analysis = ew_analyze::analyze(&run);
    drop(run);
    let analysed_s = began.elapsed().as_secs_f64();
    let cpu_s = ew_sys::process::usage().cpu_ns as f64 / 1e9;
    let style = ew_report::TextStyle {
        width: 120,
        color: false,
        details: true,
    };
    let page = ew_report::render(&analysis, ew_report::Format::Html, &style)?;
    let peak_bytes = ew_sys::process::usage().peak_rss_bytes;
    println!(
        "read in {loaded_s:.1} s; read and analysed with {cpu_s:.1} s of CPU time; page made in {:.1} s",
        began.elapsed().as_secs_f64() - analysed_s
    );
    Figure {
        what: "read and analysed",
        measured: format!("{analysed_s:.1} s"),
        bar: "60 s".into(),
        is_met: analysed_s <= 60.0,
    }
    .print();
    Figure::of_bytes("analysis and page, peak memory", peak_bytes, 1000 * MB).print();
    Figure::of_bytes("page", page.len() as u64, 15 * MB).print();
    Ok(())
}

impl Figure {
    fn of_bytes(what: &'static str, bytes: u64, bar_bytes: u64) -> Self {
        Self {
            what,
            measured: format!("{:.1} MB", bytes as f64 / MB as f64),
            bar: format!("{} MB", bar_bytes / MB),
            is_met: bytes <= bar_bytes,
        }
    }

    fn print(&self) {
        let word = if self.is_met { "met" } else { "MISSED" };
        let Self {
            what,
            measured,
            bar,
            ..
        } = self;
        println!("  {what:<32} {measured:>12}  {bar:>18}  {word}");
    }
}

/// Starts this program's own agents with their task.
struct Tasked {
    launcher: Local,
    task: String,
}

impl ew_fleet::Launcher for Tasked {
    fn name(&self) -> &'static str {
        self.launcher.name()
    }

    fn fan_out(&self) -> ew_fleet::FanOut {
        self.launcher.fan_out()
    }

    fn agent_command(&self, host: &Host) -> Result<ew_fleet::AgentCommand, ew_fleet::LaunchError> {
        let mut agent = self.launcher.agent_command(host)?;
        agent.command.env(TASK, &self.task);
        Ok(agent)
    }

    fn root_shell(&self, host: &Host) -> Result<Command, ew_fleet::LaunchError> {
        self.launcher.root_shell(host)
    }
}

fn job(options: &Options, launcher: Tasked) -> Result<Job, Box<dyn Error>> {
    let second_ns = 1_000_000_000 / u64::from(options.speed);
    let rounds = f64::from(options.samples) / f64::from(options.speed) / ROUND_S;
    let overrides = [
        format!("duration={}s", WINDOW.as_secs()),
        format!("streams={STREAMS}"),
        format!("samples={}", (rounds as u32).max(1)),
    ];
    let text = ew_plan::scenario::builtin("permutation").ok_or("no scenario")?;
    let scenario = ew_plan::scenario::parse(text, "permutation", &overrides)?;
    Ok(Job {
        scenario,
        inventory: inventory(options.hosts),
        seed: 1,
        launcher: Arc::new(launcher),
        options: launch_options(second_ns),
        runs_dir: options.runs_dir.clone(),
        command: std::env::args().collect(),
        follow_flows: false,
        signals_end_analysis: true,
        detours: BTreeMap::new(),
        node_labels: BTreeMap::new(),
    })
}

fn launch_options(sample_interval_ns: u64) -> LaunchOptions {
    LaunchOptions {
        build: BUILD.into(),
        data_ports: (5401, 5499),
        tool_ports: (5001, 5399),
        sample_interval_ns,
        offer_iperf3_port: None,
        watched: BTreeSet::new(),
        launch_limit: Duration::from_secs(120),
        network: None,
        require_all: true,
        claimed_by: None,
        force: true,
        abort_command: None,
        abort_limits: AbortLimits {
            rtt_ns: None,
            retransmits: None,
        },
        max_bytes: None,
        allow_wan: true,
        max_rate: None,
        syslog: false,
        relay: RelayChoice::Never,
    }
}

/// Racks of [`HOSTS_PER_RACK`].
fn inventory(hosts: usize) -> Inventory {
    let host = |number: usize| {
        let rack = number / HOSTS_PER_RACK;
        let address = Ipv4Addr::new(10, 0, rack as u8, (number % HOSTS_PER_RACK) as u8 + 1);
        Host {
            name: format!("r{}n{}", rack + 1, number % HOSTS_PER_RACK + 1),
            address: Some(IpAddr::V4(address)),
            rack: Some(RackId(rack as u32)),
        }
    };
    let rack = |number: usize| Rack {
        name: format!("r{}", number + 1),
    };
    Inventory {
        hosts: (0..hosts).map(host).collect(),
        racks: (0..hosts.div_ceil(HOSTS_PER_RACK)).map(rack).collect(),
    }
}
