//! One of a rack's hashed paths is slow or loses packets: by its routers where these answer, else
//! by its share of the connections.

use super::case::Case;
use crate::finding::{finding_of, plain, quantity};
use ew_evidence::criteria::SLOW;
use ew_fit::tomography::{BadMember, Pods, Scope};
use ew_model::RackId;
use ew_model::analysis::Estimate;
use ew_model::finding::details::{BadPathByRouter, BadPathByShare, PathLocation, PathRouter};
use ew_model::finding::{Cause, Details, Finding, Severity, Subject};
use ew_stats::share_estimate;
use std::net::IpAddr;

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    match &case.tomography.bad_member {
        Some(found) => Some(by_router(&case.tomography.pods, found)),
        None => by_share(case),
    }
}

fn by_router(pods: &Pods, found: &BadMember) -> Finding {
    let share = found.bad as f64 / found.connections.max(1) as f64;
    Finding {
        measured: plain(share, "share"),
        expected: plain(found.others_bad_share, "share"),
        ..finding_of(
            Severity::Fault,
            subject(found.scope),
            Cause::BadPath,
            Details::BadPathByRouter(BadPathByRouter {
                locations: locations(pods, found.scope, &found.rivals),
                routers: routers(&found.via),
                bad_connections: found.bad,
                connections: found.connections,
                others_bad_share: found.others_bad_share,
                gain_nats: found.gain,
            }),
        )
    }
}

fn by_share(case: &Case<'_>) -> Option<Finding> {
    let found = case.tomography.bad_path.as_ref()?;
    let estimate = share_estimate(found.bad, found.connections)?;
    let (fewest_paths, max_paths) = number_of_paths(&estimate);
    Some(Finding {
        measured: quantity(&estimate, "share"),
        expected: plain(0.0, "share"),
        ..finding_of(
            Severity::Fault,
            subject(found.scope),
            Cause::BadPath,
            Details::BadPathByShare(BadPathByShare {
                locations: locations(&case.tomography.pods, found.scope, &found.rivals),
                stage: found.stage.clone(),
                fewest_paths,
                max_paths,
                // One that keeps the pace loses packets.
                is_narrow: found.of_pace < SLOW,
                pace_share: found.of_pace,
                retransmitted_share: found.retransmitted_share,
                bad_connections: found.bad,
                connections: found.connections,
                bad_share: estimate.value,
                gain_nats: found.gain,
            }),
        )
    })
}

/// The min and the max number of paths that a share of connections on one of them leaves open, 95%.
fn number_of_paths(share: &Estimate) -> (usize, usize) {
    let paths = |share: Option<f64>| (1.0 / share.unwrap_or(1.0)).round().max(2.0) as usize;
    let fewest = paths(share.high);
    (fewest, paths(share.low).max(fewest))
}

pub(super) fn subject(scope: Scope) -> Subject {
    match scope {
        Scope::Rack(rack, _) => Subject::Rack {
            rack: RackId(rack as u32),
        },
        Scope::Pod(..) | Scope::Everywhere => Subject::Run,
    }
}

/// The scope, then those that explain as much.
pub(super) fn locations(pods: &Pods, scope: Scope, rivals: &[Scope]) -> Vec<PathLocation> {
    let all = std::iter::once(scope).chain(rivals.iter().copied());
    all.map(|scope| location(pods, scope)).collect()
}

fn location(pods: &Pods, scope: Scope) -> PathLocation {
    match scope {
        Scope::Rack(rack, direction) => PathLocation::Rack {
            rack: RackId(rack as u32),
            directions: direction.into(),
        },
        Scope::Pod(pod, direction) => PathLocation::Pod {
            racks: (pods.racks(pod).into_iter())
                .map(|rack| RackId(rack as u32))
                .collect(),
            directions: direction.into(),
        },
        Scope::Everywhere => PathLocation::EveryRack,
    }
}

pub(super) fn routers(by_rack: &[(usize, IpAddr)]) -> Vec<PathRouter> {
    let router = |(rack, router): &(usize, IpAddr)| PathRouter {
        from: RackId(*rack as u32),
        router: *router,
    };
    by_rack.iter().map(router).collect()
}
