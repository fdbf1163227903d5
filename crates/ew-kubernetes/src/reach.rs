//! What keeps pods from reaching each other: policies that select them, proxies injected next to
//! them, and what the pattern of reachable pairs says where neither is there.

use crate::access::Access;
use crate::deploy::Deployment;
use crate::error::chain;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube::Api;
use kube::api::ListParams;
use std::collections::BTreeMap;
use std::fmt;

/// One thing that keeps pods apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// A policy selects the agents' pods.
    NetworkPolicy {
        /// Its name.
        name: String,
        /// `ingress`, `egress` or both.
        directions: String,
    },
    /// A proxy takes the pod's connections.
    Sidecar {
        /// `istio`, `linkerd`, or the container's name.
        mesh: String,
        /// The first pod with it.
        pod: String,
        /// What shows it: a container or an annotation.
        sign: String,
    },
    /// The question could not be asked.
    NotPermitted {
        /// Which, in words.
        what: String,
    },
}

impl fmt::Display for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NetworkPolicy { name, directions } => write!(
                f,
                "NetworkPolicy `{name}` selects the agents' pods ({directions}): allow the pods with the label app.kubernetes.io/name=eastwest, or \
                 run in another --namespace"
            ),
            Self::Sidecar { mesh, pod, sign } => write!(
                f,
                "a {mesh} proxy takes the connections of pod {pod} ({sign}): give --annotation sidecar.istio.io/inject=false (linkerd: \
                 linkerd.io/inject=disabled) to measure without it, or run in a --namespace that the mesh leaves alone"
            ),
            Self::NotPermitted { what } => write!(f, "not permitted to list {what}"),
        }
    }
}

/// Looks for what is known to keep a run's pods apart. Empty: none of it is there, and what is left
/// is the CNI's routes or a firewall.
pub async fn why_unreachable(access: &Access, deployment: &Deployment) -> Vec<Barrier> {
    let mut barriers = Vec::new();
    match deployment.list::<Pod>("list pods").await {
        Ok(pods) => barriers.extend(pods.iter().find_map(sidecar)),
        Err(error) => barriers.push(Barrier::NotPermitted {
            what: error.to_string(),
        }),
    }
    let labels = deployment.pod_labels();
    let policies: Api<NetworkPolicy> = Api::namespaced(access.client.clone(), &access.namespace);
    match policies.list(&ListParams::default()).await {
        Ok(list) => barriers.extend(
            list.items
                .iter()
                .filter_map(|policy| selecting(policy, &labels)),
        ),
        Err(error) => barriers.push(Barrier::NotPermitted {
            what: format!("networkpolicies ({})", chain(&error)),
        }),
    }
    barriers
}

/// Written by what injects or redirects, whatever the container is called, or where it is the
/// node's.
const INJECTED: [(&str, &str); 4] = [
    ("sidecar.istio.io/status", "istio"),
    ("ambient.istio.io/redirection", "istio"),
    ("linkerd.io/proxy-version", "linkerd"),
    ("kuma.io/sidecar-injected", "kuma"),
];

fn sidecar(pod: &Pod) -> Option<Barrier> {
    by_container(pod).or_else(|| by_annotation(pod))
}

fn by_annotation(pod: &Pod) -> Option<Barrier> {
    let annotations = pod.metadata.annotations.as_ref()?;
    let mut known = INJECTED.iter();
    let (key, mesh) = known.find(|(key, _)| {
        let value = annotations.get(*key);
        value.is_some_and(|value| !matches!(value.as_str(), "disabled" | "false"))
    })?;
    Some(Barrier::Sidecar {
        mesh: (*mesh).to_owned(),
        pod: pod.metadata.name.clone().unwrap_or_default(),
        sign: format!("annotation {key}"),
    })
}

fn by_container(pod: &Pod) -> Option<Barrier> {
    const KNOWN: [(&str, &str); 3] = [
        ("istio-proxy", "istio"),
        ("linkerd-proxy", "linkerd"),
        ("kuma-sidecar", "kuma"),
    ];
    let spec = pod.spec.as_ref()?;
    let all = spec
        .containers
        .iter()
        .chain(spec.init_containers.iter().flatten());
    let mut others = all.filter(|c| c.name != crate::manifest::CONTAINER);
    let name = &others.next()?.name;
    let known = KNOWN.iter().find(|(container, _)| container == name);
    Some(Barrier::Sidecar {
        mesh: known.map_or_else(|| name.clone(), |(_, mesh)| (*mesh).to_owned()),
        pod: pod.metadata.name.clone().unwrap_or_default(),
        sign: format!("container {name}"),
    })
}

/// The policy, if it selects pods with these labels.
fn selecting(policy: &NetworkPolicy, labels: &BTreeMap<String, String>) -> Option<Barrier> {
    let spec = policy.spec.as_ref()?;
    if !spec
        .pod_selector
        .as_ref()
        .is_none_or(|selector| selects(selector, labels))
    {
        return None;
    }
    let types = spec
        .policy_types
        .clone()
        .unwrap_or_else(|| vec!["Ingress".to_owned()]);
    let directions: Vec<String> = types.iter().map(|word| word.to_lowercase()).collect();
    Some(Barrier::NetworkPolicy {
        name: policy.metadata.name.clone().unwrap_or_default(),
        directions: directions.join(" and "),
    })
}

fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let equal = selector.match_labels.iter().flatten();
    let mut equal = equal.map(|(key, value)| labels.get(key) == Some(value));
    let fits = |requirement: &LabelSelectorRequirement| {
        let value = labels.get(&requirement.key);
        let among = || value.is_some_and(|v| requirement.values.iter().flatten().any(|w| w == v));
        match requirement.operator.as_str() {
            "In" => among(),
            "NotIn" => !among(),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    };
    equal.all(|fits| fits) && selector.match_expressions.iter().flatten().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn directions(spec: &Value) -> Option<String> {
        let labels = [("app.kubernetes.io/name", "eastwest")];
        let labels = labels
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        let policy = json!({"metadata": {"name": "p"}, "spec": spec});
        match selecting(&serde_json::from_value(policy).unwrap(), &labels)? {
            Barrier::NetworkPolicy { directions, .. } => Some(directions),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_policy_of_all_pods_selects_ours_and_one_of_others_does_not() {
        assert_eq!(
            directions(&json!({"podSelector": {}})).as_deref(),
            Some("ingress")
        );
        let both = json!({"podSelector": {"matchLabels": {"app.kubernetes.io/name": "eastwest"}}, "policyTypes": ["Ingress", "Egress"]});
        assert_eq!(directions(&both).as_deref(), Some("ingress and egress"));
        assert_eq!(
            directions(&json!({"podSelector": {"matchLabels": {"app": "web"}}})),
            None
        );
        let not_in = json!({"podSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}});
        assert!(directions(&not_in).is_some());
    }

    #[test]
    fn an_injected_proxy_is_named() {
        let container = |name: &str| json!({"name": name, "image": "x"});
        let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [container("eastwest"), container("istio-proxy")]}});
        let barrier = sidecar(&serde_json::from_value(pod).unwrap());
        assert!(matches!(barrier, Some(Barrier::Sidecar { mesh, .. }) if mesh == "istio"));
        let annotated = |key: &str, value: &str| {
            let metadata = json!({"name": "a", "annotations": {key: value}});
            let pod =
                json!({"metadata": metadata, "spec": {"containers": [container("eastwest")]}});
            sidecar(&serde_json::from_value(pod).unwrap())
        };
        let barrier = annotated("linkerd.io/proxy-version", "stable-2.14").unwrap();
        assert!(
            barrier
                .to_string()
                .contains("linkerd proxy takes the connections of pod a (annotation")
        );
        assert_eq!(annotated("ambient.istio.io/redirection", "disabled"), None);
        assert_eq!(annotated("linkerd.io/inject", "enabled"), None);
    }
}
