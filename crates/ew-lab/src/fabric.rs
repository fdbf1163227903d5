//! The network as a graph: routers, the links between them, and which of these lead where.
//!
//! Leaves, spines and, above pods, cores. A pod's spines meet in its border, from where the pod's
//! own paths lead to the cores: that way the members of a pod's uplink are shared by all that
//! leaves the pod, and spine and core are chosen apart.

use std::net::IpAddr;

use ew_model::topology::{PathSpec, Topology};

use crate::addresses::Addresses;
use crate::spec::LabSpec;

/// A router. Racks, pods and paths are counted from 0; without pods all racks are in pod 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Router {
    Leaf(usize),
    Spine { pod: usize, path: usize },
    Border(usize),
    Core(usize),
}

/// A cable between two routers.
#[derive(Debug)]
pub(crate) struct Link<'a> {
    pub(crate) lower: End,
    pub(crate) upper: End,
    /// `None`: it limits nothing and is never broken.
    pub(crate) path: Option<&'a PathSpec>,
}

/// One end of a cable.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) router: Router,
    pub(crate) device: String,
    pub(crate) address: IpAddr,
    pub(crate) hardware: String,
}

/// Where packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Rack(usize),
    Controller,
}

/// One of the ways to a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) device: String,
    pub(crate) via: IpAddr,
    /// Relative to the other ways'.
    pub(crate) weight: u32,
}

/// All routers and cables of a lab.
#[derive(Debug)]
pub(crate) struct Fabric<'a> {
    topology: &'a Topology,
    pub(crate) addresses: Addresses,
    pub(crate) routers: Vec<Router>,
    pub(crate) links: Vec<Link<'a>>,
}

/// The name of a topmost router's device towards the controller.
pub(crate) const MANAGEMENT: &str = "mgmt";

/// The kernel's maximum (`rtnh_hops` is a byte).
const MAX_WEIGHT: u32 = 256;

impl<'a> Fabric<'a> {
    pub(crate) fn of(spec: &'a LabSpec) -> Self {
        let mut fabric = Self {
            topology: &spec.topology,
            addresses: spec.addresses(),
            routers: Vec::new(),
            links: Vec::new(),
        };
        fabric.add_routers();
        fabric.add_links();
        fabric
    }

    fn add_routers(&mut self) {
        let topology = self.topology;
        self.routers
            .extend((0..topology.racks.len()).map(Router::Leaf));
        for pod in 0..topology.pods.len().max(1) {
            let spines = self.spines_of(pod);
            self.routers
                .extend((0..spines).map(|path| Router::Spine { pod, path }));
        }
        let pods = &topology.pods;
        self.routers.extend((0..pods.len()).map(Router::Border));
        let cores = pods.iter().map(|pod| pod.paths.len()).max().unwrap_or(0);
        self.routers.extend((0..cores).map(Router::Core));
    }

    fn spines_of(&self, pod: usize) -> usize {
        let racks = self.topology.racks.iter().enumerate();
        let own = racks.filter(|(rack, _)| self.pod_of(*rack) == pod);
        own.map(|(_, rack)| rack.paths.len()).max().unwrap_or(0)
    }

    fn add_links(&mut self) {
        let (topology, addresses) = (self.topology, self.addresses);
        for (rack, racks) in topology.racks.iter().enumerate() {
            let pod = self.pod_of(rack);
            for (path, member) in racks.paths.iter().enumerate() {
                let lower = (Router::Leaf(rack), format!("up{}", path + 1));
                let upper = (Router::Spine { pod, path }, format!("rack{}", rack + 1));
                self.add_link(lower, upper, addresses.rack_link(rack, path), Some(member));
            }
        }
        for (pod, pods) in topology.pods.iter().enumerate() {
            for path in 0..self.spines_of(pod) {
                let lower = (Router::Spine { pod, path }, "border".to_owned());
                let upper = (Router::Border(pod), format!("spine{}", path + 1));
                self.add_link(lower, upper, addresses.border_link(pod, path), None);
            }
            for (path, member) in pods.paths.iter().enumerate() {
                let lower = (Router::Border(pod), format!("up{}", path + 1));
                let upper = (Router::Core(path), format!("pod{}", pod + 1));
                self.add_link(lower, upper, addresses.pod_link(pod, path), Some(member));
            }
        }
    }

    fn add_link(
        &mut self,
        lower: (Router, String),
        upper: (Router, String),
        addresses: (IpAddr, IpAddr),
        path: Option<&'a PathSpec>,
    ) {
        let [high, low] = (self.links.len() as u16).to_be_bytes();
        let end = |(router, device): (Router, String), address, number: u8| End {
            router,
            device,
            address,
            hardware: format!("02:01:{high:02x}:{low:02x}:00:{number:02x}"),
        };
        self.links.push(Link {
            upper: end(upper, addresses.0, 1),
            lower: end(lower, addresses.1, 2),
            path,
        });
    }

    /// The name of a router among the lab's nodes.
    pub(crate) fn node(&self, router: Router) -> String {
        let (racks, pods) = (&self.topology.racks, &self.topology.pods);
        match router {
            Router::Leaf(rack) => format!("leaf:{}", racks[rack].name),
            Router::Spine { path, .. } if pods.is_empty() => format!("spine:{}", path + 1),
            Router::Spine { pod, path } => format!("spine:{}:{}", pods[pod].name, path + 1),
            Router::Border(pod) => format!("border:{}", pods[pod].name),
            Router::Core(path) => format!("core:{}", path + 1),
        }
    }

    /// A cable's name in faults, `r1/2`. `None`: it limits nothing.
    pub(crate) fn member(&self, link: &Link) -> Option<String> {
        link.path?;
        let (owner, path) = match (link.lower.router, link.upper.router) {
            (Router::Leaf(rack), Router::Spine { path, .. }) => {
                (&self.topology.racks[rack].name, path)
            }
            (Router::Border(pod), Router::Core(path)) => (&self.topology.pods[pod].name, path),
            _ => return None,
        };
        Some(format!("{owner}/{}", path + 1))
    }

    /// Tiers hash with seeds of their own, unless they are to choose alike.
    pub(crate) fn hash_seed(&self, router: Router) -> u32 {
        match router {
            _ if self.topology.polarised => 1,
            Router::Leaf(rack) => 1000 + rack as u32,
            Router::Spine { pod, path } => 20_000 + 100 * pod as u32 + path as u32,
            Router::Border(pod) => 40_000 + pod as u32,
            Router::Core(path) => 50_000 + path as u32,
        }
    }

    /// Routers that the controller is attached to: cores, or spines where there are none.
    pub(crate) fn tops(&self) -> impl Iterator<Item = Router> {
        let has_pods = !self.topology.pods.is_empty();
        let routers = self.routers.iter().copied();
        routers.filter(move |router| match router {
            Router::Core(_) => has_pods,
            Router::Spine { .. } => !has_pods,
            _ => false,
        })
    }

    /// Both ends of the controller's cable to one of the tops: the router's, the controller's.
    pub(crate) fn controller_link(&self, number: usize) -> (End, End) {
        let (router, controller) = self.addresses.controller_link(number);
        let end = |device: &str, address, last: u8| End {
            router: Router::Core(0),
            device: device.to_owned(),
            address,
            hardware: format!("02:02:00:{number:02x}:00:{last:02x}"),
        };
        let device = format!("eth{number}");
        (end(MANAGEMENT, router, 1), end(&device, controller, 2))
    }

    /// The cables that end at a router: its own end, the other, and whether its own is the lower
    /// one.
    pub(crate) fn ends(&self, router: Router) -> impl Iterator<Item = (&End, &End, &Link<'a>)> {
        self.links.iter().filter_map(move |link| match router {
            router if link.lower.router == router => Some((&link.lower, &link.upper, link)),
            router if link.upper.router == router => Some((&link.upper, &link.lower, link)),
            _ => None,
        })
    }

    pub(crate) fn pod_of(&self, rack: usize) -> usize {
        self.topology.racks[rack].pod.unwrap_or(0) as usize
    }

    /// Where a router sends packets by its routes, for all destinations that are not its own.
    pub(crate) fn routes(&self, router: Router) -> Vec<(Destination, Vec<Hop>)> {
        let racks = (0..self.topology.racks.len()).map(Destination::Rack);
        let destinations = racks.chain([Destination::Controller]);
        destinations
            .filter(
                |to| !matches!((router, to), (Router::Leaf(a), Destination::Rack(b)) if a == *b),
            )
            .map(|to| (to, self.hops(router, to)))
            .collect()
    }

    /// The controller's ways to a rack.
    pub(crate) fn hops_from_controller(&self, rack: usize) -> Vec<Hop> {
        let tops = self.tops().enumerate();
        tops.filter(|(_, top)| !self.hops(*top, Destination::Rack(rack)).is_empty())
            .map(|(number, _)| {
                let (router, controller) = self.controller_link(number);
                Hop {
                    device: controller.device,
                    via: router.address,
                    weight: 1,
                }
            })
            .collect()
    }

    fn hops(&self, router: Router, to: Destination) -> Vec<Hop> {
        let is_top = self.tops().any(|top| top == router);
        if is_top && to == Destination::Controller {
            let number = self.tops().position(|top| top == router).unwrap_or(0);
            let (_, controller) = self.controller_link(number);
            return vec![Hop {
                device: MANAGEMENT.into(),
                via: controller.address,
                weight: 1,
            }];
        }
        let ways = self.ends(router).filter_map(|(own, other, link)| {
            let weight = self.weight(router, own, other, link, to)?;
            Some(Hop {
                device: own.device.clone(),
                via: other.address,
                weight: weight.min(MAX_WEIGHT),
            })
        });
        ways.collect()
    }

    /// The share of a cable in what a router sends to a destination. `None`: it does not lead
    /// there.
    fn weight(
        &self,
        router: Router,
        own: &End,
        other: &End,
        link: &Link,
        to: Destination,
    ) -> Option<u32> {
        let goes_up = own.hardware == link.lower.hardware;
        match (router, to) {
            (Router::Leaf(from), Destination::Rack(rack))
                if self.pod_of(from) == self.pod_of(rack) =>
            {
                let Router::Spine { path, .. } = other.router else {
                    return None;
                };
                let member = self.topology.racks[rack].paths.get(path)?;
                Some(up(link.path?)? * down(member)?)
            }
            (Router::Leaf(_), _) => up(link.path?),
            (Router::Spine { pod, .. }, Destination::Rack(rack)) if self.pod_of(rack) == pod => {
                (other.router == Router::Leaf(rack)).then(|| down(link.path?))?
            }
            (Router::Spine { .. }, _) => goes_up.then_some(1),
            (Router::Border(pod), Destination::Rack(rack)) if self.pod_of(rack) == pod => {
                let Router::Spine { path, .. } = other.router else {
                    return None;
                };
                down(self.topology.racks[rack].paths.get(path)?)
            }
            (Router::Border(_), Destination::Rack(rack)) => {
                let Router::Core(path) = other.router else {
                    return None;
                };
                let member = self.topology.pods[self.pod_of(rack)].paths.get(path)?;
                Some(up(link.path?)? * down(member)?)
            }
            (Router::Border(_), Destination::Controller) => goes_up.then(|| up(link.path?))?,
            (Router::Core(_), Destination::Rack(rack)) => {
                (other.router == Router::Border(self.pod_of(rack))).then(|| down(link.path?))?
            }
            (Router::Core(_), Destination::Controller) => None,
        }
    }
}

/// The weight of a member on the way out of its rack or pod. `None` when routing does not use it.
fn up(path: &PathSpec) -> Option<u32> {
    (path.link_up && path.up.routed).then_some(path.up.weight)
}

/// The same on the way in.
fn down(path: &PathSpec) -> Option<u32> {
    (path.link_up && path.down.routed).then_some(path.down.weight)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Fault;

    fn spec(text: &str, faults: &[(&str, &str)]) -> LabSpec {
        let text = format!("name: t\nhosts-per-rack: 2\nnic: 100M\n{text}");
        let spec = LabSpec::parse(&text, "t.yaml").unwrap();
        faults.iter().fold(spec, |spec, (target, fault)| {
            let fault = Fault::parse(target, fault).unwrap();
            spec.with_fault(&fault).unwrap()
        })
    }

    fn ways(spec: &LabSpec, router: Router, to: Destination) -> Vec<(String, u32)> {
        let fabric = Fabric::of(spec);
        let hops = fabric.hops(router, to);
        hops.into_iter()
            .map(|hop| (hop.device, hop.weight))
            .collect()
    }

    #[test]
    fn a_leaf_uses_the_members_that_both_racks_have() {
        let faults = [
            ("r1/1", "link-down"),
            ("r2/2", "withdrawn=down"),
            ("r2/3", "weight=3"),
        ];
        let spec = spec("racks: 3\npaths: 4\n", &faults);
        let to = |rack| ways(&spec, Router::Leaf(0), Destination::Rack(rack));
        assert_eq!(to(1), [("up3".into(), 3), ("up4".into(), 1)]);
        assert_eq!(
            to(2),
            [("up2".into(), 1), ("up3".into(), 1), ("up4".into(), 1)]
        );
        let spine = |path| ways(&spec, Router::Spine { pod: 0, path }, Destination::Rack(0));
        assert_eq!((spine(0), spine(1)), (vec![], vec![("rack1".into(), 1)]));
    }

    #[test]
    fn pods_meet_in_their_borders_and_the_cores() {
        let spec = spec(
            "racks: 4\npaths: 2\npods:\n  - {racks: 2, paths: 3}\n  - {racks: 2, paths: 3}\n",
            &[("pod2/1", "link-down")],
        );
        let border = ways(&spec, Router::Border(0), Destination::Rack(3));
        assert_eq!(border, [("up2".into(), 1), ("up3".into(), 1)]);
        let leaf = ways(&spec, Router::Leaf(0), Destination::Rack(3));
        assert_eq!(leaf, [("up1".into(), 1), ("up2".into(), 1)]);
        let down = ways(&spec, Router::Border(1), Destination::Rack(3));
        assert_eq!(down, [("spine1".into(), 1), ("spine2".into(), 1)]);
        assert_eq!(Fabric::of(&spec).hops_from_controller(3).len(), 2);
        assert_eq!(Fabric::of(&spec).hops_from_controller(0).len(), 3);
    }
}
