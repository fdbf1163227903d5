//! iproute2's batch mode: many commands, one process.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::error::LabError;

/// Runs `ip -batch` or `tc -batch` over `batch`; `prepare` may place the command into a namespace.
pub(crate) fn run_batch(
    tool: &'static str,
    batch: &str,
    prepare: impl FnOnce(&mut Command) -> Result<(), LabError>,
) -> Result<(), LabError> {
    let mut command = Command::new(tool);
    command
        .args(["-batch", "-"])
        .env_clear()
        .env("PATH", tool_path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    prepare(&mut command)?;
    let mut child = command.spawn().map_err(|error| tool_missing(tool, error))?;
    if let Some(mut input) = child.stdin.take() {
        // A tool that stops reading at a bad line reports why on its way out.
        let _ = input.write_all(batch.as_bytes());
    }
    let output = child
        .wait_with_output()
        .map_err(LabError::io_named("wait for", tool))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(LabError::Command {
        command: format!("{tool} -batch"),
        output: explain(&said, batch),
    })
}

/// Search path for tools that live in sbin, whatever the caller's own path is.
pub(crate) fn tool_path() -> String {
    let own = std::env::var("PATH").unwrap_or_default();
    format!("/usr/sbin:/usr/bin:/sbin:/bin:{own}")
}

fn tool_missing(tool: &str, source: std::io::Error) -> LabError {
    if source.kind() != std::io::ErrorKind::NotFound {
        return LabError::io_named("start", tool)(source);
    }
    LabError::Unsupported {
        problem: format!("`{tool}` is not installed; install iproute2"),
    }
}

/// iproute2 names the line of a batch that failed; show the line itself.
fn explain(said: &str, batch: &str) -> String {
    let number = said
        .rsplit_once("Command failed -:")
        .and_then(|(_, number)| number.trim().parse::<usize>().ok());
    let line = number.and_then(|number| batch.lines().nth(number.saturating_sub(1)));
    match line {
        Some(line) => format!("{} (`{line}`)", said.trim()),
        None => said.trim().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_batch_line_is_shown() {
        let said = "RTNETLINK answers: File exists\nCommand failed -:2\n";
        assert!(explain(said, "link set dev lo up\nlink add x\n").contains("`link add x`"));
    }
}
