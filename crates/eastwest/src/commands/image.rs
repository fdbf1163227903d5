//! `eastwest image`: this binary as a container image, for other architectures the agents that a
//! release brings.

use crate::build::OWN_BINARY;
use crate::exit::{Failure, Outcome};
use crate::kubernetes::default_image;
use crate::output;
use anyhow::Context;
use clap::Args;
use ew_fleet::Payload;
use ew_kubernetes::{ImageError, ImageProgram, go_architecture};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct ImageArgs {
    /// The archive: OCI image layout and docker archive in one
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Name of the image [default: eastwest:VERSION]
    #[arg(long, value_name = "IMAGE")]
    name: Option<String>,
}

pub(crate) fn run(args: &ImageArgs) -> Outcome {
    let binary = Payload::read(Path::new(OWN_BINARY)).map_err(Failure::failed)?;
    let name = args.name.clone().unwrap_or_else(default_image);
    let file = File::create(&args.output)
        .with_context(|| format!("cannot write `{}`", args.output.display()))
        .map_err(Failure::usage)?;
    let own = program(&binary);
    let agents = Payload::agents_in(Path::new(OWN_BINARY)).map_err(Failure::failed)?;
    let others = agents.iter().map(program);
    let others = others.filter(|agent| agent.architecture != own.architecture);
    let others: Vec<ImageProgram<'_>> = others.collect();
    let written = ew_kubernetes::write_image(BufWriter::new(file), &name, own, &others);
    written.map_err(|error| match error {
        ImageError::Name { .. } => Failure::usage(error),
        ImageError::Write(_) => Failure::failed(error),
    })?;
    let architectures = std::iter::once(&own).chain(&others);
    let architectures = architectures.map(|program| go_architecture(program.architecture));
    let architectures: Vec<&str> = architectures.collect();
    output::say(&format!(
        "{}: image {name} for {}",
        args.output.display(),
        architectures.join(", ")
    ));
    Ok(ExitCode::SUCCESS)
}

fn program(payload: &Payload) -> ImageProgram<'_> {
    ImageProgram {
        architecture: payload.architecture().unwrap_or(std::env::consts::ARCH),
        binary: payload.program(),
    }
}
