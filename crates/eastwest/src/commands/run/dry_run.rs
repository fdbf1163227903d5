//! `--dry-run`: what a run would do.

use super::args::RunArgs;
use crate::exit::{Failure, Outcome};
use crate::output::{self, OutputFormat};
use crate::preflight;
use ew_model::{Inventory, Scenario, Stage};
use ew_plan::estimate::{estimate_stage, fills_links};
use std::process::ExitCode;

pub(in crate::commands) fn dry_run(
    args: &RunArgs,
    scenario: &Scenario,
    inventory: &Inventory,
    network: &str,
    seed: u64,
) -> Outcome {
    let plan = ew_plan::plan(scenario, inventory, seed).map_err(Failure::usage)?;
    if args.show.format() == OutputFormat::Json {
        let text = serde_json::to_string_pretty(&plan).map_err(Failure::failed)?;
        args.show.put(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let nic = scenario.expect.nic_bits_per_sec;
    let bytes: Vec<Option<u64>> = plan
        .stages
        .iter()
        .map(|stage| estimate_stage(stage, nic).bytes)
        .collect();
    let style = args.show.style();
    args.show.put(&ew_report::dry_run(
        &plan, inventory, network, &bytes, &style,
    ))?;
    if let Some(words) = preflight::over_budget(&plan, scenario) {
        output::say(&words);
    }
    let is_unknown = |(stage, bytes): (&Stage, &Option<u64>)| fills_links(stage) && bytes.is_none();
    if plan.stages.iter().zip(&bytes).any(is_unknown) {
        output::say("bytes are unknown without a line rate; state it with --expect-nic 10G");
    }
    Ok(ExitCode::SUCCESS)
}
