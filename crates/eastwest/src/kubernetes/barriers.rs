//! What kept pods apart, or ended them: searched at the end of a run that lacks figures, and kept
//! in it.

use crate::exit::Failure;
use crate::output;
use crate::run_report::write_html;
use ew_controller::{Finished, RunError};
use ew_kubernetes::{Access, Attempt, Deployment, PodWatch, fallen, why_unreachable};
use ew_model::barrier::{Barrier, BarrierKind};
use ew_model::finding::VerdictStatus;
use ew_model::pods::PodPath;
use ew_model::{Analysis, FlowOutcome, FlowRecord, HostId, Inventory, Pattern, Run};
use ew_store::StoreError;
use std::collections::BTreeSet;

/// What is found of a run that has ended, reported and kept in the run.
pub(super) async fn look_for(
    access: &Access,
    deployment: &Deployment,
    watch: &PodWatch,
    ended: &mut Result<Finished, Failure>,
) {
    let analysis = ended.as_ref().ok().map(|finished| &finished.analysis);
    let is_incomplete = analysis.is_none_or(is_partial);
    let fallen = fallen(deployment, watch, is_incomplete).await;
    let inventory = analysis.map(|analysis| &analysis.run.inventory);
    let mut found: Vec<Barrier> = fallen
        .iter()
        .map(|(agent, words)| Barrier {
            kind: BarrierKind::PodEnded,
            host: inventory.and_then(|inventory| inventory.find(agent)),
            words: format!("{agent}: {words}"),
        })
        .collect();
    let refusing = analysis.map(conntrack_words).unwrap_or_default();
    let attempts = match ended {
        Ok(finished) if is_incomplete => attempts_of_run(finished),
        Ok(_) => Vec::new(),
        Err(failure) => attempts_of_failure(deployment, failure),
    };
    if !attempts.is_empty() {
        let is_explained = !fallen.is_empty() || !refusing.is_empty();
        found.extend(why_unreachable(access, deployment, &attempts, is_explained).await);
    }
    refusing.iter().for_each(|words| output::say(words));
    for barrier in &found {
        output::say(&match barrier.kind {
            BarrierKind::PodEnded => barrier.words.clone(),
            _ => format!("unreachable pods: {}", barrier.words),
        });
    }
    if let Ok(finished) = ended
        && !found.is_empty()
        && finished.unwritten.is_none()
    {
        finished.unwritten = keep(finished, found).err();
    }
}

/// Into `run.json`, and into all that follows from it.
fn keep(finished: &mut Finished, found: Vec<Barrier>) -> Result<(), StoreError> {
    let dir = &finished.dir;
    ew_store::add_barriers(dir, found)?;
    finished.analysis = ew_analyze::analyze(&ew_store::load(dir)?);
    ew_store::write_findings(dir, ew_report::findings_json(&finished.analysis))?;
    if let Err(failure) = write_html(&finished.analysis, dir) {
        output::say(&format!("warning: {}", failure.message()));
    }
    Ok(())
}

fn is_partial(analysis: &Analysis) -> bool {
    let status = analysis.verdict.status;
    matches!(
        status,
        VerdictStatus::Partial | VerdictStatus::NotDetermined
    )
}

fn attempts_of_run(finished: &Finished) -> Vec<Attempt> {
    // What cannot be read back was reported when it was analysed.
    ew_store::load(&finished.dir).map_or_else(|_| Vec::new(), |run| attempts(&run))
}

/// Flows without a figure in any try, between hosts that were there, each pair once.
fn attempts(run: &Run) -> Vec<Attempt> {
    let is_measured = |flow: &&FlowRecord| flow.outcome == FlowOutcome::Measured;
    let cell = |flow: &FlowRecord| (flow.stage, flow.flow, flow.sample);
    let measured: BTreeSet<_> = run.flows.iter().filter(is_measured).map(cell).collect();
    let is_gone = |host: &HostId| run.lost.contains_key(host) || run.failed.contains_key(host);
    let attempt = |flow: &FlowRecord| {
        let FlowOutcome::Missing { reason } = &flow.outcome else {
            return None;
        };
        let is_open = !measured.contains(&cell(flow)) && !is_gone(&flow.src) && !is_gone(&flow.dst);
        is_open.then(|| Attempt {
            client: name(&run.manifest.inventory, flow.src),
            server: name(&run.manifest.inventory, flow.dst),
            through_service: is_through_service(run, flow),
            reason: reason.clone(),
        })
    };
    let attempts: BTreeSet<Attempt> = run.flows.iter().filter_map(attempt).collect();
    attempts.into_iter().collect()
}

fn name(inventory: &Inventory, host: HostId) -> String {
    inventory.name(host).to_owned()
}

fn is_through_service(run: &Run, flow: &FlowRecord) -> bool {
    let stage = run.plan.stages.get(flow.stage.0 as usize);
    let path = stage.and_then(|stage| match stage.pattern {
        Pattern::Pods { path } => Some(path),
        _ => None,
    });
    path.and_then(PodPath::service).is_some()
}

/// Where the data ports could not be reached at all, between which pods is not on record: all of
/// them may be.
fn attempts_of_failure(deployment: &Deployment, failure: &Failure) -> Vec<Attempt> {
    let (Failure::Failed(error) | Failure::Usage(error)) = failure else {
        return Vec::new();
    };
    let Some(RunError::PortsBlocked { example, .. }) = error.downcast_ref() else {
        return Vec::new();
    };
    let placed = deployment.placed();
    let pairs = placed.windows(2).map(|pair| Attempt {
        client: pair[0].plan.agent.clone(),
        server: pair[1].plan.agent.clone(),
        through_service: false,
        reason: example.clone(),
    });
    pairs.collect()
}

/// Nodes whose connection tracking refused connections during the run.
fn conntrack_words(analysis: &Analysis) -> Vec<String> {
    let inventory = &analysis.run.inventory;
    let refusing = analysis.hosts.iter();
    let refusing = refusing.filter_map(|host| Some((inventory.name(host.host), host.conntrack?)));
    let words = refusing.map(|(node, refused)| ew_report::conntrack_words(node, &refused));
    words.collect()
}
