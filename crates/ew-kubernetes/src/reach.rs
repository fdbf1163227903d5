//! What keeps pods from reaching each other: policies that select them, proxies injected next to
//! them, and what the pattern of reachable pairs shows where neither is there.

use crate::access::Access;
use crate::deploy::{Deployment, Placed};
use crate::error::chain;
use crate::exec::output_of;
use crate::manifest::{BINARY, Bootstrap};
use crate::rights::{Need, rules_of};
use crate::routes::{RouteTable, Way};
use ew_model::barrier::{Barrier, BarrierKind};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube::Api;
use kube::api::ListParams;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Nodes whose routes are read: what is missing is missing on the first as well.
const MAX_TABLES: usize = 8;

/// What is left when neither policies nor proxies nor routes are to blame, by the kernel's answer
/// to a connection attempt.
const ANSWERS: [(&str, BarrierKind, &str); 3] = [
    (
        "os error 111",
        BarrierKind::FirewallRejects,
        "connections were rejected (TCP reset): a firewall of a node rejects the data ports; see `nft list ruleset` on the nodes",
    ),
    (
        "os error 113",
        BarrierKind::FirewallRejects,
        "pods were answered with \"host unreachable\" (ICMP): a firewall that rejects (firewalld, nft `reject`), or a CNI route to a host that does \
         not answer; see `nft list ruleset` and `ip route` on the nodes",
    ),
    (
        "os error 101",
        BarrierKind::NoRoute,
        "the network is unreachable: the CNI gave the pods or their nodes no route to the others; see `ip route` in a pod and on the nodes",
    ),
];
const NODES_NOT_READ: &str = "no answer: a CNI route is missing, or a firewall drops. `eastwest run pods` has agents in the nodes' network, which \
     show their routes; by hand compare `ip route` and `nft list ruleset` on both nodes";

/// A connection that did not come up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attempt {
    /// The client's agent.
    pub client: String,
    /// The server's.
    pub server: String,
    /// Whether it went through a Service.
    pub through_service: bool,
    /// Why there is no figure.
    pub reason: String,
}

/// Finds what keeps a run's pods apart; the last one named is what is left when nothing else is
/// found. With `is_explained` that one is skipped.
pub async fn why_unreachable(
    access: &Access,
    deployment: &Deployment,
    attempts: &[Attempt],
    is_explained: bool,
) -> Vec<Barrier> {
    let mut barriers = by_objects(access, deployment).await;
    let tables = route_tables(access, deployment, attempts).await;
    let blocked = attempts.iter().filter(|attempt| !attempt.through_service);
    let blocked: Vec<Ways<'_>> = blocked
        .filter_map(|attempt| Ways::of(deployment.placed(), &tables, attempt))
        .collect();
    barriers.extend(blocked.iter().find_map(Ways::missing));
    let is_named = |barrier: &Barrier| barrier.kind != BarrierKind::NotPermitted;
    if !is_explained && !barriers.iter().any(is_named) {
        barriers.push(rest(attempts, &blocked));
    }
    barriers
}

/// Proxies in the pods, and policies that select them.
async fn by_objects(access: &Access, deployment: &Deployment) -> Vec<Barrier> {
    let mut barriers = Vec::new();
    match deployment.list::<Pod>("list pods").await {
        Ok(pods) => barriers.extend(pods.iter().find_map(sidecar)),
        Err(error) => barriers.push(not_permitted(&error.to_string())),
    }
    let labels = deployment.pod_labels();
    let policies: Api<NetworkPolicy> = Api::namespaced(access.client.clone(), &access.namespace);
    match policies.list(&ListParams::default()).await {
        Ok(list) => barriers.extend(
            list.items
                .iter()
                .filter_map(|policy| selecting(policy, &labels)),
        ),
        Err(error) => {
            let rules = rules_of(Need::Diagnosis, &access.namespace).join("; ");
            let words = format!("cannot list NetworkPolicies ({}): {rules}", chain(&error));
            barriers.push(not_permitted(&words));
        }
    }
    barriers
}

/// What is left, by the answers that attempts got and by the nodes' routes.
fn rest(attempts: &[Attempt], ways: &[Ways<'_>]) -> Barrier {
    if !attempts.is_empty() && attempts.iter().all(|attempt| attempt.through_service) {
        let words = "only connections through Services are missing: see kube-proxy, or what is in its place, on the nodes \
                     (`nft list ruleset` or `iptables-save -t nat` for the Service's address, `kubectl get endpointslices`)";
        return barrier(BarrierKind::NotDetermined, words.to_owned());
    }
    let heard = |code: &str| attempts.iter().any(|attempt| attempt.reason.contains(code));
    if let Some((_, kind, words)) = ANSWERS.iter().find(|(code, ..)| heard(code)) {
        return barrier(*kind, (*words).to_owned());
    }
    let known = ways.iter().find_map(Ways::dropped);
    let open = || ways.iter().find_map(Ways::by_default);
    let unread = || barrier(BarrierKind::NotDetermined, NODES_NOT_READ.to_owned());
    known.or_else(open).unwrap_or_else(unread)
}

fn barrier(kind: BarrierKind, words: String) -> Barrier {
    Barrier {
        kind,
        host: None,
        words,
    }
}

fn not_permitted(words: &str) -> Barrier {
    barrier(BarrierKind::NotPermitted, words.to_owned())
}

type Tables = BTreeMap<String, RouteTable>;

/// Of the nodes of these attempts that have an agent in their own network.
async fn route_tables(access: &Access, deployment: &Deployment, attempts: &[Attempt]) -> Tables {
    let command: &[&str] = match deployment.bootstrap() {
        Bootstrap::Image => &[BINARY, "kubernetes", "routes"],
        Bootstrap::Copy => &["cat", "/proc/net/route"],
    };
    let placed = deployment.placed();
    let ends = attempts
        .iter()
        .flat_map(|attempt| [&attempt.client, &attempt.server]);
    let nodes: BTreeSet<&str> = ends
        .filter_map(|agent| Some(find(placed, agent)?.plan.node.as_str()))
        .collect();
    let mut tables = Tables::new();
    for node in nodes {
        let is_on_node = |placed: &&Placed| {
            placed.plan.host_network && placed.plan.node == node && placed.address.is_ok()
        };
        let Some(agent) = placed.iter().find(is_on_node) else {
            continue;
        };
        if tables.len() == MAX_TABLES {
            break;
        }
        // A node without an answer shows nothing about its routes.
        let text = output_of(access, &agent.pod, command)
            .await
            .unwrap_or_default();
        tables.extend(RouteTable::parse(&text).map(|table| (node.to_owned(), table)));
    }
    tables
}

fn find<'a>(placed: &'a [Placed], agent: &str) -> Option<&'a Placed> {
    placed.iter().find(|placed| placed.plan.agent == agent)
}

/// An attempt's way there, and back, by the routes of both nodes.
#[derive(Clone, Debug)]
struct Ways<'a> {
    there: (&'a str, &'a str, Way),
    back: (&'a str, &'a str, Way),
}

impl<'a> Ways<'a> {
    /// `None` where one of the nodes' routes is not known.
    fn of(placed: &'a [Placed], tables: &Tables, attempt: &Attempt) -> Option<Self> {
        let client = find(placed, &attempt.client)?;
        let server = find(placed, &attempt.server)?;
        let way = |from: &'a Placed, to: &'a Placed| {
            let Ok(IpAddr::V4(address)) = to.address else {
                return None;
            };
            let way = tables.get(&from.plan.node)?.way_to(address);
            Some((from.plan.node.as_str(), to.plan.node.as_str(), way))
        };
        Some(Self {
            there: way(client, server)?,
            back: way(server, client)?,
        })
    }

    /// A node that has no way to the other's pods.
    fn missing(&self) -> Option<Barrier> {
        let words = [&self.there, &self.back].into_iter().find_map(|(from, to, way)| match way {
            Way::Missing => Some(format!("node {from} has no route to the pods of {to}")),
            Way::Blocked { network } => Some(format!(
                "node {from} has a route to the pods of {to} that drops (blackhole or unreachable {network})"
            )),
            Way::Default { .. } | Way::Known { .. } => None,
        })?;
        let words = format!(
            "{words}: check the CNI on {}, and `ip route` there",
            self.blocked_node()
        );
        Some(barrier(BarrierKind::NoRoute, words))
    }

    fn blocked_node(&self) -> &str {
        match self.there.2 {
            Way::Missing | Way::Blocked { .. } => self.there.0,
            Way::Default { .. } | Way::Known { .. } => self.back.0,
        }
    }

    /// Both nodes have a route, and nobody answered.
    fn dropped(&self) -> Option<Barrier> {
        let (Way::Known { network, device }, Way::Known { .. }) = (&self.there.2, &self.back.2)
        else {
            return None;
        };
        let (from, to) = (self.there.0, self.there.1);
        Some(barrier(
            BarrierKind::FirewallDrops,
            format!(
                "nodes {from} and {to} have routes to each other's pods ({from}: {network} by {device}), and no answer came: a firewall drops, on a \
                 node (see `nft list ruleset` there) or between them (security groups, ACLs)"
            ),
        ))
    }

    /// A node that leaves it to its gateway.
    fn by_default(&self) -> Option<Barrier> {
        let ways = [&self.there, &self.back].into_iter();
        let mut open = ways.filter_map(|(from, to, way)| match way {
            Way::Default { gateway } => Some((from, to, gateway)),
            _ => None,
        });
        let (from, to, gateway) = open.next()?;
        Some(barrier(
            BarrierKind::NotDetermined,
            format!(
                "no answer. Node {from} has no route of its own to the pods of {to}, only the default by {gateway}: that gateway has no route to \
                 them (the CNI's or the cloud's route table), or a firewall drops"
            ),
        ))
    }
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
    Some(proxy(mesh, pod, &format!("annotation {key}")))
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
    let mesh = known.map_or(name.as_str(), |(_, mesh)| *mesh);
    Some(proxy(mesh, pod, &format!("container {name}")))
}

/// `sign` shows it: a container or an annotation.
fn proxy(mesh: &str, pod: &Pod, sign: &str) -> Barrier {
    let pod = pod.metadata.name.as_deref().unwrap_or_default();
    barrier(
        BarrierKind::ServiceMesh,
        format!(
            "a {mesh} proxy takes the connections of pod {pod} ({sign}): give --annotation sidecar.istio.io/inject=false (linkerd: \
             linkerd.io/inject=disabled) to measure without it, or run in a --namespace that the mesh leaves alone"
        ),
    )
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
    Some(barrier(
        BarrierKind::NetworkPolicy,
        format!(
            "NetworkPolicy `{}` selects the agents' pods ({}): allow the pods with the label app.kubernetes.io/name=eastwest, or run in another \
             --namespace",
            policy.metadata.name.as_deref().unwrap_or_default(),
            directions.join(" and ")
        ),
    ))
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
        let found = selecting(&serde_json::from_value(policy).unwrap(), &labels)?;
        assert_eq!(found.kind, BarrierKind::NetworkPolicy);
        let directions = found.words.split_once('(').unwrap().1;
        Some(directions.split_once(')').unwrap().0.to_owned())
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
        let found = sidecar(&serde_json::from_value(pod).unwrap()).unwrap();
        assert_eq!(found.kind, BarrierKind::ServiceMesh);
        assert!(found.words.contains("a istio proxy"), "{found:?}");
        let annotated = |key: &str, value: &str| {
            let metadata = json!({"name": "a", "annotations": {key: value}});
            let pod =
                json!({"metadata": metadata, "spec": {"containers": [container("eastwest")]}});
            sidecar(&serde_json::from_value(pod).unwrap())
        };
        let found = annotated("linkerd.io/proxy-version", "stable-2.14").unwrap();
        assert!(
            found
                .words
                .contains("linkerd proxy takes the connections of pod a (annotation")
        );
        assert_eq!(annotated("ambient.istio.io/redirection", "disabled"), None);
        assert_eq!(annotated("linkerd.io/inject", "enabled"), None);
    }

    fn ways(there: Way, back: Way) -> Ways<'static> {
        Ways {
            there: ("n1", "n2", there),
            back: ("n2", "n1", back),
        }
    }

    fn attempt(reason: &str, through_service: bool) -> Attempt {
        Attempt {
            client: "n1/pod".to_owned(),
            server: "n2/pod".to_owned(),
            through_service,
            reason: reason.to_owned(),
        }
    }

    /// A missing route, a firewall that drops and one that rejects are not one sentence.
    #[test]
    fn routes_and_answers_tell_barriers_apart() {
        let known = |network: &str| Way::Known {
            network: network.to_owned(),
            device: "eth0".to_owned(),
        };
        let gateway = Way::Default {
            gateway: "198.18.0.1".parse().unwrap(),
        };
        let blocked = Way::Blocked {
            network: "198.19.1.0/24".to_owned(),
        };
        let both = ways(known("198.19.2.0/24"), known("198.19.1.0/24"));
        assert_eq!(both.missing(), None);
        let no_answer = [attempt("connect 198.19.2.5:5401: timed out", false)];
        let found = rest(&no_answer, std::slice::from_ref(&both));
        assert_eq!(found.kind, BarrierKind::FirewallDrops);
        assert!(
            found.words.contains("n1: 198.19.2.0/24 by eth0"),
            "{found:?}"
        );

        let found = ways(Way::Missing, known("198.19.1.0/24"))
            .missing()
            .unwrap();
        assert_eq!(found.kind, BarrierKind::NoRoute);
        assert!(
            found
                .words
                .contains("node n1 has no route to the pods of n2"),
            "{found:?}"
        );
        let found = ways(known("198.19.2.0/24"), blocked).missing().unwrap();
        assert!(
            found
                .words
                .contains("node n2 has a route to the pods of n1 that drops"),
            "{found:?}"
        );
        assert!(found.words.contains("check the CNI on n2"), "{found:?}");

        let found = rest(&no_answer, &[ways(gateway, known("198.19.1.0/24"))]);
        assert_eq!(found.kind, BarrierKind::NotDetermined);
        assert!(
            found.words.contains("only the default by 198.18.0.1"),
            "{found:?}"
        );
        assert_eq!(rest(&no_answer, &[]).words, NODES_NOT_READ);

        let rejected = [attempt("Connection refused (os error 111)", false)];
        assert_eq!(rest(&rejected, &[both]).kind, BarrierKind::FirewallRejects);
        let found = rest(&[attempt("timed out", true)], &[]);
        assert!(found.words.contains("kube-proxy"), "{found:?}");
    }
}
