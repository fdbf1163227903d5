//! `eastwest serve`: stored runs in a browser.

use crate::exit::{Failure, Outcome};
use crate::http::{self, Endpoint};
use crate::output::{self, RunsDirArg};
use crate::runtime::block_on;
use crate::signals;
use crate::web::{self, StoredRuns, Token};
use clap::Args;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Where to listen; port 0 takes any that is free
    #[arg(value_name = "ADDRESS:PORT", default_value_t = web::USUAL_ADDRESS, value_parser = http::parse_address)]
    address: SocketAddr,
    #[command(flatten)]
    runs: RunsDirArg,
}

pub(crate) fn run(args: &ServeArgs) -> Outcome {
    let endpoint = Endpoint::bind(args.address, "runs", "eastwest serve")?;
    let token = Token::random()?;
    let url = token.url(&endpoint);
    // Found at once where the directory cannot be read.
    ew_store::list(&args.runs.runs_dir).map_err(Failure::usage)?;
    let site = StoredRuns::new(token, args.runs.runs_dir.clone());
    let _server = endpoint.serve(Arc::new(site))?;
    output::print(&url);
    block_on(signals::ending())?;
    Ok(ExitCode::SUCCESS)
}
