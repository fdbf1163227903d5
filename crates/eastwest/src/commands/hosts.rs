//! `eastwest hosts`: what ClusterShell's nodeset does.

use crate::exit::{Failure, Outcome};
use crate::hosts::group_sources;
use crate::output::{self, PlainArgs};
use clap::Args;
use ew_plan::inventory;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct HostsArgs {
    /// Node set in ClusterShell's grammar, for example 'node[01-10]!node05,@rack2'
    #[arg(required = true, value_name = "SET")]
    sets: Vec<String>,
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
