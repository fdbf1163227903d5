//! A pod's links to the rest carry less than its hosts could send or receive.

use super::case::Case;
use crate::finding::{MAX_EVIDENCE, finding_of, plain, quantity};
use ew_evidence::criteria::ALIKE;
use ew_fit::{Direction, PodLimit as Limit};
use ew_model::RackId;
use ew_model::analysis::Estimate;
use ew_model::finding::details::{Directions, OversubscribedPods, PodLimit};
use ew_model::finding::{Cause, Details, Finding, Severity, Subject};
use ew_stats::together;
use std::collections::BTreeSet;

/// One for all pods and directions that are limited alike.
pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let mut left: Vec<&Limit> = case.network.pods.iter().collect();
    let mut findings = Vec::new();
    while let Some(first) = left.first().map(|limit| limit.limiting.ratio.value) {
        let is_alike =
            |limit: &&Limit| (limit.limiting.ratio.value / first).ln().abs() < ALIKE.ln();
        let (alike, others): (Vec<&Limit>, _) = left.into_iter().partition(is_alike);
        findings.push(finding(case, &alike));
        left = others;
    }
    findings
}

fn finding(case: &Case<'_>, limits: &[&Limit]) -> Finding {
    let ratios: Vec<Estimate> = limits.iter().map(|limit| limit.limiting.ratio).collect();
    let ratio = together(&ratios);
    let about = Subjects::of(limits);
    Finding {
        measured: quantity(&ratio, "ratio"),
        expected: plain(1.0, "ratio"),
        ..finding_of(
            Severity::Notice,
            Subject::Run,
            Cause::Uplink,
            Details::OversubscribedPods(OversubscribedPods {
                pods: about.pods,
                directions: about.directions,
                is_one_way: about.is_one_way,
                ratio,
                limits: limits
                    .iter()
                    .take(MAX_EVIDENCE)
                    .map(|limit| proof(case, limit))
                    .collect(),
            }),
        )
    }
}

/// What a finding is about.
struct Subjects {
    pods: Vec<Vec<RackId>>,
    directions: Directions,
    is_one_way: bool,
}

impl Subjects {
    fn of(limits: &[&Limit]) -> Self {
        let ways: BTreeSet<[Vec<RackId>; 2]> = limits.iter().filter_map(|one| way(one)).collect();
        if let Some(first) = ways.first() {
            let is_one_way = ways.len() == 1;
            return Self {
                pods: first.to_vec(),
                directions: match is_one_way {
                    true => Directions::Tx,
                    false => Directions::Both,
                },
                is_one_way,
            };
        }
        let pods: BTreeSet<Vec<RackId>> = limits.iter().map(|one| racks(&one.racks)).collect();
        let has = |direction| limits.iter().any(|limit| limit.direction == direction);
        Self {
            pods: pods.into_iter().collect(),
            directions: Directions::of(has(Direction::Tx), has(Direction::Rx))
                .unwrap_or(Directions::Rx),
            is_one_way: false,
        }
    }
}

/// Of two pods what one sends to the other, whose links may be meant as well.
fn way(limit: &Limit) -> Option<[Vec<RackId>; 2]> {
    let (own, other) = (racks(&limit.racks), racks(limit.other.as_ref()?));
    Some(match limit.direction {
        Direction::Rx => [other, own],
        _ => [own, other],
    })
}

fn racks(indices: &[usize]) -> Vec<RackId> {
    indices.iter().map(|rack| RackId(*rack as u32)).collect()
}

fn proof(case: &Case<'_>, limit: &Limit) -> PodLimit {
    let stages = &case.observations.stages;
    let stage = limit.limiting.stage.and_then(|stage| stages.get(stage));
    PodLimit {
        racks: racks(&limit.racks),
        direction: limit.direction.into(),
        capacity_bits_per_sec: limit.limiting.capacity.value,
        hosts_bits_per_sec: limit.limiting.hosts_bits_per_sec,
        rounds: limit.limiting.rounds,
        stage: stage.map(|stage| stage.stage.name.clone()),
    }
}
