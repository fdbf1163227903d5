//! Whether a server's clients are gone.

use ew_model::telemetry::TcpSocket;
use ew_sys::clock::monotonic_ns;
use ew_sys::sock_diag::SocketLister;

/// How often the sockets are polled once the window is over.
const LOOK_EVERY_NS: u64 = 100_000_000;
/// How long a server whose clients come and go unseen outlasts their planned end.
const LINGER_NS: u64 = 1_500_000_000;
/// `TCP_ESTABLISHED` and `TCP_CLOSE_WAIT` (include/net/tcp_states.h): the server has not done its
/// part yet.
const HELD_STATES: [u8; 2] = [1, 8];

/// Watches one server's port. Nothing is polled inside the window.
#[derive(Debug)]
pub(crate) struct Watch {
    port: u16,
    /// Set where clients hold no connection: over UDP, and where they close each at once.
    over_ns: Option<u64>,
    next_look_ns: u64,
}

impl Watch {
    /// `unseen_until_ns` is the clients' planned end where they hold no connection to the port.
    pub(crate) fn new(port: u16, window_end_ns: u64, unseen_until_ns: Option<u64>) -> Self {
        Self {
            port,
            over_ns: unseen_until_ns.map(|end_ns| end_ns + LINGER_NS),
            next_look_ns: window_end_ns,
        }
    }

    /// Whether nobody needs the server any more.
    pub(crate) fn is_over(&mut self) -> bool {
        let now_ns = monotonic_ns();
        if let Some(over_ns) = self.over_ns {
            return now_ns >= over_ns;
        }
        if now_ns < self.next_look_ns {
            return false;
        }
        self.next_look_ns = now_ns + LOOK_EVERY_NS;
        // Where the kernel does not report, the deadline ends the server.
        held_connections(self.port) == Some(0)
    }
}

fn held_connections(port: u16) -> Option<usize> {
    let mut sockets: Vec<TcpSocket> = Vec::new();
    SocketLister::open().ok()?.tcp(&mut sockets).ok()?;
    let is_held = |s: &&TcpSocket| s.local.port() == port && HELD_STATES.contains(&s.state);
    Some(sockets.iter().filter(is_held).count())
}
