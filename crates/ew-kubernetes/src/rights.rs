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
    /// Whether it is about the run's namespace by name. A right to create cannot be.
    names_namespace: bool,
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    why: &'static str,
}

const RULES: [Rule; 10] = [
    Rule {
        need: Need::Always,
        namespaced: false,
        names_namespace: false,
        group: "",
        resource: "nodes",
        verbs: &["list"],
        why: "nodes are the hosts; their labels give racks",
    },
    Rule {
        need: Need::Always,
        namespaced: true,
        names_namespace: false,
        group: "batch",
        resource: "jobs",
        verbs: &["create", "delete"],
        why: "one Job owns everything of a run; deleting it removes all",
    },
    Rule {
        need: Need::Always,
        namespaced: true,
        names_namespace: false,
        group: "",
        resource: "pods",
        verbs: &["create", "list", "watch"],
        why: "agents are pods; why one ends is seen only while it does",
    },
    Rule {
        need: Need::Always,
        namespaced: true,
        names_namespace: false,
        group: "",
        resource: "pods/exec",
        verbs: &["create", "get"],
        why: "the control link; API servers ask for one or the other verb",
    },
    Rule {
        need: Need::Services,
        namespaced: true,
        names_namespace: false,
        group: "",
        resource: "services",
        verbs: &["create", "list"],
        why: "`run pods` measures through Services",
    },
    Rule {
        need: Need::Services,
        namespaced: true,
        names_namespace: false,
        group: "discovery.k8s.io",
        resource: "endpointslices",
        verbs: &["list"],
        why: "headless Services: clients get the addresses that their endpoints have",
    },
    Rule {
        need: Need::Namespace,
        namespaced: false,
        names_namespace: false,
        group: "",
        resource: "namespaces",
        verbs: &["create"],
        why: "only for --namespace with one that does not exist; no rule can limit a creation to a name",
    },
    Rule {
        need: Need::Namespace,
        namespaced: false,
        names_namespace: true,
        group: "",
        resource: "namespaces",
        verbs: &["get", "delete"],
        why: "the same; that one alone is removed",
    },
    Rule {
        need: Need::Diagnosis,
        namespaced: true,
        names_namespace: false,
        group: "networking.k8s.io",
        resource: "networkpolicies",
        verbs: &["list"],
        why: "names the policy that keeps pods apart",
    },
    Rule {
        need: Need::Diagnosis,
        namespaced: true,
        names_namespace: false,
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
        rules.map(|rule| rule.yaml(namespace)).collect()
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
            let (own_namespace, name) = account.split_once(':').unwrap_or((namespace, account));
            format!("{{kind: ServiceAccount, name: {name}, namespace: {own_namespace}}}")
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
    let words =
        |(position, verb): &(usize, &str)| RULES[*position].missing_words(verb, &access.namespace);
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
pub(crate) fn rules_of(need: Need, namespace: &str) -> Vec<String> {
    let rules = RULES.iter().filter(|rule| rule.need == need);
    let words = rules.map(|rule| {
        let verbs = rule.verbs.iter();
        verbs.map(|verb| rule.missing_words(verb, namespace))
    });
    words.flatten().collect()
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
    fn yaml(&self, namespace: &str) -> String {
        format!(
            "  # {}\n  - {}\n",
            self.why,
            self.of_verbs(self.verbs, namespace)
        )
    }

    /// The rule with these verbs, as a Role has it.
    fn of_verbs(&self, verbs: &[&str], namespace: &str) -> String {
        let quoted: Vec<String> = verbs.iter().map(|v| format!("\"{v}\"")).collect();
        let name = match self.names_namespace {
            true => format!("resourceNames: [\"{namespace}\"], "),
            false => String::new(),
        };
        format!(
            "{{apiGroups: [\"{}\"], resources: [\"{}\"], {name}verbs: [{}]}}",
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
            name: self.names_namespace.then(|| namespace.to_owned()),
            ..ResourceAttributes::default()
        }
    }

    fn missing_words(&self, verb: &str, namespace: &str) -> String {
        let kind = if self.namespaced {
            "Role"
        } else {
            "ClusterRole"
        };
        let rule = self.of_verbs(&[verb], namespace);
        format!("{verb} {} ({kind} rule {rule})", self.resource)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

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
        let words = RULES[3].missing_words("get", "net");
        assert_eq!(
            words,
            "get pods/exec (Role rule {apiGroups: [\"\"], resources: [\"pods/exec\"], verbs: [\"get\"]})"
        );
    }

    /// An API server's part: reviews of rights, and lists of nodes, for a user without one right.
    struct FakeServer {
        access: Access,
        task: tokio::task::JoinHandle<()>,
    }

    impl FakeServer {
        async fn without(withheld: Right) -> Self {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap());
            let task = tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(stream, withheld.clone()));
                }
            });
            let client = kube::Client::try_from(kube::Config::new(url.parse().unwrap())).unwrap();
            let access = Access {
                client,
                server: url,
                namespace: "net".to_owned(),
            };
            Self { access, task }
        }
    }

    impl Drop for FakeServer {
        fn drop(&mut self) {
            self.task.abort();
        }
    }

    /// Verb, resource with its subresource, and whether the rule names the namespace.
    type Right = (String, String, Option<String>);

    async fn serve(stream: tokio::net::TcpStream, withheld: Right) {
        let mut stream = BufReader::new(stream);
        while let Some((path, body)) = request(&mut stream).await {
            let (code, answer) = answer(&path, &body, &withheld);
            let answer = answer.to_string();
            let head = format!(
                "HTTP/1.1 {code}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{answer}",
                answer.len()
            );
            if stream.write_all(head.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    async fn request(stream: &mut BufReader<tokio::net::TcpStream>) -> Option<(String, Value)> {
        let mut line = String::new();
        stream
            .read_line(&mut line)
            .await
            .ok()
            .filter(|read| *read > 0)?;
        let path = line.split(' ').nth(1)?.to_owned();
        let mut length = 0;
        loop {
            line.clear();
            stream.read_line(&mut line).await.ok()?;
            if line.trim().is_empty() {
                break;
            }
            let header = line.to_lowercase();
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.ok()?;
        Some((path, serde_json::from_slice(&body).unwrap_or_default()))
    }

    fn answer(path: &str, body: &Value, withheld: &Right) -> (&'static str, Value) {
        if path.starts_with("/api/v1/nodes") {
            return match (withheld.0.as_str(), withheld.1.as_str()) {
                ("list", "nodes") => {
                    let message = "nodes is forbidden: User \"x\" cannot list resource \"nodes\"";
                    let status = json!({"kind": "Status", "status": "Failure", "message": message, "reason": "Forbidden", "code": 403});
                    ("403 Forbidden", status)
                }
                _ => (
                    "200 OK",
                    json!({"kind": "NodeList", "metadata": {}, "items": []}),
                ),
            };
        }
        let asked = &body["spec"]["resourceAttributes"];
        let text = |key: &str| asked[key].as_str().map(str::to_owned);
        let resource = match text("subresource") {
            Some(below) => format!("{}/{below}", text("resource").unwrap()),
            None => text("resource").unwrap(),
        };
        let right = (text("verb").unwrap(), resource, text("name"));
        let status = json!({"allowed": right != *withheld});
        let review = json!({"kind": "SelfSubjectAccessReview", "metadata": {}, "spec": body["spec"], "status": status});
        ("201 Created", review)
    }

    /// Every right in the printed rules.
    fn printed(yaml: &str) -> Vec<Right> {
        let mut rights = Vec::new();
        for rule in yaml
            .lines()
            .filter_map(|line| line.strip_prefix("  - {api"))
        {
            let list = |key: &str| -> Vec<String> {
                let values = rule.split_once(&format!("{key}: [")).map(|(_, rest)| rest);
                let values = values.and_then(|rest| rest.split_once(']'));
                let values = values.map_or("", |(values, _)| values);
                let values = values.split(", ").filter(|value| !value.is_empty());
                values
                    .map(|value| value.trim_matches('"').to_owned())
                    .collect()
            };
            let name = list("resourceNames").first().cloned();
            for resource in list("resources") {
                let verbs = list("verbs").into_iter();
                rights.extend(verbs.map(|verb| (verb, resource.clone(), name.clone())));
            }
        }
        rights
    }

    const ALL: [Need; 3] = [Need::Always, Need::Services, Need::Namespace];

    #[tokio::test]
    async fn each_printed_right_that_is_missing_is_named() {
        let rights = printed(&rules_yaml("net", "alice", true));
        let verbs: usize = RULES.iter().map(|rule| rule.verbs.len()).sum();
        assert_eq!(rights.len(), verbs, "{rights:?}");
        for right in rights {
            let (verb, resource, name) = right.clone();
            let server = FakeServer::without(right).await;
            let words = match check_rights(&server.access, &ALL).await {
                Ok(lacking) => lacking,
                Err(KubernetesError::Forbidden { rules, .. }) => rules,
                Err(other) => panic!("{other}"),
            };
            let [words] = &words[..] else {
                panic!("{verb} {resource}: {words:?}");
            };
            let name =
                name.map_or_else(String::new, |name| format!("resourceNames: [\"{name}\"], "));
            let rule = format!("resources: [\"{resource}\"], {name}verbs: [\"{verb}\"]}}");
            assert!(
                words.starts_with(&format!("{verb} {resource} (")),
                "{words}"
            );
            assert!(words.contains(&rule), "{words}, without {rule}");
        }
    }

    #[tokio::test]
    async fn without_the_list_of_nodes_the_rule_is_named() {
        let withheld = ("list".to_owned(), "nodes".to_owned(), None);
        let server = FakeServer::without(withheld).await;
        let refused = crate::nodes::list_nodes(&server.access, None)
            .await
            .unwrap_err();
        let words = refused.to_string();
        let rule = "list nodes (ClusterRole rule {apiGroups: [\"\"], resources: [\"nodes\"], verbs: [\"list\"]})";
        assert!(
            words.contains(rule) && words.contains("eastwest kubernetes rbac"),
            "{words}"
        );
        let other = ("list".to_owned(), "events".to_owned(), None);
        let server = FakeServer::without(other).await;
        assert_eq!(
            crate::nodes::list_nodes(&server.access, None)
                .await
                .unwrap(),
            []
        );
    }

    #[test]
    fn only_the_runs_own_namespace_may_be_removed() {
        let yaml = rules_yaml("net", "alice", true);
        let bound =
            "resources: [\"namespaces\"], resourceNames: [\"net\"], verbs: [\"get\", \"delete\"]}";
        assert!(yaml.contains(bound), "{yaml}");
        assert!(
            yaml.contains("resources: [\"namespaces\"], verbs: [\"create\"]}"),
            "{yaml}"
        );
    }
}
