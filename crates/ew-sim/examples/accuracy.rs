//! How often the analysis is right on networks whose truth is known: plans, simulates, analyses and
//! compares.
//!
//! ```text
//! cargo run --release -p ew-sim --example accuracy -- --family healthy --seeds 1-200
//!     [--shapes any] [--scenario qualify] [--list 20] [--explain on] [--expect paths]
//! cargo run --release -p ew-sim --example accuracy -- --hosts 1000     (time of one analysis)
//! ```

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it talks to who runs it"
)]

use ew_model::Analysis;
use ew_model::finding::Cause;
use ew_model::topology::{HostSpec, PathSpec, RackSpec, Topology};
use ew_sim::{Family, Judgement, Noise, clopper_pearson, draw, draw_any_shape, judge, simulate};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const USAGE: &str = "usage: accuracy --family healthy|oversubscribed|bad-member|slow-hosts|uniformly-slow|all \
                     --seeds FIRST-LAST [--shapes any] [--scenario NAME] [--list MAX] [--explain on] [--expect paths]\n       accuracy --hosts COUNT";

struct Options {
    families: Vec<Family>,
    seeds: RangeInclusive<u64>,
    /// Networks that no list has.
    any_shape: bool,
    scenario: String,
    most_listed: usize,
    /// Print the findings of every wrong seed.
    explain: bool,
    /// State how many paths racks have.
    expects_paths: bool,
    /// Time one analysis of so many hosts instead.
    hosts: Option<usize>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(options) = options(&arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    if let Some(hosts) = options.hosts {
        println!("{}", time_of(hosts));
        return ExitCode::SUCCESS;
    }
    for family in &options.families {
        if let Err(error) = report(*family, &options) {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn options(arguments: &[String]) -> Option<Options> {
    let mut options = Options {
        families: Family::ALL.to_vec(),
        seeds: 1..=100,
        any_shape: false,
        scenario: "qualify".into(),
        most_listed: 20,
        explain: false,
        expects_paths: false,
        hosts: None,
    };
    for pair in arguments.chunks(2) {
        let [key, value] = pair else { return None };
        match key.as_str() {
            "--family" if value == "all" => {}
            "--family" => {
                let named = |family: &Family| family.name() == value;
                options.families = vec![Family::ALL.into_iter().find(named)?];
            }
            "--seeds" => {
                let (first, last) = value.split_once('-').unwrap_or((value, value));
                options.seeds = first.parse().ok()?..=last.parse().ok()?;
            }
            "--shapes" if value == "any" => options.any_shape = true,
            "--scenario" => options.scenario.clone_from(value),
            "--explain" => options.explain = value == "on",
            "--expect" if value == "paths" => options.expects_paths = true,
            "--hosts" => options.hosts = Some(value.parse().ok()?),
            "--list" => options.most_listed = value.parse().ok()?,
            _ => return None,
        }
    }
    Some(options)
}

fn report(family: Family, options: &Options) -> Result<(), String> {
    let mut spent = Spent::default();
    let mut checks: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let mut causes: BTreeMap<Cause, (u64, u64)> = BTreeMap::new();
    let (mut right, mut all, mut wrong) = (0, 0, Vec::new());
    for seed in options.seeds.clone() {
        let case = match options.any_shape {
            true => draw_any_shape(seed, family),
            false => draw(seed, family),
        };
        let (judgement, analysis) = run(seed, &case, options, &mut spent)?;
        let is_cause_wrong = judgement.findings.iter().any(|(_, is_right)| !is_right);
        if options.explain && (is_cause_wrong || !judgement.is_right()) {
            explain(seed, &analysis);
        }
        all += 1;
        right += u64::from(judgement.is_right());
        for (name, passed) in &judgement.checks {
            let count = checks.entry(name).or_default();
            count.0 += u64::from(*passed);
            count.1 += 1;
        }
        for (cause, is_right) in &judgement.findings {
            let count = causes.entry(*cause).or_default();
            count.0 += u64::from(*is_right);
            count.1 += 1;
        }
        if !judgement.is_right() {
            wrong.push((seed, case.truth.axes.join(", "), judgement.wrong));
        }
    }
    println!("{} ({})", family.name(), spent.in_words(all));
    println!("{}", line("right as a whole", right, all));
    for (name, (passed, asked)) in checks {
        println!("{}", line(name, passed, asked));
    }
    for (cause, (passed, asked)) in causes {
        println!("{}", line(&format!("cause {cause:?}"), passed, asked));
    }
    for (seed, axes, sentences) in wrong.iter().take(options.most_listed) {
        println!("  seed {seed}: {axes}");
        sentences
            .iter()
            .take(4)
            .for_each(|sentence| println!("    {sentence}"));
    }
    if wrong.len() > options.most_listed {
        let seeds: Vec<String> = wrong.iter().map(|(seed, ..)| seed.to_string()).collect();
        println!("  all wrong seeds: {}", seeds.join(" "));
    }
    Ok(())
}

/// Racks of 20 at 2:1 over eight paths, one path narrow and two hosts slow.
fn time_of(hosts: usize) -> String {
    const NIC_BITS_PER_SEC: u64 = 10_000_000_000;
    let rack = |rack: usize| RackSpec {
        name: format!("rack{rack}"),
        hosts: (0..20.min(hosts - 20 * rack))
            .map(|host| HostSpec::healthy(&format!("rack{rack}host{host}"), NIC_BITS_PER_SEC))
            .collect(),
        paths: vec![PathSpec::healthy(NIC_BITS_PER_SEC * 10 / 8); 8],
        ..RackSpec::default()
    };
    let mut topology = Topology {
        racks: (0..hosts.div_ceil(20)).map(rack).collect(),
        ..Topology::default()
    };
    topology.racks[0].paths[3].up.rate_bits_per_sec /= 3;
    for host in topology.racks[1].hosts.iter_mut().take(2) {
        host.nic.tx_bits_per_sec /= 2;
    }
    let text = ew_plan::scenario::builtin("qualify").unwrap_or_default();
    let planned = ew_plan::scenario::parse(text, "qualify", &[])
        .map_err(|error| error.to_string())
        .and_then(|scenario| {
            ew_plan::plan(&scenario, &topology.inventory(), 1).map_err(|error| error.to_string())
        });
    let plan = match planned {
        Ok(plan) => plan,
        Err(error) => return error,
    };
    let run = simulate(&topology, &plan, 1, &Noise::default());
    let (began, cpu) = (Instant::now(), cpu_sec());
    let analysis = ew_analyze::analyze(&run);
    format!(
        "{hosts} hosts, {} flows: analysed in {:.2} s of CPU time, {:.2} s on the clock: {}",
        run.flows.len(),
        cpu_sec() - cpu,
        began.elapsed().as_secs_f64(),
        ew_report::in_words(&analysis).sentence,
    )
}

/// CPU time of this thread so far, as the kernel's scheduler counts it.
fn cpu_sec() -> f64 {
    let counts = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let on_cpu_ns = counts
        .split(' ')
        .next()
        .and_then(|ns| ns.parse::<f64>().ok());
    on_cpu_ns.map_or(f64::NAN, |ns| ns / 1e9)
}

/// The analysis' findings.
fn explain(seed: u64, analysis: &Analysis) {
    println!(
        "seed {seed}: {:?}: {}",
        analysis.verdict.status,
        ew_report::in_words(analysis).sentence
    );
    for finding in &ew_report::in_words(analysis).findings {
        println!(
            "  {:?} {:?}: {}",
            finding.severity, finding.cause, finding.sentence
        );
        for evidence in &finding.evidence {
            println!("      {}", evidence.text);
        }
    }
    if let Some(host) = analysis.hosts.first() {
        let throttled: Vec<_> = host
            .stages
            .iter()
            .map(|stage| stage.throttled_share)
            .collect();
        println!("  first host throttled {throttled:?}");
    }
    for stage in &analysis.stages {
        println!(
            "  {}: {} rounds, flow {:?}, {:?}",
            stage.name,
            stage.rounds,
            stage.flow_bits_per_sec.map(|e| e.value / 1e9),
            stage.settings
        );
    }
}

/// Where the time goes.
#[derive(Default)]
struct Spent {
    plan: Duration,
    simulate: Duration,
    analyze: Duration,
}

impl Spent {
    fn in_words(&self, runs: u64) -> String {
        let each = |time: Duration| time.as_secs_f64() * 1e3 / runs.max(1) as f64;
        let all = (self.plan + self.simulate + self.analyze).as_secs_f64();
        format!(
            "{all:.1} s, {:.0} runs a minute; a run: plan {:.2} ms, simulate {:.2} ms, analyze {:.2} ms",
            runs as f64 * 60.0 / all.max(1e-9),
            each(self.plan),
            each(self.simulate),
            each(self.analyze)
        )
    }
}

fn run(
    seed: u64,
    case: &ew_sim::Case,
    options: &Options,
    spent: &mut Spent,
) -> Result<(Judgement, Analysis), String> {
    let began = Instant::now();
    let name = options.scenario.as_str();
    let text = ew_plan::scenario::builtin(name).ok_or_else(|| format!("no scenario `{name}`"))?;
    let expected = options
        .expects_paths
        .then(|| format!("expect.paths={}", case.truth.paths));
    let expected: Vec<String> = expected.into_iter().collect();
    let scenario =
        ew_plan::scenario::parse(text, name, &expected).map_err(|error| error.to_string())?;
    let plan = ew_plan::plan(&scenario, &case.topology.inventory(), seed)
        .map_err(|error| error.to_string())?;
    let planned = Instant::now();
    let run = simulate(&case.topology, &plan, seed, &case.noise);
    let simulated = Instant::now();
    let analysis = ew_analyze::analyze(&run);
    spent.plan += planned - began;
    spent.simulate += simulated - planned;
    spent.analyze += simulated.elapsed();
    Ok((judge(&case.truth, &analysis), analysis))
}

fn line(name: &str, passed: u64, asked: u64) -> String {
    let (low, high) = clopper_pearson(passed, asked);
    let share = 100.0 * passed as f64 / asked.max(1) as f64;
    format!(
        "  {name:<28} {passed:>6} of {asked:<6} {share:5.1}%  (95% CI {:.1}-{:.1})",
        100.0 * low,
        100.0 * high
    )
}
