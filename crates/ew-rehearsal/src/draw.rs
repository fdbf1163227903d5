//! A world from a seed. Which kinds of faults may occur at all is drawn first: else all worlds
//! would have a little of everything, and be alike.

use crate::clock::HostClock;
use crate::desk::Desk;
use crate::faults::{Fault, Kind};
use ew_model::scenario::Scenario;
use ew_model::topology::{HostSpec, PathSpec, RackSpec, Topology};
use ew_sim::Dice;

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;
/// Of a large world.
const HOSTS_PER_RACK: usize = 25;
const NIC_BITS_PER_SEC: u64 = 10_000_000_000;
/// Faults and interrupts come within this time: somewhat longer than a run of the scenario takes.
const RUN_NS: u64 = 25 * S;

/// So little may wait for disk and terminal in some worlds, or somewhat more.
const FEW_BYTES: usize = 4096;

/// What is measured: stages that are interleaved, bulk data and requests, rounds with one flow for
/// each host and with many.
const SCENARIO: &str = "
name: rehearsal
defaults: {samples: 2, duration: 500ms, warm-up: 100ms, gap: 100ms, streams: 2}
tests:
  - {name: inside, pattern: permutation, interleaved: true}
  - {name: across, pattern: cross-rack, interleaved: true}
  - {name: pairs, pattern: {mesh: {mode: isolated, max-rounds: 6}}, samples: 1}
  - {name: requests, pattern: {incast: {senders: {at-most: 4}, receivers: at-once}}, workload: tcp-rr, streams: 1}
";

/// A world, and what goes wrong in it.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// Which one.
    pub seed: u64,
    /// Its network.
    pub topology: Topology,
    /// By host id.
    pub hosts: Vec<DrawnHost>,
    /// When the user wants to end the run.
    pub interrupts_ns: Vec<u64>,
    /// What goes wrong on the controller's own machine.
    pub desk: Desk,
    /// What is measured.
    pub scenario: Scenario,
}

/// A host, and the way to it.
#[derive(Clone, Debug)]
pub struct DrawnHost {
    pub(crate) clock: HostClock,
    /// Of its control link, one way.
    pub(crate) delay_ns: u64,
    /// Bytes that its link hands over at once.
    pub(crate) most_at_once: usize,
    /// How long a launch takes.
    pub(crate) launch_ns: u64,
    /// What goes wrong there.
    pub faults: Vec<Fault>,
}

/// The world of a seed: 9 to 32 hosts.
#[must_use]
pub fn draw(seed: u64) -> Drawn {
    let mut dice = Dice::new(seed, [1, 0, 0]);
    let kinds: Vec<Kind> = Kind::ALL
        .into_iter()
        .filter(|_| dice.chance(0.25))
        .collect();
    let share = dice.between(0.0, 0.4);
    let topology = topology(&mut dice);
    let hosts = topology.hosts().map(|_| host(&kinds, share, &mut dice));
    let hosts = hosts.collect();
    let mut interrupts_ns = Vec::new();
    if dice.chance(0.1) {
        let first_ns = within(RUN_NS, &mut dice);
        interrupts_ns.push(first_ns);
        if dice.chance(0.5) {
            interrupts_ns.push(first_ns + within(3 * S, &mut dice));
        }
    }
    Drawn {
        seed,
        topology,
        hosts,
        interrupts_ns,
        desk: desk(&mut Dice::new(seed, [1, 2, 0])),
        scenario: scenario(SCENARIO),
    }
}

/// A world in which nothing goes wrong and everything is measured that `qualify` measures: so many
/// hosts, 25 in a rack, at 2:1.
#[must_use]
pub fn draw_healthy(seed: u64, hosts: usize) -> Drawn {
    let mut dice = Dice::new(seed, [1, 1, 0]);
    let racks = (1..).zip(sizes(hosts));
    let topology = Topology {
        name: "healthy".into(),
        racks: racks.map(|(number, hosts)| rack(number, hosts)).collect(),
        ..Topology::default()
    };
    let hosts = topology.hosts().map(|_| host(&[], 0.0, &mut dice));
    let hosts = hosts.collect();
    let qualify = ew_plan::scenario::builtin("qualify").unwrap_or_default();
    Drawn {
        seed,
        topology,
        hosts,
        interrupts_ns: Vec::new(),
        desk: Desk::default(),
        scenario: scenario(qualify),
    }
}

/// Of racks.
fn sizes(hosts: usize) -> impl Iterator<Item = usize> {
    let firsts = (0..hosts).step_by(HOSTS_PER_RACK);
    firsts.map(move |first| HOSTS_PER_RACK.min(hosts - first))
}

/// The text is ours, and a test parses it.
fn scenario(text: &str) -> Scenario {
    let parsed = ew_plan::scenario::parse(text, "rehearsal.yaml", &[]);
    parsed.unwrap_or_else(|error| panic!("{error}"))
}

fn topology(dice: &mut Dice) -> Topology {
    let racks = 3 + dice.below(2);
    Topology {
        name: "rehearsal".into(),
        racks: (1..=racks)
            .map(|number| rack(number, 3 + dice.below(6)))
            .collect(),
        ..Topology::default()
    }
}

fn rack(number: usize, hosts: usize) -> RackSpec {
    let uplink = NIC_BITS_PER_SEC * hosts as u64 / 2;
    RackSpec {
        name: format!("r{number}"),
        hosts: (1..=hosts)
            .map(|host| HostSpec::healthy(&format!("r{number}h{host}"), NIC_BITS_PER_SEC))
            .collect(),
        paths: vec![PathSpec::healthy(uplink / 2); 2],
        ..RackSpec::default()
    }
}

fn host(kinds: &[Kind], share: f64, dice: &mut Dice) -> DrawnHost {
    let pieces = [1, 7, 64, 1500, 16 * 1024];
    let mut faults = Vec::new();
    if !kinds.is_empty() && dice.chance(share) {
        let kind = kinds[dice.below(kinds.len())];
        faults.push(fault(kind, dice));
    }
    let suspended_ns = faults.iter().find_map(|fault| match *fault {
        Fault::Suspends { at_ns, for_ns } => Some((at_ns, for_ns)),
        _ => None,
    });
    DrawnHost {
        clock: HostClock {
            offset_ns: S + within(10_000 * S, dice),
            rate_ppb: dice.between(-200_000.0, 200_000.0) as i64,
            suspended_ns,
        },
        delay_ns: within(3 * MS, dice),
        most_at_once: pieces[dice.below(pieces.len())],
        launch_ns: 50 * MS + within(S, dice),
        faults,
    }
}

/// Nothing in half of the worlds.
fn desk(dice: &mut Dice) -> Desk {
    if dice.chance(0.5) {
        return Desk::default();
    }
    let mut spans = |chance: f64| {
        let count = if dice.chance(chance) {
            1 + dice.below(3)
        } else {
            0
        };
        let spans = (0..count).map(|_| {
            let from_ns = within(RUN_NS, dice);
            from_ns..from_ns + within(RUN_NS, dice)
        });
        spans.collect::<Vec<_>>()
    };
    Desk {
        full_ns: spans(0.5),
        disk_stalls_ns: spans(0.5),
        terminal_stalls_ns: spans(0.5),
        max_waiting_bytes: dice.chance(0.5).then(|| FEW_BYTES << dice.below(8)),
    }
}

fn fault(kind: Kind, dice: &mut Dice) -> Fault {
    let at_ns = within(RUN_NS, dice);
    match kind {
        Kind::Dies => Fault::Dies { at_ns },
        Kind::LosesPower => Fault::LosesPower { at_ns },
        Kind::Sleeps => Fault::Sleeps {
            at_ns,
            for_ns: within(12 * S, dice),
        },
        Kind::Suspends => Fault::Suspends {
            at_ns,
            for_ns: within(12 * S, dice),
        },
        Kind::Cut => Fault::Cut { at_ns },
        Kind::Mutes => Fault::Mutes { at_ns },
        Kind::Deafens => Fault::Deafens { at_ns },
        Kind::Stalls => Fault::Stalls {
            at_ns,
            for_ns: within(8 * S, dice),
        },
        Kind::Refuses => Fault::Refuses {
            times: [1, 2, u32::MAX][dice.below(3)],
        },
        Kind::LaunchesSlowly => Fault::LaunchesSlowly {
            for_ns: within(40 * S, dice),
        },
        Kind::Repeats => Fault::Repeats { at_ns },
        Kind::Garbles => Fault::Garbles { at_ns },
        Kind::Floods => Fault::Floods {
            at_ns,
            times: 5_000,
        },
        Kind::Forgets => Fault::Forgets { at_ns },
        Kind::Blocks => Fault::Blocks,
    }
}

fn within(limit_ns: u64, dice: &mut Dice) -> u64 {
    (dice.unit() * limit_ns as f64) as u64
}
