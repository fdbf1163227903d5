//! `eastwest hosts`: what ClusterShell's nodeset does.

use crate::exit::{Failure, Outcome};
use crate::hosts::group_sources;
use crate::output::{self, PlainArgs, RunsDirArg};
use anyhow::anyhow;
use clap::Args;
use ew_analyze::racks::RackEvidence;
use ew_model::{HostId, Inventory};
use ew_plan::inventory;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct HostsArgs {
    /// Node set in ClusterShell's grammar, for example 'node[01-10]!node05,@rack2'
    #[arg(required_unless_present = "racks_of", value_name = "SET")]
    sets: Vec<String>,
    /// The racks of a run's hosts, for --racks: as switches report by LLDP (to lldpd or
    /// systemd-networkd), else guessed from traced paths, rates or round-trip times; a run of
    /// `permutation` with 20 samples and more is best
    #[arg(long, value_name = "RUN", conflicts_with_all = ["sets", "fold", "count"])]
    racks_of: Option<String>,
    #[command(flatten)]
    runs: RunsDirArg,
    /// Print the shortest node set instead of the names
    #[arg(short, long, conflicts_with = "count")]
    fold: bool,
    /// Print the number of hosts
    #[arg(short, long)]
    count: bool,
    /// Text between names
    #[arg(short = 'S', long, default_value = " ")]
    separator: String,
    #[command(flatten)]
    plain: PlainArgs,
}

pub(crate) fn run(args: &HostsArgs) -> Outcome {
    if let Some(run) = &args.racks_of {
        return racks_of(args, run);
    }
    let sources = group_sources();
    let names = inventory::expand(&args.sets.join(","), &sources).map_err(Failure::usage)?;
    if args.plain.is_json() {
        let folded = inventory::fold(&names);
        let set = serde_json::json!({ "count": names.len(), "folded": folded, "hosts": names });
        output::print_json(&set)?;
        return Ok(ExitCode::SUCCESS);
    }
    let text = if args.count {
        names.len().to_string()
    } else if args.fold {
        inventory::fold(&names)
    } else {
        names.join(&args.separator.replace("\\n", "\n"))
    };
    output::print(&text);
    Ok(ExitCode::SUCCESS)
}

fn racks_of(args: &HostsArgs, wanted: &str) -> Outcome {
    let dir = ew_store::resolve(&args.runs.runs_dir, wanted).map_err(Failure::usage)?;
    let run = ew_store::load(&dir).map_err(Failure::failed)?;
    let inventory = &run.manifest.inventory;
    let by_switch = ew_analyze::racks::by_switch(&run);
    if !by_switch.is_empty() {
        let known: usize = by_switch.values().map(Vec::len).sum();
        output::say(&format!(
            "as switches report by LLDP to {known} of {} hosts",
            inventory.hosts.len()
        ));
        let named = by_switch.iter();
        let named = named.map(|(switch, hosts)| rack(inventory, switch, hosts));
        output::print(&named.collect::<Vec<_>>().join(","));
        return Ok(ExitCode::SUCCESS);
    }
    let guess = ew_analyze::racks::guess(&run).ok_or_else(|| {
        Failure::failed(anyhow!(
            "run {} shows no racks, neither by traced paths nor by rates or round-trip times: there is one rack, or uplinks limit nobody, or too few \
             rounds load all hosts at once; run `eastwest run permutation --set samples=40` first",
            run.manifest.id
        ))
    })?;
    let racks = guess.racks.iter().enumerate();
    let racks =
        racks.map(|(number, hosts)| rack(inventory, &format!("guess{}", number + 1), hosts));
    let racks: Vec<String> = racks.collect();
    output::say(&format!(
        "a guess by {}: {:.0}% of {} pairs agree",
        made_from(guess.evidence),
        100.0 * guess.agreement,
        guess.pairs
    ));
    output::print(&racks.join(","));
    Ok(ExitCode::SUCCESS)
}

/// As in "a guess by ...".
fn made_from(evidence: RackEvidence) -> &'static str {
    match evidence {
        RackEvidence::Routers => "routers on traced paths",
        RackEvidence::Rates => "rates",
        RackEvidence::RoundTrips => "round-trip times",
    }
}

/// As `--racks` takes it.
fn rack(inventory: &Inventory, name: &str, hosts: &[HostId]) -> String {
    let names = hosts.iter().map(|host| inventory.name(*host));
    format!("{name}={}", inventory::fold(names))
}
