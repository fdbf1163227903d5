//! `--via kubernetes`: from options to nodes, pods and the launcher that enters them.

mod args;
mod barriers;

pub(crate) use args::{AccessArgs, KubernetesArgs};

use crate::build::OWN_BINARY;
use crate::exit::Failure;
use crate::hosts::{HostArgs, group_sources};
use crate::output;
use anyhow::anyhow;
use args::{Amount, BootstrapChoice};
use ew_controller::{Detour, Detours, Finished, ServicePorts};
use ew_fleet::{Kubernetes, Launcher, Payload, Payloads, PodLink};
use ew_kubernetes::{
    Access, Bootstrap, Deployment, KubernetesError, Need, NodeFacts, PodOptions, PodPlan, PodWatch,
    RemovalError, RunObjects, ServiceAddress, ServicePlan, check_rights, go_architecture,
    lacks_namespace, list_nodes,
};
use ew_model::inventory::{Host, Inventory, Rack, RackId};
use ew_model::pods::{self, PodPath};
use ew_model::scenario::{Pattern, Roles, Scenario, Test};
use ew_model::workload::WorkloadKind;
use ew_plan::inventory::expand;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// In addition to the launch's limit and twice the planned time: clocks, repairs.
const DEADLINE_MARGIN: Duration = Duration::from_secs(600);

/// A cluster whose nodes are known, before anything is made in it.
#[derive(Debug)]
pub(crate) struct Cluster<'a> {
    args: &'a KubernetesArgs,
    pub(crate) access: Access,
    nodes: Vec<NodeFacts>,
}

/// Pods that run, and what they are for.
pub(crate) struct Placement {
    deployment: Deployment,
    access: Access,
    /// Keeps how pods end.
    watch: PodWatch,
    /// Removes the namespace should this process be killed.
    guard: Option<Guard>,
    /// Enters them.
    pub(crate) launcher: Arc<dyn Launcher>,
}

impl KubernetesArgs {
    /// Opens the cluster and lists its nodes; nothing is made.
    pub(crate) async fn open(&self) -> Result<Cluster<'_>, Failure> {
        let access = Access::open(&self.access.options())
            .await
            .map_err(refused)?;
        let nodes = list_nodes(&access, self.nodes.as_deref()).await;
        let nodes = nodes.map_err(refused)?;
        Ok(Cluster {
            args: self,
            access,
            nodes,
        })
    }

    pub(crate) fn pod_options(&self) -> Result<PodOptions, Failure> {
        let bootstrap = match self.bootstrap {
            BootstrapChoice::Image => Bootstrap::Image,
            BootstrapChoice::Copy => Bootstrap::Copy,
        };
        let default = match bootstrap {
            Bootstrap::Image => default_image(),
            Bootstrap::Copy => "busybox".to_owned(),
        };
        let image = self.image.clone().unwrap_or(default);
        let overrides = self.pod_overrides.as_deref();
        Ok(PodOptions {
            pull_policy: self.pull_policy.clone(),
            pull_secrets: self.pull_secret.clone(),
            service_account: self.service_account.clone(),
            priority_class: self.priority_class.clone(),
            tolerations: self.toleration.clone(),
            annotations: self.annotation.clone(),
            run_as_user: self.run_as_user,
            overrides: overrides.map(read_overrides).transpose()?,
            ..PodOptions::new(&image, bootstrap)
        })
    }
}

impl Cluster<'_> {
    /// Nodes as hosts: those that are named, else all that can be used.
    pub(crate) fn inventory(
        &self,
        hosts: &HostArgs,
        scenario_racks: &[String],
        roles: Option<&Roles>,
    ) -> Result<Inventory, Failure> {
        let mut inventory = match hosts.named_inventory(scenario_racks, roles)? {
            Some(named) => named,
            None => self.all_usable()?,
        };
        for host in &inventory.hosts {
            self.check_usable(&host.name)?;
        }
        self.check_architecture(&inventory)?;
        if inventory.racks.is_empty() {
            self.add_racks(&mut inventory);
        }
        Ok(inventory)
    }

    fn all_usable(&self) -> Result<Inventory, Failure> {
        let usable = |node: &&NodeFacts| node.unusable.is_none();
        let named = |node: &NodeFacts| Host {
            name: node.name.clone(),
            address: None,
            rack: None,
        };
        let hosts: Vec<Host> = self.nodes.iter().filter(usable).map(named).collect();
        if hosts.is_empty() {
            let found: Vec<String> = self.nodes.iter().map(describe).collect();
            let found = match found.is_empty() {
                true => "there is no node".to_owned(),
                false => found.join(", "),
            };
            let selector = self.args.nodes.clone();
            return Err(refused(KubernetesError::NoNodes { selector, found }));
        }
        for node in self.nodes.iter().filter(|node| node.unusable.is_some()) {
            output::say(&format!("skipped node {}", describe(node)));
        }
        Ok(Inventory {
            hosts,
            racks: Vec::new(),
        })
    }

    fn check_usable(&self, name: &str) -> Result<(), Failure> {
        let Some(node) = self.nodes.iter().find(|node| node.name == name) else {
            let known: Vec<&str> = self.nodes.iter().map(|n| n.name.as_str()).collect();
            return Err(Failure::usage(anyhow!(
                "`{name}` is no node of this cluster (there are: {}); check --hosts and --nodes",
                known.join(", ")
            )));
        };
        match node.unusable {
            None => Ok(()),
            Some(_) => Err(Failure::usage(anyhow!(
                "node {}; leave it out, or make it usable (kubectl uncordon)",
                describe(node)
            ))),
        }
    }

    /// The binary itself serves its own architecture, its agents the others. Only where there are
    /// others are these unpacked.
    fn check_architecture(&self, inventory: &Inventory) -> Result<(), Failure> {
        let of = |host: &Host| self.nodes.iter().find(|node| node.name == host.name);
        let nodes: Vec<&NodeFacts> = inventory.hosts.iter().filter_map(of).collect();
        let mut brought = vec![go_architecture(std::env::consts::ARCH)];
        if without_program(&nodes, &brought).is_empty() {
            return Ok(());
        }
        let agents = Payload::agents_in(Path::new(OWN_BINARY)).map_err(Failure::failed)?;
        let architectures = agents.iter().filter_map(Payload::architecture);
        brought.extend(architectures.map(go_architecture));
        brought.sort_unstable();
        brought.dedup();
        let nodes = without_program(&nodes, &brought);
        if nodes.is_empty() {
            return Ok(());
        }
        let brought = brought.into_iter().map(str::to_owned).collect();
        Err(Failure::usage(KubernetesError::Architecture {
            brought,
            nodes,
        }))
    }

    /// One rack is no more than none.
    fn add_racks(&self, inventory: &mut Inventory) {
        let label = self.args.rack_label.as_deref();
        let rack_of = |name: &str| {
            let node = self.nodes.iter().find(|node| node.name == name)?;
            node.rack(label).map(str::to_owned)
        };
        let mut names: Vec<String> = inventory
            .hosts
            .iter()
            .filter_map(|h| rack_of(&h.name))
            .collect();
        names.sort_unstable();
        names.dedup();
        if names.len() < 2 {
            return;
        }
        for host in &mut inventory.hosts {
            let rack = rack_of(&host.name);
            let position = rack.and_then(|rack| names.iter().position(|name| *name == rack));
            host.rack = position.map(|at| RackId(at as u32));
        }
        inventory.racks = names.into_iter().map(|name| Rack { name }).collect();
    }

    /// What would be made for these agents.
    pub(crate) fn objects(
        &self,
        run: &str,
        data_port: u16,
        planned: Duration,
        launch_limit: Duration,
    ) -> Result<RunObjects, Failure> {
        let deadline = self
            .args
            .pod_deadline
            .unwrap_or(launch_limit + planned * 2 + DEADLINE_MARGIN);
        Ok(RunObjects {
            run: run.to_owned(),
            namespace: self.access.namespace.clone(),
            deadline_seconds: deadline.as_secs().max(1),
            data_port,
            options: self.args.pod_options()?,
        })
    }

    /// One pod per agent of the inventory. Where pods are compared with nodes, the nodes' agents
    /// use their network and have no limits.
    pub(crate) fn pod_plans(
        &self,
        inventory: &Inventory,
        compares: bool,
    ) -> Result<Vec<PodPlan>, Failure> {
        let nodes: BTreeSet<&str> = inventory
            .hosts
            .iter()
            .map(|host| pods::parse_agent_name(&host.name).node)
            .collect();
        let requests = by_node(&self.args.request, &nodes)?;
        let limits = by_node(&self.args.limit, &nodes)?;
        let plan = |host: &Host| {
            let agent = pods::parse_agent_name(&host.name);
            let is_baseline = compares && agent.pod.is_none();
            let of = |amounts: &Amounts| match is_baseline {
                true => Vec::new(),
                false => amounts.get(agent.node).cloned().unwrap_or_default(),
            };
            PodPlan {
                agent: host.name.clone(),
                node: agent.node.to_owned(),
                host_network: is_baseline || (!compares && self.args.host_network),
                served: compares && agent.pod == Some(pods::FIRST_POD),
                requests: of(&requests),
                limits: of(&limits),
            }
        };
        Ok(inventory.hosts.iter().map(plan).collect())
    }

    /// Labels of the inventory's nodes, by their names.
    pub(crate) fn labels_of(
        &self,
        inventory: &Inventory,
    ) -> BTreeMap<String, BTreeMap<String, String>> {
        let is_used = |node: &&NodeFacts| {
            let mut hosts = inventory.hosts.iter();
            hosts.any(|host| pods::parse_agent_name(&host.name).node == node.name)
        };
        let used = self.nodes.iter().filter(is_used);
        used.map(|node| (node.name.clone(), node.labels.clone()))
            .collect()
    }

    /// Checks the rights, makes everything and waits until it runs; removes it again when that is
    /// cut short. Agents get the addresses of their pods; those whose pods do not run keep none.
    pub(crate) async fn place(
        &self,
        objects: RunObjects,
        plans: &[PodPlan],
        services: &[ServicePlan],
        limit: Duration,
    ) -> Result<Placement, Failure> {
        let mut needs = vec![Need::Always];
        if lacks_namespace(&self.access).await.map_err(refused)? {
            needs.push(Need::Namespace);
        }
        if !services.is_empty() {
            needs.push(Need::Services);
        }
        let lacking = check_rights(&self.access, &needs).await.map_err(refused)?;
        if !lacking.is_empty() {
            output::say(&lacking_words(&lacking));
        }
        let own = Path::new(OWN_BINARY);
        let payloads = match objects.options.bootstrap {
            Bootstrap::Image => None,
            Bootstrap::Copy => Some(Payloads::of_binary(own).map_err(Failure::failed)?),
        };
        let access_words = self.args.access.words(&self.access.namespace);
        let mut deployment = Deployment::begin(&self.access, objects)
            .await
            .map_err(refused)?;
        let guard = match deployment.removes_namespace() {
            true => Guard::start(deployment.run(), &access_words),
            false => None,
        };
        let placed = async {
            deployment.place(plans, services).await;
            deployment.wait(limit).await.map(|_| ())
        };
        let cut_short = tokio::select! {
            placed = placed => placed.map_err(refused),
            () = stopped() => Err(Failure::Interrupted),
        };
        if let Err(failure) = cut_short {
            tell_left(deployment.remove().await);
            end_guard(guard);
            return Err(failure);
        }
        let launcher = Kubernetes {
            binary: PathBuf::from(OWN_BINARY),
            access: access_words,
            pods: deployment
                .placed()
                .iter()
                .map(|placed| {
                    let link = match &placed.address {
                        Ok(_) => PodLink::Pod(placed.pod.clone()),
                        Err(why) => PodLink::NotRunning(why.to_string()),
                    };
                    (placed.plan.agent.clone(), link)
                })
                .collect(),
            payloads,
            copy_timeout: limit,
        };
        let watch = PodWatch::start(self.args.access.options(), deployment.selector());
        Ok(Placement {
            deployment,
            watch,
            access: self.access.clone(),
            guard,
            launcher: Arc::new(launcher),
        })
    }
}

impl Placement {
    /// Gives every agent its pod's address; one whose pod does not run keeps an address that nobody
    /// has, so that the run names it as a host that did not come up. Where another network was
    /// chosen, agents find their addresses themselves.
    pub(crate) fn give_addresses(&self, inventory: &mut Inventory, by_network: bool) {
        if by_network {
            inventory
                .hosts
                .iter_mut()
                .for_each(|host| host.address = None);
            return;
        }
        let placed = self.deployment.placed();
        let of: BTreeMap<&str, _> = placed.iter().map(|p| (p.plan.agent.as_str(), p)).collect();
        for host in &mut inventory.hosts {
            let found = of.get(host.name.as_str());
            host.address = found.and_then(|placed| placed.address.clone().ok());
            host.address
                .get_or_insert(std::net::Ipv4Addr::UNSPECIFIED.into());
        }
    }

    /// Where clients of these paths connect instead of at the server's pod.
    pub(crate) fn detours(&self, inventory: &Inventory, paths: &[PodPath]) -> Detours {
        let mut detours = Detours::new();
        for placed in self.deployment.placed() {
            let Some(host) = inventory.find(&placed.plan.agent) else {
                continue;
            };
            for path in paths {
                let service = path.service().and_then(|kind| placed.services.get(kind));
                let first_port = self.deployment.data_port().saturating_add(1);
                let ports = |translated: &Vec<u16>| ServicePorts {
                    first_port,
                    translated: translated.clone(),
                };
                let detour = |service: &ServiceAddress| Detour {
                    address: service.listener,
                    tcp: ports(&service.tcp_ports),
                    udp: ports(&service.udp_ports),
                };
                detours.extend(service.map(|service| ((*path, host), detour(service))));
            }
        }
        detours
    }

    /// Prints what happened to pods during a run and, where pairs are missing, what may keep them
    /// apart, and keeps it in the run; then removes everything.
    pub(crate) async fn finish(self, ended: &mut Result<Finished, Failure>) {
        barriers::look_for(&self.access, &self.deployment, &self.watch, ended).await;
        tell_left(self.deployment.remove().await);
        end_guard(self.guard);
    }
}

/// The namespace is gone, or known to be left.
fn end_guard(guard: Option<Guard>) {
    if let Some(Guard(mut process)) = guard {
        let _ = process.kill();
        let _ = process.wait();
    }
}

/// A process that removes the namespace of a run once the run's own process is gone, however that
/// ended. It hears so by the end of its standard input.
struct Guard(Child);

impl Guard {
    /// Without it only a killed run leaves an empty namespace behind.
    fn start(run: &str, access: &[String]) -> Option<Self> {
        let mut command = Command::new(OWN_BINARY);
        command.args(["kubernetes", "guard", "--run", run]);
        command.args(access);
        // Whoever interrupts the run from a terminal does not mean it.
        command.process_group(0).stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().ok().map(Self)
    }
}

type Amounts = BTreeMap<String, Vec<(String, String)>>;

/// What each node's pods get, the later one of two for the same resource.
fn by_node(amounts: &[Amount], nodes: &BTreeSet<&str>) -> Result<Amounts, Failure> {
    let mut by_node = Amounts::new();
    for given in amounts {
        let named = match &given.nodes {
            Some(set) => expand(set, &group_sources()).map_err(Failure::usage)?,
            None => nodes.iter().map(|node| (*node).to_owned()).collect(),
        };
        for node in named {
            if !nodes.contains(node.as_str()) {
                return Err(Failure::usage(anyhow!(
                    "--request or --limit of `{node}`: the run has no such node; it has {}",
                    nodes.iter().copied().collect::<Vec<_>>().join(", ")
                )));
            }
            let of_node = by_node.entry(node).or_default();
            of_node.push((given.resource.clone(), given.amount.clone()));
        }
    }
    Ok(by_node)
}

fn tell_left(removed: Result<(), RemovalError>) {
    if let Err(error) = removed {
        output::say(&format!("warning: {error}"));
    }
}

/// Ctrl-C, SIGTERM or SIGHUP. Where they cannot be listened to, nobody waits for them.
async fn stopped() {
    let listen = |kind| signal(kind).ok();
    let signals = (
        listen(SignalKind::interrupt()),
        listen(SignalKind::terminate()),
        listen(SignalKind::hangup()),
    );
    let (Some(mut interrupt), Some(mut terminate), Some(mut hangup)) = signals else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
}

/// Rights without which a run goes on.
fn lacking_words(rules: &[String]) -> String {
    format!(
        "note: why a pod does not start, or what keeps pods apart, cannot be named without these rights: {}; grant them with `eastwest kubernetes rbac \
         | kubectl apply -f -`",
        rules.join("; ")
    )
}

/// Nodes that no program runs on, in words. One that does not report its architecture is tried.
fn without_program(nodes: &[&NodeFacts], brought: &[&str]) -> Vec<String> {
    let is_without = |node: &&&NodeFacts| {
        let architecture = node.architecture.as_str();
        !matches!(architecture, "" | "unknown") && !brought.contains(&architecture)
    };
    let nodes = nodes.iter().filter(is_without);
    nodes
        .map(|node| format!("{} ({})", node.name, node.architecture))
        .collect()
}

fn describe(node: &NodeFacts) -> String {
    match &node.unusable {
        Some(reason) => format!("{}: {reason}", node.name),
        None => format!("{}: Ready", node.name),
    }
}

pub(crate) fn default_image() -> String {
    format!("eastwest:{}", env!("CARGO_PKG_VERSION"))
}

pub(crate) fn refused(error: KubernetesError) -> Failure {
    match error {
        KubernetesError::Access { .. }
        | KubernetesError::NoNodes { .. }
        | KubernetesError::Overrides { .. }
        | KubernetesError::Architecture { .. } => Failure::usage(error),
        other => Failure::failed(other),
    }
}

/// Agents for a comparison of pods with nodes: every node's own, and as many pods on each as the
/// paths need.
pub(crate) fn with_pods(nodes: &Inventory, paths: &[PodPath]) -> Inventory {
    let mut kinds = vec![None, Some(pods::FIRST_POD)];
    if paths.contains(&PodPath::SameNode) {
        kinds.push(Some(pods::SECOND_POD));
    }
    let agents = nodes.hosts.iter().flat_map(|node| {
        kinds.iter().map(|kind| Host {
            name: pods::agent(&node.name, *kind),
            ..node.clone()
        })
    });
    Inventory {
        hosts: agents.collect(),
        racks: nodes.racks.clone(),
    }
}

/// The paths of a scenario, each once; none where it compares no pods.
pub(crate) fn paths(scenario: &Scenario) -> Vec<PodPath> {
    let path = |test: &Test| match test.pattern {
        Pattern::Pods { path } => Some(path),
        _ => None,
    };
    let all: BTreeSet<PodPath> = scenario.tests.iter().filter_map(path).collect();
    all.into_iter().collect()
}

/// Services that a scenario's paths need, and how many ports of their own its flows take. Twice as
/// many as streams, since a port may be busy for a moment after a round.
pub(crate) fn services(scenario: &Scenario) -> Vec<ServicePlan> {
    let ports = |path: PodPath, kinds: &[WorkloadKind]| {
        let is_of =
            |test: &&Test| matches!(test.pattern, Pattern::Pods { path: other } if other == path);
        let tests = scenario.tests.iter().filter(is_of);
        let tests = tests.filter(|test| path.translates() && kinds.contains(&test.workload.kind));
        let streams = tests.map(|test| test.workload.streams.min(pods::MAX_SERVICE_STREAMS));
        2 * streams.max().unwrap_or(0) as u16
    };
    let paths = paths(scenario).into_iter();
    let plan = |path: PodPath| {
        Some(ServicePlan {
            kind: path.service()?,
            tcp_ports: ports(path, &[WorkloadKind::TcpCrr]),
            udp_ports: ports(path, &[WorkloadKind::UdpStream, WorkloadKind::UdpRr]),
        })
    };
    paths.filter_map(plan).collect()
}

fn read_overrides(path: &Path) -> Result<serde_json::Value, Failure> {
    PodOptions::read_overrides(path).map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, architecture: &str) -> NodeFacts {
        NodeFacts {
            name: name.to_owned(),
            architecture: architecture.to_owned(),
            unusable: None,
            ready: true,
            labels: BTreeMap::new(),
        }
    }

    #[test]
    fn only_nodes_that_nothing_runs_on_are_refused() {
        let nodes = [
            node("n1", "amd64"),
            node("n2", "arm64"),
            node("n3", "s390x"),
            node("n4", ""),
        ];
        let nodes: Vec<&NodeFacts> = nodes.iter().collect();
        let without = |brought: &[&str]| without_program(&nodes, brought);
        assert_eq!(without(&["amd64", "arm64"]), ["n3 (s390x)"]);
        assert_eq!(without(&["amd64"]), ["n2 (arm64)", "n3 (s390x)"]);
        // A laptop's own architecture need not be among the nodes'.
        assert_eq!(without_program(&nodes[1..2], &["amd64", "arm64"]), [""; 0]);
        let error = KubernetesError::Architecture {
            brought: vec!["amd64".to_owned(), "arm64".to_owned()],
            nodes: without(&["amd64", "arm64"]),
        };
        let words = error.to_string();
        assert!(
            words.contains("n3 (s390x)") && !words.contains("n2"),
            "{words}"
        );
        assert!(
            words.contains("--nodes 'kubernetes.io/arch in (amd64,arm64)'"),
            "{words}"
        );
    }
}
