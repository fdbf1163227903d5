//! Project chores, run as `cargo xtask NAME`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a chore talks to who runs it"
)]

mod tests;
mod tidy;

use anyhow::Context;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy(),
        ["test", ref names @ ..] => root().and_then(|root| tests::run(&root, names)),
        _ => {
            eprintln!("usage: cargo xtask tidy    check the rules that the compiler does not know");
            eprintln!(
                "       cargo xtask test [NAME...]    build and run every test binary, or those"
            );
            return ExitCode::from(2);
        }
    };
    result.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::from(4)
    })
}

fn tidy() -> anyhow::Result<ExitCode> {
    let workspace = tidy::Workspace::read(&root()?)?;
    let violations = tidy::check(&workspace);
    for violation in &violations {
        println!("{violation}");
    }
    match violations.len() {
        0 => {
            println!("tidy: {} files are in order", workspace.sources.len());
            Ok(ExitCode::SUCCESS)
        }
        count => {
            println!("tidy: {count} to fix");
            Ok(ExitCode::FAILURE)
        }
    }
}

/// The workspace's folder: the parent of this package's.
fn root() -> anyhow::Result<PathBuf> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .context("start me as `cargo xtask`, which sets the workspace's directory")?;
    let root = PathBuf::from(package);
    Ok(root.parent().context("xtask has no parent folder")?.into())
}
