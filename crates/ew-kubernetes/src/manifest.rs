//! What is made in the cluster, as documents. Pure: what a run makes is what `--print-manifests`
//! shows.

use crate::error::KubernetesError;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// On every object of a run: its value is the run's word.
pub(crate) const RUN_LABEL: &str = "eastwest-run";
/// On every pod: its value names the agent, for Services to select it.
pub(crate) const AGENT_LABEL: &str = "eastwest-agent";
/// The one container.
pub(crate) const CONTAINER: &str = "eastwest";
/// Where the binary lies in an image that `eastwest image` wrote.
pub(crate) const BINARY: &str = "/eastwest";
/// How long a pod may take to end after it was asked to.
const GRACE_SECONDS: u64 = 1;
/// How much later than its pods the owner object ends: what the kubelets end in time is reported as
/// such.
const OWNER_AFTER_PODS_SECONDS: u64 = 5;
/// Who agents are in an image without a user: nobody in particular.
const SOME_USER: u32 = 65_532;

/// How the binary gets into a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bootstrap {
    /// The image has it: one that `eastwest image` wrote.
    Image,
    /// Any image with `sh` and `head`; the binary is copied in over exec.
    Copy,
}

/// Effects of a taint.
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Why a text is no toleration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TolerationError {
    /// It ends with an effect that does not exist.
    #[error("`{effect}` is no effect; use one of {}", EFFECTS.join(", "))]
    Effect {
        /// As given.
        effect: String,
    },
    /// It begins with no key.
    #[error("`{text}` has no key; write key=value:NoSchedule, or `all`")]
    NoKey {
        /// As given.
        text: String,
    },
}

/// `key[=value][:effect]`, or `all`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toleration(Value);

impl Toleration {
    /// Reads the form that kubectl taint writes.
    ///
    /// # Errors
    /// [`TolerationError`], for an effect that does not exist or an empty key.
    pub fn parse(text: &str) -> Result<Self, TolerationError> {
        if text == "all" {
            return Ok(Self(json!({"operator": "Exists"})));
        }
        let (rest, effect) = match text.rsplit_once(':') {
            Some((rest, effect)) => (rest, Some(effect)),
            None => (text, None),
        };
        if let Some(effect) = effect.filter(|effect| !EFFECTS.contains(effect)) {
            let effect = effect.to_owned();
            return Err(TolerationError::Effect { effect });
        }
        let mut toleration = match rest.split_once('=') {
            Some((key, value)) => json!({"key": key, "operator": "Equal", "value": value}),
            None => json!({"key": rest, "operator": "Exists"}),
        };
        if rest.is_empty() || rest.starts_with('=') {
            let text = text.to_owned();
            return Err(TolerationError::NoKey { text });
        }
        if let Some(effect) = effect {
            toleration["effect"] = json!(effect);
        }
        Ok(Self(toleration))
    }
}

/// What the user may say about pods.
#[derive(Clone, Debug, PartialEq)]
pub struct PodOptions {
    /// The image of every pod.
    pub image: String,
    /// How the binary gets in.
    pub bootstrap: Bootstrap,
    /// `Always`, `IfNotPresent`, `Never`; Kubernetes' own choice when not given.
    pub pull_policy: Option<String>,
    /// Names of secrets for the registry.
    pub pull_secrets: Vec<String>,
    /// Instead of the namespace's `default`.
    pub service_account: Option<String>,
    /// Name of a class.
    pub priority_class: Option<String>,
    /// Taints that do not keep pods away.
    pub tolerations: Vec<Toleration>,
    /// Of every pod, for example Multus' `k8s.v1.cni.cncf.io/networks`.
    pub annotations: Vec<(String, String)>,
    /// User of the container, where neither the image nor the cluster sets one.
    pub run_as_user: Option<u32>,
    /// Merged into every pod's spec (JSON merge patch): affinity, runtime class, DNS.
    pub overrides: Option<Value>,
}

impl PodOptions {
    /// With the defaults of the command line.
    #[must_use]
    pub fn new(image: &str, bootstrap: Bootstrap) -> Self {
        Self {
            image: image.to_owned(),
            bootstrap,
            pull_policy: None,
            pull_secrets: Vec::new(),
            service_account: None,
            priority_class: None,
            tolerations: Vec::new(),
            annotations: Vec::new(),
            run_as_user: None,
            overrides: None,
        }
    }

    /// Reads the overrides: an object, as the pod's `spec` has it.
    ///
    /// # Errors
    /// [`KubernetesError::Overrides`], when the file cannot be read or is no object.
    pub fn read_overrides(path: &Path) -> Result<Value, KubernetesError> {
        let refuse = |words: String| KubernetesError::Overrides {
            path: PathBuf::from(path),
            words,
        };
        let text = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
        let value: Value = serde_saphyr::from_str(&text)
            .map_err(|error| refuse(error.without_snippet().to_string()))?;
        if value.is_object() {
            Ok(value)
        } else {
            Err(refuse(
                "it is no mapping of keys as a pod's spec has them".to_owned(),
            ))
        }
    }
}

/// One agent's pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodPlan {
    /// The agent's name in the inventory.
    pub agent: String,
    /// The node it is placed on.
    pub node: String,
    /// Whether it shares the node's network.
    pub host_network: bool,
    /// Whether Services lead to it.
    pub served: bool,
    /// For example (`cpu`, `500m`). None by default: a request may not fit, and a CPU limit would
    /// be what is measured.
    pub requests: Vec<(String, String)>,
    /// For example (`memory`, `256Mi`).
    pub limits: Vec<(String, String)>,
}

/// A kind of Service in front of agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServicePlan {
    /// `ClusterIP`, `NodePort` or `headless`.
    pub kind: &'static str,
    /// TCP ports after the listener's that it leads to: for connections made anew.
    pub tcp_ports: u16,
    /// UDP ports after the listener's.
    pub udp_ports: u16,
}

/// What all objects of a run share.
#[derive(Clone, Debug, PartialEq)]
pub struct RunObjects {
    /// The run's word, unique: part of every name, and every object's label.
    pub run: String,
    /// Where.
    pub namespace: String,
    /// After this the cluster ends everything by itself.
    pub deadline_seconds: u64,
    /// The port agents listen on, which Services lead to.
    pub data_port: u16,
    /// About pods.
    pub options: PodOptions,
}

impl RunObjects {
    /// The name of the owner object.
    #[must_use]
    pub fn owner_name(&self) -> String {
        format!("eastwest-{}", self.run)
    }

    /// The name of an agent's pod: a DNS label.
    #[must_use]
    pub fn pod_name(&self, agent: &str) -> String {
        dns_label(&format!("eastwest-{}-{agent}", self.run))
    }

    /// The selector that finds every object of the run.
    #[must_use]
    pub fn selector(&self) -> String {
        format!("{RUN_LABEL}={}", self.run)
    }

    /// The Job that owns everything. It has no pods of its own (`parallelism: 0`): its deadline
    /// ends it, its time to live then removes it, and the garbage collector what it owns.
    #[must_use]
    pub fn owner(&self) -> Value {
        let deadline = self.deadline_seconds + OWNER_AFTER_PODS_SECONDS;
        json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": self.metadata(&self.owner_name(), None, None),
            "spec": {
                "parallelism": 0,
                "backoffLimit": 0,
                "activeDeadlineSeconds": deadline,
                "ttlSecondsAfterFinished": 0,
                "template": {
                    "metadata": {"labels": self.labels(None)},
                    "spec": {
                        "restartPolicy": "Never",
                        "automountServiceAccountToken": false,
                        "securityContext": pod_security(),
                        "containers": [{
                            "name": CONTAINER,
                            "image": self.options.image,
                            "command": ["true"],
                            "securityContext": container_security(self.user(), false),
                        }],
                    },
                },
            },
        })
    }

    /// An agent's pod. `owner_uid` is the owner object's, known once that exists.
    #[must_use]
    pub fn pod(&self, plan: &PodPlan, owner_uid: Option<&str>) -> Value {
        let options = &self.options;
        let mut metadata = self.metadata(&self.pod_name(&plan.agent), Some(plan), owner_uid);
        if !options.annotations.is_empty() {
            metadata["annotations"] = pairs(&options.annotations);
        }
        let mut spec = json!({
            "restartPolicy": "Never",
            "activeDeadlineSeconds": self.deadline_seconds,
            "terminationGracePeriodSeconds": GRACE_SECONDS,
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "affinity": on_node(&plan.node),
            "securityContext": pod_security(),
            "containers": [self.container(plan)],
            "volumes": [{"name": "tmp", "emptyDir": {}}],
        });
        if plan.host_network {
            spec["hostNetwork"] = json!(true);
            spec["dnsPolicy"] = json!("ClusterFirstWithHostNet");
        }
        self.add_choices(&mut spec);
        if let Some(overrides) = &options.overrides {
            merge(&mut spec, overrides);
            keep_on_node(&mut spec, &plan.node);
        }
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    }

    /// A Service of an agent's pod: `ClusterIP`, `NodePort`, or headless (`None` as its address).
    #[must_use]
    pub fn service(&self, plan: &PodPlan, service: ServicePlan, owner_uid: Option<&str>) -> Value {
        let name = self.service_name(plan, service.kind);
        let port = |protocol: &str, number: u16| {
            let name = format!("{}-{number}", protocol.to_lowercase());
            json!({"name": name, "protocol": protocol, "port": number, "targetPort": number})
        };
        let more = |protocol, count| {
            let first = self.data_port.saturating_add(1);
            let numbers = (first..=u16::MAX).take(usize::from(count));
            numbers.map(move |number| port(protocol, number))
        };
        let ports = std::iter::once(port("TCP", self.data_port))
            .chain(more("TCP", service.tcp_ports))
            .chain(more("UDP", service.udp_ports));
        let mut spec = json!({
            "selector": {RUN_LABEL: self.run, AGENT_LABEL: dns_label(&plan.agent)},
            "ports": ports.collect::<Vec<_>>(),
        });
        match service.kind {
            "headless" => spec["clusterIP"] = json!("None"),
            kind => spec["type"] = json!(kind),
        }
        let metadata = self.metadata(&name, None, owner_uid);
        json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
    }

    /// The name of an agent's Service: a DNS label.
    pub(crate) fn service_name(&self, plan: &PodPlan, kind: &str) -> String {
        let (kind, run) = (kind.to_lowercase(), &self.run);
        dns_label(&format!("ew-{kind}-{run}-{}", plan.agent))
    }

    /// Everything, in the order it is made.
    #[must_use]
    pub fn all(&self, plans: &[PodPlan], services: &[ServicePlan]) -> Vec<Value> {
        let served = plans.iter().filter(|plan| plan.served);
        let services = served.flat_map(|plan| services.iter().map(move |service| (plan, *service)));
        let services = services.map(|(plan, service)| self.service(plan, service, None));
        let pods = plans.iter().map(|plan| self.pod(plan, None));
        std::iter::once(self.owner())
            .chain(services)
            .chain(pods)
            .collect()
    }

    fn metadata(&self, name: &str, plan: Option<&PodPlan>, owner_uid: Option<&str>) -> Value {
        let mut metadata = json!({
            "name": name,
            "namespace": self.namespace,
            "labels": self.labels(plan),
        });
        if let Some(uid) = owner_uid {
            metadata["ownerReferences"] = json!([{
                "apiVersion": "batch/v1", "kind": "Job", "name": self.owner_name(), "uid": uid,
            }]);
        }
        metadata
    }

    fn labels(&self, plan: Option<&PodPlan>) -> Value {
        let mut labels = json!({
            "app.kubernetes.io/name": "eastwest",
            "app.kubernetes.io/managed-by": "eastwest",
            RUN_LABEL: self.run,
        });
        if let Some(plan) = plan {
            labels[AGENT_LABEL] = json!(dns_label(&plan.agent));
        }
        labels
    }

    /// Labels of every object of the run.
    pub(crate) fn common_labels(&self) -> BTreeMap<String, String> {
        serde_json::from_value(self.labels(None)).unwrap_or_default()
    }

    fn container(&self, plan: &PodPlan) -> Value {
        let options = &self.options;
        let seconds = self.deadline_seconds.to_string();
        let command = match options.bootstrap {
            Bootstrap::Image => json!([BINARY, "kubernetes", "hold", "--seconds", seconds]),
            // As process 1 a shell without the trap would not end when asked to.
            Bootstrap::Copy => json!([
                "sh",
                "-c",
                format!("trap 'exit 0' TERM; sleep {seconds} & wait")
            ]),
        };
        let mut container = json!({
            "name": CONTAINER,
            "image": options.image,
            "command": command,
            "securityContext": container_security(self.user(), true),
            "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
        });
        if let Some(policy) = &options.pull_policy {
            container["imagePullPolicy"] = json!(policy);
        }
        let mut resources = json!({});
        for (key, values) in [("requests", &plan.requests), ("limits", &plan.limits)] {
            if !values.is_empty() {
                resources[key] = pairs(values);
            }
        }
        if resources != json!({}) {
            container["resources"] = resources;
        }
        container
    }

    fn user(&self) -> Option<u32> {
        let default = (self.options.bootstrap == Bootstrap::Copy).then_some(SOME_USER);
        self.options.run_as_user.or(default)
    }

    fn add_choices(&self, spec: &mut Value) {
        let options = &self.options;
        if let Some(account) = &options.service_account {
            spec["serviceAccountName"] = json!(account);
        }
        if let Some(class) = &options.priority_class {
            spec["priorityClassName"] = json!(class);
        }
        if !options.pull_secrets.is_empty() {
            let secrets = options
                .pull_secrets
                .iter()
                .map(|name| json!({"name": name}));
            spec["imagePullSecrets"] = secrets.collect();
        }
        if !options.tolerations.is_empty() {
            spec["tolerations"] = options.tolerations.iter().map(|t| t.0.clone()).collect();
        }
    }
}

/// Documents as `kubectl apply -f -` reads them.
#[must_use]
pub fn to_yaml(documents: &[Value]) -> String {
    let written = documents.iter().map(|document| {
        // JSON is YAML, should the writer fail on what cannot be a document of ours.
        serde_saphyr::to_string(document).unwrap_or_else(|_| document.to_string())
    });
    written
        .map(|text| format!("---\n{}\n", text.trim_end()))
        .collect()
}

/// The restricted profile of the pod security standards.
fn pod_security() -> Value {
    json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}})
}

fn container_security(user: Option<u32>, read_only: bool) -> Value {
    let mut context = json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": read_only,
    });
    if let Some(user) = user {
        context["runAsUser"] = json!(user);
    }
    context
}

/// By the scheduler and not past it, so that taints, quotas and resources are respected and a
/// refusal reports why.
fn on_node(node: &str) -> Value {
    json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchFields": its_name(node)},
    ]}}})
}

fn its_name(node: &str) -> Value {
    json!([{"key": "metadata.name", "operator": "In", "values": [node]}])
}

/// An affinity of the user's own narrows the choice, and never moves an agent to another node than
/// its name specifies. Terms are alternatives.
fn keep_on_node(spec: &mut Value, node: &str) {
    const TERMS: &str =
        "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    match spec.pointer_mut(TERMS).and_then(Value::as_array_mut) {
        Some(terms) if terms.iter().all(Value::is_object) && !terms.is_empty() => {
            for term in terms {
                term["matchFields"] = its_name(node);
            }
        }
        _ => merge(spec, &json!({"affinity": on_node(node)})),
    }
}

fn pairs(pairs: &[(String, String)]) -> Value {
    pairs.iter().map(|(k, v)| (k.clone(), json!(v))).collect()
}

/// JSON merge patch (RFC 7386).
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, change) in changes {
        if change.is_null() {
            target.as_object_mut().map(|object| object.remove(key));
        } else {
            merge(&mut target[key.as_str()], change);
        }
    }
}

/// At most 63 of `a-z0-9-`, beginning with a letter, as RFC 1035 labels; two long names that begin
/// alike stay apart by a hash of the rest.
pub(crate) fn dns_label(text: &str) -> String {
    const LONGEST: usize = 63;
    let lower = text.to_lowercase();
    let mut label: String = lower
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    if label.len() > LONGEST {
        let digest = crate::image::hex_digest(text.as_bytes());
        label.truncate(LONGEST - 9);
        label = format!("{label}-{}", &digest[..8]);
    }
    label.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(options: PodOptions) -> RunObjects {
        RunObjects {
            run: "ab12".into(),
            namespace: "net".into(),
            deadline_seconds: 600,
            data_port: 5401,
            options,
        }
    }

    fn plan(host_network: bool) -> PodPlan {
        PodPlan {
            agent: "n1/pod".into(),
            node: "n1".into(),
            host_network,
            served: true,
            requests: Vec::new(),
            limits: Vec::new(),
        }
    }

    #[test]
    fn a_pod_is_restricted_bounded_and_owned() {
        let objects = objects(PodOptions::new("eastwest:1", Bootstrap::Image));
        let pod = objects.pod(&plan(false), Some("uid-1"));
        assert_eq!(pod["metadata"]["name"], "eastwest-ab12-n1-pod");
        assert_eq!(pod["metadata"]["ownerReferences"][0]["uid"], "uid-1");
        assert_eq!(pod["spec"]["activeDeadlineSeconds"], 600);
        assert_eq!(pod["spec"]["securityContext"]["runAsNonRoot"], true);
        let container = &pod["spec"]["containers"][0];
        assert_eq!(
            container["securityContext"]["capabilities"]["drop"][0],
            "ALL"
        );
        assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
        assert!(container.get("resources").is_none());
        assert!(pod["spec"].get("hostNetwork").is_none());
        let k8s: Result<k8s_openapi::api::core::v1::Pod, _> = serde_json::from_value(pod);
        assert!(k8s.is_ok());
    }

    #[test]
    fn overrides_are_merged_into_the_spec() {
        let mut options = PodOptions::new("busybox", Bootstrap::Copy);
        options.overrides = Some(
            json!({"runtimeClassName": "gvisor", "securityContext": {"fsGroup": 7}, "volumes": null}),
        );
        let plan = PodPlan {
            limits: vec![("cpu".into(), "500m".into())],
            ..plan(true)
        };
        let pod = objects(options).pod(&plan, None);
        assert_eq!(pod["spec"]["runtimeClassName"], "gvisor");
        assert_eq!(pod["spec"]["securityContext"]["fsGroup"], 7);
        assert_eq!(pod["spec"]["securityContext"]["runAsNonRoot"], true);
        assert!(pod["spec"].get("volumes").is_none());
        assert_eq!(pod["spec"]["hostNetwork"], true);
        assert_eq!(
            pod["spec"]["containers"][0]["resources"]["limits"]["cpu"],
            "500m"
        );
    }

    #[test]
    fn a_service_leads_to_the_ports_that_flows_need() {
        let objects = objects(PodOptions::new("eastwest:1", Bootstrap::Image));
        let ports = |tcp_ports, udp_ports| -> Vec<String> {
            let service = ServicePlan {
                kind: "NodePort",
                tcp_ports,
                udp_ports,
            };
            let made = objects.service(&plan(false), service, None);
            let list = made["spec"]["ports"].as_array().unwrap().iter();
            list.map(|port| {
                assert_eq!(port["port"], port["targetPort"]);
                port["name"].as_str().unwrap().to_owned()
            })
            .collect()
        };
        assert_eq!(ports(0, 0), ["tcp-5401"]);
        assert_eq!(
            ports(1, 2),
            ["tcp-5401", "tcp-5402", "udp-5402", "udp-5403"]
        );
    }

    #[test]
    fn affinity_of_the_users_own_keeps_the_pod_on_its_node() {
        let terms = |affinity: Value| {
            let mut options = PodOptions::new("busybox", Bootstrap::Copy);
            options.overrides = Some(json!({"affinity": affinity}));
            let pod = objects(options).pod(&plan(false), None);
            let node = &pod["spec"]["affinity"]["nodeAffinity"];
            node["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"].clone()
        };
        let expression = json!([{"key": "pool", "operator": "Exists"}]);
        let own = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": expression}],
        }}});
        let both = json!([{"matchExpressions": expression, "matchFields": its_name("n1")}]);
        assert_eq!(terms(own), both);
        let spread = json!({"podAntiAffinity": {}});
        for other in [spread, Value::Null] {
            assert_eq!(terms(other), json!([{"matchFields": its_name("n1")}]));
        }
    }

    #[test]
    fn names_are_labels_that_stay_apart() {
        let long = "node-with-a-very-long-name.of-some-region.example.company.internal";
        let (one, two) = (
            dns_label(&format!("{long}/pod1")),
            dns_label(&format!("{long}/pod2")),
        );
        assert!(one.len() <= 63 && one != two, "{one} {two}");
        assert_eq!(dns_label("N1/Pod_2."), "n1-pod-2");
    }

    #[test]
    fn tolerations_are_read_as_taints_are_written() {
        let read = |text| Toleration::parse(text).map(|t| t.0);
        assert_eq!(read("all"), Ok(json!({"operator": "Exists"})));
        assert_eq!(
            read("dedicated=net:NoSchedule"),
            Ok(
                json!({"key": "dedicated", "operator": "Equal", "value": "net", "effect": "NoSchedule"})
            )
        );
        assert!(read("a:Never").is_err() && read(":NoSchedule").is_err() && read("=x").is_err());
    }
}
