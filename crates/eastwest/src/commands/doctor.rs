//! `eastwest doctor`: what would stop a run, before it does.

use crate::exit::{self, Failure, Outcome};
use crate::fleet::FleetArgs;
use crate::hosts::HostArgs;
use crate::output::{self, PlainArgs};
use crate::runtime::block_on;
use clap::Args;
use ew_controller::{Check, CheckState, DoctorReport, sub_inventory};
use ew_model::{HostId, Inventory};
use std::process::ExitCode;
use std::sync::Arc;

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    hosts: HostArgs,
    #[command(flatten)]
    fleet: FleetArgs,
    /// Show the checks that passed, too
    #[arg(short, long, help_heading = "Output")]
    verbose: bool,
    #[command(flatten, next_help_heading = "Output")]
    plain: PlainArgs,
}

pub(crate) fn run(args: &DoctorArgs) -> Outcome {
    let lab = args.fleet.attach_lab()?.map(Arc::new);
    let roles = args.hosts.roles(lab.as_deref(), None)?;
    let mut roster = args
        .hosts
        .roster(&args.fleet, lab.as_deref(), &[], roles.as_ref())?;
    let launcher = args.fleet.launcher(lab, &roster)?;
    let mut options = args.fleet.options();
    options.network = args.hosts.network()?;
    let report = block_on(async {
        let unresolved = args.hosts.resolve(&mut roster, &args.fleet).await.err();
        let resolved = match options.network {
            Some(_) => roster.inventory.clone(),
            None => with_addresses(&roster.inventory),
        };
        let mut report = ew_controller::doctor(&resolved, launcher, options)
            .await
            .map_err(not_examined)?;
        if let Some(failure) = unresolved {
            report.checks.insert(0, name_resolution(&failure));
        }
        Ok(report)
    })?;
    match args.plain.is_json() {
        true => output::print_json(&in_json(&report))?,
        false => print(&report, args.verbose),
    }
    Ok(match report.worst() {
        CheckState::Unknown | CheckState::Ok => ExitCode::SUCCESS,
        CheckState::Warning => ExitCode::from(exit::WORSE),
        CheckState::Failed => ExitCode::from(exit::PARTIAL),
    })
}

fn not_examined(error: std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::Interrupted => Failure::Interrupted,
        _ => Failure::failed(error),
    }
}

fn with_addresses(inventory: &Inventory) -> Inventory {
    let hosts: Vec<HostId> = inventory
        .host_ids()
        .filter(|id| inventory.host(*id).address.is_some())
        .collect();
    sub_inventory(inventory, &hosts)
}

fn name_resolution(failure: &Failure) -> Check {
    Check {
        subject: "all hosts".into(),
        name: "name resolution",
        state: CheckState::Failed,
        found: failure.message(),
        remedy: "fix DNS or /etc/hosts, or give addresses with --addresses FILE".into(),
    }
}

fn in_json(report: &DoctorReport) -> serde_json::Value {
    let check = |check: &Check| {
        serde_json::json!({
            "subject": check.subject,
            "check": check.name,
            "state": match check.state {
                CheckState::Unknown => "unknown",
                CheckState::Ok => "ok",
                CheckState::Warning => "warning",
                CheckState::Failed => "failed",
            },
            "found": check.found,
            "remedy": (!check.remedy.is_empty()).then_some(&check.remedy),
        })
    };
    let checks: Vec<_> = report.checks.iter().map(check).collect();
    let (passed, known) = report.passed();
    serde_json::json!({ "checks": checks, "passed": passed, "of": known })
}

fn print(report: &DoctorReport, verbose: bool) {
    let mut shown = 0;
    for check in &report.checks {
        let word = match check.state {
            CheckState::Ok | CheckState::Unknown if !verbose => continue,
            CheckState::Unknown => "-   ",
            CheckState::Ok => "ok  ",
            CheckState::Warning => "WARN",
            CheckState::Failed => "FAIL",
        };
        shown += 1;
        output::print(&format!(
            "{word}  {}: {}: {}",
            check.subject, check.name, check.found
        ));
        if !check.remedy.is_empty() {
            output::print(&format!("      -> {}", check.remedy));
        }
    }
    if shown > 0 {
        output::print("");
    }
    let (passed, known) = report.passed();
    output::print(&format!("{passed} of {known} checks passed"));
}
