//! What a run may do in a cluster, and no more: the rules, as a manifest and as a check before
//! anything is made.

use crate::access::Access;
use crate::error::KubernetesError;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;
use tokio::task::JoinSet;

/// What asks for a right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Every run.
    Always,
    /// A run through Services (`run pods`).
    Services,
    /// A run in a namespace that it makes and removes.
    Namespace,
    /// Naming what keeps pods apart; a run goes on without.
    Diagnosis,
}

/// One rule: an API group, a resource, and what is done to it.
struct Rule {
    need: Need,
    /// Whether a Role in the run's namespace is enough.
    namespaced: bool,
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    why: &'static str,
}

const RULES: [Rule; 9] = [
    Rule {
        need: Need::Always,
        namespaced: false,
        group: "",
        resource: "nodes",
        verbs: &["list"],
        why: "nodes are the hosts; their labels give racks",
    },
    Rule {
        need: Need::Always,
        namespaced: true,
        group: "batch",
        resource: "jobs",
        verbs: &["create", "delete"],
        why: "one Job owns everything of a run; deleting it removes all",
    },
    Rule {
        need: Need::Always,
        namespaced: true,
        group: "",
        resource: "pods",
        verbs: &["create", "list"],
        why: "agents are pods",
    },
    Rule {
        need: Need::Always,
        namespaced: true,
        group: "",
        resource: "pods/exec",
        verbs: &["create", "get"],
        why: "the control link; API servers ask for one or the other verb",
    },
    Rule {
        need: Need::Services,
        namespaced: true,
        group: "",
        resource: "services",
        verbs: &["create", "list"],
        why: "`run pods` measures through Services",
    },
    Rule {
        need: Need::Services,
        namespaced: true,
        group: "discovery.k8s.io",
        resource: "endpointslices",
        verbs: &["list"],
        why: "headless Services: clients get the addresses that their endpoints have",
    },
    Rule {
        need: Need::Namespace,
        namespaced: false,
        group: "",
        resource: "namespaces",
        verbs: &["get", "create", "delete"],
        why: "only for --namespace with one that does not exist",
    },
    Rule {
        need: Need::Diagnosis,
        namespaced: true,
        group: "networking.k8s.io",
        resource: "networkpolicies",
        verbs: &["list"],
        why: "names the policy that keeps pods apart",
    },
    Rule {
        need: Need::Diagnosis,
        namespaced: true,
        group: "",
        resource: "events",
        verbs: &["list"],
        why: "names why a pod does not come up",
    },
];

/// A Role, a ClusterRole, and their bindings to a user or service account, as YAML. A namespace
/// that is to be made can hold no Role beforehand: then all rules are the ClusterRole's.
#[must_use]
pub fn rules_yaml(namespace: &str, subject: &str, with_namespaces: bool) -> String {
    let subject = subject_yaml(namespace, subject);
    let wanted = |rule: &&Rule| with_namespaces || rule.need != Need::Namespace;
    let of = |namespaced: bool| -> String {
        let rules = RULES.iter().filter(wanted);
        let in_role = |rule: &Rule| rule.namespaced && !with_namespaces;
        let rules = rules.filter(|rule| in_role(rule) == namespaced);
        rules.map(Rule::yaml).collect()
    };
    let role = format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {{name: eastwest, namespace: {namespace}}}\nrules:\n{}---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {{name: eastwest, namespace: {namespace}}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: eastwest}}\nsubjects: [{subject}]\n---\n",
        of(true)
    );
    let cluster_role = match with_namespaces {
        true => "eastwest-anywhere",
        false => "eastwest",
    };
    format!(
        "{}apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: {cluster_role}}}\nrules:\n{}---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {{name: {cluster_role}-{namespace}}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {cluster_role}}}\nsubjects: [{subject}]\n",
        if with_namespaces { "" } else { &role },
        of(false)
    )
}

/// `system:serviceaccount:NAMESPACE:NAME`, or a user.
fn subject_yaml(namespace: &str, subject: &str) -> String {
    match subject.strip_prefix("system:serviceaccount:") {
        Some(account) => {
            let (place, name) = account.split_once(':').unwrap_or((namespace, account));
            format!("{{kind: ServiceAccount, name: {name}, namespace: {place}}}")
        }
        None => format!("{{apiGroup: rbac.authorization.k8s.io, kind: User, name: \"{subject}\"}}"),
    }
}

/// Asks the API server for every right before anything is made. Returns what only the diagnosis
/// lacks.
///
/// # Errors
/// [`KubernetesError::Forbidden`] with every right that is missing and the rule that grants it, or
/// that the API server is not there.
pub async fn check_rights(access: &Access, needs: &[Need]) -> Result<Vec<String>, KubernetesError> {
    let mut reviews = JoinSet::new();
    for (position, rule) in RULES.iter().enumerate() {
        if rule.need != Need::Diagnosis && !needs.contains(&rule.need) {
            continue;
        }
        for verb in rule.verbs {
            let (access, attributes) = (access.clone(), rule.attributes(verb, &access.namespace));
            reviews.spawn(async move { (position, *verb, review(&access, attributes).await) });
        }
    }
    let mut missing = Vec::new();
    while let Some(done) = reviews.join_next().await {
        let Ok((position, verb, allowed)) = done else {
            continue;
        };
        if !allowed? {
            missing.push((position, verb));
        }
    }
    missing.sort_unstable();
    let words = |(position, verb): &(usize, &str)| RULES[*position].missing_words(verb);
    let optional = |(position, _): &&(usize, &str)| RULES[*position].need == Need::Diagnosis;
    let (optional, needed): (Vec<_>, Vec<_>) = missing.iter().partition(optional);
    if needed.is_empty() {
        return Ok(optional.into_iter().map(words).collect());
    }
    Err(KubernetesError::Forbidden {
        namespace: access.namespace.clone(),
        makes_namespace: needs.contains(&Need::Namespace),
        rules: needed.into_iter().map(words).collect(),
    })
}

/// Every right of a need, with the rule that grants it.
pub(crate) fn rules_of(need: Need) -> Vec<String> {
    let rules = RULES.iter().filter(|rule| rule.need == need);
    let words = |rule: &'static Rule| rule.verbs.iter().map(|verb| rule.missing_words(verb));
    rules.flat_map(words).collect()
}

async fn review(access: &Access, attributes: ResourceAttributes) -> Result<bool, KubernetesError> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(access.client.clone());
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let answer = reviews.create(&PostParams::default(), &review).await;
    let answer =
        answer.map_err(|error| access.first_error("ask which rights this user has", &error))?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

impl Rule {
    fn yaml(&self) -> String {
        let quoted: Vec<String> = self.verbs.iter().map(|v| format!("\"{v}\"")).collect();
        format!(
            "  # {}\n  - {{apiGroups: [\"{}\"], resources: [\"{}\"], verbs: [{}]}}\n",
            self.why,
            self.group,
            self.resource,
            quoted.join(", ")
        )
    }

    fn attributes(&self, verb: &str, namespace: &str) -> ResourceAttributes {
        let (resource, subresource) = match self.resource.split_once('/') {
            Some((resource, sub)) => (resource, Some(sub.to_owned())),
            None => (self.resource, None),
        };
        ResourceAttributes {
            group: Some(self.group.to_owned()),
            resource: Some(resource.to_owned()),
            subresource,
            verb: Some(verb.to_owned()),
            namespace: self.namespaced.then(|| namespace.to_owned()),
            ..ResourceAttributes::default()
        }
    }

    fn missing_words(&self, verb: &str) -> String {
        let kind = if self.namespaced {
            "Role"
        } else {
            "ClusterRole"
        };
        format!(
            "{verb} {} ({kind} rule {{apiGroups: [\"{}\"], resources: [\"{}\"], verbs: [\"{verb}\"]}})",
            self.resource, self.group, self.resource
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_are_least_and_each_says_why() {
        let yaml = rules_yaml("net", "alice", false);
        assert!(!yaml.contains("namespaces\""), "{yaml}");
        assert!(!yaml.contains('*') && !yaml.contains("secrets"), "{yaml}");
        assert!(yaml.contains("kind: User, name: \"alice\""), "{yaml}");
        let yaml = rules_yaml("net", "system:serviceaccount:net:ew", true);
        assert!(
            yaml.contains("{kind: ServiceAccount, name: ew, namespace: net}"),
            "{yaml}"
        );
        assert!(yaml.contains("resources: [\"namespaces\"]"), "{yaml}");
        // Nothing that would have to be in the namespace beforehand.
        assert!(
            !yaml.contains("kind: Role\n") && !yaml.contains("kind: RoleBinding"),
            "{yaml}"
        );
    }

    #[test]
    fn a_missing_right_names_the_rule_that_grants_it() {
        let words = RULES[3].missing_words("get");
        assert_eq!(
            words,
            "get pods/exec (Role rule {apiGroups: [\"\"], resources: [\"pods/exec\"], verbs: [\"get\"]})"
        );
    }
}
