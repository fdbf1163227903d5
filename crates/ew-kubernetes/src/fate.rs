//! What became of pods that no longer run. A deleted pod is gone within a second or two, and with
//! it what its document reports about the reason: so pods are watched while the run lasts.

use crate::access::{Access, AccessOptions};
use crate::deploy::{Deployment, Placed};
use crate::nodes::{NodeFacts, list_nodes};
use crate::trouble::{State, state};
use futures_util::StreamExt;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{PostParams, WatchEvent, WatchParams};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// Between two tries to watch, where the API server ends the stream.
const WATCH_PAUSE: Duration = Duration::from_secs(1);
/// "Whatever the API server has": the stream begins with the pods that there are.
const ANY_VERSION: &str = "0";

type Fates = BTreeMap<String, State>;

/// Keeps how each pod of a run ended, on a thread of its own: the run's does not serve others.
#[derive(Debug)]
pub struct PodWatch {
    seen: Arc<Mutex<Fates>>,
    /// Ends the thread when it is dropped.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl PodWatch {
    /// Watches the pods that a selector matches, until it is dropped. Where they cannot be watched,
    /// nothing is seen.
    #[must_use]
    pub fn start(options: AccessOptions, selector: String) -> Self {
        let seen = Arc::new(Mutex::new(Fates::new()));
        let (stop, stopped) = oneshot::channel();
        let to = Arc::clone(&seen);
        let work = move || {
            let runtime = tokio::runtime::Builder::new_current_thread();
            let Ok(runtime) = { runtime }.enable_all().build() else {
                return;
            };
            runtime.block_on(async {
                tokio::select! {
                    () = watch(&options, &selector, &to) => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("pods".to_owned());
        Self {
            seen,
            stop: Some(stop),
            thread: thread.spawn(work).ok(),
        }
    }

    fn seen(&self) -> Fates {
        let seen = self.seen.lock();
        seen.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for PodWatch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // One that panicked has seen what it has seen.
            let _ = thread.join();
        }
    }
}

async fn watch(options: &AccessOptions, selector: &str, seen: &Mutex<Fates>) {
    let Ok(access) = Access::open(options).await else {
        return;
    };
    let pods: Api<Pod> = Api::namespaced(access.client.clone(), &access.namespace);
    let parameters = WatchParams::default().labels(selector);
    loop {
        if let Ok(events) = pods.watch(&parameters, ANY_VERSION).await {
            let mut events = Box::pin(events);
            while let Some(Ok(event)) = events.next().await {
                keep(
                    &mut seen.lock().unwrap_or_else(PoisonError::into_inner),
                    event,
                );
            }
        }
        tokio::time::sleep(WATCH_PAUSE).await;
    }
}

/// A reason that was seen stays: the document that follows may have less.
fn keep(seen: &mut Fates, event: WatchEvent<Pod>) {
    let (pod, is_gone) = match event {
        WatchEvent::Added(pod) | WatchEvent::Modified(pod) => (pod, false),
        WatchEvent::Deleted(pod) => (pod, true),
        WatchEvent::Bookmark(_) | WatchEvent::Error(_) => return,
    };
    let fate = match state(&pod) {
        State::Running(_) | State::Waiting(_) if is_gone => State::Deleted,
        State::Running(_) | State::Waiting(_) => return,
        ended => ended,
    };
    let name = pod.metadata.name.unwrap_or_default();
    seen.entry(name).or_insert(fate);
}

/// What happened to pods that no longer run: by their agents' names. Of a run with missing figures,
/// also of pods whose node is not well.
pub async fn fallen(
    deployment: &Deployment,
    watched: &PodWatch,
    is_incomplete: bool,
) -> BTreeMap<String, String> {
    let Ok(now) = deployment.states().await else {
        return BTreeMap::new();
    };
    let seen = watched.seen();
    let ran = deployment.placed().iter();
    let ran = ran.filter(|placed| placed.address.is_ok());
    let fates = ran.map(|placed| {
        let fate = seen.get(&placed.pod).or_else(|| now.get(&placed.pod));
        (placed, fate.cloned().unwrap_or(State::Deleted))
    });
    let fates: Vec<(&Placed, State)> = fates.collect();
    let has_ended = |state: &State| matches!(state, State::Failed(_) | State::Deleted);
    if !is_incomplete && !fates.iter().any(|(_, state)| has_ended(state)) {
        return BTreeMap::new();
    }
    let around = Around::of(deployment).await;
    let fallen = fates.into_iter().filter_map(|(placed, fate)| {
        let words = around.words(fate, &placed.plan.node)?;
        Some((placed.plan.agent.clone(), words))
    });
    fallen.collect()
}

/// Where neither the pod, nor its namespace, nor its node reports more.
const DELETED: &str = "the pod was deleted, by a user or a controller of the cluster (its namespace and its node are there)";

/// What is around pods.
struct Around {
    /// What took all pods of the run with it.
    deletion: Option<String>,
    /// `None`: they could not be listed.
    nodes: Option<Vec<NodeFacts>>,
}

impl Around {
    async fn of(deployment: &Deployment) -> Self {
        let access = deployment.access();
        Self {
            deletion: deletion_of_all(access, deployment.owner()).await,
            nodes: list_nodes(access, None).await.ok(),
        }
    }

    /// What happened to a pod on a node; `None` where nothing did.
    fn words(&self, fate: State, node: &str) -> Option<String> {
        let of_node = || node_words(self.nodes.as_ref()?, node);
        match fate {
            State::Failed(words) => Some(words),
            State::Deleted => {
                let around = self.deletion.clone().or_else(of_node);
                Some(around.unwrap_or_else(|| DELETED.to_owned()))
            }
            State::Running(_) | State::Waiting(_) => of_node(),
        }
    }
}

fn node_words(nodes: &[NodeFacts], node: &str) -> Option<String> {
    match nodes.iter().find(|found| found.name == node) {
        None => Some(format!("its node {node} was removed from the cluster")),
        Some(found) if !found.ready => Some(format!(
            "its node {node} is NotReady: it is down, or its kubelet does not reach the API server"
        )),
        Some(_) => None,
    }
}

/// Whether the namespace or the run's Job was deleted, from what the API server answers to making
/// that Job once more: no other right is needed, and nothing is made.
async fn deletion_of_all(access: &Access, owner: serde_json::Value) -> Option<String> {
    let job: Job = serde_json::from_value(owner).ok()?;
    let jobs: Api<Job> = Api::namespaced(access.client.clone(), &access.namespace);
    let only_try = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let answer = jobs.create(&only_try, &job).await;
    deletion_words(&access.namespace, answer.as_ref().map(|_| ()))
}

fn deletion_words(namespace: &str, made_again: Result<(), &kube::Error>) -> Option<String> {
    let kube::Error::Api(status) = (match made_again {
        Ok(()) => {
            return Some(
                "the run's Job was deleted, by a user or a controller, and its pods with it"
                    .to_owned(),
            );
        }
        Err(error) => error,
    }) else {
        return None;
    };
    let is_ending = status.message.contains("is being terminated");
    let is_gone = status.code == 404 && status.message.contains("namespaces");
    (is_ending || is_gone)
        .then(|| format!("namespace `{namespace}` was deleted, and the pod with it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(deleted: bool, conditions: &Value) -> Pod {
        let mut metadata = json!({"name": "a"});
        if deleted {
            metadata["deletionTimestamp"] = json!("2026-11-23T15:00:00Z");
        }
        let status = json!({"phase": "Running", "conditions": conditions});
        serde_json::from_value(json!({"metadata": metadata, "status": status})).unwrap()
    }

    #[test]
    fn the_first_reason_is_kept() {
        let evicted = json!([{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]);
        let mut seen = Fates::new();
        keep(&mut seen, WatchEvent::Added(pod(false, &json!([]))));
        assert_eq!(seen, Fates::new());
        keep(&mut seen, WatchEvent::Modified(pod(false, &evicted)));
        keep(&mut seen, WatchEvent::Deleted(pod(true, &json!([]))));
        assert!(matches!(&seen["a"], State::Failed(words) if words.contains("eviction API")));
        let mut seen = Fates::new();
        keep(&mut seen, WatchEvent::Deleted(pod(false, &json!([]))));
        assert_eq!(seen["a"], State::Deleted);
    }

    /// As API servers of 1.33 answer.
    #[test]
    fn what_took_all_pods_is_named() {
        let refused = |code: u16, message: &str| {
            let status =
                json!({"status": "Failure", "message": message, "reason": "", "code": code});
            kube::Error::Api(Box::new(serde_json::from_value(status).unwrap()))
        };
        let words = |error: kube::Error| deletion_words("net", Err(&error)).unwrap_or_default();
        let ending = "jobs.batch \"x\" is forbidden: unable to create new content in namespace net because it is being terminated";
        assert!(words(refused(403, ending)).contains("namespace `net` was deleted"));
        let gone = refused(404, "namespaces \"net\" not found");
        assert!(words(gone).contains("namespace `net` was deleted"));
        assert_eq!(words(refused(409, "jobs.batch \"x\" already exists")), "");
        assert_eq!(words(refused(403, "exceeded quota")), "");
        assert!(
            deletion_words("net", Ok(()))
                .unwrap()
                .contains("Job was deleted")
        );
    }

    #[test]
    fn a_node_that_is_gone_is_not_one_that_is_down() {
        let node = |name: &str, ready: bool| NodeFacts {
            name: name.to_owned(),
            architecture: String::new(),
            unusable: None,
            ready,
            labels: BTreeMap::new(),
        };
        let nodes = [node("n1", true), node("n2", false)];
        let words = |name| node_words(&nodes, name).unwrap_or_default();
        assert_eq!(words("n1"), "");
        assert!(words("n2").contains("is NotReady"));
        assert!(words("n3").contains("was removed from the cluster"));
    }

    #[test]
    fn a_pods_own_reason_comes_before_what_is_around_it() {
        let nodes = vec![NodeFacts {
            name: "n1".to_owned(),
            architecture: String::new(),
            unusable: None,
            ready: true,
            labels: BTreeMap::new(),
        }];
        let around = |deletion: Option<&str>| Around {
            deletion: deletion.map(str::to_owned),
            nodes: Some(nodes.clone()),
        };
        let evicted = State::Failed("evicted".to_owned());
        let words = |around: &Around, fate: &State, node| around.words(fate.clone(), node);
        let ended = around(Some("namespace `net` was deleted"));
        assert_eq!(words(&ended, &evicted, "n1").as_deref(), Some("evicted"));
        let words_of_all = words(&ended, &State::Deleted, "n1");
        assert_eq!(words_of_all.as_deref(), Some("namespace `net` was deleted"));
        let alone = around(None);
        let gone = words(&alone, &State::Deleted, "n2").unwrap();
        assert!(gone.contains("n2 was removed from the cluster"), "{gone}");
        assert_eq!(
            words(&alone, &State::Deleted, "n1").as_deref(),
            Some(DELETED)
        );
        let running = State::Running("198.19.1.5".to_owned());
        assert_eq!(words(&alone, &running, "n1"), None);
        assert!(words(&alone, &running, "n2").is_some());
    }
}
