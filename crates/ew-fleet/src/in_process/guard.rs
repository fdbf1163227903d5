//! What ends the way to an agent in this process.

use crate::error::Unclean;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Owns the way to an agent in this process.
#[derive(Debug)]
pub(crate) struct InProcessGuard {
    pub(super) host: String,
    pub(super) incoming: JoinHandle<()>,
    pub(super) outgoing: JoinHandle<()>,
}

impl InProcessGuard {
    /// Hangs up: the agent ends by itself.
    pub(crate) fn kill(&self) {
        self.incoming.abort();
        self.outgoing.abort();
    }

    pub(crate) async fn finish(mut self, limit: Duration) -> Result<(), Unclean> {
        match timeout(limit, &mut self.incoming).await {
            Ok(_) => Ok(()),
            Err(_) => Err(Unclean {
                host: std::mem::take(&mut self.host),
                message: format!("the agent did not hang up within {} s", limit.as_secs_f32()),
            }),
        }
    }
}

impl Drop for InProcessGuard {
    fn drop(&mut self) {
        self.kill();
    }
}
