//! Waiting for the user to end something.

use crate::exit::Failure;
use tokio::signal::unix::{SignalKind, signal};

/// Ctrl-C, SIGTERM or SIGHUP.
pub(crate) async fn ending() -> Result<(), Failure> {
    let of = |kind| signal(kind).map_err(Failure::failed);
    let (mut interrupt, mut terminate, mut hang_up) = (
        of(SignalKind::interrupt())?,
        of(SignalKind::terminate())?,
        of(SignalKind::hangup())?,
    );
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
    Ok(())
}
