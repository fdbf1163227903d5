//! Whether peers' data ports can be reached.

use crate::clock_wait::Cancel;
use crate::connect::Opening;
use crate::hello::Hello;
use ew_proto::message::RunToken;
use ew_sys::clock::monotonic_ns;
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Peers asked at the same time.
const AT_ONCE: usize = 16;

/// Says hello to every peer. One entry per peer: `None` is reachable, else why not.
pub(crate) fn check_ports(
    source: IpAddr,
    token: &RunToken,
    peers: &[SocketAddr],
    timeout: Duration,
) -> Vec<Option<String>> {
    let unasked = Some("not asked: no thread could be started".to_owned());
    let errors = Mutex::new(vec![unasked; peers.len()]);
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some((index, peer)) = take_next(&next, peers) {
            let error = probe(source, token, peer, timeout).err();
            errors.lock().unwrap_or_else(PoisonError::into_inner)[index] = error;
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..AT_ONCE.min(peers.len()) {
            // Fewer helpers only make it slower.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    errors.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn take_next(next: &AtomicUsize, peers: &[SocketAddr]) -> Option<(usize, SocketAddr)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, *peers.get(index)?))
}

fn probe(
    source: IpAddr,
    token: &RunToken,
    peer: SocketAddr,
    timeout: Duration,
) -> Result<(), String> {
    let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
    let opening = Opening {
        source,
        peer,
        hello: Hello::Probe.encode(token),
        deadline_ns: monotonic_ns().saturating_add(timeout_ns),
        cancel: &Cancel::default(),
    };
    opening.run().map(drop)
}
