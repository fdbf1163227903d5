//! `eastwest run --via sim`: the same plan on a network that is only numbers, in virtual time.

use crate::commands::run::dry_run::dry_run;
use crate::commands::run::sequel::Sequel;
use crate::commands::run::{RunArgs, recorded_command};
use crate::exit::{Failure, Outcome};
use crate::fleet::read_lab_file;
use crate::output;
use crate::run_report;
use crate::runtime::block_on;
use anyhow::anyhow;
use ew_controller::Finished;
use ew_lab::LabSpec;
use ew_model::plan::RateLimit;
use ew_model::run::Outcome as RunOutcome;
use ew_model::scenario::Test;
use ew_model::topology::Topology;
use ew_model::units::format_duration_ns;
use ew_model::{
    Inventory, Pattern, Plan, RecordedEvent, Run, RunEvent, RunManifest, Scenario, Tool,
    WorkloadKind,
};
use ew_sim::Noise;
use ew_store::RunWriter;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Plans, computes what each flow would carry, and analyses that as any run.
pub(crate) fn run(args: &RunArgs, mut scenario: Scenario, seed: u64) -> Outcome {
    args.fleet.check_flags()?;
    let of_hosts = args.hosts.chosen_hosts().or(args.fleet.flag_of_ssh());
    if let Some(reason) = of_hosts.or(args.flag_of_agents()) {
        return Err(Failure::usage(anyhow!(
            "{reason} has no meaning with --via sim: all hosts of --topology take part and nothing is launched; leave it out"
        )));
    }
    let topology = topology(args)?;
    let inventory = ew_sim::inventory(&topology);
    let skipped = without_unmodelled(&mut scenario)?;
    if args.dry_run {
        for test in &skipped {
            output::say(&format!("skipped {test}"));
        }
        let network = format!("simulated ({})", topology.name);
        return dry_run(args, &scenario, &inventory, &network, seed);
    }
    let sequel = Sequel::of(args, &scenario)?;
    let mut plan = ew_plan::plan(&scenario, &inventory, seed).map_err(Failure::usage)?;
    plan.rate_limit = rate_limit(args, &topology);
    plan.dropped_tests.extend(skipped);
    let finished = simulate(args, scenario, &topology, inventory, &plan)?;
    block_on(sequel.conclude(args, &finished))
}

/// The lab file's network. Its NICs report their speed, as real ones do.
fn topology(args: &RunArgs) -> Result<Topology, Failure> {
    let path = args.fleet.topology.as_deref().ok_or_else(|| {
        Failure::usage(anyhow!(
            "--via sim needs a network; describe it as a lab file and give it with --topology FILE"
        ))
    })?;
    let LabSpec { mut topology, .. } = read_lab_file(path)?;
    let hosts = topology.racks.iter_mut().flat_map(|rack| &mut rack.hosts);
    for nic in hosts.map(|host| &mut host.nic) {
        let speed = nic.tx_bits_per_sec.max(nic.rx_bits_per_sec);
        nic.reported_bits_per_sec.get_or_insert(speed);
    }
    Ok(topology)
}

/// Leaves out optional tests that the simulator has no model of, and returns them with the reason.
/// Another one is refused: the simulator would be wrong about it.
fn without_unmodelled(scenario: &mut Scenario) -> Result<Vec<String>, Failure> {
    let mut skipped = Vec::new();
    for test in &scenario.tests {
        let Some(what) = unmodelled(test) else {
            continue;
        };
        if !test.optional {
            return Err(Failure::usage(anyhow!(
                "test `{}` needs {what}, which --via sim does not model; use a lab (`eastwest lab up`), or another scenario, such as `qualify` \
                 or `mesh`",
                test.name
            )));
        }
        skipped.push(format!(
            "{}: needs {what}, which --via sim does not model",
            test.name
        ));
    }
    scenario.tests.retain(|test| unmodelled(test).is_none());
    Ok(skipped)
}

fn unmodelled(test: &Test) -> Option<&'static str> {
    if test.workload.tool != Tool::Engine {
        Some("an external tool")
    } else if matches!(test.pattern, Pattern::Congestion { .. }) {
        Some("queues as others' load fills them")
    } else if test.workload.kind == WorkloadKind::FlowSizes {
        Some("completion times of messages")
    } else if !test.sizes.is_empty() {
        Some("what messages of each size cost")
    } else {
        None
    }
}

fn rate_limit(args: &RunArgs, topology: &Topology) -> Option<RateLimit> {
    let max = args.safety.max_rate?;
    let lines: Vec<f64> = topology
        .hosts()
        .map(|host| host.nic.tx_bits_per_sec.min(host.nic.rx_bits_per_sec) as f64)
        .collect();
    Some(max.of_lines(&lines))
}

/// Writes the run directory that a real run would have written, and analyses it.
fn simulate(
    args: &RunArgs,
    scenario: Scenario,
    topology: &Topology,
    inventory: Inventory,
    plan: &Plan,
) -> Result<Finished, Failure> {
    let mut manifest = manifest(scenario, inventory, plan);
    let writer = RunWriter::create(&args.runs.runs_dir, manifest.clone());
    let mut writer = writer.map_err(Failure::failed)?;
    let started = RunEvent::RunStarted {
        id: writer.id().to_owned(),
        inventory: manifest.inventory.clone(),
        plan: plan.clone(),
    };
    let events = ew_sim::record(topology, plan, plan.seed, &Noise::default());
    let taken_ns = events.last().map_or(0, |event| event.at_ns);
    manifest.finished_unix_ns = Some(manifest.started_unix_ns + taken_ns);
    manifest.outcome = outcome(&events);
    let first = RecordedEvent {
        at_ns: 0,
        event: started,
    };
    for event in std::iter::once(&first).chain(&events) {
        writer.events().append(event).map_err(Failure::failed)?;
    }
    let dir = writer.path().to_owned();
    let run = writer.finish(manifest).map_err(Failure::failed)?;
    if !args.live.is_quiet() {
        output::say(&format!(
            "simulated: nothing was sent; a real run would take {}",
            format_duration_ns(taken_ns)
        ));
    }
    finished(dir, &run)
}

fn finished(dir: PathBuf, run: &Run) -> Result<Finished, Failure> {
    let analysis = ew_analyze::analyze(run);
    ew_store::write_findings(&dir, ew_report::findings_json(&analysis)).map_err(Failure::failed)?;
    run_report::write_html(&analysis, &dir)?;
    Ok(Finished {
        dir,
        analysis,
        interrupted: false,
        unwritten: None,
    })
}

fn outcome(events: &[RecordedEvent]) -> RunOutcome {
    match events.last().map(|last| &last.event) {
        Some(RunEvent::RunFinished { outcome, .. }) => *outcome,
        _ => RunOutcome::Unfinished,
    }
}

fn manifest(scenario: Scenario, inventory: Inventory, plan: &Plan) -> RunManifest {
    let started_unix_ns = ew_sys::clock::realtime_ns();
    RunManifest {
        format_version: ew_store::FORMAT_VERSION,
        id: ew_store::make_run_id(started_unix_ns, &scenario.name),
        version: crate::build::build(),
        started_unix_ns,
        finished_unix_ns: None,
        fleet: "sim".into(),
        command: recorded_command(),
        scenario,
        inventory,
        seed: plan.seed,
        node_labels: BTreeMap::new(),
        barriers: Vec::new(),
        plan_hash: ew_store::plan_hash(plan),
        outcome: RunOutcome::Unfinished,
        controller_peak_bytes: None,
        controller_cpu_ns: None,
    }
}
