//! What the cluster refuses, in words a person can act on.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// Why the cluster does not do what a run needs.
#[derive(Debug, Error)]
pub enum KubernetesError {
    /// No usable kubeconfig.
    #[error(
        "no access to a Kubernetes cluster: {words}; give --kubeconfig FILE and --context NAME, or set KUBECONFIG"
    )]
    Access {
        /// What is wrong with it.
        words: String,
    },
    /// The API server does not answer.
    #[error(
        "the API server {server} does not answer: {words}; check the address in the kubeconfig, and the way to it (VPN, proxy)"
    )]
    Unreachable {
        /// Its address.
        server: String,
        /// The system's.
        words: String,
    },
    /// Rights are missing.
    #[error("missing rights in namespace `{namespace}`: {}; grant them with `eastwest kubernetes rbac{} | kubectl apply -f -`, or ask a cluster administrator to", rules.join("; "), if *makes_namespace { " --make-namespace" } else { "" })]
    Forbidden {
        /// Where.
        namespace: String,
        /// Whether it does not exist, and is to be made.
        makes_namespace: bool,
        /// Each as `verb resource (rule of the Role or ClusterRole)`.
        rules: Vec<String>,
    },
    /// The namespace is not there, and the user may not make it.
    #[error("namespace `{namespace}` does not exist, and the rights to make it are missing: {}; give --namespace with one that exists, or grant them with `eastwest kubernetes rbac --make-namespace --namespace {namespace} | kubectl apply -f -`", rules.join("; "))]
    NoNamespace {
        /// Its name.
        namespace: String,
        /// As of [`Self::Forbidden`].
        rules: Vec<String>,
    },
    /// The API server refused a request.
    #[error("cannot {what}: {words}{}", remedy(hint))]
    Refused {
        /// What was asked of it.
        what: String,
        /// Its own words.
        words: String,
        /// What to do about it, when we know.
        hint: Option<&'static str>,
    },
    /// No node to run on.
    #[error("no node {}: {found}", selector.as_deref().map_or_else(|| "is Ready".to_owned(), |s| format!("matches `{s}` and is Ready")))]
    NoNodes {
        /// The label selector.
        selector: Option<String>,
        /// What there is.
        found: String,
    },
    /// Nodes that nothing in the binary runs on.
    #[error("nodes without an agent for their architecture: {}; this eastwest has agents for {}: leave the nodes out with --nodes 'kubernetes.io/arch in ({})', or use a release with agents for them (scripts/release.sh ARCHITECTURE...)", nodes.join(", "), brought.join(" and "), brought.join(","))]
    Architecture {
        /// What there is a program for, as Kubernetes names it: `amd64`, `arm64`.
        brought: Vec<String>,
        /// Each as `name (architecture)`.
        nodes: Vec<String>,
    },
    /// A file of overrides that is none.
    #[error("cannot use the pod overrides in {}: {words}", path.display())]
    Overrides {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        words: String,
    },
    /// Standard streams broke.
    #[error("the exec stream to pod {pod} broke: {words}")]
    Stream {
        /// Which.
        pod: String,
        /// What was seen.
        words: String,
    },
    /// The system refused something.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Why data flows do not reach an agent's pod.
#[derive(Clone, Debug, Error)]
pub enum NotRunning {
    /// The cluster was not asked for it.
    #[error("it was not asked for")]
    NotAsked,
    /// It was made, and is waited for.
    #[error("the pod is waited for")]
    Pending,
    /// The cluster does not make it, or a Service of it.
    #[error(transparent)]
    Refused(Arc<KubernetesError>),
    /// It runs at an address that is none.
    #[error("`{address}` is no address")]
    Address {
        /// As its status has it.
        address: String,
    },
    /// It will not run, or no more.
    #[error("{words}")]
    Failed {
        /// What its status shows.
        words: String,
    },
    /// Somebody deleted it.
    #[error("the pod was deleted before it ran")]
    Deleted,
    /// It did not run in time.
    #[error(
        "the pod does not run after {} s: {words}{}; see `kubectl describe pod`, or give it more time with --launch-timeout",
        limit.as_secs(),
        warned(warning)
    )]
    Late {
        /// The time.
        limit: Duration,
        /// What its status shows.
        words: String,
        /// What the cluster last warned of.
        warning: Option<String>,
    },
    /// It runs, and its Service does not lead to it.
    #[error(
        "the pod is no endpoint of its headless Service {service} after {} s: see `kubectl get endpointslices`, and whether the control plane's endpoint slice controller runs",
        limit.as_secs()
    )]
    NoEndpoint {
        /// The Service's name.
        service: String,
        /// The time that the control plane had.
        limit: Duration,
    },
}

/// Why a part of what a run made is still in the cluster, or may be.
#[derive(Debug, Error)]
pub enum RemovalError {
    /// Objects of a run, which a deadline removes.
    #[error(
        "{why}; remove it with `kubectl -n {namespace} delete job,pod,service,endpointslice -l {selector}`, or wait until its deadline does"
    )]
    Objects {
        /// What happened.
        #[source]
        why: Box<Remainder>,
        /// Where they are.
        namespace: String,
        /// What finds them.
        selector: String,
    },
    /// The namespace that a run made.
    #[error("cannot delete namespace {namespace}: {}", chain(source))]
    Namespace {
        /// Its name.
        namespace: String,
        /// The API server's, or that of the way to it.
        source: kube::Error,
    },
    /// Perhaps a namespace that a run made.
    #[error("{}", chain(.0))]
    Unknown(#[source] kube::Error),
}

/// Why objects of a run are still there, or may be.
#[derive(Debug, Error)]
pub enum Remainder {
    /// Their owner could not be deleted.
    #[error("cannot delete the run's objects: {}", chain(.0))]
    NotDeleted(#[source] kube::Error),
    /// They could not be listed.
    #[error(transparent)]
    NotListed(#[from] KubernetesError),
    /// The cluster did not follow in time.
    #[error("still there: {}", objects.join(", "))]
    StillThere {
        /// Each as `kind name`.
        objects: Vec<String>,
    },
}

impl KubernetesError {
    /// Of an API call: the server's own words, with the remedies of the best-known refusals.
    pub(crate) fn of(what: impl Into<String>, error: &kube::Error) -> Self {
        let what = what.into();
        let words = match error {
            kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
            kube::Error::Api(status) => format!("{} ({})", status.reason, status.code),
            other => chain(other),
        };
        let hint = hint(&words);
        Self::Refused { what, words, hint }
    }
}

/// An error with its sources, as hyper hides the useful part.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let said = inner.to_string();
        if !words.contains(&said) {
            words = format!("{words}: {said}");
        }
        source = inner.source();
    }
    words
}

fn hint(words: &str) -> Option<&'static str> {
    const HINTS: [(&str, &str); 6] = [
        (
            "exceeded quota",
            "free some of the quota, choose fewer nodes with --nodes, lower --request and --limit, or use another --namespace",
        ),
        (
            "violates PodSecurity",
            "--host-network and `run pods` need a namespace with the label pod-security.kubernetes.io/enforce=privileged, or a --namespace that does not \
             exist yet; without --host-network all other scenarios run in the pod network alone, such as `eastwest run pair --via kubernetes`",
        ),
        (
            "is being terminated",
            "the namespace is on its way out: wait until it is gone, or give another --namespace",
        ),
        (
            "security context constraint",
            "on OpenShift, grant the service account a constraint that allows what was asked: hostnetwork-v2 for host network",
        ),
        (
            "no PriorityClass",
            "name a class that exists (kubectl get priorityclasses)",
        ),
        // Most refusals have these words: the last one looked for.
        (
            "is forbidden",
            "print the rights a run needs with `eastwest kubernetes rbac`",
        ),
    ];
    let found = HINTS.iter().find(|(phrase, _)| words.contains(phrase));
    found.map(|(_, hint)| *hint)
}

fn warned(warning: &Option<String>) -> String {
    let warning = warning.as_ref();
    warning.map(|text| format!("; {text}")).unwrap_or_default()
}

fn remedy(hint: &Option<&'static str>) -> String {
    hint.map(|hint| format!("; {hint}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As API servers of 1.34 answer.
    fn refused(message: &str) -> String {
        let status = serde_json::json!({"status": "Failure", "message": message, "reason": "Forbidden", "code": 403});
        let status = serde_json::from_value(status).unwrap();
        KubernetesError::of("create pod x", &kube::Error::Api(Box::new(status))).to_string()
    }

    #[test]
    fn a_quota_is_named_with_its_remedy() {
        let words = refused(
            "pods \"x\" is forbidden: exceeded quota: few, requested: pods=1, used: pods=2, limited: pods=2",
        );
        assert!(
            words.contains("limited: pods=2") && words.contains("--nodes"),
            "{words}"
        );
    }

    #[test]
    fn pod_security_has_a_remedy_that_can_be_followed() {
        let words = refused(
            "pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\": host namespaces (hostNetwork=true)",
        );
        assert!(words.contains("enforce=privileged"), "{words}");
        assert!(
            words.contains("`eastwest run pair --via kubernetes`"),
            "{words}"
        );
    }

    /// Their words begin as those of a missing right.
    #[test]
    fn what_an_admission_refuses_is_no_missing_right() {
        let words = refused(
            "pods \"x\" is forbidden: unable to validate against any security context constraint: [provider \"anyuid\": Forbidden: not usable by user or serviceaccount]",
        );
        assert!(words.contains("hostnetwork-v2"), "{words}");
        let words = refused("pods \"x\" is forbidden: no PriorityClass with name batch was found");
        assert!(words.contains("priorityclasses"), "{words}");
    }

    #[test]
    fn a_right_that_is_missing_is_named() {
        let words = refused(
            "pods is forbidden: User \"limited\" cannot create resource \"pods\" in API group \"\" in the namespace \"x\"",
        );
        assert!(words.contains("eastwest kubernetes rbac"), "{words}");
    }
}
