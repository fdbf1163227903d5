//! The exec stream of a pod as standard input and output: what the system's ssh client is to ssh.

use crate::access::Access;
use crate::error::{KubernetesError, chain};
use crate::manifest::CONTAINER;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::Api;
use kube::api::{AttachParams, AttachedProcess};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::unix::pipe::{Receiver, Sender};

/// Of every stream: as much as an agent's largest report, so that no direction waits for the
/// other.
const BUFFER_BYTES: usize = 256 * 1024;
/// What came through a stream before it broke is written in this time, or not at all.
const BROKEN_LIMIT: Duration = Duration::from_millis(200);
/// Of a command whose output is read as a whole.
const MAX_OUTPUT_BYTES: u64 = 4 << 20;
/// It has this long.
const OUTPUT_LIMIT: Duration = Duration::from_secs(10);
/// What a command ends with when nobody knows how it ended.
const UNKNOWN_END: u8 = 4;

/// Why the output of a command in a pod is not known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OutputError {
    /// The API server refuses, or the stream broke.
    #[error("{}", chain(.0))]
    Exec(#[source] kube::Error),
    /// There is nothing to read from.
    #[error("no streams were attached")]
    NoStreams,
    /// What was attached cannot be read.
    #[error(transparent)]
    Read(io::Error),
    /// More than is kept.
    #[error("it prints too much")]
    TooMuch,
    /// The command, or the way to it, takes too long.
    #[error("no output within {} s", OUTPUT_LIMIT.as_secs())]
    TooSlow,
}

/// Runs a command in a pod with our own standard streams, until it ends or our input does. Returns
/// its exit status.
///
/// # Errors
/// [`KubernetesError`] when the API server refuses, or the stream breaks before the command has
/// ended.
pub async fn exec(access: &Access, pod: &str, command: &[String]) -> Result<u8, KubernetesError> {
    let pods: Api<Pod> = Api::namespaced(access.client.clone(), &access.namespace);
    let parameters = AttachParams::default()
        .container(CONTAINER)
        .stdin(true)
        .stdout(true)
        .stderr(true)
        .max_stdin_buf_size(BUFFER_BYTES)
        .max_stdout_buf_size(BUFFER_BYTES)
        .max_stderr_buf_size(BUFFER_BYTES);
    let process = pods.exec(pod, command, &parameters).await;
    let process =
        process.map_err(|error| access.first_error(&format!("exec in pod {pod}"), &error))?;
    carry(pod, process).await
}

/// What a command in a pod prints.
pub(crate) async fn output_of(
    access: &Access,
    pod: &str,
    command: &[&str],
) -> Result<String, OutputError> {
    let pods: Api<Pod> = Api::namespaced(access.client.clone(), &access.namespace);
    let parameters = AttachParams::default()
        .container(CONTAINER)
        .stdout(true)
        .stderr(false);
    let read = async {
        let process = pods.exec(pod, command.iter().copied(), &parameters).await;
        let mut process = process.map_err(OutputError::Exec)?;
        let output = process.stdout().ok_or(OutputError::NoStreams)?;
        let mut text = Vec::new();
        let mut output = output.take(MAX_OUTPUT_BYTES);
        let read = output.read_to_end(&mut text).await;
        read.map_err(OutputError::Read)?;
        if text.len() as u64 == MAX_OUTPUT_BYTES {
            return Err(OutputError::TooMuch);
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    };
    let read = tokio::time::timeout(OUTPUT_LIMIT, read).await;
    read.unwrap_or(Err(OutputError::TooSlow))
}

async fn carry(pod: &str, mut process: AttachedProcess) -> Result<u8, KubernetesError> {
    let broken = |words: &str| KubernetesError::Stream {
        pod: pod.to_owned(),
        words: words.to_owned(),
    };
    let streams = (process.stdin(), process.stdout(), process.stderr());
    let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
        return Err(broken("the API server attached no streams"));
    };
    let status = process.take_status();
    // The launcher's pipes: without threads in between, which would cost the clock estimate its
    // precision.
    let from_launcher = Receiver::from_owned_fd(std::io::stdin().as_fd().try_clone_to_owned()?)?;
    let to_launcher = Sender::from_owned_fd(std::io::stdout().as_fd().try_clone_to_owned()?)?;
    let input = tokio::spawn(pump(from_launcher, stdin));
    let mut output = tokio::spawn(pump(stdout, to_launcher));
    let mut errors = tokio::spawn(repeat_errors(stderr));
    let status = match status {
        Some(status) => status.await,
        None => None,
    };
    input.abort();
    // Both end with the stream, once all that came through it is written. After an error the client
    // leaves them open for ever.
    let written = async { tokio::join!(&mut output, &mut errors) };
    if status.is_some() {
        let _ = written.await;
    } else {
        let _ = tokio::time::timeout(BROKEN_LIMIT, written).await;
        output.abort();
        errors.abort();
    }
    match (status, process.join().await) {
        (Some(status), _) => Ok(exit_code(&status)),
        (None, Err(error)) => Err(broken(&chain(&error))),
        (None, Ok(())) => Err(broken(
            "it ended before the agent did: its pod, its node or the API server went away",
        )),
    }
}

/// From one stream to the other until either ends, and closes the second.
async fn pump(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let written = to.write_all(&buffer[..length]).await;
        if written.is_err() || to.flush().await.is_err() {
            break;
        }
    }
    // Fails only when nobody is there to hear it.
    let _ = to.shutdown().await;
}

/// Few words, for people.
async fn repeat_errors(mut from: impl AsyncRead + Unpin) {
    let mut buffer = vec![0; 4096];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        // Nobody is left to be notified.
        let _ = std::io::stderr().write_all(&buffer[..length]);
    }
}

/// The command's own, which comes as a cause (`k8s.io/apimachinery/pkg/util/remotecommand`,
/// `ExitCodeCauseType`).
fn exit_code(status: &Status) -> u8 {
    if status.status.as_deref() == Some("Success") {
        return 0;
    }
    let details = status.details.as_ref();
    let causes = details.and_then(|details| details.causes.as_ref());
    let is_code = |reason: &Option<String>| reason.as_deref() == Some("ExitCode");
    let mut codes = causes.into_iter().flatten().filter(|c| is_code(&c.reason));
    codes
        .find_map(|cause| cause.message.as_ref()?.parse().ok())
        .unwrap_or(UNKNOWN_END)
}
