//! Derived numbers, statistics, expectation against measurement, and one rule per cause.
//!
//! Pure: a [`Run`] goes in, an [`Analysis`] comes out; no clock, no socket, no file. The same run gives the same
//! analysis. What was not measured stays `None`, and "not determined" is a legal answer.

mod basis;
mod capacity;
mod ceiling;
mod cells;
pub mod compare;
mod cpu;
mod datagrams;
mod disturbance;
mod expected;
mod hosts;
mod latency;
mod losses;
mod observations;
mod oversubscription;
mod paths;
mod ramp;
mod rules;
mod settings;
pub mod settling;
pub mod significance;
mod solo;
mod stages;
pub mod stats;
mod sweep;
mod telemetry;
mod timeline;
mod tools;
pub mod two_way;
mod verdict;
mod words;

use ew_model::{Analysis, Run};
use std::collections::{BTreeMap, BTreeSet};

/// Analyses a run. Never fails: a run without figures gives the status
/// [`NotDetermined`](ew_model::finding::VerdictStatus::NotDetermined).
///
/// The order of work: what a healthy host does (`basis`), hosts by their lone flows inside racks (`solo`, less the rounds
/// that were slow as a whole: `disturbance`) with what each can do (`capacity`), paths between racks with the hosts as found (`oversubscription`), hosts again with the flows across racks that no path
/// slows, paths again; then the views (`stages`, `hosts`, `cells`) and the rules.
#[must_use]
pub fn analyze(run: &Run) -> Analysis {
    let observations = observations::Observations::new(run);
    let reference = basis::reference(&observations);
    let network = fit_network(&observations, &reference);
    let expected = expected::Expected::new(&observations, &reference, &network);
    let telemetry = telemetry::Telemetry::new(&observations);
    let mut hosts = hosts::hosts(&observations, &network.fit);
    telemetry::fill(&mut hosts, &observations, &telemetry, &reference);
    let stages = stages::stages(&observations, &expected, &telemetry);
    let (cells_stage, cells) = cells::cells(&observations, &expected);
    let sweeps = sweep::sweeps(&observations);
    let losses = losses::Losses::new(&observations, &network);
    let case = rules::Case {
        observations: &observations,
        reference: &reference,
        network: &network,
        expected: &expected,
        stages: &stages,
        sweeps: &sweeps,
        hosts: &hosts,
        telemetry: &telemetry,
        losses: &losses,
    };
    let verdict = verdict::verdict(&case);
    Analysis {
        run: run.manifest.clone(),
        verdict,
        stages,
        hosts,
        cells,
        cells_stage,
        rack_pairs: network
            .rack_pairs
            .pairs
            .into_iter()
            .map(|pair| pair.analysis)
            .collect(),
        basis: reference.basis,
        sweeps,
        tools: tools::comparisons(&observations),
        warnings: warnings(&observations, &network.disturbed),
    }
}

/// Hosts and paths as found, and the lone flows the hosts rest on.
#[derive(Debug)]
struct Network {
    fit: capacity::HostFit,
    rack_pairs: oversubscription::RackPairs,
    solos: Vec<solo::Solo>,
    /// Stage and round of lone flows that were set aside.
    disturbed: BTreeSet<(usize, usize)>,
}

fn fit_network(
    observations: &observations::Observations<'_>,
    reference: &basis::Reference,
) -> Network {
    let hosts = observations.inventory().hosts.len();
    let inside = solo::host_limited(observations, None, 0.0);
    let first = capacity::fit(hosts, &disturbance::sift(inside.clone()).steady);
    let pairs = oversubscription::rack_pairs(observations, &first, &inside, reference);
    let typical = first
        .typical
        .map(|t| t.value)
        .or(reference.goodput_bits_per_sec);
    let needed = 0.95 * typical.unwrap_or(f64::INFINITY);
    let sifted = disturbance::sift(solo::host_limited(observations, Some(&pairs.paths), needed));
    let fit = capacity::fit(hosts, &sifted.steady);
    let rack_pairs = oversubscription::rack_pairs(observations, &fit, &inside, reference);
    Network {
        fit,
        rack_pairs,
        solos: sifted.steady,
        disturbed: sifted.disturbed,
    }
}

fn warnings(
    observations: &observations::Observations<'_>,
    disturbed: &BTreeSet<(usize, usize)>,
) -> Vec<String> {
    let run = observations.run;
    let mut warnings = run.warnings.clone();
    for (host, reason) in &run.unclean {
        warnings.push(format!("{host} could not be proved clean: {reason}"));
    }
    for test in &run.plan.dropped_tests {
        warnings.push(format!("left out: {test}"));
    }
    let mut by_stage: BTreeMap<usize, usize> = BTreeMap::new();
    for (stage, _) in disturbed {
        *by_stage.entry(*stage).or_default() += 1;
    }
    for (stage, rounds) in by_stage {
        let view = &observations.stages[stage];
        warnings.push(format!(
            "`{}` was slow as a whole in {rounds} of {}; that is held against no host or pair",
            view.stage.name,
            words::count(view.rounds.len(), "round"),
        ));
    }
    warnings
}
