//! Whether hosts reach each other's data ports, and how far apart they are, asked without load.

use crate::command::Command;
use crate::fleet_event::FleetEvent;
use crate::job::LaunchOptions;
use crate::journal::Journal;
use crate::members::Members;
use crate::run_error::RunError;
use ew_model::inventory::HostId;
use ew_model::plan::{End, Plan, Stage};
use ew_model::scenario::Pattern;
use ew_model::units::format_duration_ns;
use ew_model::workload::{Tool, WorkloadKind};
use ew_proto::controller_session::ControllerEvent;
use ew_proto::message::{PortAnswer, PortCheck};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

/// Every host checks the data ports of this many others.
pub(crate) const PEERS_CHECKED: usize = 3;
/// All checks may take this long.
const LIMIT_NS: u64 = 15_000_000_000;
/// Pairs that are named in a warning.
const NAMED: usize = 3;
/// Round trips of one site are below a millisecond, and those of neighbouring sites below a few:
/// light takes longer than this for 1,000 km of fibre and back.
const FAR_NS: u64 = 10_000_000;
/// Hosts are far whose round trips are long in all of these looks: a queue that another program
/// fills for a moment delays like distance.
const LOOKS_AT_FAR: usize = 3;
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// Who checks whose data port.
pub(crate) type Checks = BTreeMap<HostId, Vec<HostId>>;

/// What came of one host's checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// By peer, in the order asked.
    Checked(Vec<PortAnswer>),
    /// Its agent was lost meanwhile.
    Lost(String),
    /// Nothing came in time.
    Silence,
}

/// Has every host connect to its peers' data ports, and send datagrams to them `with_udp`. `None`:
/// the user interrupted. What else happens to the hosts meanwhile goes to the journal.
pub(crate) async fn ask(
    members: &mut Members,
    checks: &Checks,
    with_udp: bool,
    mut journal: Option<&mut Journal>,
) -> Option<BTreeMap<HostId, Answer>> {
    let mut answers = BTreeMap::new();
    for (host, peers) in checks {
        let addresses = peers.iter().map(|peer| members.data_address(*peer));
        let Some(peers) = addresses.collect::<Option<Vec<SocketAddr>>>() else {
            continue;
        };
        members.send(*host, Command::CheckPorts(PortCheck { peers, with_udp }));
        answers.insert(*host, Answer::Silence);
    }
    let mut waiting: BTreeSet<HostId> = answers.keys().copied().collect();
    let deadline_ns = members.now_ns() + LIMIT_NS;
    while !waiting.is_empty() {
        let event = members.next(deadline_ns).await;
        let answer = match &event {
            FleetEvent::Agent(host, ControllerEvent::PortsChecked { answers }) => {
                Some((*host, Answer::Checked(answers.clone())))
            }
            FleetEvent::Agent(host, ControllerEvent::Lost { reason }) => {
                Some((*host, Answer::Lost(reason.clone())))
            }
            FleetEvent::Interrupt => return None,
            FleetEvent::Deadline => break,
            FleetEvent::Agent(..) | FleetEvent::LaunchFailed { .. } | FleetEvent::Ended { .. } => {
                None
            }
        };
        if let Some((host, answer)) = answer {
            waiting.remove(&host);
            answers.insert(host, answer);
        }
        if let Some(journal) = journal.as_deref_mut() {
            journal.note(event, members.inventory());
        }
    }
    Some(answers)
}

/// Refuses to load hosts whose data ports nobody reaches of those who will want to, and far ones
/// unless they are allowed; a second check is made first. A single pair that cannot connect is the
/// run's own business.
pub(crate) async fn check(
    plan: &Plan,
    members: &mut Members,
    options: &LaunchOptions,
    journal: &mut Journal,
) -> Result<(), RunError> {
    let with_udp = sends_datagrams(plan);
    let mut failures = BTreeMap::new();
    let (mut checks, by_tools) = (openers(plan, is_own), openers(plan, is_of_a_tool));
    if !options.allow_wan {
        // Tools have ports of their own; the data ports show the distance, too.
        ask_near_ones(members, &by_tools, false, journal).await?;
    }
    for _look in 0..2 {
        let answers = match options.allow_wan {
            true => ask(members, &checks, with_udp, Some(journal)).await,
            false => Some(ask_near_ones(members, &checks, with_udp, journal).await?),
        };
        let answers = answers.ok_or(RunError::Interrupted)?;
        failures = failed(&checks, &answers);
        if failures.is_empty() {
            return Ok(());
        }
        let suspects: BTreeSet<HostId> = failures.keys().map(|(_, peer)| *peer).collect();
        checks
            .values_mut()
            .for_each(|peers| peers.retain(|peer| suspects.contains(peer)));
        checks.retain(|_, peers| !peers.is_empty());
    }
    let blocked = blocked(&checks, &failures);
    let name = |host: &HostId| members.inventory().name(*host);
    let example = |((host, peer), error): (&(HostId, HostId), &String)| {
        format!("{} to {}: {error}", name(host), name(peer))
    };
    if blocked.is_empty() {
        let pairs: Vec<String> = failures.iter().take(NAMED).map(example).collect();
        journal.warn(format!(
            "{} of the pairs of hosts that were tried cannot connect: {}",
            failures.len(),
            pairs.join("; ")
        ));
        return Ok(());
    }
    let first = failures
        .iter()
        .find(|((_, peer), _)| blocked.contains(peer));
    Err(RunError::PortsBlocked {
        hosts: ew_plan::inventory::fold(blocked.iter().map(name)),
        example: first.map(example).unwrap_or_default(),
        first: options.data_ports.0,
        last: options.data_ports.1,
    })
}

/// The answers to the last look, of hosts that are not far from each other.
async fn ask_near_ones(
    members: &mut Members,
    checks: &Checks,
    with_udp: bool,
    journal: &mut Journal,
) -> Result<BTreeMap<HostId, Answer>, RunError> {
    let mut shortest_ns = BTreeMap::new();
    let mut looks_left = LOOKS_AT_FAR;
    loop {
        looks_left -= 1;
        let answers = ask(members, checks, with_udp, Some(journal)).await;
        let answers = answers.ok_or(RunError::Interrupted)?;
        for (pair, round_trip_ns) in round_trips_ns(checks, &answers) {
            let known_ns = shortest_ns.entry(pair).or_insert(round_trip_ns);
            *known_ns = round_trip_ns.min(*known_ns);
        }
        match refuse_far_hosts(&shortest_ns, members) {
            Ok(()) => return Ok(answers),
            Err(far) if looks_left == 0 => return Err(far),
            Err(_) => tokio::time::sleep(BETWEEN_LOOKS).await,
        }
    }
}

/// Load between sites is paid for by somebody, and meets others there.
fn refuse_far_hosts(
    round_trips: &BTreeMap<(HostId, HostId), u64>,
    members: &Members,
) -> Result<(), RunError> {
    let mut far = round_trips.iter().filter(|(_, ns)| **ns > FAR_NS);
    let Some(((host, peer), round_trip_ns)) = far.next() else {
        return Ok(());
    };
    let name = |host: &HostId| members.inventory().name(*host);
    Err(RunError::FarHosts {
        hosts: ew_plan::inventory::fold(far_hosts(round_trips).iter().map(name)),
        example: format!(
            "{} between {} and {}",
            format_duration_ns(*round_trip_ns),
            name(host),
            name(peer)
        ),
    })
}

/// Those that are near nobody; where each is near somebody, all that are far from one.
fn far_hosts(round_trips: &BTreeMap<(HostId, HostId), u64>) -> BTreeSet<HostId> {
    let ends = |is_far: bool| -> BTreeSet<HostId> {
        let pairs = round_trips.iter();
        let pairs = pairs.filter(|(_, ns)| (**ns > FAR_NS) == is_far);
        pairs.flat_map(|((a, b), _)| [*a, *b]).collect()
    };
    let far = ends(true);
    let from_all: BTreeSet<HostId> = far.difference(&ends(false)).copied().collect();
    match from_all.is_empty() {
        true => far,
        false => from_all,
    }
}

/// By pair, as far as the kernels know.
fn round_trips_ns(
    checks: &Checks,
    answers: &BTreeMap<HostId, Answer>,
) -> BTreeMap<(HostId, HostId), u64> {
    let round_trip_ns = |answer| match answer {
        PortAnswer::Reached { round_trip_ns } => round_trip_ns,
        PortAnswer::Unreached { .. } => None,
    };
    let pairs = by_pair(checks, answers);
    pairs
        .filter_map(|(pair, answer)| Some((pair, round_trip_ns(answer)?)))
        .collect()
}

fn sends_datagrams(plan: &Plan) -> bool {
    let mut workloads = plan.stages.iter().map(|stage| &stage.workload);
    workloads.any(|workload| {
        workload.tool == Tool::Engine
            && matches!(workload.kind, WorkloadKind::UdpStream | WorkloadKind::UdpRr)
    })
}

fn is_own(stage: &Stage) -> bool {
    stage.workload.tool == Tool::Engine && !is_of_pods(stage)
}

fn is_of_a_tool(stage: &Stage) -> bool {
    stage.workload.tool != Tool::Engine && !is_of_pods(stage)
}

/// Pods are reached through services, too.
fn is_of_pods(stage: &Stage) -> bool {
    matches!(stage.pattern, Pattern::Pods { .. })
}

/// For every host that opens connections in such stages: a first, a middle and a last one of those
/// it opens them to.
fn openers(plan: &Plan, is_meant: impl Fn(&Stage) -> bool) -> Checks {
    let meant = plan.stages.iter().filter(|stage| is_meant(stage));
    let mut all: BTreeMap<HostId, BTreeSet<HostId>> = BTreeMap::new();
    for flow in meant
        .flat_map(|stage| &stage.rounds)
        .flat_map(|round| &round.flows)
    {
        let (opener, peer) = match flow.opened_by {
            End::Src => (flow.src, flow.dst),
            End::Dst => (flow.dst, flow.src),
        };
        all.entry(opener).or_default().insert(peer);
    }
    let some = |peers: BTreeSet<HostId>| {
        let peers: Vec<HostId> = peers.into_iter().collect();
        let last = peers.len().saturating_sub(1);
        let chosen: BTreeSet<usize> = (0..PEERS_CHECKED)
            .map(|part| last * part / (PEERS_CHECKED - 1))
            .collect();
        chosen
            .into_iter()
            .filter_map(|at| peers.get(at).copied())
            .collect()
    };
    all.into_iter()
        .map(|(host, peers)| (host, some(peers)))
        .collect()
}

/// Pairs that cannot connect, with the reason.
fn failed(
    checks: &Checks,
    answers: &BTreeMap<HostId, Answer>,
) -> BTreeMap<(HostId, HostId), String> {
    let pairs = by_pair(checks, answers);
    pairs
        .filter_map(|(pair, answer)| Some((pair, answer.error()?.to_owned())))
        .collect()
}

/// Who opens, to whom, and what came of it. A lost host shows nothing about others.
fn by_pair(
    checks: &Checks,
    answers: &BTreeMap<HostId, Answer>,
) -> impl Iterator<Item = ((HostId, HostId), PortAnswer)> {
    answers.iter().flat_map(|(host, answer)| {
        let peers = checks.get(host).cloned().unwrap_or_default();
        let answers = match answer {
            Answer::Checked(answers) => answers.clone(),
            Answer::Silence => {
                let error = "no answer".to_owned();
                vec![PortAnswer::Unreached { error }; peers.len()]
            }
            Answer::Lost(_) => Vec::new(),
        };
        let host = *host;
        let pairs = peers.into_iter().zip(answers);
        pairs.map(move |(peer, answer)| ((host, peer), answer))
    })
}

/// Hosts that nobody reaches.
fn blocked(checks: &Checks, failures: &BTreeMap<(HostId, HostId), String>) -> BTreeSet<HostId> {
    let pairs = || {
        checks
            .iter()
            .flat_map(|(host, peers)| peers.iter().map(|peer| (*host, *peer)))
    };
    let reached: BTreeSet<HostId> = pairs()
        .filter(|pair| !failures.contains_key(pair))
        .map(|(_, peer)| peer)
        .collect();
    let unreached = pairs().map(|(_, peer)| peer);
    unreached.filter(|peer| !reached.contains(peer)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unreached() -> PortAnswer {
        let error = "timed out".to_owned();
        PortAnswer::Unreached { error }
    }

    fn near() -> PortAnswer {
        PortAnswer::Reached {
            round_trip_ns: Some(100_000),
        }
    }

    const A: HostId = HostId(0);
    const B: HostId = HostId(1);
    const C: HostId = HostId(2);

    #[test]
    fn a_host_is_blocked_when_nobody_reaches_it_and_a_pair_is_not() {
        let checks = Checks::from([(A, vec![B, C]), (B, vec![A, C]), (C, vec![A, B])]);
        let answers = |a: [bool; 2], b: [bool; 2], c: [bool; 2]| {
            let answer = |failed: [bool; 2]| {
                Answer::Checked(
                    failed
                        .map(|failed| if failed { unreached() } else { near() })
                        .into(),
                )
            };
            BTreeMap::from([(A, answer(a)), (B, answer(b)), (C, answer(c))])
        };
        let found = |answers| {
            let failures = failed(&checks, &answers);
            (failures.len(), blocked(&checks, &failures))
        };
        assert_eq!(found(answers([false; 2], [false; 2], [false; 2])).0, 0);
        let all_to_c = answers([false, true], [false, true], [false; 2]);
        assert_eq!(found(all_to_c), (2, BTreeSet::from([C])));
        let one_pair = answers([false, true], [false; 2], [false; 2]);
        assert_eq!(found(one_pair), (1, BTreeSet::new()));
        let silent = BTreeMap::from([(A, Answer::Silence)]);
        assert_eq!(failed(&checks, &silent).len(), 2);
        let lost = BTreeMap::from([(A, Answer::Lost("gone".into()))]);
        assert_eq!(
            failed(&checks, &lost).len(),
            0,
            "a lost host accuses nobody"
        );
    }

    #[test]
    fn who_is_near_nobody_is_far() {
        let checks = Checks::from([(A, vec![B, C]), (B, vec![A, C])]);
        let after = |ms: Option<u64>| PortAnswer::Reached {
            round_trip_ns: ms.map(|ms| ms * 1_000_000),
        };
        let found = |of_a: [Option<u64>; 2], of_b: [Option<u64>; 2]| {
            let answers = BTreeMap::from([
                (A, Answer::Checked(of_a.map(after).into())),
                (B, Answer::Checked(of_b.map(after).into())),
            ]);
            far_hosts(&round_trips_ns(&checks, &answers))
        };
        assert_eq!(found([Some(0), Some(1)], [Some(0), None]), BTreeSet::new());
        assert_eq!(found([Some(0), Some(12)], [Some(0), Some(13)]), [C].into());
        assert_eq!(
            found([Some(12), Some(0)], [Some(12), Some(0)]),
            [A, B].into()
        );
    }
}
