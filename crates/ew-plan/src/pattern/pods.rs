//! Nodes and pods two by two, by the circle method: in one repetition a node takes part in one
//! flow, and the same two nodes meet in the same repetition whatever the path, so that paths are
//! compared by pairs. Between clients and servers it is the smaller set that always takes part.

use super::draft::{Draft, Impossible, Relation};
use super::site::{Sides, Site, racks};
use crate::schedule::circle;
use ew_model::inventory::HostId;
use ew_model::pods::{self, FIRST_POD, PodPath, SECOND_POD};

/// The agents of a node that a path needs.
#[derive(Clone, Copy, Debug)]
struct Ends {
    client: HostId,
    server: HostId,
}

pub(super) fn drafts(site: &Site<'_>, path: PodPath) -> Result<Vec<Draft>, Impossible> {
    let nodes = nodes(site, path);
    let need = if path == PodPath::SameNode { 1 } else { 2 };
    if nodes.len() < need {
        let have = nodes.len();
        return Err(Impossible::TooFewHosts { need, have });
    }
    let draft = |sample: u32, pairs: Vec<(Ends, Ends)>| {
        let relation = |(from, to): (Ends, Ends)| Relation::new(from.client, to.server);
        Draft::new(sample, pairs.into_iter().map(relation).collect())
    };
    let samples = 0..site.samples;
    if path == PodPath::SameNode {
        let own: Vec<_> = nodes.iter().map(|node| (*node, *node)).collect();
        return Ok(samples.map(|sample| draft(sample, own.clone())).collect());
    }
    if let Some(sides) = site.roles {
        let all = samples.map(|sample| draft(sample, between(site, sides, &nodes, path, sample)));
        let drafts: Vec<Draft> = all.collect();
        let crosses = drafts.iter().any(|draft| !draft.relations.is_empty());
        return if crosses {
            Ok(drafts)
        } else {
            Err(Impossible::NeedsTwoRacks { have: 1 })
        };
    }
    if path.crosses_zones() {
        let zones = zones(site, &nodes)?;
        return Ok(samples
            .map(|sample| draft(sample, across(&zones, sample)))
            .collect());
    }
    let rounds = circle::rounds(nodes.len());
    Ok(samples
        .map(|sample| draft(sample, meeting(&nodes, &rounds, sample)))
        .collect())
}

/// By nodes, in the inventory's order.
fn nodes(site: &Site<'_>, path: PodPath) -> Vec<Ends> {
    let (client, server) = match path {
        PodPath::HostNetwork | PodPath::HostOtherZone => (None, None),
        PodPath::SameNode => (Some(FIRST_POD), Some(SECOND_POD)),
        _ => (Some(FIRST_POD), Some(FIRST_POD)),
    };
    let inventory = site.inventory;
    let mut names: Vec<&str> = Vec::new();
    for host in &inventory.hosts {
        let node = pods::parse_agent_name(&host.name).node;
        if !names.contains(&node) {
            names.push(node);
        }
    }
    let ends = |node: &str| {
        Some(Ends {
            client: inventory.find(&pods::agent(node, client))?,
            server: inventory.find(&pods::agent(node, server))?,
        })
    };
    names.into_iter().filter_map(ends).collect()
}

/// The repetition's round of the tournament; every second time through it the other way round.
fn meeting(nodes: &[Ends], rounds: &[Vec<(usize, usize)>], sample: u32) -> Vec<(Ends, Ends)> {
    let sample = sample as usize;
    let is_back = sample / rounds.len() % 2 == 1;
    let round = rounds[sample % rounds.len()].iter();
    round
        .map(|(a, b)| {
            if is_back {
                (nodes[*b], nodes[*a])
            } else {
                (nodes[*a], nodes[*b])
            }
        })
        .collect()
}

/// Nodes of one role with nodes of the other, other ones in every repetition.
fn between(
    site: &Site<'_>,
    sides: &Sides,
    nodes: &[Ends],
    path: PodPath,
    sample: u32,
) -> Vec<(Ends, Ends)> {
    let inventory = site.inventory;
    let node = |id: HostId| pods::parse_agent_name(inventory.name(id)).node;
    let of = |side: &[HostId]| -> Vec<Ends> {
        let is_named = |ends: &&Ends| side.iter().any(|id| node(*id) == node(ends.client));
        nodes.iter().filter(is_named).copied().collect()
    };
    let (clients, servers) = (of(&sides.clients), of(&sides.servers));
    let count = clients.len().min(servers.len());
    // All of the smaller set take part, and the greater one moves on.
    let shift = sample as usize;
    let (of_clients, of_servers) = match clients.len() > servers.len() {
        true => (shift, 0),
        false => (0, shift),
    };
    let at = |side: &[Ends], index: usize| side[index % side.len()];
    let rack = |ends: &Ends| inventory.rack_of(ends.client);
    (0..count)
        .map(|index| {
            (
                at(&clients, index + of_clients),
                at(&servers, index + of_servers),
            )
        })
        .filter(|(a, b)| !path.crosses_zones() || rack(a) != rack(b))
        .collect()
}

fn zones(site: &Site<'_>, nodes: &[Ends]) -> Result<Vec<Vec<Ends>>, Impossible> {
    let of = |hosts: Vec<HostId>| -> Vec<Ends> {
        let inside = nodes.iter().filter(|node| hosts.contains(&node.client));
        inside.copied().collect()
    };
    let mut zones: Vec<Vec<Ends>> = racks(site.inventory).into_iter().map(of).collect();
    zones.retain(|zone| !zone.is_empty());
    match zones.len() {
        0 | 1 => Err(Impossible::NeedsTwoRacks { have: zones.len() }),
        _ => Ok(zones),
    }
}

/// Zones two by two, and inside each two of them nodes two by two, other ones in every repetition.
fn across(zones: &[Vec<Ends>], sample: u32) -> Vec<(Ends, Ends)> {
    let rounds = circle::rounds(zones.len());
    let (sample, turns) = (sample as usize, rounds.len());
    let mut pairs = Vec::new();
    for (a, b) in &rounds[sample % turns] {
        let (one, other) = (&zones[*a], &zones[*b]);
        let shift = sample / turns;
        for position in 0..one.len().min(other.len()) {
            let near = one[(position + shift) % one.len()];
            let far = other[position];
            pairs.push(if shift % 2 == 1 {
                (far, near)
            } else {
                (near, far)
            });
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{laid_out, site};
    use ew_model::inventory::{Host, Inventory, Rack, RackId};
    use ew_model::scenario::Pattern;
    use std::collections::BTreeSet;

    fn cluster(nodes: u32) -> Inventory {
        let agents = [None, Some(FIRST_POD), Some(SECOND_POD)];
        let host = |node: u32, pod| Host {
            name: pods::agent(&format!("n{node}"), pod),
            address: None,
            rack: Some(RackId(node % 2)),
        };
        let hosts = (0..nodes).flat_map(|node| agents.map(|pod| host(node, pod)));
        let rack = |name: &str| Rack { name: name.into() };
        Inventory {
            hosts: hosts.collect(),
            racks: vec![rack("a"), rack("b")],
        }
    }

    /// Per repetition: the nodes of every flow.
    fn meetings(inventory: &Inventory, path: PodPath) -> Vec<Vec<(String, String)>> {
        let drafts = laid_out(&Pattern::Pods { path }, &site(inventory, 8), 1);
        let node = |id: HostId| pods::parse_agent_name(inventory.name(id)).node.to_owned();
        let pairs = |draft: &Draft| {
            let relations = draft.relations.iter();
            relations
                .map(|r| (node(r.client), node(r.server)))
                .collect()
        };
        drafts.iter().map(pairs).collect()
    }

    #[test]
    fn as_many_clients_as_servers_change_partners() {
        let inventory = cluster(4);
        let nodes = nodes(&site(&inventory, 2), PodPath::HostNetwork);
        let ids = |range: std::ops::Range<usize>| nodes[range].iter().map(|n| n.client).collect();
        let sides = Sides {
            clients: ids(0..2),
            servers: ids(2..4),
        };
        let site = site(&inventory, 2);
        let met: BTreeSet<_> = (0..2)
            .flat_map(|sample| between(&site, &sides, &nodes, PodPath::HostNetwork, sample))
            .map(|(a, b)| (a.client, b.server))
            .collect();
        assert_eq!(met.len(), 4, "each client with each server: {met:?}");
    }

    #[test]
    fn the_same_nodes_meet_whatever_the_path() {
        for nodes in [2, 3, 5, 6] {
            let inventory = cluster(nodes);
            let hosts = meetings(&inventory, PodPath::HostNetwork);
            assert_eq!(hosts, meetings(&inventory, PodPath::OtherNode));
            assert_eq!(hosts, meetings(&inventory, PodPath::ClusterIp));
            for round in hosts {
                let busy: Vec<_> = round.iter().flat_map(|(a, b)| [a, b]).collect();
                let distinct: BTreeSet<_> = busy.iter().collect();
                assert_eq!(busy.len(), distinct.len());
            }
        }
    }

    #[test]
    fn two_nodes_take_turns_at_sending() {
        let rounds = meetings(&cluster(2), PodPath::OtherNode);
        assert_ne!(rounds[0], rounds[1]);
        assert_eq!(rounds[0], rounds[2]);
    }

    #[test]
    fn zones_are_crossed_where_there_are_two() {
        let inventory = cluster(6);
        let zone = |name: &str| inventory.rack_of(inventory.find(name).unwrap());
        for round in meetings(&inventory, PodPath::OtherZone) {
            assert_eq!(round.len(), 3);
            assert!(round.iter().all(|(a, b)| zone(a) != zone(b)));
        }
        let flat = Inventory {
            racks: Vec::new(),
            hosts: inventory
                .hosts
                .iter()
                .map(|h| Host {
                    rack: None,
                    ..h.clone()
                })
                .collect(),
        };
        let refused = drafts(&site(&flat, 1), PodPath::OtherZone);
        assert_eq!(refused, Err(Impossible::NeedsTwoRacks { have: 0 }));
    }

    #[test]
    fn clients_stay_clients_and_every_server_has_its_turn() {
        let inventory = cluster(5);
        let ids = |names: &[&str]| names.iter().map(|n| inventory.find(n).unwrap()).collect();
        let sides = Sides {
            clients: ids(&["n0", "n4"]),
            servers: ids(&["n1", "n2", "n3"]),
        };
        let site = Site {
            roles: Some(&sides),
            ..site(&inventory, 6)
        };
        let mut met = BTreeSet::new();
        let path = PodPath::ClusterIp;
        for draft in laid_out(&Pattern::Pods { path }, &site, 1) {
            assert_eq!(draft.relations.len(), 2);
            for relation in &draft.relations {
                let (client, server) = (relation.client, relation.server);
                met.insert((inventory.name(client), inventory.name(server)));
            }
        }
        let clients: BTreeSet<_> = met.iter().map(|(client, _)| *client).collect();
        assert_eq!(clients, BTreeSet::from(["n0/pod", "n4/pod"]));
        assert_eq!(met.len(), 6, "{met:?}");
        let crossing = Pattern::Pods {
            path: PodPath::OtherZone,
        };
        for draft in laid_out(&crossing, &site, 1) {
            let zone = |id| inventory.rack_of(id);
            assert!(
                draft
                    .relations
                    .iter()
                    .all(|r| zone(r.client) != zone(r.server))
            );
        }
    }

    #[test]
    fn pods_of_a_node_talk_to_each_other() {
        let inventory = cluster(2);
        let drafts = laid_out(
            &Pattern::Pods {
                path: PodPath::SameNode,
            },
            &site(&inventory, 1),
            1,
        );
        let names: Vec<_> = drafts[0]
            .relations
            .iter()
            .map(|r| (inventory.name(r.client), inventory.name(r.server)))
            .collect();
        assert_eq!(names, [("n0/pod", "n0/pod2"), ("n1/pod", "n1/pod2")]);
    }

    /// Between two repetitions of the nodes' own network every path of pods is measured as often,
    /// so that drift meets all alike.
    #[test]
    fn paths_are_interleaved() {
        let text = crate::scenario::builtin("pods").unwrap();
        let file = crate::scenario::parse_file(text, "pods", &[]).unwrap();
        let plan = crate::plan(&file.scenario, &cluster(4), 7).unwrap();
        let [all] = &plan.groups()[..] else {
            panic!("{:?}", plan.groups());
        };
        assert_eq!(*all, 0..plan.stages.len());
        let has = |wanted: PodPath| {
            let mut stages = plan.stages.iter();
            stages.any(|stage| stage.pattern == Pattern::Pods { path: wanted })
        };
        assert!(has(PodPath::HostNetwork) && has(PodPath::OtherNode));
        let mut orders = BTreeSet::new();
        let passes = plan.stages[0].rounds.len() as u32;
        assert!(passes >= 10, "{passes}");
        for pass in 0..passes {
            let turns = crate::plan::turns(&plan, all, pass);
            let order: Vec<usize> = turns.iter().map(|stage| stage.0 as usize).collect();
            let once: BTreeSet<usize> = order.iter().copied().collect();
            assert_eq!((once.len(), order.len()), (all.len(), all.len()));
            orders.insert(order);
        }
        assert_eq!(
            orders.len(),
            passes as usize,
            "an order of its own in every pass"
        );
        for stage in &plan.stages {
            let samples: Vec<u32> = stage.rounds.iter().map(|round| round.sample).collect();
            assert_eq!(samples, (0..passes).collect::<Vec<_>>(), "{}", stage.name);
        }
    }
}
