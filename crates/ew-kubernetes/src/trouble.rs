//! Why a pod does not run, from its own document. Pure.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

/// How a pod is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Its container runs; the pod's address.
    Running(String),
    /// Not yet, and in whose words.
    Waiting(String),
    /// It will not, or no more.
    Failed(String),
    /// It is being deleted, and its document does not specify by what.
    Deleted,
}

/// Reasons of the condition `DisruptionTarget`, which a pod has before the cluster itself ends it
/// (Kubernetes 1.26 and later), in words.
const DISRUPTIONS: [(&str, &str); 5] = [
    (
        "EvictionByEvictionAPI",
        "the pod was evicted by the eviction API (kubectl drain, an autoscaler, a descheduler)",
    ),
    (
        "PreemptionByScheduler",
        "the pod was preempted by one of a higher priority (see --priority-class)",
    ),
    (
        "DeletionByTaintManager",
        "the pod was evicted by a taint of its node (see --toleration)",
    ),
    (
        "DeletionByPodGC",
        "the pod was removed because its node is gone from the cluster or out of service",
    ),
    (
        "TerminationByKubelet",
        "the pod was evicted by its node (pressure on the node, or its shutdown)",
    ),
];

/// Reasons of a waiting container that do not go away by themselves, with what to do.
const HOPELESS: [(&str, &str); 7] = [
    (
        "ErrImageNeverPull",
        "the image is not on the node: load it there, or drop --pull-policy Never",
    ),
    ("ImagePullBackOff", IMAGE_REMEDY),
    ("ErrImagePull", IMAGE_REMEDY),
    ("InvalidImageName", IMAGE_REMEDY),
    ("CreateContainerConfigError", USER_REMEDY),
    (
        "CreateContainerError",
        "check the image: `eastwest image` writes one that fits, any other needs --bootstrap copy",
    ),
    (
        "RunContainerError",
        "check the image: `eastwest image` writes one that fits, any other needs --bootstrap copy",
    ),
];
const IMAGE_REMEDY: &str = "push one that `eastwest image` wrote to a registry the nodes reach and give it with --image, or use \
                            --bootstrap copy with an image they have";
const USER_REMEDY: &str = "pods run as no root: give --run-as-user when the image's user is root";

pub(crate) fn state(pod: &Pod) -> State {
    let Some(status) = &pod.status else {
        return State::Waiting("not seen by a node yet".to_owned());
    };
    if let Some(words) = disruption(pod) {
        return State::Failed(words);
    }
    if pod.metadata.deletion_timestamp.is_some() {
        return State::Deleted;
    }
    let own = |text: &Option<String>| text.clone().unwrap_or_default();
    let phase = status.phase.as_deref().unwrap_or("Pending");
    if matches!(phase, "Failed" | "Succeeded") {
        let words = [
            own(&status.reason),
            own(&status.message),
            ended(status.container_statuses.as_deref()),
        ];
        return State::Failed(joined("the pod ended", &words));
    }
    let containers = status.container_statuses.as_deref().unwrap_or_default();
    let runs = |c: &ContainerStatus| c.state.as_ref().is_some_and(|s| s.running.is_some());
    if phase == "Running" && !containers.is_empty() && containers.iter().any(runs) {
        return match &status.pod_ip {
            Some(address) => State::Running(address.clone()),
            None => State::Waiting("the pod has no address yet".to_owned()),
        };
    }
    for container in containers {
        let Some(waiting) = container.state.as_ref().and_then(|s| s.waiting.as_ref()) else {
            continue;
        };
        let (reason, message) = (own(&waiting.reason), own(&waiting.message));
        if let Some((_, remedy)) = HOPELESS.iter().find(|(known, _)| *known == reason) {
            return State::Failed(format!("{}; {remedy}", joined(&reason, &[message])));
        }
        if !reason.is_empty() {
            return State::Waiting(joined(&reason, &[message]));
        }
    }
    let conditions = status.conditions.iter().flatten();
    let mut unscheduled = conditions.filter(|c| c.type_ == "PodScheduled" && c.status == "False");
    match unscheduled.next() {
        Some(condition) => {
            State::Waiting(joined(&own(&condition.reason), &[own(&condition.message)]))
        }
        None => State::Waiting(phase.to_lowercase()),
    }
}

/// Why the cluster itself ends the pod, where it does.
fn disruption(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let mut conditions = status.conditions.iter().flatten();
    let condition = conditions.find(|c| c.type_ == "DisruptionTarget" && c.status == "True")?;
    let reason = condition.reason.clone().unwrap_or_default();
    let known = DISRUPTIONS.iter().find(|(known, _)| *known == reason);
    let words = known.map_or_else(
        || format!("the cluster ended the pod: {reason}"),
        |(_, words)| (*words).to_owned(),
    );
    // What the node reports about pressure is in the status, and clearer than the condition's.
    let message = status.message.clone().or_else(|| condition.message.clone());
    Some(joined(&words, &[message.unwrap_or_default()]))
}

fn ended(containers: Option<&[ContainerStatus]>) -> String {
    let states = containers.unwrap_or_default().iter();
    let ended = states.filter_map(|c| c.state.as_ref()?.terminated.as_ref());
    let words = ended.map(|t| {
        let reason = t.reason.clone().unwrap_or_default();
        format!("{reason} with status {}", t.exit_code)
    });
    words.collect::<Vec<_>>().join(", ")
}

fn joined(first: &str, rest: &[String]) -> String {
    let said = rest
        .iter()
        .map(|text| text.trim())
        .filter(|text| !text.is_empty());
    std::iter::once(first)
        .chain(said)
        .collect::<Vec<_>>()
        .join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn of(status: &Value) -> State {
        state(&serde_json::from_value(json!({"metadata": {}, "status": status})).unwrap())
    }

    fn failed(status: &Value) -> String {
        match of(status) {
            State::Failed(words) => words,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_running_pod_has_an_address() {
        let container = json!({"name": "eastwest", "image": "x", "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {}}});
        let status =
            json!({"phase": "Running", "podIP": "198.19.1.5", "containerStatuses": [container]});
        assert_eq!(of(&status), State::Running("198.19.1.5".into()));
    }

    #[test]
    fn an_image_that_is_not_there_is_hopeless_and_has_a_remedy() {
        let waiting = json!({"reason": "ErrImagePull", "message": "not found"});
        let container = json!({"name": "eastwest", "image": "x", "imageID": "", "ready": false, "restartCount": 0, "state": {"waiting": waiting}});
        let words = failed(&json!({"phase": "Pending", "containerStatuses": [container]}));
        assert!(
            words.contains("not found") && words.contains("--bootstrap copy"),
            "{words}"
        );
    }

    #[test]
    fn an_evicted_pod_says_why() {
        let words = failed(
            &json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}),
        );
        assert_eq!(
            words,
            "the pod ended: Evicted: The node was low on resource: memory."
        );
    }

    /// As API servers of 1.33 report them.
    #[test]
    fn what_ends_a_pod_is_not_interchangeable() {
        let ends = [
            ("EvictionByEvictionAPI", "by the eviction API"),
            ("PreemptionByScheduler", "preempted"),
            ("DeletionByTaintManager", "taint of its node"),
            ("DeletionByPodGC", "its node is gone"),
            ("TerminationByKubelet", "evicted by its node"),
            ("Unheard", "the cluster ended the pod: Unheard"),
        ];
        for (reason, words) in ends {
            let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "in its words"});
            let deleted = json!({"metadata": {"deletionTimestamp": "2026-11-23T15:00:00Z"}, "status": {"phase": "Running", "conditions": [condition]}});
            match state(&serde_json::from_value(deleted).unwrap()) {
                State::Failed(found) => {
                    assert!(
                        found.contains(words) && found.ends_with(": in its words"),
                        "{found}"
                    );
                }
                other => panic!("{other:?}"),
            }
        }
        let deleted = json!({"metadata": {"deletionTimestamp": "2026-11-23T15:00:00Z"}, "status": {"phase": "Running"}});
        assert_eq!(
            state(&serde_json::from_value(deleted).unwrap()),
            State::Deleted
        );
    }

    #[test]
    fn what_cannot_be_scheduled_waits_in_the_schedulers_words() {
        let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes are available"});
        let waits = State::Waiting("Unschedulable: 0/2 nodes are available".into());
        assert_eq!(
            of(&json!({"phase": "Pending", "conditions": [condition]})),
            waits
        );
    }
}
