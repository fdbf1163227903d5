//! Scenario x inventory x seed -> plan.

use crate::estimate::{STAGE_OVERHEAD_NS, estimate_stage};
use crate::identify::identifies_every_link;
use crate::pattern::{Draft, Impossible, Relation, Sides, Site, drafts, most_relations};
use crate::schedule::draw::Draw;
use crate::{streams, sweep, traced};
use ew_model::Inventory;
use ew_model::inventory::HostId;
use ew_model::plan::{End, Flow, FlowId, Plan, Round, Stage, StageIndex};
use ew_model::pods::MAX_SERVICE_STREAMS;
use ew_model::scenario::{Direction, Pattern, Roles, Scenario, Test};
use ew_model::units::format_duration_ns;
use ew_model::workload::{StreamCount, Tool, WorkloadKind};
use std::collections::BTreeMap;
use std::ops::Range;
use thiserror::Error;

/// Flows that a plan may have; more would not fit a controller's memory with their records.
pub const MAX_FLOWS: u64 = 20_000_000;

/// Time that a plan may take.
pub const MAX_PLANNED_NS: u64 = 30 * 86_400 * 1_000_000_000;

/// Windows are not shortened below this to save time.
const SHORTEST_WINDOW_NS: u64 = 500_000_000;

/// What an uplink is taken to be, to one, where a mesh spares it and nothing was configured. Leaf
/// switches of real clusters are rarely worse; a milder network only costs some rounds.
pub const ASSUMED_OVERSUBSCRIPTION: f64 = 4.0;

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// Nothing to do.
    #[error(
        "the scenario `{scenario}` has no tests; add one below `tests:`, such as `- pattern: mesh`"
    )]
    NoTests {
        /// The scenario's name.
        scenario: String,
    },
    /// A pattern needs more hosts.
    #[error(
        "test `{test}`: `{pattern}` needs {need} hosts and the inventory has {have}; name more with --hosts"
    )]
    TooFewHosts {
        /// The test.
        test: String,
        /// Its pattern's word.
        pattern: &'static str,
        /// How many are needed.
        need: usize,
        /// How many there are.
        have: usize,
    },
    /// A pattern takes hosts two by two.
    #[error(
        "test `{test}`: `{pattern}` takes hosts two by two, and {have} are named: {alone} has no partner; name an even \
         number of hosts, or run `mesh` for every pair"
    )]
    HostAlone {
        /// The test.
        test: String,
        /// Its pattern's word.
        pattern: &'static str,
        /// How many hosts there are.
        have: usize,
        /// The last one.
        alone: String,
    },
    /// A pattern is cross-rack.
    #[error(
        "test `{test}`: `{pattern}` needs hosts in at least two racks and the inventory has {have}; say which hosts \
         share a rack with --racks, for example --racks '@rack[1-2]', or choose `permutation` or `mesh`"
    )]
    NeedsTwoRacks {
        /// The test.
        test: String,
        /// Its pattern's word.
        pattern: &'static str,
        /// Racks with hosts.
        have: usize,
    },
    /// A pattern is intra-rack and no rack has two hosts.
    #[error(
        "test `{test}`: `{pattern}` is intra-rack and no rack has two hosts; check --racks, or leave it out to \
         take all hosts as one group"
    )]
    NoRackOfTwo {
        /// The test.
        test: String,
        /// Its pattern's word.
        pattern: &'static str,
    },
    /// More partners were asked for than there are other hosts.
    #[error(
        "test `{test}`: {asked} partners were asked for and there are {others} other hosts; set at most {others}, or \
         `all`"
    )]
    TooManyPartners {
        /// The test.
        test: String,
        /// Senders or receivers asked for.
        asked: u32,
        /// Hosts without the one in the middle.
        others: usize,
    },
    /// The pattern is between two sets.
    #[error(
        "test `{test}`: `{pattern}` runs between clients and servers; name them with --clients SET --servers SET, or `roles:` in \
         the scenario file"
    )]
    NeedsRoles {
        /// The test.
        test: String,
        /// Its pattern's word.
        pattern: &'static str,
    },
    /// The pattern splits each set.
    #[error(
        "test `{test}`: `{pattern}` needs at least {need} {role}, because no host is both victim and aggressor, and there \
         are {have}; name more, or leave out --clients and --servers (`roles:`) and name the hosts with --hosts"
    )]
    TooFewOfRole {
        /// The test.
        test: String,
        /// Its pattern's word.
        pattern: &'static str,
        /// `clients` or `servers`.
        role: &'static str,
        /// How many are needed.
        need: usize,
        /// How many there are.
        have: usize,
    },
    /// Hosts with a role are not there.
    #[error(
        "the {role} have no host: name them with --{role} SET (both sets are needed), and see which hosts did not come up"
    )]
    NoHostWithRole {
        /// `clients` or `servers`.
        role: &'static str,
    },
    /// A threshold that no stage could meet or miss.
    #[error(
        "the plan has no stage `{stage}`, which the threshold `{threshold}` is on; its stages are {stages}"
    )]
    NoSuchStage {
        /// As named.
        stage: String,
        /// In words.
        threshold: String,
        /// Those of the plan.
        stages: String,
    },
    /// The plan would not fit.
    #[error(
        "test `{test}` brings the plan to {flows} flows, above the limit of {MAX_FLOWS}; lower `samples`, or sample the \
         pairs with `mesh: {{mode: loaded, max-rounds: 100}}`"
    )]
    TooManyFlows {
        /// The test that crosses the limit.
        test: String,
        /// Flows up to and with it, or more.
        flows: u64,
    },
    /// A Service leads to some ports of an agent, and these flows need others.
    #[error("test `{test}`: {what} cannot be measured through a Service: {why}")]
    NotThroughService {
        /// The test.
        test: String,
        /// What it carries.
        what: String,
        /// With the remedy.
        why: String,
    },
    /// The plan would take too long.
    #[error("the plan would take {}, above the limit of {}; lower `duration` or `samples`", format_duration_ns(*.planned_ns), format_duration_ns(MAX_PLANNED_NS))]
    TooLong {
        /// How long.
        planned_ns: u64,
    },
}

/// Spells out a scenario. Pure: same scenario, inventory and seed give the same plan; each test
/// has a stream of random numbers of its own, so that editing one changes no other.
///
/// While the estimate exceeds the scenario's time budget, windows are shortened, down to half; then
/// optional tests are dropped, the last one first. A test that only the lack of racks
/// rules out is dropped too when other tests remain; [`Plan::dropped_tests`] names them with the
/// reason. Pairs are selected again while they leave a link that no flow distinguishes from
/// another.
///
/// # Errors
/// [`PlanError`] when a test does not fit the inventory or the plan would be too large.
pub fn plan(scenario: &Scenario, inventory: &Inventory, seed: u64) -> Result<Plan, PlanError> {
    refuse_host_alone(scenario, inventory)?;
    let plan = replan(scenario, inventory, seed)?;
    refuse_unknown_stage(scenario, &plan)?;
    Ok(plan)
}

/// As [`plan`], for the hosts that are left of those that were named: what one of them has lost its
/// partner for is not measured.
///
/// # Errors
/// As [`plan`].
pub fn replan(scenario: &Scenario, inventory: &Inventory, seed: u64) -> Result<Plan, PlanError> {
    let mut draft = identifying(scenario, inventory, seed)?;
    fit_time_budget(&mut draft, scenario.time_budget_ns);
    number_flows(&mut draft.stages);
    trace_others(&mut draft, inventory, seed);
    check_time(&draft.stages)?;
    // Named in the scenario's order.
    draft.dropped.sort_by_key(|(index, _)| *index);
    let interleaved = interleaved(scenario, &draft.stages);
    let stages: Vec<Stage> = draft.stages.into_iter().map(|(_, stage)| stage).collect();
    Ok(Plan {
        scenario: scenario.name.clone(),
        seed,
        expect: scenario.expect,
        stages,
        random_order: scenario.random_order,
        dropped_tests: draft.dropped.into_iter().map(|(_, why)| why).collect(),
        interleaved,
        host_rates: Vec::new(),
        rate_limit: None,
        line_rates: Vec::new(),
    })
}

/// A host without a partner would be skipped without a word.
fn refuse_host_alone(scenario: &Scenario, inventory: &Inventory) -> Result<(), PlanError> {
    let have = inventory.hosts.len();
    let mut tests = scenario.tests.iter();
    let of_two = tests.find(|test| test.pattern == Pattern::Pair);
    let (Some(test), Some(last)) = (of_two, inventory.hosts.last()) else {
        return Ok(());
    };
    if scenario.roles.is_some() || have < 2 || have.is_multiple_of(2) {
        return Ok(());
    }
    Err(PlanError::HostAlone {
        test: test.name.clone(),
        pattern: test.pattern.name(),
        have,
        alone: last.name.clone(),
    })
}

/// After the run it would only be known that such a threshold has no figure.
fn refuse_unknown_stage(scenario: &Scenario, plan: &Plan) -> Result<(), PlanError> {
    let is_known = |stage: &str| plan.stages.iter().any(|known| known.name == stage);
    for threshold in &scenario.thresholds {
        let Some(stage) = threshold.stage.as_deref().filter(|stage| !is_known(stage)) else {
            continue;
        };
        let names: Vec<String> = plan
            .stages
            .iter()
            .map(|s| format!("`{}`", s.name))
            .collect();
        return Err(PlanError::NoSuchStage {
            stage: stage.to_owned(),
            threshold: threshold.words(),
            stages: names.join(", "),
        });
    }
    Ok(())
}

/// Runs of neighbouring stages whose tests are interleaved.
fn interleaved(scenario: &Scenario, stages: &[(usize, Stage)]) -> Vec<(StageIndex, StageIndex)> {
    let mut runs: Vec<(StageIndex, StageIndex)> = Vec::new();
    for (at, (test, _)) in (0u32..).zip(stages) {
        if !scenario.tests[*test].interleaved {
            continue;
        }
        match runs.last_mut() {
            Some((_, last)) if last.0 + 1 == at => last.0 = at,
            _ => runs.push((StageIndex(at), StageIndex(at))),
        }
    }
    runs
}

/// Whose turn it is, in a pass over a group of the plan's stages ([`Plan::groups`]): as they are
/// written, or in a new random order for every pass, so that no tool always has the same one before
/// it.
#[must_use]
pub fn turns(plan: &Plan, group: &Range<usize>, pass: u32) -> Vec<StageIndex> {
    let mut turns: Vec<StageIndex> = group.clone().map(|at| StageIndex(at as u32)).collect();
    if plan.random_order {
        Draw::new(plan.seed, &format!("turns of pass {pass}")).shuffle(&mut turns);
    }
    turns
}

/// The number after the plan's last flow: where repair rounds go on counting.
#[must_use]
pub fn next_flow_id(plan: &Plan) -> FlowId {
    let flows = plan
        .stages
        .iter()
        .flat_map(|s| &s.rounds)
        .flat_map(|r| &r.flows);
    FlowId(
        flows
            .map(|flow| flow.id.0.saturating_add(1))
            .max()
            .unwrap_or(0),
    )
}

/// What uplinks are taken to be in isolated meshes and repairs: as configured, or
/// [`ASSUMED_OVERSUBSCRIPTION`].
#[must_use]
pub fn assumed_oversubscription(expect: &ew_model::scenario::Expect) -> f64 {
    expect.oversubscription.unwrap_or(ASSUMED_OVERSUBSCRIPTION)
}

/// Stages and dropped tests (`NAME: reason`) with the test's index in the scenario.
struct Layout {
    stages: Vec<(usize, Stage)>,
    optional: Vec<bool>,
    dropped: Vec<(usize, String)>,
}

/// Random pairs that are tried; a few rounds of random ones hardly ever leave a link out.
const MAX_DRAWS: u64 = 4;

/// The first random pairs that identifies every link, where the scenario measures hosts within
/// racks and across; else the first one.
fn identifying(scenario: &Scenario, inventory: &Inventory, seed: u64) -> Result<Layout, PlanError> {
    let first = lay_out(scenario, inventory, seed)?;
    let has = |is: fn(&Pattern) -> bool| first.stages.iter().any(|(_, stage)| is(&stage.pattern));
    let asks = has(|pattern| matches!(pattern, Pattern::Permutation))
        && has(|pattern| matches!(pattern, Pattern::CrossRack { .. }));
    let is_enough = |layout: &Layout| {
        let stages = layout.stages.iter().map(|(_, stage)| stage);
        identifies_every_link(stages, inventory)
    };
    if !asks || is_enough(&first) {
        return Ok(first);
    }
    for draw in 1..MAX_DRAWS {
        let layout = lay_out(scenario, inventory, seed.wrapping_add(draw))?;
        if is_enough(&layout) {
            return Ok(layout);
        }
    }
    Ok(first)
}

fn lay_out(scenario: &Scenario, inventory: &Inventory, seed: u64) -> Result<Layout, PlanError> {
    let mut layout = Layout {
        stages: Vec::new(),
        optional: scenario.tests.iter().map(|test| test.optional).collect(),
        dropped: Vec::new(),
    };
    let mut refused = None;
    let mut flows = 0;
    for (index, test) in scenario.tests.iter().enumerate() {
        let (tests, left_out) = sweep::tests_of(test, scenario.expect.nic_bits_per_sec);
        let left_out = left_out.into_iter().map(|why| (index, why));
        layout.dropped.extend(left_out);
        for of_size in &tests {
            let error = match lay_out_test(scenario, test, of_size, inventory, seed, flows) {
                Ok(stage) => {
                    flows += flows_of(&stage);
                    layout.stages.push((index, stage));
                    continue;
                }
                Err(error) => error,
            };
            if !may_be_dropped(&error, test) {
                return Err(error);
            }
            let why = format!("{}: {error}", test.name);
            layout.dropped.push((index, why));
            refused = refused.or(Some(error));
            // What one size does not fit, no size does.
            break;
        }
    }
    match refused {
        Some(error) if layout.stages.is_empty() => Err(error),
        None if layout.stages.is_empty() => Err(PlanError::NoTests {
            scenario: scenario.name.clone(),
        }),
        _ => Ok(layout),
    }
}

/// Racks are what an inventory may lack without the rest losing its sense, unless the test is
/// required; an optional test may also be too large, or not fit otherwise.
fn may_be_dropped(error: &PlanError, test: &Test) -> bool {
    match error {
        _ if test.required => false,
        PlanError::NeedsTwoRacks { .. }
        | PlanError::NoRackOfTwo { .. }
        | PlanError::NotThroughService { .. } => true,
        PlanError::TooManyFlows { .. }
        | PlanError::TooFewHosts { .. }
        | PlanError::TooFewOfRole { .. } => test.optional,
        _ => false,
    }
}

/// What a Service's address translation keeps from working.
fn check_service(test: &Test) -> Result<(), PlanError> {
    let Pattern::Pods { path } = &test.pattern else {
        return Ok(());
    };
    let workload = &test.workload;
    let most = MAX_SERVICE_STREAMS;
    let why = match workload.kind {
        _ if !path.translates() => None,
        _ if workload.tool != Tool::Engine => Some(
            "it leads to no ports of a tool's server; leave out `tool`, or use a path without a Service or with a headless one".to_owned(),
        ),
        WorkloadKind::TcpStream | WorkloadKind::TcpRr | WorkloadKind::FlowSizes => None,
        WorkloadKind::Ping | WorkloadKind::Trace => Some(
            "it leads to TCP and UDP ports only; use tcp-rr or udp-rr".to_owned(),
        ),
        WorkloadKind::UdpStream | WorkloadKind::UdpRr | WorkloadKind::TcpCrr => {
            if test.direction != Direction::Forward {
                Some("the client must send first; leave out `direction`".to_owned())
            } else if workload.streams > most {
                Some(format!("every stream takes ports of the Service; lower `streams` to {most}"))
            } else {
                None
            }
        }
    };
    let refused = |why| PlanError::NotThroughService {
        test: test.name.clone(),
        what: workload.label(),
        why,
    };
    why.map_or(Ok(()), |why| Err(refused(why)))
}

fn flows_of(stage: &Stage) -> u64 {
    stage.rounds.iter().map(|r| r.flows.len() as u64).sum()
}

/// `of_size` is the test, or one of its sizes. All sizes have the same random numbers.
fn lay_out_test(
    scenario: &Scenario,
    test: &Test,
    of_size: &Test,
    inventory: &Inventory,
    seed: u64,
    flows_before: u64,
) -> Result<Stage, PlanError> {
    check_service(of_size)?;
    let sides = scenario.roles.as_ref();
    let sides = sides.map(|roles| sides_of(roles, inventory)).transpose()?;
    let site = Site {
        roles: sides.as_ref(),
        inventory,
        samples: if of_same_flows(test) { 1 } else { test.samples },
        oversubscription: assumed_oversubscription(&scenario.expect),
    };
    let direction = effective_direction(test);
    let per_relation = if direction == Direction::Both { 2 } else { 1 };
    let repeats = match test.workload.stream_count {
        StreamCount::Doubling => test.workload.streams.ilog2() + 1,
        _ => test.samples / site.samples,
    };
    let most = most_relations(&test.pattern, &site)
        .saturating_mul(per_relation)
        .saturating_mul(repeats.into());
    let flows = flows_before.saturating_add(most);
    if flows > MAX_FLOWS {
        let test = test.name.clone();
        return Err(PlanError::TooManyFlows { test, flows });
    }
    let drafts = drafts(&test.pattern, &site, &mut Draw::new(seed, drawn_for(test)))
        .map_err(|reason| impossible(reason, test))?;
    let Timing {
        duration_ns,
        warm_up_ns,
        gap_ns,
    } = Timing::of(of_size);
    let mut workload = of_size.workload.clone();
    if matches!(test.pattern, Pattern::Paths { .. }) && workload.stream_count == StreamCount::Auto {
        workload.streams = streams::for_paths(inventory);
    }
    Ok(Stage {
        auto: test.auto,
        sweep: (!test.sizes.is_empty()).then(|| test.name.clone()),
        name: of_size.name.clone(),
        pattern: test.pattern.clone(),
        workload,
        duration_ns,
        warm_up_ns,
        gap_ns,
        rounds: repeated(&drafts, repeats)
            .map(|draft| round(&draft, direction, of_size.workload.opener()))
            .collect(),
    })
}

/// Whether all repetitions have the flows of the first one: only the same flow can converge, or
/// gain by more streams.
fn of_same_flows(test: &Test) -> bool {
    test.auto.is_some() || test.workload.stream_count == StreamCount::Doubling
}

/// Each test has its own random numbers, but paths that one test discovers are those that another
/// one loads, and victims stay the same.
fn drawn_for(test: &Test) -> &str {
    match &test.pattern {
        pattern @ (Pattern::Paths { .. } | Pattern::Congestion { .. }) => pattern.name(),
        _ => &test.name,
    }
}

/// Hosts that are not there are skipped; a side needs one.
fn sides_of(roles: &Roles, inventory: &Inventory) -> Result<Sides, PlanError> {
    let ids: BTreeMap<String, HostId> = inventory
        .host_ids()
        .map(|id| (inventory.name(id).to_ascii_lowercase(), id))
        .collect();
    let side = |names: &[String], role| {
        let hosts: Vec<HostId> = names
            .iter()
            .filter_map(|name| ids.get(&name.to_ascii_lowercase()).copied())
            .collect();
        match hosts.is_empty() {
            true => Err(PlanError::NoHostWithRole { role }),
            false => Ok(hosts),
        }
    };
    Ok(Sides {
        clients: side(&roles.clients, "clients")?,
        servers: side(&roles.servers, "servers")?,
    })
}

/// The drafts so many times, counted as samples: only the same flows can converge.
fn repeated(drafts: &[Draft], times: u32) -> impl Iterator<Item = Draft> {
    (0..times).flat_map(move |time| {
        drafts.iter().map(move |draft| Draft {
            sample: draft.sample.max(time),
            ..draft.clone()
        })
    })
}

/// A round's parts as they will really be.
struct Timing {
    duration_ns: u64,
    warm_up_ns: u64,
    gap_ns: u64,
}

impl Timing {
    /// Most tools know whole seconds only, and all need time to start their servers and to exchange
    /// results.
    fn of(test: &Test) -> Self {
        let whole_seconds = |ns: u64| ns.div_ceil(1_000_000_000) * 1_000_000_000;
        let gap_ns = test.gap_ns.max(test.workload.min_gap_ns());
        match test.workload.tool {
            Tool::Engine => Self {
                duration_ns: test.duration_ns,
                warm_up_ns: test.warm_up_ns,
                gap_ns,
            },
            _ => Self {
                duration_ns: whole_seconds(test.duration_ns),
                warm_up_ns: whole_seconds(test.warm_up_ns),
                gap_ns,
            },
        }
    }
}

/// A mesh runs every ordered pair anyway; both directions of each would measure every host pair
/// twice.
fn effective_direction(test: &Test) -> Direction {
    match (&test.pattern, test.direction) {
        (Pattern::Mesh { .. }, Direction::Both) => Direction::Forward,
        (_, direction) => direction,
    }
}

fn impossible(reason: Impossible, test: &Test) -> PlanError {
    let pattern = test.pattern.name();
    let test = test.name.clone();
    match reason {
        Impossible::TooFewHosts { need, have } => PlanError::TooFewHosts {
            test,
            pattern,
            need,
            have,
        },
        Impossible::NeedsTwoRacks { have } => PlanError::NeedsTwoRacks {
            test,
            pattern,
            have,
        },
        Impossible::NeedsRoles => PlanError::NeedsRoles { test, pattern },
        Impossible::TooFewOfRole { role, need, have } => PlanError::TooFewOfRole {
            test,
            pattern,
            role,
            need,
            have,
        },
        Impossible::NoRackOfTwo => PlanError::NoRackOfTwo { test, pattern },
        Impossible::TooManyPartners { asked, others } => PlanError::TooManyPartners {
            test,
            asked,
            others,
        },
    }
}

/// Flow numbers are given at the end, when it is known which tests stay.
fn round(draft: &Draft, direction: Direction, opener: Option<End>) -> Round {
    let flows = draft.relations.iter().flat_map(|relation| {
        let forward = (direction != Direction::Reverse).then(|| flow(relation, End::Src));
        let reverse = (direction != Direction::Forward).then(|| flow(relation, End::Dst));
        forward.into_iter().chain(reverse)
    });
    Round {
        sample: draft.sample,
        senders_per_rack: draft.senders_per_rack,
        flows: flows
            .map(|flow| Flow {
                opened_by: opener.unwrap_or(flow.opened_by),
                ..flow
            })
            .collect(),
    }
}

fn flow(relation: &Relation, opened_by: End) -> Flow {
    let (src, dst) = match opened_by {
        End::Src => (relation.client, relation.server),
        End::Dst => (relation.server, relation.client),
    };
    Flow {
        id: FlowId(0),
        src,
        dst,
        opened_by,
        lane: relation.lane,
        is_aggressor: relation.is_aggressor,
        traces: None,
    }
}

/// Shortens windows first, all by the same part; drops optional tests, the last one first, only
/// while that is not enough.
fn fit_time_budget(layout: &mut Layout, budget_ns: Option<u64>) {
    let Some(budget_ns) = budget_ns else { return };
    loop {
        if planned_ns(layout, 1.0) <= budget_ns {
            return;
        }
        let least_ns = planned_ns(layout, 0.0);
        let last_optional = layout.stages.iter().rposition(|(i, _)| layout.optional[*i]);
        let at = match last_optional {
            Some(at) if layout.stages.len() > 1 && least_ns > budget_ns => at,
            _ => return shorten(layout, budget_ns),
        };
        let (index, stage) = layout.stages.remove(at);
        let why = format!(
            "{}: with it ({}) the run would take {}, with the shortest windows and {} to prepare each stage, above the time \
             budget of {}; raise it with --time-budget",
            stage.name,
            format_duration_ns(stage_ns(&stage, 0.0)),
            format_duration_ns(least_ns),
            format_duration_ns(STAGE_OVERHEAD_NS),
            format_duration_ns(budget_ns)
        );
        layout.dropped.push((index, why));
    }
}

/// Planned time with windows between their shortest (0) and their own length (1).
fn planned_ns(layout: &Layout, part: f64) -> u64 {
    let stages = layout.stages.iter();
    let times = stages.map(|(_, stage)| stage_ns(stage, part));
    times.fold(0, u64::saturating_add)
}

/// The same of one stage.
fn stage_ns(stage: &Stage, part: f64) -> u64 {
    let saved_ns = stage.duration_ns - window_ns(stage, part);
    let all_saved_ns = saved_ns.saturating_mul(stage.rounds.len() as u64);
    let whole_ns = estimate_stage(stage, None).duration_ns;
    whole_ns.saturating_sub(all_saved_ns)
}

/// All windows by the same part of what they can give, in steps of a hundredth.
fn shorten(layout: &mut Layout, budget_ns: u64) {
    let part = |hundredths: u32| f64::from(hundredths) / 100.0;
    let fits = |hundredths: &u32| planned_ns(layout, part(*hundredths)) <= budget_ns;
    let longest = (0..100).rev().find(fits).unwrap_or(0);
    for (_, stage) in &mut layout.stages {
        stage.duration_ns = window_ns(stage, part(longest));
    }
}

/// A window shortened to no less than half, nor below what TCP needs for a steady figure. Tools
/// know whole seconds only, and `samples: auto` has a budget of its own.
fn window_ns(stage: &Stage, part: f64) -> u64 {
    let own_ns = stage.duration_ns;
    let is_fixed = stage.workload.tool != Tool::Engine || stage.auto.is_some();
    if is_fixed || own_ns <= SHORTEST_WINDOW_NS {
        return own_ns;
    }
    let shortest_ns = (own_ns / 2).max(SHORTEST_WINDOW_NS);
    shortest_ns + ((own_ns - shortest_ns) as f64 * part) as u64
}

fn number_flows(stages: &mut [(usize, Stage)]) {
    let rounds = stages.iter_mut().flat_map(|(_, stage)| &mut stage.rounds);
    let flows = rounds.flat_map(|round| &mut round.flows);
    // Within 32 bits: MAX_FLOWS was checked.
    for (id, flow) in (0u32..).zip(flows) {
        flow.id = FlowId(id);
    }
}

/// A test that has nothing to trace is dropped.
fn trace_others(layout: &mut Layout, inventory: &Inventory, seed: u64) {
    let mut stages: Vec<&mut Stage> = layout.stages.iter_mut().map(|(_, stage)| stage).collect();
    traced::fill(&mut stages, inventory, seed);
    let is_empty = |stage: &Stage| stage.rounds.iter().all(|round| round.flows.is_empty());
    let empty = layout.stages.extract_if(.., |(_, stage)| is_empty(stage));
    let why = |(index, stage): (usize, Stage)| {
        let reason = "nothing to trace: no other test sends cross-rack bulk TCP from chosen ports";
        (index, format!("{}: {reason}", stage.name))
    };
    layout.dropped.extend(empty.map(why));
}

fn check_time(stages: &[(usize, Stage)]) -> Result<(), PlanError> {
    let total = stages
        .iter()
        .map(|(_, stage)| stage.planned_ns())
        .fold(0, u64::saturating_add);
    if total > MAX_PLANNED_NS {
        return Err(PlanError::TooLong { planned_ns: total });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
