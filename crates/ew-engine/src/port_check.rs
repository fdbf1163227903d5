//! Whether peers' data ports can be reached.

use crate::clock_wait::Cancel;
use crate::connect::{Opener, Opening};
use crate::hello::{Ends, Hello};
use crate::settings::Settings;
use ew_proto::message::RunToken;
use ew_sys::clock::monotonic_ns;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Says hello to every peer, to all at the same time. One entry per peer: `None` is reachable, else
/// why not.
pub(crate) fn check_ports(
    source: IpAddr,
    token: &RunToken,
    peers: &[SocketAddr],
    timeout: Duration,
) -> Vec<Option<String>> {
    let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
    let opener = Opener {
        source,
        settings: &Settings::default(),
        deadline_ns: monotonic_ns().saturating_add(timeout_ns),
        cancel: &Cancel::default(),
    };
    let openings: Vec<_> = peers
        .iter()
        .map(|peer| {
            let acceptor = peer.ip();
            let ends = Ends {
                opener: source,
                acceptor,
            };
            Opening::new(&Hello::Probe, ends, *peer, token)
        })
        .collect();
    let mut errors = vec![None; peers.len()];
    opener.run(&openings, |index, outcome| errors[index] = outcome.err());
    errors
}
