//! `eastwest image`: this binary as a container image.

use crate::exit::{Failure, Outcome};
use crate::fleet::OWN_BINARY;
use crate::kubernetes::default_image;
use crate::output;
use anyhow::Context;
use clap::Args;
use ew_fleet::Payload;
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
    let architecture = binary.architecture().unwrap_or(std::env::consts::ARCH);
    ew_kubernetes::write_image(BufWriter::new(file), &name, architecture, binary.program())
        .map_err(Failure::failed)?;
    output::say(&format!("{}: image {name}", args.output.display()));
    Ok(ExitCode::SUCCESS)
}
