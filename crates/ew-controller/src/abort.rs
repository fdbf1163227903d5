//! Conditions that end a run for the sake of others.

use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::sync::oneshot;

/// From the end of one check to the next one.
const INTERVAL: Duration = Duration::from_secs(1);
/// A check that takes longer has failed: what it looks at does not answer.
const LIMIT: Duration = Duration::from_secs(5);

/// Runs the command again and again by the shell until it fails, and says how.
pub(crate) fn when_it_fails(command: String) -> oneshot::Receiver<String> {
    let (sender, failed) = oneshot::channel();
    tokio::spawn(async move {
        while !sender.is_closed() {
            if let Err(how) = check(&command).await {
                // The run may be over meanwhile.
                let _ = sender.send(format!("`{command}` {how}"));
                return;
            }
            tokio::time::sleep(INTERVAL).await;
        }
    });
    failed
}

async fn check(command: &str) -> Result<(), String> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).kill_on_drop(true);
    shell.stdin(Stdio::null());
    shell.stdout(Stdio::null());
    shell.stderr(Stdio::null());
    match tokio::time::timeout(LIMIT, shell.status()).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(format!("ended with {status}")),
        Ok(Err(error)) => Err(format!("did not start: {error}")),
        Err(_) => Err(format!("took more than {} s", LIMIT.as_secs())),
    }
}
