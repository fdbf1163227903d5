//! `eastwest size`: storage nodes for a deadline.

use crate::exit::{Failure, Outcome, WORSE};
use crate::output::{self, PlainArgs, RunsDirArg};
use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use ew_analyze_storage::fan_in::{Axis, FanIn, FanInPoint};
use ew_analyze_storage::job::{self, StorageAnalysis};
use ew_analyze_storage::limits::{self, Alone, WayPart};
use ew_analyze_storage::sizing::{self, NodeRates, Operation, Question, Redundancy, SizingError};
use ew_model::analysis::Estimate;
use ew_model::run::Run;
use ew_model::storage::StorageOperation;
use ew_model::units;
use std::path::Path;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct SizeArgs {
    /// Data to move, one copy, for example 10TB
    #[arg(long, value_name = "AMOUNT", value_parser = units::parse_storage_bytes)]
    data: f64,
    /// The deadline, for example 30m or 1h
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration_ns)]
    within: u64,
    /// Write (all copies) or read (one copy)
    #[arg(long, value_enum, default_value = "write")]
    operation: OperationArg,
    /// Copies of every block [default: 3]
    #[arg(long, value_name = "N", conflicts_with = "ec")]
    replication: Option<u32>,
    /// Erasure coding with K data and M parity cells, for example 6,3
    #[arg(long, value_name = "K,M", value_parser = parse_ec)]
    ec: Option<(u32, u32)>,
    #[command(flatten)]
    node: NodeArgs,
    #[command(flatten)]
    clients: ClientArgs,
    /// Capacity on top of what is needed, for example 20%
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = parse_percent)]
    headroom: f64,
    /// Storage nodes that may fail while the deadline holds: 1 is N+1
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1000))]
    failures: u32,
    /// Price of one storage node, in any currency
    #[arg(long, value_name = "PRICE", value_parser = parse_price)]
    price: Option<f64>,
    #[command(flatten, next_help_heading = "Output")]
    plain: PlainArgs,
}

/// What is known of a storage node.
#[derive(Debug, Args)]
#[group(skip)]
#[command(next_help_heading = "Storage node")]
struct NodeArgs {
    /// A fan-in's run: its directory, its id or the beginning of it, or `latest`. Storage node,
    /// NIC, disk, client and uplink count at the lower ends of their intervals; flags go first
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    runs: RunsDirArg,
    /// Its disks together, for example 1.2GB/s
    #[arg(long, value_name = "RATE", value_parser = units::parse_storage_bytes)]
    disk: Option<f64>,
    /// Its NIC, for example 25G
    #[arg(long, value_name = "RATE", value_parser = units::parse_bits_per_sec)]
    nic: Option<f64>,
    /// Part of NICs' rates that data reaches
    #[arg(long, value_name = "PERCENT", default_value = "90%", value_parser = parse_percent)]
    nic_efficiency: f64,
}

/// The limits in front of the storage nodes.
#[derive(Debug, Args)]
#[group(skip)]
#[command(next_help_heading = "Clients and network")]
struct ClientArgs {
    /// Clients [default: as many as the deadline needs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    clients: Option<u32>,
    /// A client's NIC, for example 10G
    #[arg(long, value_name = "RATE", value_parser = units::parse_bits_per_sec)]
    client_nic: Option<f64>,
    /// Uplinks between clients and storage together, for example 400G
    #[arg(long, value_name = "RATE", value_parser = units::parse_bits_per_sec)]
    uplink: Option<f64>,
    /// Clients run on the storage nodes: the first copy does not enter a NIC
    #[arg(long)]
    clients_on_storage: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OperationArg {
    /// All copies reach disks
    Write,
    /// One copy is read
    Read,
}

pub(crate) fn run(args: &SizeArgs) -> Outcome {
    let mut question = question(args);
    if let Some(run) = &args.node.run {
        take_over(&mut question, &args.node.runs.runs_dir, run)?;
    }
    let answer = match sizing::size(&question) {
        Ok(answer) => answer,
        Err(error @ SizingError::Unreachable(bound)) => {
            if args.plain.is_json() {
                let text = ew_report::sizing_bound_json(&question, &bound);
                output::print(&text.map_err(Failure::failed)?);
            } else {
                output::say(&format!("FAIL: {error}"));
            }
            return Ok(ExitCode::from(WORSE));
        }
        Err(error) => return Err(Failure::usage(error)),
    };
    let text = match args.plain.is_json() {
        true => ew_report::sizing_json(&question, &answer).map_err(Failure::failed)?,
        false => {
            let style = output::text_style(output::ColorChoice::Never);
            ew_report::sizing_text(&question, &answer, &style)
        }
    };
    output::print(&text);
    Ok(ExitCode::SUCCESS)
}

fn question(args: &SizeArgs) -> Question {
    let data_rate = |bits_per_sec: f64| bits_per_sec / 8.0 * args.node.nic_efficiency;
    let redundancy = match args.ec {
        Some((data, parity)) => Redundancy::ErasureCoding { data, parity },
        None => Redundancy::Replication(args.replication.unwrap_or(3)),
    };
    Question {
        data_bytes: args.data,
        within_s: args.within as f64 / 1e9,
        redundancy,
        operation: match args.operation {
            OperationArg::Write => Operation::Write,
            OperationArg::Read => Operation::Read,
        },
        clients_on_storage: args.clients.clients_on_storage,
        node: NodeRates {
            disk_bytes_per_sec: args.node.disk,
            nic_rx_bytes_per_sec: args.node.nic.map(data_rate),
            nic_tx_bytes_per_sec: args.node.nic.map(data_rate),
            served_bytes_per_sec: None,
        },
        clients_bytes_per_sec: None,
        client_bytes_per_sec: args.clients.client_nic.map(data_rate),
        clients: args.clients.clients,
        uplink_bytes_per_sec: args.clients.uplink.map(data_rate),
        uplink_carried_bytes_per_sec: None,
        headroom: args.headroom,
        failures: args.failures,
        price_per_node: args.price,
    }
}

/// What a run's fan-in shows about a storage node, a client and the network between them, each at
/// the lower end of its interval; what was configured stays. A node that wrote other numbers of
/// copies for each byte of data is taken to write as many bytes as before.
fn take_over(question: &mut Question, runs_dir: &Path, run: &str) -> Result<(), Failure> {
    let dir = ew_store::resolve(runs_dir, run).map_err(Failure::usage)?;
    let loaded = ew_store::load(&dir).map_err(Failure::failed)?;
    let operation = match question.operation {
        Operation::Write => StorageOperation::Write,
        Operation::Read => StorageOperation::Read,
    };
    let found = job::analyze(&loaded);
    let Some((analysis, fan_in)) = found
        .as_ref()
        .and_then(|a| Some((a, by_nodes(a, operation)?)))
    else {
        return Err(Failure::usage(anyhow!(
            "run `{run}` has no fan-in of {} over storage nodes: measure one with `eastwest run fan-in --target URL`, or give --disk and --nic",
            operation.name()
        )));
    };
    let written = analysis.job.as_ref().and_then(|job| job.replication);
    let copies = question.redundancy.factors(question.operation, false).disk;
    let scale = match question.operation {
        Operation::Write => f64::from(written.unwrap_or(1)) / copies,
        Operation::Read => 1.0,
    };
    let served = lower(fan_in.fit.as_ref().map(|fit| fit.node));
    if served.is_none() {
        output::say(&format!(
            "warning: no model fits the steps of run `{run}`: a storage node as a whole has no figure, only its parts measured alone"
        ));
    }
    question.node.served_bytes_per_sec = served.map(|rate| rate * scale);
    take_ends_over(question, &loaded, analysis, fan_in);
    take_network_over(question, fan_in);
    Ok(())
}

fn by_nodes(analysis: &StorageAnalysis, operation: StorageOperation) -> Option<&FanIn> {
    let is_this =
        |fan_in: &&FanIn| fan_in.operation == operation && fan_in.axis == Axis::StorageNodes;
    analysis.fan_in.iter().find(is_this)
}

/// The end that a wrong answer is safe at.
fn lower(estimate: Option<Estimate>) -> Option<f64> {
    estimate.map(|rate| rate.low.filter(|low| *low > 0.0).unwrap_or(rate.value))
}

/// NICs in each direction, disk and client.
fn take_ends_over(question: &mut Question, run: &Run, analysis: &StorageAnalysis, fan_in: &FanIn) {
    let alone = |operation| limits::alone(run, &analysis.steps, operation);
    let node = &mut question.node;
    let into: Alone = alone(StorageOperation::Write);
    let out_of: Alone = alone(StorageOperation::Read);
    node.nic_rx_bytes_per_sec = node.nic_rx_bytes_per_sec.or(lower(into.node));
    node.nic_tx_bytes_per_sec = node.nic_tx_bytes_per_sec.or(lower(out_of.node));
    node.disk_bytes_per_sec = node.disk_bytes_per_sec.or(lower(fan_in.alone.disk));
    let client = fan_in.terms.client.or(fan_in.alone.client);
    question.client_bytes_per_sec = question.client_bytes_per_sec.or(lower(client));
}

/// As a bound where it was one, else as what it carried.
fn take_network_over(question: &mut Question, fan_in: &FanIn) {
    let measured = lower(fan_in.terms.network.or(fan_in.alone.network));
    let is_limit = |point: &FanInPoint| {
        let limits = point.limits.iter();
        limits
            .map(|limit| limit.side)
            .any(|side| side == WayPart::Network)
    };
    let was_limit = fan_in.terms.network.is_some() || fan_in.points.iter().any(is_limit);
    match was_limit {
        true => question.uplink_bytes_per_sec = question.uplink_bytes_per_sec.or(measured),
        false => question.uplink_carried_bytes_per_sec = measured,
    }
}

/// `6,3`.
fn parse_ec(text: &str) -> anyhow::Result<(u32, u32)> {
    let bad = || anyhow!("`{text}` is not K,M; give data and parity cells, for example 6,3");
    let (data, parity) = text.split_once([',', '+']).ok_or_else(bad)?;
    let cells = |text: &str| text.trim().parse::<u32>().ok();
    match (cells(data), cells(parity)) {
        (Some(data @ 1..=256), Some(parity @ 0..=256)) => Ok((data, parity)),
        _ => Err(bad()),
    }
}

fn parse_price(text: &str) -> anyhow::Result<f64> {
    let price = text
        .parse()
        .ok()
        .filter(|price: &f64| price.is_finite() && *price >= 0.0);
    price.with_context(|| format!("`{text}` is no price; give a number, for example 12500"))
}

/// `20%` or `0.2` as a part of one.
fn parse_percent(text: &str) -> anyhow::Result<f64> {
    let (number, unit) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    let value: f64 = number
        .trim()
        .parse()
        .with_context(|| format!("`{text}` is not a part; give for example 20% or 0.2"))?;
    if !(0.0..=10.0).contains(&(value / unit)) {
        return Err(anyhow!("`{text}` is out of range; give 0% to 1000%"));
    }
    Ok(value / unit)
}
