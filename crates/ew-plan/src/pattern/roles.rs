//! Patterns between two sets: every connection is opened by a client to a server.
//!
//! Matchings spread the clients evenly over the servers, selected anew for each sample; incast
//! gives each server its turn with all clients, outcast each client its turn with all servers, mesh
//! every client and server one round without anybody else on their NICs, and fan-in all of them to
//! all at once, or to fewer and fewer servers.

use super::congestion;
use super::draft::{Draft, Impossible, Relation};
use super::site::{Sides, Site, dealt};
use crate::schedule::draw::Draw;
use ew_model::inventory::HostId;
use ew_model::scenario::{MeshMode, Pattern};

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
            Pattern::Pair => vec![spread(&sides.clients, &sides.servers)],
            Pattern::Permutation
            | Pattern::CrossRack { .. }
            | Pattern::Paths { .. }
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
    let rounds = match pattern {
        Pattern::FanInFewer => MAX_STEPS as u64,
        _ => 1,
    };
    let pairs = (sides.clients.len() as u64).saturating_mul(sides.servers.len() as u64);
    pairs.saturating_mul(rounds)
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
    let shifts: Vec<Vec<Relation>> = (0..many).map(shift).collect();
    let at_once = match mode {
        MeshMode::Isolated => 1,
        MeshMode::Loaded { shifts_at_once } => shifts_at_once.max(1) as usize,
    };
    let rounds = shifts.chunks(at_once).map(<[_]>::concat);
    rounds
        .take(max_rounds.map_or(usize::MAX, |most| most as usize))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{flat, is_matching, laid_out, site, two_sets};
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
