//! `eastwest lab`: an emulated cluster on this machine.

use crate::exit::{Failure, Outcome};
use crate::flag_values::parse_duration;
use crate::fleet::{only_lab, read_lab_file};
use crate::output;
use clap::{Args, Subcommand};
use ew_lab::{Fault, KeeperCommand, Lab, LabStatus, PortReading};
use ew_model::inventory::RackId;
use ew_model::topology::{DirectionSpec, HostSpec, PathSpec};
use ew_model::units;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[derive(Debug, Args)]
pub(crate) struct LabArgs {
    /// The lab's name: given with `up`, it replaces the file's; else needed when more than one is
    /// up
    #[arg(long, global = true, value_name = "NAME")]
    lab: Option<String>,
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Debug, Subcommand)]
enum LabCommand {
    /// Build a lab and leave it running
    Up {
        /// Racks, hosts, rates, faults: see docs/guide/lab.md
        #[arg(short, long, value_name = "FILE")]
        file: PathBuf,
    },
    /// End a lab: no process, file or namespace stays
    Down,
    /// Hosts, addresses, rates and files of a lab
    Status,
    /// Run a command on a host of the lab, or on its `controller`
    Exec {
        /// For example r1h1, or controller
        host: String,
        /// The command and its arguments
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
    /// Read the switches' port counters from outside: every path in both directions, and what hosts
    /// receive; needs root
    Counters {
        /// Read again at this interval, one JSON line each
        #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "length")]
        every: Option<Duration>,
        /// How long to read
        #[arg(long = "for", value_name = "TIME", value_parser = parse_duration, requires = "every")]
        length: Option<Duration>,
    },
    /// Break or fix something in a running lab
    Fault {
        /// A host (r1h1), a rack (r1) or pod, a path of its uplink (r1/2), or a whole spine
        /// (spine/2)
        target: String,
        /// For example `nic=100M`, `uplink=100M`, `up=25M`, `loss=2%`, `black-hole=up`,
        /// `link-down`; `clear` removes all
        fault: String,
    },
}

pub(crate) fn run(args: &LabArgs) -> Outcome {
    match &args.command {
        LabCommand::Up { file } => up(file, args.lab.as_deref()),
        LabCommand::Down => {
            ew_lab::down(&name(args)?).map_err(Failure::failed)?;
            Ok(ExitCode::SUCCESS)
        }
        LabCommand::Status => {
            print(&ew_lab::status(&name(args)?).map_err(Failure::failed)?);
            Ok(ExitCode::SUCCESS)
        }
        LabCommand::Exec { host, command } => {
            let code = ew_lab::exec(&name(args)?, host, command).map_err(Failure::failed)?;
            Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)))
        }
        LabCommand::Counters { every, length } => counters(&name(args)?, every.zip(*length)),
        LabCommand::Fault { target, fault } => {
            let mut lab = Lab::attach(&name(args)?).map_err(Failure::usage)?;
            if fault == "clear" {
                lab.clear_faults(target).map_err(Failure::usage)?;
            } else {
                let fault = Fault::parse(target, fault).map_err(Failure::usage)?;
                lab.apply_fault(&fault).map_err(Failure::failed)?;
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn counters(name: &str, repeated: Option<(Duration, Duration)>) -> Outcome {
    let lab = Lab::attach(name).map_err(Failure::usage)?;
    let begin = Instant::now();
    let (every, length) = repeated.unwrap_or_default();
    let watched = lab.watch_ports(every, |reading| {
        match repeated {
            None => print_ports(&reading),
            Some(_) => output::print(&serde_json::to_string(&reading).unwrap_or_default()),
        }
        begin.elapsed() < length
    });
    watched.map_err(Failure::failed)?;
    Ok(ExitCode::SUCCESS)
}

fn print_ports(reading: &PortReading) {
    let row = |name: &str, bytes: &str, packets: &str, drops: &str, backlog: &str| {
        format!("{name:16} {bytes:>16} {packets:>12} {drops:>10} {backlog:>14}")
    };
    output::print(&row("port", "bytes", "packets", "drops", "backlog bytes"));
    for port in &reading.ports {
        let number = |number: u64| number.to_string();
        output::print(&row(
            &port.name,
            &number(port.bytes),
            &number(port.packets),
            &number(port.drops.into()),
            &number(port.backlog_bytes.into()),
        ));
    }
}

fn up(file: &Path, name: Option<&str>) -> Outcome {
    let spec = read_lab_file(file)?;
    let spec = match name {
        Some(name) => spec.renamed(name).map_err(Failure::usage)?,
        None => spec,
    };
    let status = ew_lab::up(&spec, &KeeperCommand::current_exe()).map_err(Failure::failed)?;
    print(&status);
    output::say("try: eastwest run --via lab");
    if spec.sshd {
        let dir = status.dir.display();
        let racks: Vec<_> = spec
            .topology
            .racks
            .iter()
            .map(|r| format!("@{}", r.name))
            .collect();
        output::say(&format!(
            " or: eastwest lab exec controller -- eastwest run --ssh-config {dir}/ssh_config --racks '{}'",
            racks.join(",")
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn name(args: &LabArgs) -> Result<String, Failure> {
    args.lab.clone().map_or_else(only_lab, Ok)
}

fn print(status: &LabStatus) {
    output::print(&format!("lab {} in {}", status.name, status.dir.display()));
    for note in &status.notes {
        output::say(&format!("note: {note}"));
    }
    let topology = &status.current.topology;
    for pod in &topology.pods {
        output::print(&format!("{}: {}", pod.name, uplink(&pod.paths)));
    }
    for rack in &topology.racks {
        output::print(&format!("{}: {}", rack.name, uplink(&rack.paths)));
        for host in &rack.hosts {
            output::print(&host_line(host));
        }
    }
    for traffic in &topology.background {
        let name = |rack: RackId| &topology.racks[rack.index()].name;
        output::print(&format!(
            "background traffic from {} to {}: {} in {} streams",
            name(traffic.from),
            name(traffic.to),
            rate(traffic.rate_bits_per_sec),
            traffic.streams
        ));
    }
}

/// `uplink 4 x 50.0 Mb/s; path 2: up 12.5 Mb/s, down loss 1%`: the first member represents those
/// that are like it.
fn uplink(paths: &[PathSpec]) -> String {
    let healthy = PathSpec::healthy(most_frequent_rate(paths));
    let each = rate(healthy.up.rate_bits_per_sec);
    let mut text = match paths.len() {
        1 => format!("uplink {each}"),
        count => format!("uplink {count} x {each}"),
    };
    for (path, number) in paths.iter().zip(1..) {
        let odd = [
            ("up", &path.up, &healthy.up),
            ("down", &path.down, &healthy.down),
        ];
        let odd = odd
            .into_iter()
            .flat_map(|(way, is, typical)| oddities(way, is, typical));
        let down = (!path.link_up).then(|| "link down".to_owned());
        let odd: Vec<_> = down.into_iter().chain(odd).collect();
        if !odd.is_empty() {
            text += &format!("; path {number}: {}", odd.join(", "));
        }
    }
    text
}

fn most_frequent_rate(paths: &[PathSpec]) -> u64 {
    let rates = paths.iter().map(|path| path.up.rate_bits_per_sec);
    let frequency = |rate: u64| {
        paths
            .iter()
            .filter(|p| p.up.rate_bits_per_sec == rate)
            .count()
    };
    rates.max_by_key(|rate| frequency(*rate)).unwrap_or(0)
}

fn oddities(way: &str, is: &DirectionSpec, typical: &DirectionSpec) -> Vec<String> {
    let odd = [
        (is.rate_bits_per_sec != typical.rate_bits_per_sec).then(|| rate(is.rate_bits_per_sec)),
        (is.loss_share > 0.0).then(|| format!("loss {:.1}%", 100.0 * is.loss_share)),
        is.black_hole.then(|| "black hole".into()),
        (!is.routed).then(|| "withdrawn".into()),
        (is.weight != typical.weight).then(|| format!("weight {}", is.weight)),
    ];
    odd.into_iter()
        .flatten()
        .map(|odd| format!("{way} {odd}"))
        .collect()
}

fn host_line(host: &HostSpec) -> String {
    let troubles = ew_lab::troubles(host);
    let troubles: String = troubles
        .iter()
        .map(|trouble| format!(", {trouble}"))
        .collect();
    let address = host.address.map(|address| address.to_string());
    format!(
        "  {:12} {:15} tx {}, rx {}{troubles}",
        host.name,
        address.unwrap_or_default(),
        rate(host.nic.tx_bits_per_sec),
        rate(host.nic.rx_bits_per_sec),
    )
}

fn rate(bits_per_sec: u64) -> String {
    units::format_bits_per_sec(bits_per_sec as f64)
}
