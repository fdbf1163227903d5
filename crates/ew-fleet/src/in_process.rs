//! Agents of a simulation, which are tasks of this process: nothing is started and nothing leaves
//! it.

pub(crate) mod guard;

use crate::error::LaunchError;
use crate::link::{Link, LinkGuard, LinkReader, LinkWriter};
use ew_model::Host;
use guard::InProcessGuard;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use tokio::task::JoinHandle;

/// A launch in progress.
pub type InProcessLaunch<'a> =
    Pin<Box<dyn Future<Output = Result<InProcessLink, LaunchError>> + Send + 'a>>;

/// Where agents are that need no launcher's process.
pub trait InProcess: Send + Sync {
    /// A new agent of this host, after the time that a launch takes there.
    fn launch<'a>(&'a self, host: &'a Host, limit: Duration) -> InProcessLaunch<'a>;
}

/// The way to an agent in this process.
pub struct InProcessLink {
    /// From the agent.
    pub reader: LinkReader,
    /// To the agent.
    pub writer: LinkWriter,
    /// What carries the agent's bytes here; ends when the agent hangs up.
    pub incoming: JoinHandle<()>,
    /// What carries ours there.
    pub outgoing: JoinHandle<()>,
}

impl std::fmt::Debug for InProcessLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InProcessLink").finish_non_exhaustive()
    }
}

impl InProcessLink {
    pub(crate) fn into_link(self, host: &str) -> Link {
        Link {
            reader: self.reader,
            writer: self.writer,
            guard: LinkGuard::in_process(InProcessGuard {
                host: host.to_owned(),
                incoming: self.incoming,
                outgoing: self.outgoing,
            }),
            was_kept: false,
        }
    }
}
