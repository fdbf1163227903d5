//! A run's objects: made, waited for, and removed again until nothing carries the run's label.

use crate::access::Access;
use crate::error::{KubernetesError, NotRunning, Remainder, RemovalError};
use crate::manifest::{Bootstrap, PodPlan, RUN_LABEL, RunObjects, ServicePlan};
use crate::rights::{Need, rules_of};
use crate::trouble::{State, state};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Namespace, Pod, Service, ServicePort};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Requests at once.
const FAN_OUT: usize = 32;
/// How often pods are polled while they come up or go away.
const LOOK_INTERVAL: Duration = Duration::from_millis(300);
/// The garbage collector and the kubelets have this long to remove everything ...
const REMOVAL_LIMIT: Duration = Duration::from_secs(30);
/// ... and this much longer for each pod: the collector is limited to some 20 objects a second.
const REMOVAL_PER_POD: Duration = Duration::from_millis(100);
/// The endpoint controller has this long to enter pods that run.
const ENDPOINT_LIMIT: Duration = Duration::from_secs(15);
/// On an endpoint slice: whose it is.
const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";
/// The kind of Service without an address of its own.
const HEADLESS: &str = "headless";
/// On a namespace that a run has made, so that a later run removes it when that one could not.
const MADE_LABEL: &str = "eastwest-made";

/// Everything a run has in a cluster. Call [`Deployment::remove`] in the end; should nobody, the
/// deadline does.
#[derive(Debug)]
pub struct Deployment {
    access: Access,
    objects: RunObjects,
    owner_uid: String,
    removes_namespace: bool,
    placed: Vec<Placed>,
}

/// One agent's pod, as it came out.
#[derive(Clone, Debug)]
pub struct Placed {
    /// What was asked for.
    pub plan: PodPlan,
    /// The pod's name.
    pub pod: String,
    /// Where data flows reach it, or why it does not run.
    pub address: Result<IpAddr, NotRunning>,
    /// Its Services, by kind: `ClusterIP`, `NodePort`, `headless`.
    pub services: BTreeMap<String, ServiceAddress>,
}

/// Where a Service is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAddress {
    /// Leads to the agent's data listener.
    pub listener: SocketAddr,
    /// What the agent's TCP ports after the listener's are there, in a row.
    pub tcp_ports: Vec<u16>,
    /// The same of UDP.
    pub udp_ports: Vec<u16>,
}

impl Deployment {
    /// Makes the namespace where it is missing, and the owner object that all else will belong to.
    ///
    /// # Errors
    /// [`KubernetesError::Refused`], in the API server's words; by then nothing is left.
    pub async fn begin(access: &Access, objects: RunObjects) -> Result<Self, KubernetesError> {
        let removes_namespace = ensure_namespace(access, &objects.run).await?;
        let owner: Result<Job, _> = create(access, objects.owner(), "create job").await;
        let owner = match owner {
            Ok(owner) => owner,
            Err(error) => {
                if removes_namespace {
                    // The refusal is what the user needs to read.
                    let _ = remove_made_namespace(access, &objects.run).await;
                }
                return Err(explain_missing_namespace(error, access));
            }
        };
        Ok(Self {
            access: access.clone(),
            objects,
            owner_uid: owner.metadata.uid.unwrap_or_default(),
            removes_namespace,
            placed: Vec::new(),
        })
    }

    /// Makes the pods, and Services of these kinds for those that are to have them. What is refused
    /// is kept with its reason.
    pub async fn place(&mut self, plans: &[PodPlan], services: &[ServicePlan]) {
        let slots = Arc::new(Semaphore::new(FAN_OUT));
        let mut tasks = JoinSet::new();
        for (position, plan) in plans.iter().enumerate() {
            let pod = self.objects.pod(plan, Some(&self.owner_uid));
            let wanted = services.iter().filter(|_| plan.served);
            let services: Vec<(String, Value)> = wanted
                .map(|service| {
                    let document = self.objects.service(plan, *service, Some(&self.owner_uid));
                    (service.kind.to_owned(), document)
                })
                .collect();
            let (access, slots) = (self.access.clone(), Arc::clone(&slots));
            tasks.spawn(async move {
                let _slot = slots.acquire_owned().await;
                (position, place_one(&access, pod, services).await)
            });
        }
        let mut made: Vec<Option<Made>> = plans.iter().map(|_| None).collect();
        while let Some(done) = tasks.join_next().await {
            if let Ok((position, result)) = done {
                made[position] = Some(result);
            }
        }
        self.placed = plans
            .iter()
            .zip(made)
            .map(|(plan, made)| self.placed_of(plan, made))
            .collect();
    }

    fn placed_of(&self, plan: &PodPlan, made: Option<Made>) -> Placed {
        let (missing, services) = match made {
            None => (NotRunning::NotAsked, BTreeMap::new()),
            Some(made) => (made.missing, made.services),
        };
        Placed {
            plan: plan.clone(),
            pod: self.objects.pod_name(&plan.agent),
            address: Err(missing),
            services,
        }
    }

    /// Waits until every pod runs or will not; what does not run by the deadline reports what it
    /// waits for.
    ///
    /// # Errors
    /// [`KubernetesError`] when the API server refuses to answer.
    pub async fn wait(&mut self, limit: Duration) -> Result<&[Placed], KubernetesError> {
        let end = Instant::now() + limit;
        let mut open: BTreeMap<String, usize> = BTreeMap::new();
        for (position, placed) in self.placed.iter().enumerate() {
            if matches!(placed.address, Err(NotRunning::Pending)) {
                open.insert(placed.pod.clone(), position);
            }
        }
        while !open.is_empty() {
            let late = Instant::now() >= end;
            let mut states = self.states().await?;
            for (pod, position) in open.clone() {
                let placed = &mut self.placed[position];
                placed.address = match states.remove(&pod).unwrap_or(State::Deleted) {
                    State::Running(address) => {
                        address.parse().map_err(|_| NotRunning::Address { address })
                    }
                    State::Failed(words) => Err(NotRunning::Failed { words }),
                    State::Deleted => Err(NotRunning::Deleted),
                    State::Waiting(words) if late => Err(NotRunning::Late {
                        limit,
                        words,
                        warning: last_warning(&self.access, &pod).await,
                    }),
                    State::Waiting(_) => continue,
                };
                open.remove(&pod);
            }
            if !open.is_empty() {
                tokio::time::sleep(LOOK_INTERVAL).await;
            }
        }
        self.set_headless_addresses().await?;
        self.set_node_addresses().await?;
        Ok(&self.placed)
    }

    /// A headless Service has the addresses of its endpoints: what cluster DNS would answer. A pod
    /// that is no endpoint of its own Service does not take part.
    async fn set_headless_addresses(&mut self) -> Result<(), KubernetesError> {
        let is_headless = |placed: &Placed| placed.services.contains_key(HEADLESS);
        if !self.placed.iter().any(is_headless) {
            return Ok(());
        }
        let end = Instant::now() + ENDPOINT_LIMIT;
        loop {
            let slices = self.list::<EndpointSlice>("list endpointslices").await?;
            let endpoints = endpoints_by_service(&slices);
            let late = Instant::now() >= end;
            let mut waiting = false;
            for placed in &mut self.placed {
                let name = self.objects.service_name(&placed.plan, HEADLESS);
                let Some(service) = placed.services.get_mut(HEADLESS) else {
                    continue;
                };
                match endpoints.get(&name) {
                    Some(address) => service.listener.set_ip(*address),
                    None if late && placed.address.is_ok() => {
                        placed.address = Err(NotRunning::NoEndpoint {
                            service: name,
                            limit: ENDPOINT_LIMIT,
                        });
                    }
                    None => waiting |= placed.address.is_ok(),
                }
            }
            if !waiting {
                return Ok(());
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// A NodePort is reached at the node of the pod behind it, which the pod's status reports.
    async fn set_node_addresses(&mut self) -> Result<(), KubernetesError> {
        if !self
            .placed
            .iter()
            .any(|placed| placed.services.contains_key("NodePort"))
        {
            return Ok(());
        }
        let pods = self.list::<Pod>("list pods").await?;
        let address = |pod: &Pod| {
            pod.status
                .as_ref()?
                .host_ip
                .as_ref()?
                .parse::<IpAddr>()
                .ok()
        };
        let nodes: BTreeMap<String, IpAddr> = pods
            .iter()
            .filter_map(|pod| Some((pod.metadata.name.clone()?, address(pod)?)))
            .collect();
        for placed in &mut self.placed {
            if let (Some(node), Some(service)) =
                (nodes.get(&placed.pod), placed.services.get_mut("NodePort"))
            {
                service.listener.set_ip(*node);
            }
        }
        Ok(())
    }

    /// The port of the agents' data listeners.
    #[must_use]
    pub fn data_port(&self) -> u16 {
        self.objects.data_port
    }

    /// Whether this run made the namespace, and removes it.
    #[must_use]
    pub fn removes_namespace(&self) -> bool {
        self.removes_namespace
    }

    /// The run's word, on every object's label.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.objects.run
    }

    /// All pods as they came out.
    #[must_use]
    pub fn placed(&self) -> &[Placed] {
        &self.placed
    }

    /// The selector that finds every object of the run.
    #[must_use]
    pub fn selector(&self) -> String {
        self.objects.selector()
    }

    pub(crate) fn bootstrap(&self) -> Bootstrap {
        self.objects.options.bootstrap
    }

    pub(crate) fn access(&self) -> &Access {
        &self.access
    }

    /// The owner object, as it was made.
    pub(crate) fn owner(&self) -> Value {
        self.objects.owner()
    }

    /// Removes everything, and the namespace where this run made it; polls until nothing carries
    /// the run's label any more.
    ///
    /// # Errors
    /// [`RemovalError`]: what is still there, and how to remove it.
    pub async fn remove(self) -> Result<(), RemovalError> {
        let removed = self.remove_objects().await;
        if self.removes_namespace && !has_other_runs(&self.access, &self.objects.run).await? {
            // With it goes what is still on its way out.
            return delete_namespace(&self.access).await;
        }
        removed.map_err(|why| RemovalError::Objects {
            why: Box::new(why),
            namespace: self.access.namespace.clone(),
            selector: self.objects.selector(),
        })
    }

    async fn remove_objects(&self) -> Result<(), Remainder> {
        let end = Instant::now() + REMOVAL_LIMIT + REMOVAL_PER_POD * self.placed.len() as u32;
        loop {
            let mut objects = Vec::new();
            if self.delete_owner().await.map_err(Remainder::NotDeleted)? {
                objects.push(format!("job {}", self.objects.owner_name()));
            }
            objects.extend(self.owned().await?);
            if objects.is_empty() {
                return Ok(());
            }
            if Instant::now() >= end {
                return Err(Remainder::StillThere { objects });
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    pub(crate) async fn states(&self) -> Result<BTreeMap<String, State>, KubernetesError> {
        let pods = self.list::<Pod>("list pods").await?;
        let named = pods
            .iter()
            .filter_map(|pod| Some((pod.metadata.name.clone()?, state(pod))));
        Ok(named.collect())
    }

    /// Whether the owner object was still there. To ask once more for its removal needs no right
    /// that the first time does not.
    async fn delete_owner(&self) -> Result<bool, kube::Error> {
        let jobs: Api<Job> = Api::namespaced(self.access.client.clone(), &self.access.namespace);
        let name = self.objects.owner_name();
        match jobs.delete(&name, &DeleteParams::background()).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// What there is of all that the owner object takes with it, and of what follows from it.
    async fn owned(&self) -> Result<Vec<String>, KubernetesError> {
        let mut owned = names("pod", self.list::<Pod>("list pods").await?);
        if self.placed.iter().any(|placed| !placed.services.is_empty()) {
            let services = self.list::<Service>("list services").await?;
            owned.extend(names("service", services));
            let slices = self.list::<EndpointSlice>("list endpointslices").await?;
            owned.extend(names("endpointslice", slices));
        }
        Ok(owned)
    }

    /// What all of its pods carry, whichever agent they are.
    pub(crate) fn pod_labels(&self) -> BTreeMap<String, String> {
        self.objects.common_labels()
    }

    pub(crate) async fn list<K>(&self, what: &str) -> Result<Vec<K>, KubernetesError>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let api: Api<K> = Api::namespaced(self.access.client.clone(), &self.access.namespace);
        let parameters = ListParams::default().labels(&self.objects.selector());
        let list = api.list(&parameters).await;
        list.map(|list| list.items)
            .map_err(|error| self.access.first_error(what, &error))
    }
}

fn names<K: kube::Resource>(kind: &str, objects: Vec<K>) -> Vec<String> {
    let name = |object: K| object.meta().name.clone().unwrap_or_default();
    let objects = objects.into_iter();
    objects
        .map(|object| format!("{kind} {}", name(object)))
        .collect()
}

/// What came of one pod.
struct Made {
    /// Why it does not run: it was refused, or is to be waited for.
    missing: NotRunning,
    services: BTreeMap<String, ServiceAddress>,
}

async fn place_one(access: &Access, pod: Value, services: Vec<(String, Value)>) -> Made {
    let mut addresses = BTreeMap::new();
    for (kind, document) in services {
        match create::<Service>(access, document, "create service").await {
            Ok(service) => {
                if let Some(address) = service_address(&service, &kind) {
                    addresses.insert(kind, address);
                }
            }
            Err(error) => {
                return Made {
                    missing: NotRunning::Refused(Arc::new(error)),
                    services: addresses,
                };
            }
        }
    }
    let made = create::<Pod>(access, pod, "create pod").await;
    Made {
        missing: match made {
            Ok(_) => NotRunning::Pending,
            Err(error) => NotRunning::Refused(Arc::new(error)),
        },
        services: addresses,
    }
}

/// Of a headless Service and a NodePort the address is known only once the pod runs.
fn service_address(service: &Service, kind: &str) -> Option<ServiceAddress> {
    let spec = service.spec.as_ref()?;
    let number = |port: &ServicePort| {
        let number = match kind {
            "NodePort" => port.node_port?,
            _ => port.port,
        };
        u16::try_from(number).ok()
    };
    let (listener, more) = spec.ports.as_ref()?.split_first()?;
    let of = |protocol: &str| -> Option<Vec<u16>> {
        let ports = more.iter();
        let ports = ports.filter(|port| port.protocol.as_deref() == Some(protocol));
        ports.map(number).collect()
    };
    let address = spec
        .cluster_ip
        .as_ref()
        .and_then(|ip| ip.parse::<IpAddr>().ok());
    let address = address.unwrap_or(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED));
    Some(ServiceAddress {
        listener: SocketAddr::new(address, number(listener)?),
        tcp_ports: of("TCP")?,
        udp_ports: of("UDP")?,
    })
}

/// The address of each Service's one endpoint, where it has one.
fn endpoints_by_service(slices: &[EndpointSlice]) -> BTreeMap<String, IpAddr> {
    let endpoint = |slice: &EndpointSlice| {
        let labels = slice.metadata.labels.as_ref()?;
        let service = labels.get(SERVICE_NAME_LABEL)?.clone();
        let mut addresses = slice.endpoints.iter().flat_map(|e| &e.addresses);
        Some((service, addresses.find_map(|a| a.parse().ok())?))
    };
    slices.iter().filter_map(endpoint).collect()
}

async fn create<K>(access: &Access, document: Value, what: &str) -> Result<K, KubernetesError>
where
    K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + serde::Serialize
        + std::fmt::Debug,
{
    let name = document["metadata"]["name"].as_str().unwrap_or_default();
    let what = format!("{what} {name}");
    let object = serde_json::from_value(document).map_err(|error| KubernetesError::Refused {
        what: what.clone(),
        words: error.to_string(),
        hint: Some("check --pod-overrides against a pod's spec"),
    })?;
    let api: Api<K> = Api::namespaced(access.client.clone(), &access.namespace);
    let made = api.create(&PostParams::default(), &object).await;
    made.map_err(|error| access.first_error(&what, &error))
}

/// Whether the namespace is known not to be there, so that a run makes it. Who may not look has one
/// that exists, or learns that it does not.
///
/// # Errors
/// [`KubernetesError`] when the API server refuses or is not there.
pub async fn lacks_namespace(access: &Access) -> Result<bool, KubernetesError> {
    let namespaces: Api<Namespace> = Api::all(access.client.clone());
    match namespaces.get_opt(&access.namespace).await {
        Ok(found) => Ok(found.is_none()),
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(false),
        Err(error) => Err(access.first_error("look for the namespace", &error)),
    }
}

/// Removes a namespace that a run made and could not remove, with all that is in it. One that
/// nobody of ours made stays, and so does one in which another run is at work: that one removes it.
///
/// # Errors
/// [`RemovalError`], when the API server refuses or is not there.
pub async fn remove_made_namespace(access: &Access, run: &str) -> Result<(), RemovalError> {
    let namespaces: Api<Namespace> = Api::all(access.client.clone());
    let found = namespaces.get_opt(&access.namespace).await;
    let labels = found.map_err(RemovalError::Unknown)?;
    let labels = labels.and_then(|namespace| namespace.metadata.labels);
    let is_made = labels.is_some_and(|labels| labels.contains_key(MADE_LABEL));
    match is_made && !has_other_runs(access, run).await? {
        true => delete_namespace(access).await,
        false => Ok(()),
    }
}

/// Whether pods of another run than this one are in the namespace.
async fn has_other_runs(access: &Access, run: &str) -> Result<bool, RemovalError> {
    let pods: Api<Pod> = Api::namespaced(access.client.clone(), &access.namespace);
    let of_others = format!("{RUN_LABEL},{RUN_LABEL}!={run}");
    let one = ListParams::default().labels(&of_others).limit(1);
    let found = pods.list(&one).await.map_err(RemovalError::Unknown)?;
    Ok(!found.items.is_empty())
}

/// The API server reports only that a namespace is not found to who may not look for it.
fn explain_missing_namespace(error: KubernetesError, access: &Access) -> KubernetesError {
    let not_found = format!("namespaces \"{}\" not found", access.namespace);
    match error {
        KubernetesError::Refused { words, .. } if words.contains(&not_found) => {
            KubernetesError::NoNamespace {
                namespace: access.namespace.clone(),
                rules: rules_of(Need::Namespace, &access.namespace),
            }
        }
        other => other,
    }
}

/// Whether the namespace was made here, by this run or by one that could not remove it.
async fn ensure_namespace(access: &Access, run: &str) -> Result<bool, KubernetesError> {
    let namespaces: Api<Namespace> = Api::all(access.client.clone());
    match namespaces.get_opt(&access.namespace).await {
        Ok(Some(found)) => {
            let labels = found.metadata.labels.unwrap_or_default();
            return Ok(labels.contains_key(MADE_LABEL));
        }
        // Who may not look has one that exists.
        Err(kube::Error::Api(status)) if status.code == 403 => return Ok(false),
        Err(error) => return Err(access.first_error("look for the namespace", &error)),
        Ok(None) => {}
    }
    let document = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": access.namespace, "labels": {
            MADE_LABEL: "yes",
            RUN_LABEL: run,
            "app.kubernetes.io/managed-by": "eastwest",
            // Pods in the nodes' network are asked for by name; the others are restricted by their
            // own specs.
            "pod-security.kubernetes.io/enforce": "privileged",
        }},
    });
    let what = format!("create namespace {}", access.namespace);
    let namespace: Namespace =
        serde_json::from_value(document).map_err(|error| KubernetesError::Refused {
            what: what.clone(),
            words: error.to_string(),
            hint: None,
        })?;
    let made = namespaces.create(&PostParams::default(), &namespace).await;
    made.map_err(|error| KubernetesError::of(what, &error))?;
    Ok(true)
}

async fn delete_namespace(access: &Access) -> Result<(), RemovalError> {
    let namespaces: Api<Namespace> = Api::all(access.client.clone());
    match namespaces
        .delete(&access.namespace, &DeleteParams::default())
        .await
    {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(source) => Err(RemovalError::Namespace {
            namespace: access.namespace.clone(),
            source,
        }),
    }
}

/// What the cluster last warned of a pod: a sandbox that its CNI cannot make is reported nowhere
/// else.
async fn last_warning(access: &Access, pod: &str) -> Option<String> {
    let events: Api<Event> = Api::namespaced(access.client.clone(), &access.namespace);
    let of_pod = format!("involvedObject.name={pod},type=Warning");
    let list = events.list(&ListParams::default().fields(&of_pod)).await;
    match list {
        Ok(list) => newest(&list.items),
        Err(kube::Error::Api(status)) if status.code == 403 => {
            let rules = rules_of(Need::Diagnosis, &access.namespace).join("; ");
            Some(format!("no right to read why ({rules})"))
        }
        Err(_) => None,
    }
}

fn newest(events: &[Event]) -> Option<String> {
    let when = |event: &Event| {
        let series = event.last_timestamp.as_ref().map(|time| time.0);
        series.or_else(|| event.event_time.as_ref().map(|time| time.0))
    };
    let event = events.iter().max_by_key(|event| when(event))?;
    let reason = event.reason.clone().unwrap_or_default();
    let message = event.message.clone().unwrap_or_default();
    Some(format!("{reason}: {}", message.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_warning_is_told() {
        let event = |reason: &str, second: u32| {
            let time = format!("2026-11-23T15:00:{second:02}Z");
            serde_json::from_value(json!({
                "metadata": {}, "involvedObject": {}, "reason": reason, "message": "no plugin ", "lastTimestamp": time,
            }))
        };
        let events = [("New", 9), ("Old", 5)].map(|(reason, at)| event(reason, at).unwrap());
        assert_eq!(newest(&events).as_deref(), Some("New: no plugin"));
        assert_eq!(newest(&[]), None);
    }

    #[test]
    fn a_services_ports_are_those_that_clients_reach() {
        let port = |protocol: &str, number: u16, node_port: u16| json!({"protocol": protocol, "port": number, "targetPort": number, "nodePort": node_port});
        let made = json!({"metadata": {}, "spec": {"clusterIP": "198.19.255.9", "ports": [
            port("TCP", 5401, 30_500), port("TCP", 5402, 30_700), port("UDP", 5402, 30_600), port("UDP", 5403, 30_601),
        ]}});
        let service: Service = serde_json::from_value(made).unwrap();
        let by_node = service_address(&service, "NodePort").unwrap();
        assert_eq!(
            (by_node.listener.port(), by_node.tcp_ports),
            (30_500, vec![30_700])
        );
        assert_eq!(by_node.udp_ports, [30_600, 30_601]);
        let by_address = service_address(&service, "ClusterIP").unwrap();
        assert_eq!(by_address.listener, "198.19.255.9:5401".parse().unwrap());
        assert_eq!(by_address.udp_ports, [5402, 5403]);
    }

    #[test]
    fn a_headless_service_has_its_endpoints_address() {
        let slice = |service: &str, addresses: &[&str]| {
            json!({
                "metadata": {"labels": {SERVICE_NAME_LABEL: service}},
                "addressType": "IPv4",
                "endpoints": [{"addresses": addresses}],
            })
        };
        let documents = [
            slice("ew-headless-x-n1", &["198.19.1.5"]),
            slice("ew-headless-x-n2", &[]),
            json!({"metadata": {}, "addressType": "IPv4", "endpoints": []}),
        ];
        let slices = documents.map(|document| serde_json::from_value(document).unwrap());
        let endpoints = endpoints_by_service(&slices);
        let address: IpAddr = "198.19.1.5".parse().unwrap();
        assert_eq!(
            endpoints,
            BTreeMap::from([("ew-headless-x-n1".to_owned(), address)])
        );
    }
}
