//! `eastwest lab`: an emulated cluster on this machine.

use crate::exit::{Failure, Outcome};
use crate::fleet::only_lab;
use crate::output;
use anyhow::Context;
use clap::{Args, Subcommand};
use ew_lab::{Fault, KeeperCommand, Lab, LabSpec, LabStatus};
use ew_model::units;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct LabArgs {
    /// The lab's name: given with `up`, it replaces the file's; else needed when more than one is up
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
    /// Break or mend something in a running lab
    Fault {
        /// A host or a rack
        target: String,
        /// For example `nic=100M`, `rx=50M`, `uplink=100M`, `loss=2%`, `link-down`, `link-up`; `clear` mends all
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

fn up(file: &PathBuf, name: Option<&str>) -> Outcome {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read the lab file `{}`", file.display()))
        .map_err(Failure::usage)?;
    let spec = LabSpec::parse(&text, &file.display().to_string()).map_err(Failure::usage)?;
    let spec = match name {
        Some(name) => spec.renamed(name).map_err(Failure::usage)?,
        None => spec,
    };
    let status = ew_lab::up(&spec, &KeeperCommand::current_exe()).map_err(Failure::failed)?;
    print(&status);
    output::say("try: eastwest run --fleet lab");
    if spec.sshd {
        let dir = status.dir.display();
        let racks: Vec<_> = spec.racks.iter().map(|r| format!("@{}", r.name)).collect();
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
    for rack in &status.current.racks {
        let uplink = units::format_bits_per_sec(rack.uplink_bits_per_sec as f64);
        let loss = match rack.loss_share {
            0.0 => String::new(),
            share => format!(", loss {:.1} %", 100.0 * share),
        };
        output::print(&format!("{}: uplink {uplink}{loss}", rack.name));
        for host in &rack.hosts {
            let rate = |rate: u64| units::format_bits_per_sec(rate as f64);
            output::print(&format!(
                "  {:12} {:15} tx {}, rx {}{}",
                host.name,
                host.address,
                rate(host.tx_bits_per_sec),
                rate(host.rx_bits_per_sec),
                host.troubles()
                    .iter()
                    .map(|trouble| format!(", {trouble}"))
                    .collect::<String>(),
            ));
        }
    }
}
