//! Sockets with their counters and owners, deaths included.
//!
//! TCP: a list of all sockets by sock_diag, 1.5 µs each, and the kernel's message for each that
//! dies. UDP: the kernel counts no bytes per UDP socket, so what is read is the list of sockets
//! with queues, drops and owner (1 µs each) next to the datagrams of the whole host in
//! `/proc/net/snmp`. Counting every datagram's bytes would take a filter in the packet path of the
//! host under test, which costs 50-100 ns a packet and privilege; that is not done.

use crate::owners::SocketOwners;
use ew_model::telemetry::{SocketsReading, TcpSocket};
use ew_sys::clock::monotonic_ns;
use ew_sys::sock_diag::{SocketLister, TcpDeaths};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;

/// Reads sockets again and again; remembers owners.
#[derive(Debug)]
pub(crate) struct SocketReader {
    lister: Option<SocketLister>,
    deaths: Option<TcpDeaths>,
    owners: SocketOwners,
    /// Owners by cookie of the sockets that lived at the last reading: a death does not report the
    /// inode.
    owner_of_cookie: BTreeMap<u64, u32>,
}

impl SocketReader {
    /// For the network namespace of the calling thread.
    pub(crate) fn new() -> Self {
        Self {
            lister: SocketLister::open().ok(),
            deaths: TcpDeaths::open().ok(),
            owners: SocketOwners::default(),
            owner_of_cookie: BTreeMap::new(),
        }
    }

    /// Lists what lives and what died since the last call. Adds to `unseen` what could not be read.
    pub(crate) fn read(&mut self, root: &Path, unseen: &mut Vec<String>) -> SocketsReading {
        let mut reading = SocketsReading {
            read_ns: monotonic_ns(),
            ..SocketsReading::default()
        };
        self.list(&mut reading, unseen);
        // What died meanwhile is in both; the death reports more.
        self.read_deaths(&mut reading, unseen);
        let tcp_inodes = reading.tcp.iter().map(|socket| socket.inode);
        let udp_inodes = reading.udp.iter().map(|socket| socket.inode);
        let living: BTreeSet<u32> = tcp_inodes.chain(udp_inodes).filter(|i| *i != 0).collect();
        self.owners.update(root, &living);
        self.name_owners(&mut reading);
        if self.owners.refused() > 0 {
            unseen.push(format!(
                "the sockets of {} process(es) of other users: shown without process (needs root or CAP_SYS_PTRACE)",
                self.owners.refused()
            ));
        }
        reading
    }

    fn read_deaths(&mut self, reading: &mut SocketsReading, unseen: &mut Vec<String>) {
        let Some(deaths) = &mut self.deaths else {
            unseen.push("what connections carried in their last moments: the kernel does not report closed sockets".into());
            return;
        };
        reading.deaths_told = true;
        match deaths.drain(&mut reading.tcp_closed) {
            Ok(missed) => reading.deaths_missed = missed,
            Err(error) => unseen.push(format!("closed connections: {error}")),
        }
        if reading.deaths_missed > 0 {
            unseen
                .push("some closed connections: they closed faster than they could be read".into());
        }
    }

    fn list(&mut self, reading: &mut SocketsReading, unseen: &mut Vec<String>) {
        let Some(lister) = &mut self.lister else {
            unseen
                .push("sockets: the kernel has no sock_diag (modules inet_diag, tcp_diag)".into());
            return;
        };
        if let Err(error) = lister.tcp(&mut reading.tcp) {
            unseen.push(format!("TCP sockets: {error} (module tcp_diag)"));
        }
        if let Err(error) = lister.udp(&mut reading.udp) {
            unseen.push(format!("UDP sockets: {error} (module udp_diag)"));
        }
    }

    fn name_owners(&mut self, reading: &mut SocketsReading) {
        for socket in &mut reading.tcp {
            socket.pid = self.owners.of(socket.inode);
        }
        for socket in &mut reading.udp {
            socket.pid = self.owners.of(socket.inode);
        }
        let listeners = listeners(&reading.tcp);
        for socket in &mut reading.tcp_closed {
            let remembered = self.owner_of_cookie.get(&socket.cookie).copied();
            socket.pid = remembered.or_else(|| listener_of(&listeners, socket.local));
        }
        let owned = reading.tcp.iter();
        self.owner_of_cookie = owned.filter_map(|s| Some((s.cookie, s.pid?))).collect();
    }
}

/// Ports that are listened on, and by whom.
fn listeners(sockets: &[TcpSocket]) -> BTreeMap<u16, u32> {
    let listening = sockets.iter().filter(|s| s.state == TcpSocket::LISTEN);
    listening
        .filter_map(|s| Some((s.local.port(), s.pid?)))
        .collect()
}

/// A connection that lived between two readings only was accepted by who listens on its port, or is
/// nobody's any more.
fn listener_of(listeners: &BTreeMap<u16, u32>, local: SocketAddr) -> Option<u32> {
    listeners.get(&local.port()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    #[test]
    fn a_life_between_two_readings_is_the_listeners() {
        let mut reader = SocketReader::new();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let local = listener.local_addr().unwrap();
        reader.read(Path::new("/"), &mut Vec::new());
        let mut near = TcpStream::connect(local).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        near.write_all(&[1; 999]).unwrap();
        drop(near);
        far.read_to_end(&mut Vec::new()).unwrap();
        drop(far);
        for _ in 0..500 {
            let reading = reader.read(Path::new("/"), &mut Vec::new());
            assert!(reading.deaths_told);
            if let Some(dead) = reading.tcp_closed.iter().find(|s| s.local == local) {
                assert_eq!(dead.pid, Some(std::process::id()));
                // The FIN counts as one byte more.
                assert!(
                    (999..=1000).contains(&dead.received_bytes.unwrap()),
                    "{dead:?}"
                );
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the death was not reported within 5 s");
    }
}
