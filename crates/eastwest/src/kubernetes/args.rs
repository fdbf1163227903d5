//! The flags of `--via kubernetes`.

use crate::flag_values::parse_duration;
use clap::{Args, ValueEnum};
use ew_kubernetes::{AccessOptions, Toleration};
use std::path::PathBuf;
use std::time::Duration;

/// Which cluster.
#[derive(Clone, Debug, Args)]
pub(crate) struct AccessArgs {
    /// Kubeconfig instead of $KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current one]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Namespace of everything made; one that does not exist is made and removed [default: the
    /// context's]
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
}

impl AccessArgs {
    pub(crate) fn options(&self) -> AccessOptions {
        AccessOptions {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            namespace: self.namespace.clone(),
        }
    }

    /// The same cluster for a process of our own.
    pub(super) fn words(&self, namespace: &str) -> Vec<String> {
        let mut words = vec!["--namespace".to_owned(), namespace.to_owned()];
        if let Some(path) = &self.kubeconfig {
            words.extend(["--kubeconfig".to_owned(), path.display().to_string()]);
        }
        if let Some(context) = &self.context {
            words.extend(["--context".to_owned(), context.clone()]);
        }
        words
    }
}

/// `--bootstrap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum BootstrapChoice {
    /// The image has eastwest: one that `eastwest image` wrote
    Image,
    /// The binary is copied into any image that has sh
    Copy,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Kubernetes (--via kubernetes)")]
pub(crate) struct KubernetesArgs {
    #[command(flatten)]
    pub(super) access: AccessArgs,
    /// Nodes by label selector, for example 'pool=gpu,!spot' [default: all that are Ready]
    #[arg(long, value_name = "SELECTOR")]
    pub(super) nodes: Option<String>,
    /// Node label that names the rack [default: topology.kubernetes.io/zone]
    #[arg(long, value_name = "LABEL")]
    pub(super) rack_label: Option<String>,
    /// Agents use their nodes' network instead of the pod network
    #[arg(long)]
    pub(super) host_network: bool,
    /// Image of the pods [default: eastwest:VERSION; busybox with --bootstrap copy]
    #[arg(long, value_name = "IMAGE")]
    pub(super) image: Option<String>,
    /// How the binary gets into a pod
    #[arg(long, value_enum, default_value = "image")]
    pub(super) bootstrap: BootstrapChoice,
    /// When nodes pull the image: Always, IfNotPresent, Never [default: Kubernetes' own]
    #[arg(long, value_name = "POLICY", value_parser = ["Always", "IfNotPresent", "Never"])]
    pub(super) pull_policy: Option<String>,
    /// Image pull secret; repeatable
    #[arg(long, value_name = "NAME")]
    pub(super) pull_secret: Vec<String>,
    /// Service account of the pods [default: the namespace's default one]
    #[arg(long, value_name = "NAME")]
    pub(super) service_account: Option<String>,
    /// Priority class of the pods
    #[arg(long, value_name = "NAME")]
    pub(super) priority_class: Option<String>,
    /// Taint to tolerate, `key[=value][:effect]` or `all`; repeatable
    #[arg(long, value_name = "TAINT", value_parser = Toleration::parse)]
    pub(super) toleration: Vec<Toleration>,
    /// Annotation of the pods, for example k8s.v1.cni.cncf.io/networks=net1; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub(super) annotation: Vec<(String, String)>,
    /// Resource request of the pods, or of those on some nodes, for example cpu=500m or
    /// 'n[1-2]:cpu=500m'; repeatable [default: none]
    #[arg(long, value_name = "[NODES:]RESOURCE=AMOUNT", value_parser = parse_amount)]
    pub(super) request: Vec<Amount>,
    /// Resource limit, in the same form; repeatable [default: none, because a CPU limit would be
    /// what is measured]
    #[arg(long, value_name = "[NODES:]RESOURCE=AMOUNT", value_parser = parse_amount)]
    pub(super) limit: Vec<Amount>,
    /// User of the container [default: the image's, or 65532 with --bootstrap copy]
    #[arg(long, value_name = "UID")]
    pub(super) run_as_user: Option<u32>,
    /// YAML merged into every pod's spec: affinity, runtimeClassName, dnsPolicy
    #[arg(long, value_name = "FILE")]
    pub(super) pod_overrides: Option<PathBuf>,
    /// When the cluster ends the pods by itself, should the controller not [default: twice the
    /// planned time and 10 min]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(super) pod_deadline: Option<Duration>,
    /// Print everything that would be made in the cluster, as YAML, and stop
    #[arg(long)]
    pub(crate) print_manifests: bool,
}

impl KubernetesArgs {
    /// A flag of these that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let flags = [
            ("--print-manifests", self.print_manifests),
            ("--kubeconfig", self.access.kubeconfig.is_some()),
            ("--context", self.access.context.is_some()),
            ("--namespace", self.access.namespace.is_some()),
            ("--nodes", self.nodes.is_some()),
            ("--rack-label", self.rack_label.is_some()),
            ("--host-network", self.host_network),
            ("--image", self.image.is_some()),
            ("--bootstrap", self.bootstrap != BootstrapChoice::Image),
            ("--pull-policy", self.pull_policy.is_some()),
            ("--pull-secret", !self.pull_secret.is_empty()),
            ("--service-account", self.service_account.is_some()),
            ("--priority-class", self.priority_class.is_some()),
            ("--toleration", !self.toleration.is_empty()),
            ("--annotation", !self.annotation.is_empty()),
            ("--request", !self.request.is_empty()),
            ("--limit", !self.limit.is_empty()),
            ("--run-as-user", self.run_as_user.is_some()),
            ("--pod-overrides", self.pod_overrides.is_some()),
            ("--pod-deadline", self.pod_deadline.is_some()),
        ];
        let given = flags.into_iter().find(|(_, given)| *given);
        given.map(|(name, _)| name)
    }
}

/// `--request` or `--limit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Amount {
    /// A set of nodes. `None`: all.
    pub(super) nodes: Option<String>,
    pub(super) resource: String,
    pub(super) amount: String,
}

fn parse_amount(text: &str) -> Result<Amount, String> {
    let (key, amount) = parse_pair(text)?;
    let (nodes, resource) = match key.rsplit_once(':') {
        Some((nodes, resource)) => (Some(nodes.to_owned()), resource.to_owned()),
        None => (None, key),
    };
    if resource.is_empty() || nodes.as_ref().is_some_and(String::is_empty) {
        return Err(format!("`{text}` is not [NODES:]RESOURCE=AMOUNT"));
    }
    Ok(Amount {
        nodes,
        resource,
        amount,
    })
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is not KEY=VALUE")),
    }
}
