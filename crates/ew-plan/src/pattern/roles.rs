//! Patterns between two sets: every connection is opened by a client to a server.
//!
//! Matchings spread the clients evenly over the servers, selected anew for each sample; random
//! picks are each client's own; paths have the same connections in every sample; incast
//! gives each server its turn with all clients, outcast each client its turn with all servers, mesh
//! every client and server one round without anybody else on their NICs, and fan-in all of them to
//! all at once, or to fewer and fewer servers.

use super::draft::{Draft, Impossible, Relation};
use super::site::{Sides, Site, dealt};
use super::{congestion, cross_rack};
use crate::schedule::draw::Draw;
use ew_model::inventory::HostId;
use ew_model::scenario::{MeshMode, Pattern, Pick};

/// Numbers of servers that a fan-in takes at most.
const MAX_STEPS: usize = 16;

pub(super) fn drafts(
    pattern: &Pattern,
    site: &Site<'_>,
    sides: &Sides,
    draw: &mut Draw,
) -> Result<Vec<Draft>, Impossible> {
    let mut drafts = Vec::new();
    for sample in 0..site.samples {
        let rounds = match pattern {
            Pattern::Congestion { aggressor } => {
                return congestion::drafts_between(site, sides, *aggressor, draw);
            }
            Pattern::OtherTests { .. } => return Ok(vec![Draft::new(0, Vec::new())]),
            Pattern::Paths { shifts } => return Ok(paths(site, sides, *shifts, draw)),
            Pattern::Pair => vec![spread(&sides.clients, &sides.servers)],
            Pattern::CrossRack {
                pick: Pick::Random { lanes },
                ..
            } => vec![cross_rack::picks(&sides.clients, &sides.servers, *lanes, draw)],
            Pattern::Permutation
            | Pattern::CrossRack { .. }
            | Pattern::Bisection
            // Lays itself out: roles are of nodes there.
            | Pattern::Pods { .. } => {
                vec![spread(
                    &draw.shuffled(&sides.clients),
                    &draw.shuffled(&sides.servers),
                )]
            }
            Pattern::FanIn => vec![all_to_all(sides, sides.servers.len())],
            Pattern::FanInFewer => fewer_servers(sides),
            Pattern::Incast {
                senders,
                max_senders,
                at_once: false,
            } => incast(sides, *senders, *max_senders, draw)?,
            // The senders shared out among all receivers: what `spread` does.
            Pattern::Incast { .. } => vec![spread(
                &draw.shuffled(&sides.clients),
                &draw.shuffled(&sides.servers),
            )],
            Pattern::Outcast { receivers } => outcast(sides, *receivers, draw)?,
            Pattern::Mesh { mode, max_rounds } => mesh(sides, *mode, *max_rounds),
        };
        drafts.extend(rounds.into_iter().map(|round| Draft::new(sample, round)));
    }
    Ok(drafts)
}

/// An upper bound of one sample's relations.
pub(super) fn most_relations(pattern: &Pattern, sides: &Sides) -> u64 {
    let (clients, servers) = (sides.clients.len() as u64, sides.servers.len() as u64);
    let (few, many) = (clients.min(servers), clients.max(servers));
    let pairs = clients.saturating_mul(servers);
    match pattern {
        Pattern::FanInFewer => pairs.saturating_mul(MAX_STEPS as u64),
        Pattern::FanIn | Pattern::Outcast { .. } | Pattern::Incast { at_once: false, .. } => pairs,
        Pattern::Mesh { mode, max_rounds } => {
            let rounds = max_rounds.map_or(many, u64::from);
            pairs.min(few.saturating_mul(rounds.saturating_mul(shifts_at_once(*mode) as u64)))
        }
        Pattern::Paths { shifts } => many.saturating_mul(u64::from(*shifts)),
        Pattern::Congestion { .. } => congestion::most_relations(clients + servers),
        Pattern::OtherTests { per_host } => (clients + servers).saturating_mul((*per_host).into()),
        Pattern::Pair
        | Pattern::Permutation
        | Pattern::CrossRack { .. }
        | Pattern::Incast { .. }
        | Pattern::Bisection
        | Pattern::Pods { .. } => many,
    }
}

/// The same connections in every repetition, with pinned ports over the same paths; in every shift
/// each client has another server.
fn paths(site: &Site<'_>, sides: &Sides, shifts: u32, draw: &mut Draw) -> Vec<Draft> {
    let clients = draw.shuffled(&sides.clients);
    let mut servers = draw.shuffled(&sides.servers);
    let mut rounds = Vec::new();
    for _ in 0..servers.len().min(shifts as usize) {
        rounds.push(spread(&clients, &servers));
        servers.rotate_left(1);
    }
    (0..site.samples)
        .flat_map(|sample| {
            rounds
                .iter()
                .map(move |round| Draft::new(sample, round.clone()))
        })
        .collect()
}

fn spread(clients: &[HostId], servers: &[HostId]) -> Vec<Relation> {
    let pairs = dealt(clients, servers).into_iter();
    pairs
        .map(|(client, server)| Relation::new(client, server))
        .collect()
}

/// All servers, one less each time, down to one; of many servers [`MAX_STEPS`] evenly spread
/// numbers.
fn fewer_servers(sides: &Sides) -> Vec<Vec<Relation>> {
    let most = sides.servers.len();
    let steps = most.min(MAX_STEPS);
    let count = |step: usize| match steps {
        0 | 1 => most,
        steps => most - (most - 1) * step / (steps - 1),
    };
    (0..steps)
        .map(|step| all_to_all(sides, count(step)))
        .collect()
}

/// With the first so many servers.
fn all_to_all(sides: &Sides, servers: usize) -> Vec<Relation> {
    let to_all = |client: &HostId| {
        let client = *client;
        let servers = sides.servers.iter().take(servers);
        servers.map(move |server| Relation::new(client, *server))
    };
    sides.clients.iter().flat_map(to_all).collect()
}

fn incast(
    sides: &Sides,
    senders: Option<u32>,
    max_senders: Option<u32>,
    draw: &mut Draw,
) -> Result<Vec<Vec<Relation>>, Impossible> {
    let others = sides.clients.len();
    let most = max_senders.map_or(others, |most| others.min(most as usize));
    let count = partners(senders, others)?.unwrap_or(most);
    let round = |server: &HostId| {
        let clients = draw.shuffled(&sides.clients);
        let chosen = clients.into_iter().take(count);
        chosen
            .map(|client| Relation::new(client, *server))
            .collect()
    };
    Ok(sides.servers.iter().map(round).collect())
}

fn outcast(
    sides: &Sides,
    receivers: Option<u32>,
    draw: &mut Draw,
) -> Result<Vec<Vec<Relation>>, Impossible> {
    let others = sides.servers.len();
    let count = partners(receivers, others)?.unwrap_or(others);
    let round = |client: &HostId| {
        let servers = draw.shuffled(&sides.servers);
        let chosen = servers.into_iter().take(count);
        chosen
            .map(|server| Relation::new(*client, server))
            .collect()
    };
    Ok(sides.clients.iter().map(round).collect())
}

fn partners(asked: Option<u32>, others: usize) -> Result<Option<usize>, Impossible> {
    match asked {
        Some(asked) if asked as usize > others => {
            Err(Impossible::TooManyPartners { asked, others })
        }
        asked => Ok(asked.map(|asked| asked as usize)),
    }
}

/// Cyclic shifts of the smaller set against the larger one: nobody is in two relations of a shift.
fn mesh(sides: &Sides, mode: MeshMode, max_rounds: Option<u32>) -> Vec<Vec<Relation>> {
    let (clients, servers) = (&sides.clients, &sides.servers);
    let (few, many) = (
        clients.len().min(servers.len()),
        clients.len().max(servers.len()),
    );
    let shift = |by: usize| -> Vec<Relation> {
        let pair = |i: usize| match clients.len() <= servers.len() {
            true => Relation::new(clients[i], servers[(i + by) % many]),
            false => Relation::new(clients[(i + by) % many], servers[i]),
        };
        (0..few).map(pair).collect()
    };
    let at_once = shifts_at_once(mode);
    let round = |first: usize| (first..many.min(first + at_once)).flat_map(shift).collect();
    (0..many)
        .step_by(at_once)
        .take(max_rounds.map_or(usize::MAX, |most| most as usize))
        .map(round)
        .collect()
}

fn shifts_at_once(mode: MeshMode) -> usize {
    match mode {
        MeshMode::Isolated => 1,
        MeshMode::Loaded { shifts_at_once } => shifts_at_once.max(1) as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{flat, is_matching, laid_out, site, two_sets};
    use ew_model::scenario::{RackScope, Senders};
    use std::collections::BTreeSet;

    fn between(clients: u32, servers: u32, pattern: &Pattern) -> Vec<Draft> {
        let inventory = flat((clients + servers) as usize);
        let sides = two_sets(clients, servers);
        let site = Site {
            roles: Some(&sides),
            ..site(&inventory, 1)
        };
        let drafts = laid_out(pattern, &site, 5);
        for relation in drafts.iter().flat_map(|d| &d.relations) {
            assert!(relation.client.0 < clients && relation.server.0 >= clients);
        }
        drafts
    }

    #[test]
    fn fan_in_is_all_to_all_at_once() {
        let drafts = between(4, 3, &Pattern::FanIn);
        assert_eq!((drafts.len(), drafts[0].relations.len()), (1, 12));
    }

    #[test]
    fn fewer_and_fewer_servers_take_all_clients() {
        let servers = |drafts: &[Draft]| -> Vec<usize> {
            let used = |draft: &Draft| {
                let servers: BTreeSet<_> = draft.relations.iter().map(|r| r.server).collect();
                assert_eq!(draft.relations.len(), 3 * servers.len());
                servers.len()
            };
            drafts.iter().map(used).collect()
        };
        assert_eq!(servers(&between(3, 4, &Pattern::FanInFewer)), [4, 3, 2, 1]);
        assert_eq!(servers(&between(3, 1, &Pattern::FanInFewer)), [1]);
        let many = servers(&between(3, 100, &Pattern::FanInFewer));
        assert_eq!((many.len(), many[0], many[15]), (16, 100, 1));
        assert!(many.is_sorted_by(|a, b| a > b), "{many:?}");
    }

    #[test]
    fn a_mesh_covers_every_pair_once_alone() {
        let mesh = Pattern::Mesh {
            mode: MeshMode::Isolated,
            max_rounds: None,
        };
        for (clients, servers) in [(4, 3), (3, 4), (1, 5), (2, 2)] {
            let drafts = between(clients, servers, &mesh);
            assert_eq!(drafts.len() as u32, clients.max(servers));
            assert!(drafts.iter().all(is_matching));
            let pairs: BTreeSet<_> = drafts
                .iter()
                .flat_map(|d| &d.relations)
                .map(|r| (r.client, r.server))
                .collect();
            assert_eq!(pairs.len() as u32, clients * servers);
        }
    }

    #[test]
    fn the_shell_loop_draws_a_server_and_a_port_for_each_client() {
        let pick = Pick::Random { lanes: 3 };
        let drafts = between(
            40,
            6,
            &Pattern::CrossRack {
                pick,
                senders: Senders::All,
                scope: RackScope::All,
            },
        );
        let relations = &drafts[0].relations;
        let clients: BTreeSet<_> = relations.iter().map(|r| r.client).collect();
        assert_eq!((relations.len(), clients.len()), (40, 40));
        let lanes: BTreeSet<_> = relations.iter().map(|r| r.lane).collect();
        assert_eq!(lanes, BTreeSet::from([Some(0), Some(1), Some(2)]));
        let of = |server: u32| relations.iter().filter(|r| r.server.0 == server).count();
        let shares: BTreeSet<usize> = (40..46).map(of).collect();
        assert!(shares.len() > 1, "draws collide: {shares:?}");
    }

    #[test]
    fn paths_are_measured_again_by_the_same_pairs() {
        let inventory = flat(7);
        let sides = two_sets(4, 3);
        let site = Site {
            roles: Some(&sides),
            ..site(&inventory, 3)
        };
        let drafts = laid_out(&Pattern::Paths { shifts: 2 }, &site, 5);
        assert_eq!(drafts.len(), 6);
        for (first, again) in [(0, 2), (1, 3), (0, 4), (1, 5)] {
            assert_eq!(drafts[first].relations, drafts[again].relations);
        }
        assert_ne!(drafts[0].relations, drafts[1].relations);
    }

    /// What is refused for its size is what would be laid out, not every client with every server.
    #[test]
    fn the_bound_is_that_of_the_pattern() {
        let sides = two_sets(1000, 1000);
        assert_eq!(most_relations(&Pattern::Permutation, &sides), 1000);
        assert_eq!(most_relations(&Pattern::FanIn, &sides), 1_000_000);
        let mode = MeshMode::Isolated;
        let max_rounds = Some(30);
        let sampled = Pattern::Mesh { mode, max_rounds };
        assert_eq!(most_relations(&sampled, &sides), 30_000);
    }

    #[test]
    fn hubs_take_turns_and_matchings_use_everybody() {
        let incast = Pattern::Incast {
            senders: Some(2),
            max_senders: None,
            at_once: false,
        };
        let drafts = between(4, 3, &incast);
        assert_eq!(drafts.len(), 3);
        assert!(drafts.iter().all(|d| d.relations.len() == 2));
        let outcast = between(4, 3, &Pattern::Outcast { receivers: None });
        assert_eq!((outcast.len(), outcast[0].relations.len()), (4, 3));
        let spread = between(4, 3, &Pattern::Permutation);
        let used: BTreeSet<_> = spread[0].relations.iter().map(|r| r.server).collect();
        assert_eq!((spread[0].relations.len(), used.len()), (4, 3));
    }
}
