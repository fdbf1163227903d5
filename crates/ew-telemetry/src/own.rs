//! Which connections are the run's own, when the process that held them can no longer be seen.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Shared between the agent, which learns its peers with every stage, and its sampler. A round may
/// be shorter than the time between two readings of the sockets: what lived in it alone must not be
/// taken for somebody else's.
#[derive(Clone, Debug, Default)]
pub struct OwnConnections {
    known: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    data_ports: (u16, u16),
    peers: BTreeSet<IpAddr>,
    tool_ports: BTreeSet<u16>,
}

impl OwnConnections {
    /// `data_ports`: first and last port of the run's data listeners, on every host.
    #[must_use]
    pub fn new(data_ports: (u16, u16)) -> Self {
        let own = Self::default();
        own.known().data_ports = data_ports;
        own
    }

    /// Flows go to or come from `peer`, whose port may be a tool's; so may `server_port` here.
    pub fn expect(&self, peer: SocketAddr, server_port: u16) {
        let mut known = self.known();
        known.peers.insert(peer.ip().to_canonical());
        known.tool_ports.extend([peer.port(), server_port]);
    }

    /// Whether the connection is one of a flow.
    #[must_use]
    pub fn include(&self, local: SocketAddr, remote: SocketAddr) -> bool {
        let known = self.known();
        let (first, last) = known.data_ports;
        let is_ours = |port: u16| {
            port != 0 && ((first..=last).contains(&port) || known.tool_ports.contains(&port))
        };
        known.peers.contains(&remote.ip()) && (is_ours(local.port()) || is_ours(remote.port()))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_and_ports_must_both_be_the_runs() {
        let own = OwnConnections::new((5401, 5499));
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        own.expect(address("192.0.2.9:5401"), 0);
        own.expect(address("192.0.2.8:5001"), 5002);
        let (here, accepting) = (address("192.0.2.1:40000"), address("192.0.2.1:5002"));
        for (local, remote, is_ours) in [
            (here, "192.0.2.9:5450", true),
            (here, "192.0.2.8:5001", true),
            (here, "192.0.2.9:22", false),
            (here, "192.0.2.7:5401", false),
            (accepting, "192.0.2.9:39999", true),
            (accepting, "192.0.2.7:39999", false),
        ] {
            assert_eq!(own.include(local, address(remote)), is_ours, "{remote}");
        }
        assert!(!OwnConnections::default().include(here, address("192.0.2.9:5401")));
    }
}
