//! The controller inside the cluster: a Job, or a CronJob, with what it needs.

use crate::manifest::{BINARY, PodOptions};
use crate::nodes::ARCHITECTURE_LABEL;
use serde_json::{Value, json};

/// `eastwest run` in a pod of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerJob {
    /// Where.
    pub namespace: String,
    /// A claim that keeps run directories. `None`: they end with the pod, and the result is on its
    /// standard output as JSON.
    pub claim: Option<String>,
    /// The words after `eastwest`.
    pub arguments: Vec<String>,
    /// When, again and again, as cron has it: `0 3 * * *`. `None`: once.
    pub cron: Option<String>,
    /// Image, pull secrets and the like: those of the agents.
    pub options: PodOptions,
    /// After this it is ended.
    pub deadline_seconds: u64,
    /// Of its node, as Kubernetes names it. Only there is the controller in an image for several
    /// architectures.
    pub architecture: String,
}

/// The controller's account, which the rules are bound to.
pub(crate) const SERVICE_ACCOUNT: &str = "eastwest";
const RUNS: &str = "/runs";

impl ControllerJob {
    /// The service account and the Job or CronJob. The rules come from [`crate::rules_yaml`].
    #[must_use]
    pub fn documents(&self) -> Vec<Value> {
        let account = json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": SERVICE_ACCOUNT, "namespace": self.namespace, "labels": labels()},
        });
        let job = json!({
            "backoffLimit": 0,
            "activeDeadlineSeconds": self.deadline_seconds,
            "ttlSecondsAfterFinished": 7 * 24 * 3600,
            "template": {"metadata": {"labels": labels()}, "spec": self.pod_spec()},
        });
        let work = match &self.cron {
            None => {
                json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": self.metadata(), "spec": job})
            }
            Some(cron) => json!({
                "apiVersion": "batch/v1",
                "kind": "CronJob",
                "metadata": self.metadata(),
                "spec": {
                    "schedule": cron,
                    // Two at once would measure each other.
                    "concurrencyPolicy": "Forbid",
                    "jobTemplate": {"metadata": {"labels": labels()}, "spec": job},
                },
            }),
        };
        vec![account, work]
    }

    fn metadata(&self) -> Value {
        json!({"name": "eastwest", "namespace": self.namespace, "labels": labels()})
    }

    fn pod_spec(&self) -> Value {
        let mut container = json!({
            "name": "controller",
            "image": self.options.image,
            "command": [BINARY],
            "args": self.arguments,
            "workingDir": RUNS,
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": true,
            },
            "volumeMounts": [{"name": "runs", "mountPath": RUNS}, {"name": "tmp", "mountPath": "/tmp"}],
        });
        if let Some(policy) = &self.options.pull_policy {
            container["imagePullPolicy"] = json!(policy);
        }
        let runs = match &self.claim {
            Some(claim) => json!({"name": "runs", "persistentVolumeClaim": {"claimName": claim}}),
            None => json!({"name": "runs", "emptyDir": {}}),
        };
        let secrets = self.options.pull_secrets.iter();
        let secrets: Vec<Value> = secrets.map(|name| json!({"name": name})).collect();
        json!({
            "restartPolicy": "Never",
            "nodeSelector": {ARCHITECTURE_LABEL: self.architecture},
            "serviceAccountName": SERVICE_ACCOUNT,
            "imagePullSecrets": secrets,
            "securityContext": {
                "runAsNonRoot": true,
                "seccompProfile": {"type": "RuntimeDefault"},
                "fsGroup": 65_532,
            },
            "containers": [container],
            "volumes": [runs, {"name": "tmp", "emptyDir": {}}],
        })
    }
}

fn labels() -> Value {
    json!({"app.kubernetes.io/name": "eastwest", "app.kubernetes.io/managed-by": "eastwest"})
}
