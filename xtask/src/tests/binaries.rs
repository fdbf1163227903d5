//! The workspace's test binaries.

use anyhow::Context;
use serde_json::Value;
use std::fmt;
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Binaries come with the tests, since tests of other packages start them: built alone they have
/// other features of their dependencies, and all would be compiled twice. No crate has tests in its
/// documentation.
const BUILD: [&str; 5] = ["build", "--locked", "--workspace", "--bins", "--tests"];

pub(super) struct TestBinary {
    pub(super) program: PathBuf,
    /// Tests run in their package's folder, as `cargo test` has it.
    pub(super) package_dir: PathBuf,
    pub(super) target: String,
}

impl fmt::Display for TestBinary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let package = self.package_dir.file_name().unwrap_or_default();
        write!(f, "{}/{}", package.display(), self.target)
    }
}

impl TestBinary {
    /// What it prints, on both outputs in order, and whether it ends well; in the environment that
    /// `cargo test` gives. A file and no pipe: what a test may leave behind keeps nobody waiting.
    pub(super) fn run(&self, arguments: &[&str]) -> std::io::Result<(String, bool)> {
        let mut output = tempfile::tempfile()?;
        let status = Command::new(&self.program)
            .args(arguments)
            .current_dir(&self.package_dir)
            .env("CARGO_MANIFEST_DIR", &self.package_dir)
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?)
            .status()?;
        let mut words = Vec::new();
        output.rewind()?;
        output.read_to_end(&mut words)?;
        Ok((
            String::from_utf8_lossy(&words).into_owned(),
            status.success(),
        ))
    }

    /// Whether one test passes with nothing next to it. It must have run: no name that is filtered
    /// out passes.
    pub(super) fn passes_alone(&self, test: &str) -> std::io::Result<bool> {
        let (words, has_passed) = self.run(&["--exact", test])?;
        println!("{words}");
        Ok(has_passed && words.contains("test result: ok. 1 passed"))
    }
}

/// Builds all of them, with what cargo says of it on the standard error.
pub(super) fn build(root: &Path) -> anyhow::Result<Vec<TestBinary>> {
    let mut command = Command::new("cargo");
    command
        .args(BUILD)
        .arg("--message-format=json-render-diagnostics")
        .current_dir(root)
        .stdout(Stdio::piped());
    // What `cargo xtask` says of this package; build scripts that read it would run again.
    let about_us = std::env::vars_os().map(|(name, _)| name).filter(|name| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
    });
    about_us.for_each(|name| {
        command.env_remove(name);
    });
    let mut cargo = command.spawn().context("cargo build")?;
    let messages = cargo.stdout.take().context("cargo's messages")?;
    let mut binaries = Vec::new();
    for line in BufReader::new(messages).lines() {
        binaries.extend(test_binary(&serde_json::from_str(&line?)?));
    }
    anyhow::ensure!(cargo.wait()?.success(), "cargo build failed");
    Ok(binaries)
}

/// What a message of cargo names
/// (<https://doc.rust-lang.org/cargo/reference/external-tools.html#artifact-messages>).
fn test_binary(message: &Value) -> Option<TestBinary> {
    let is_test = message["profile"]["test"] == true;
    let manifest = Path::new(message["manifest_path"].as_str()?);
    is_test.then_some(TestBinary {
        program: message["executable"].as_str()?.into(),
        package_dir: manifest.parent()?.into(),
        target: message["target"]["name"].as_str()?.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::test_binary;
    use serde_json::json;

    #[test]
    fn only_tests_that_can_be_started_are_test_binaries() {
        let mut message = json!({
            "reason": "compiler-artifact",
            "manifest_path": "/w/crates/ew-sim/Cargo.toml",
            "target": {"name": "verdicts", "kind": ["test"]},
            "profile": {"test": true},
            "executable": "/w/target/debug/deps/verdicts-1",
        });
        let found = test_binary(&message).expect("a test binary");
        assert_eq!(found.to_string(), "ew-sim/verdicts");
        message["profile"]["test"] = json!(false);
        assert!(test_binary(&message).is_none());
        message["profile"]["test"] = json!(true);
        message["executable"] = json!(null);
        assert!(test_binary(&message).is_none());
        assert!(test_binary(&json!({"reason": "build-finished"})).is_none());
    }
}
