//! A witness from outside: what the switches' ports counted, read during a run and known to nobody
//! in it.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::time::Duration;

use ew_sys::clock;
use ew_sys::namespace::{self, NamespaceKind};
use ew_sys::qdisc::QdiscLister;
use serde::Serialize;

use crate::error::LabError;
use crate::fabric::{Fabric, Router};
use crate::lab::Lab;
use crate::ports::ports;

/// All ports at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct PortReading {
    /// CLOCK_MONOTONIC, the clock of every agent of a lab.
    pub monotonic_ns: u64,
    /// Every member of an uplink in both directions, and what every host receives.
    pub ports: Vec<PortCounters>,
}

/// What left one port of a switch since the lab was built.
#[derive(Clone, Debug, Serialize)]
pub struct PortCounters {
    /// `r1/2 up`: member 2 of the uplink of r1, out of the rack; `r1h3 rx`: to a host.
    pub name: String,
    /// The router it belongs to.
    pub place: String,
    /// Its device there.
    pub device: String,
    /// Frames with their Ethernet headers.
    pub bytes: u64,
    /// Frames.
    pub packets: u64,
    /// Frames that its queue had no space for.
    pub drops: u32,
    /// Bytes waiting now.
    pub backlog_bytes: u32,
}

/// A router whose ports are read.
struct Station {
    place: String,
    network: OwnedFd,
    lister: QdiscLister,
    /// Devices and the names of their ports.
    names: BTreeMap<String, String>,
}

impl Lab {
    /// Reads the ports of all switches, again and again: `each` gets a reading and returns whether
    /// to go on.
    ///
    /// # Errors
    /// [`LabError::Unsupported`] without root; otherwise what failed.
    pub fn watch_ports(
        &self,
        every: Duration,
        mut each: impl FnMut(PortReading) -> bool + Send,
    ) -> Result<(), LabError> {
        if self.state.rootless {
            return Err(LabError::Unsupported {
                problem: "port counters of a lab that was built without root need root".into(),
            });
        }
        // A thread of its own, since it enters the namespaces of the routers, and comes back to
        // none.
        std::thread::scope(|scope| {
            let watching = scope.spawn(|| {
                let mut stations = self.stations()?;
                let mut next_ns = clock::monotonic_ns();
                while each(read(&mut stations)?) {
                    next_ns += every.as_nanos() as u64;
                    clock::sleep_until_ns(next_ns);
                }
                Ok(())
            });
            let ended = watching.join();
            ended.unwrap_or_else(|_| {
                let problem = "the reader of port counters ended".into();
                Err(LabError::Build { problem })
            })
        })
    }

    fn stations(&self) -> Result<Vec<Station>, LabError> {
        let fabric = Fabric::of(&self.state.current);
        let routers = fabric.routers.iter();
        routers
            .map(|router| self.station(&fabric, *router))
            .collect()
    }

    fn station(&self, fabric: &Fabric, router: Router) -> Result<Station, LabError> {
        let place = fabric.node(router);
        let network = self.entrance(&place)?.network;
        namespace::enter(&network, NamespaceKind::Network)
            .map_err(LabError::io_named("enter", &place))?;
        let lister = QdiscLister::open().map_err(LabError::io_named("ask", &place))?;
        let mut names = BTreeMap::new();
        for (own, _, link) in fabric.ends(router) {
            let way = match link.lower.router == router {
                true => "up",
                false => "down",
            };
            if let Some(member) = fabric.member(link) {
                names.insert(own.device.clone(), format!("{member} {way}"));
            }
        }
        if let Router::Leaf(rack) = router {
            for host in &self.state.current.topology.racks[rack].hosts {
                for (port, number) in ports(host).zip(1..) {
                    let name = match number {
                        1 => format!("{} rx", host.name),
                        number => format!("{} rx {number}", host.name),
                    };
                    names.insert(port, name);
                }
            }
        }
        Ok(Station {
            place,
            network,
            lister,
            names,
        })
    }
}

fn read(stations: &mut [Station]) -> Result<PortReading, LabError> {
    let begin_ns = clock::monotonic_ns();
    let mut ports = Vec::new();
    for station in stations {
        let failed = |source| LabError::io_named("read the ports of", &station.place)(source);
        namespace::enter(&station.network, NamespaceKind::Network).map_err(failed)?;
        for counted in station.lister.egress().map_err(failed)? {
            let Some(name) = station.names.get(&counted.interface) else {
                continue;
            };
            ports.push(PortCounters {
                name: name.clone(),
                place: station.place.clone(),
                device: counted.interface,
                bytes: counted.bytes,
                packets: counted.packets,
                drops: counted.drops,
                backlog_bytes: counted.backlog_bytes,
            });
        }
    }
    Ok(PortReading {
        monotonic_ns: begin_ns.midpoint(clock::monotonic_ns()),
        ports,
    })
}
