//! How a server serves, and what anybody may ask of it.

use crate::auth::ServerAuth;
use crate::report::Observer;
use crate::stream::EndOptions;

/// What anybody may ask of a server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Clients at once; others are answered that the server is busy.
    pub sessions: usize,
    /// Streams of all clients at once.
    pub streams: usize,
    /// Longest test, with the omitted time, seconds.
    pub duration_s: u64,
    /// Sum of the rates a client may ask for, bits per second. A client that names no rate is
    /// refused then.
    pub bits_per_sec: Option<u64>,
    /// How long a client that should send may be silent, ms.
    pub idle_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 64,
            streams: 512,
            duration_s: 86_400 + 600,
            bits_per_sec: None,
            idle_ms: 120_000,
        }
    }
}

/// Makes an observer for each client.
pub trait Watcher: Send + Sync {
    /// A client has come; the number counts them from 1.
    fn session(&self, number: u64) -> Box<dyn Observer>;
}

/// How a server serves.
#[derive(Default)]
pub struct ServerOptions {
    /// What anybody may ask for.
    pub limits: Limits,
    /// `[::]` takes no IPv4.
    pub only_v6: bool,
    /// Lets only its users in.
    pub auth: Option<ServerAuth>,
    /// Between reports, ms; 0 is never.
    pub interval_ms: u64,
    /// Takes Multipath TCP (RFC 8684) as well.
    pub multipath: bool,
    /// What concerns this end alone; a client may name another CPU.
    pub end: EndOptions,
    /// Ends after one client.
    pub one_off: bool,
    /// Clients that ask for the server's output get it as JSON.
    pub json_output: bool,
    /// Shows what happens.
    pub watcher: Option<Box<dyn Watcher>>,
}

impl std::fmt::Debug for ServerOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerOptions")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
