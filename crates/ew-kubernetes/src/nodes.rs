//! Nodes as hosts.

use crate::access::Access;
use crate::error::KubernetesError;
use crate::rights::{Need, check_rights};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::ListParams;
use std::collections::BTreeMap;

/// The label with a node's zone.
const ZONE_LABEL: &str = "topology.kubernetes.io/zone";
pub(crate) const ARCHITECTURE_LABEL: &str = "kubernetes.io/arch";

/// What a run needs to know of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    /// Its name.
    pub name: String,
    /// As Kubernetes names it: `amd64`, `arm64`. Empty when it does not report.
    pub architecture: String,
    /// Why nothing can be placed there: `NotReady`, `SchedulingDisabled`. `None` when it can.
    pub unusable: Option<String>,
    /// Whether its kubelet reports.
    pub ready: bool,
    /// All labels.
    pub labels: BTreeMap<String, String>,
}

/// The nodes that a label selector matches, by name. Those that cannot be used are among them.
///
/// # Errors
/// [`KubernetesError::Forbidden`] with all rights of every run that are missing, where this one is;
/// [`KubernetesError`] when the API server is not there.
pub async fn list_nodes(
    access: &Access,
    selector: Option<&str>,
) -> Result<Vec<NodeFacts>, KubernetesError> {
    let nodes: Api<Node> = Api::all(access.client.clone());
    let mut parameters = ListParams::default();
    if let Some(selector) = selector {
        parameters = parameters.labels(selector);
    }
    let list = nodes.list(&parameters).await;
    let list = match list {
        Ok(list) => list,
        Err(error) => return Err(refused(access, &error).await),
    };
    let mut nodes: Vec<NodeFacts> = list.items.iter().map(NodeFacts::of).collect();
    nodes.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(nodes)
}

/// Without the right, every right that a run lacks is named, this one among them.
async fn refused(access: &Access, error: &kube::Error) -> KubernetesError {
    let forbidden = matches!(error, kube::Error::Api(status) if status.code == 403);
    let refused = access.first_error("list nodes", error);
    if !forbidden {
        return refused;
    }
    let checked = check_rights(access, &[Need::Always]).await;
    checked.err().unwrap_or(refused)
}

impl NodeFacts {
    fn of(node: &Node) -> Self {
        let labels = node.metadata.labels.clone().unwrap_or_default();
        let cordoned = node.spec.as_ref().and_then(|s| s.unschedulable) == Some(true);
        let conditions = node.status.as_ref().and_then(|s| s.conditions.as_ref());
        let ready = conditions
            .into_iter()
            .flatten()
            .any(|c| c.type_ == "Ready" && c.status == "True");
        let unusable = match (ready, cordoned) {
            (false, _) => Some("NotReady".to_owned()),
            (true, true) => Some("SchedulingDisabled".to_owned()),
            (true, false) => None,
        };
        Self {
            name: node.metadata.name.clone().unwrap_or_default(),
            architecture: labels.get(ARCHITECTURE_LABEL).cloned().unwrap_or_default(),
            unusable,
            ready,
            labels,
        }
    }

    /// Its rack, by a label; by the zone where no label is named.
    #[must_use]
    pub fn rack(&self, label: Option<&str>) -> Option<&str> {
        let rack = self.labels.get(label.unwrap_or(ZONE_LABEL));
        rack.map(String::as_str)
    }
}
