//! Derived numbers, statistics, expectation against measurement, and one rule per cause.
//!
//! Pure: a [`Run`] goes in, an [`Analysis`] comes out; no clock, no socket, no file. The same run
//! gives the same analysis. What was not measured stays `None`, and "not determined" is a legal
//! answer.

mod ceiling;
pub mod compare;
mod completion;
mod congestion;
pub mod convergence;
mod cpu;
mod datagrams;
mod expected;
mod finding;
mod host_pairs;
mod hosts;
mod latency;
mod pairs;
mod pods;
mod precision;
pub mod racks;
mod rules;
mod stages;
mod sweep;
mod thresholds;
mod timeline;
mod tools;
pub mod trend;
mod verdict;

use ew_evidence::{basis, observations, quality, telemetry};
use ew_fit::tomography;
use ew_model::analysis::Warning;
use ew_model::{Analysis, Run};

/// Analyses a run. Never fails: a run without figures gives the status
/// [`NotDetermined`](ew_model::finding::VerdictStatus::NotDetermined).
///
/// The order of work: what was measured (`observations`) and how well (`quality`), the paths that
/// were traced (`tomography`), the one explanation of all of it (`fit`), then the views of it
/// (`expected`, `hosts`, `stages`, `host_pairs`), the counters of every part (`rules`), and the
/// verdict.
#[must_use]
pub fn analyze(run: &Run) -> Analysis {
    let observations = observations::Observations::new(run);
    let reference = basis::reference(&observations);
    let telemetry = telemetry::Telemetry::new(&observations);
    let quality = quality::Quality::new(&observations, &telemetry);
    let traces = tomography::Traces::of(&observations);
    let paths = ew_fit::KnownPaths {
        most: traces.most_paths(),
        short: tomography::short_racks(&traces, run.plan.expect.paths),
        pod_of: traces.pods(observations.inventory().racks.len()),
    };
    let network = ew_fit::network(&observations, &reference, quality, paths);
    let expected = expected::Expected::new(&observations, &reference, &network);
    let mut hosts = hosts::hosts(&observations, &network);
    telemetry::fill(&mut hosts, &observations, &telemetry, &reference);
    let stages = stages::stages(&observations, &expected, &telemetry);
    let (host_pairs_stage, host_pairs) = host_pairs::host_pairs(&observations, &expected);
    let pair_maps = host_pairs::other_maps(&observations, &expected);
    let pair_details = pairs::details(&observations, &telemetry, &host_pairs);
    let sweeps = sweep::sweeps(&observations);
    let tomography = tomography::tomography(&observations, &network, &traces);
    let isolated_flows = rules::IsolatedFlows::new(&observations, &network);
    let case = rules::Case {
        isolated_flows: &isolated_flows,
        tomography: &tomography,
        observations: &observations,
        reference: &reference,
        network: &network,
        stages: &stages,
        hosts: &hosts,
        telemetry: &telemetry,
    };
    let pods = pods::comparisons(&observations, &telemetry);
    let congestion = congestion::impacts(run, &observations.stages);
    let verdict = pods::conclude(verdict::verdict(&case), &pods);
    let verdict = congestion::conclude(verdict, &congestion, &observations.stages);
    let warnings = warnings(&observations, &network);
    thresholds::check(Analysis {
        run: run.manifest.clone(),
        verdict,
        stages,
        hosts,
        host_pairs,
        host_pairs_stage,
        pair_maps,
        pair_details,
        pair_paths: pairs::paths(&observations),
        racks: tomography.with_paths(network.rack_analyses()),
        rack_pairs: network.rack_pairs,
        basis: reference.basis,
        sweeps,
        tools: tools::comparisons(&observations),
        pods,
        congestion,
        flow_completion: completion::completions(&observations),
        warnings,
        thresholds: Vec::new(),
    })
}

fn warnings(
    observations: &observations::Observations<'_>,
    network: &ew_fit::Network,
) -> Vec<Warning> {
    let run = observations.run;
    let recorded = run.warnings.iter().cloned();
    let mut warnings: Vec<Warning> = recorded
        .map(|message| Warning::Recorded { message })
        .collect();
    let unclean = run.unclean.iter().cloned();
    warnings.extend(unclean.map(|(name, message)| Warning::Unclean { name, message }));
    let skipped = run.plan.skipped_tests().into_iter();
    warnings.extend(skipped.map(|tests| Warning::Skipped { tests }));
    let void = network.quality.void_total();
    if void > 0 {
        let rounds = void as u32;
        warnings.push(Warning::RoundsExcluded { rounds });
    }
    warnings
}
