//! The lab file: YAML to [`LabSpec`], every error with file, line and column.

use std::fmt;
use std::marker::PhantomData;

use ew_model::inventory::RackId;
use ew_model::topology::{
    AddressFamily, BackgroundSpec, BurstSpec, PathSpec, PodSpec, Queue, RackSpec, Topology,
};
use ew_model::units;
use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

use crate::apply::{DEFAULT_STREAMS, find_rack};
use crate::error::LabError;
use crate::fault::{Fault, FaultKind, read_bucket, read_congestion, read_rate};
use crate::problem::{Problem, unreadable};
use crate::spec::{DEFAULT_NIC_BITS_PER_SEC, LabSpec, MAX_PATHS, check_host_count, new_rack};

type Field = Option<Spanned<Scalar>>;
type Located = (Location, Problem);

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct LabFile {
    name: Field,
    racks: Counted<RackEntry>,
    hosts_per_rack: Field,
    nic: Option<Spanned<Nics>>,
    paths: Field,
    uplink: Field,
    oversubscription: Field,
    pods: Option<Counted<PodEntry>>,
    lag_members: Field,
    flow_cap: Field,
    bucket: Field,
    congestion_control: Field,
    #[serde(default)]
    background: Vec<Spanned<BackgroundEntry>>,
    #[serde(default)]
    sshd: bool,
    #[serde(default)]
    queue: Queue,
    #[serde(default)]
    address_family: AddressFamily,
    #[serde(default)]
    polarised: bool,
    #[serde(default)]
    faults: Vec<Spanned<FaultEntry>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RackEntry {
    name: Field,
    hosts: Field,
    nic: Option<Spanned<Nics>>,
    paths: Field,
    uplink: Field,
    oversubscription: Field,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PodEntry {
    name: Field,
    racks: Field,
    paths: Field,
    uplink: Field,
    oversubscription: Field,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct BackgroundEntry {
    from: Spanned<Scalar>,
    to: Spanned<Scalar>,
    rate: Spanned<Scalar>,
    streams: Field,
    on: Field,
    off: Field,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FaultEntry {
    host: Field,
    rack: Field,
    pod: Field,
    spine: Field,
    core: Field,
    path: Field,
    nic: Field,
    tx: Field,
    rx: Field,
    uplink: Field,
    up: Field,
    down: Field,
    loss: Field,
    up_loss: Field,
    down_loss: Field,
    black_hole: Field,
    withdrawn: Field,
    weight: Field,
    cpu_quota: Field,
    receive_buffer: Field,
    send_buffer: Field,
    mtu: Field,
    congestion_control: Field,
    flow_cap: Field,
    bucket: Field,
    neighbour: Field,
    cpu_hog: Field,
    disk_writer: Field,
    link: Field,
}

impl LabSpec {
    /// Reads a lab file. `file_name` is used in errors only.
    ///
    /// # Errors
    /// [`LabError::Spec`] with file, line and column.
    pub fn parse(text: &str, file_name: &str) -> Result<Self, LabError> {
        let mut file: LabFile =
            serde_saphyr::from_str(text).map_err(|error| syntax(&error, file_name))?;
        let at = |(location, problem): Located| LabError::Spec {
            location: source_location(file_name, Some(location)),
            problem,
        };
        let name = file.name.as_ref().map_or("lab", |name| &name.value.0);
        let mut topology = Topology {
            name: name.into(),
            queue: file.queue,
            address_family: file.address_family,
            polarised: file.polarised,
            ..Topology::default()
        };
        let racks = file.racks.take();
        for (index, entry) in racks.iter().enumerate() {
            let rack = read_rack(&file, entry, index + 1).map_err(at)?;
            topology.racks.push(rack);
        }
        set_hosts(&mut topology, &file).map_err(at)?;
        let pods = file.pods.as_mut().map(Counted::take);
        add_pods(&mut topology, &pods.unwrap_or_default()).map_err(at)?;
        for entry in &file.background {
            let traffic = read_background(&topology, entry).map_err(at)?;
            topology.background.push(traffic);
        }
        let spec = LabSpec {
            sshd: file.sshd,
            topology,
        };
        let mut spec = spec.addressed().map_err(|problem| {
            let location = location_of(&file, &racks, &problem);
            at((location, problem))
        })?;
        for entry in &file.faults {
            add_fault(&mut spec, entry).map_err(at)?;
        }
        Ok(spec)
    }
}

/// Where the part is that a problem is about: a rack, by its own name or one of its hosts', or the
/// lab.
fn location_of(file: &LabFile, racks: &[Spanned<RackEntry>], problem: &Problem) -> Location {
    let owner = problem.owner().unwrap_or_default();
    let names = racks.iter().zip(1..).filter(|(entry, number)| {
        let name = entry.value.name.as_ref();
        let name = name.map_or_else(|| format!("r{number}"), |name| name.value.0.clone());
        owner == name || owner.starts_with(&format!("{name}h"))
    });
    let rack = names.map(|(entry, _)| match &entry.value {
        RackEntry {
            name: Some(name), ..
        } => name.referenced,
        RackEntry {
            hosts: Some(hosts), ..
        } => hosts.referenced,
        _ => file
            .hosts_per_rack
            .as_ref()
            .map_or(Location::UNKNOWN, |h| h.referenced),
    });
    let own = file
        .name
        .as_ref()
        .map_or(Location::UNKNOWN, |name| name.referenced);
    rack.last().unwrap_or(own)
}

fn read_rack(
    file: &LabFile,
    entry: &Spanned<RackEntry>,
    number: usize,
) -> Result<RackSpec, Located> {
    let rack = &entry.value;
    let name = match &rack.name {
        Some(name) => name.value.0.clone(),
        None => format!("r{number}"),
    };
    let hosts_field = rack.hosts.as_ref().or(file.hosts_per_rack.as_ref());
    let hosts = hosts_field.ok_or_else(|| {
        let rule = "a rack has a number of hosts: give `hosts-per-rack: 4`";
        setting(entry.referenced, &name, rule)
    })?;
    let host_count = whole_number(hosts, "number of hosts", "4")?;
    check_host_count(&name, host_count).map_err(|problem| (hosts.referenced, problem))?;
    let nics = match rack.nic.as_ref().or(file.nic.as_ref()) {
        Some(nics) => read_nics(nics)?,
        None => vec![DEFAULT_NIC_BITS_PER_SEC],
    };
    let Some(first) = nics.first() else {
        let rule = "hosts have NICs: give `nic: 1G`, or `nic: [1G, 10G]`";
        return Err(setting(entry.referenced, &name, rule));
    };
    let mut made = new_rack(&name, host_count, &nics, Vec::new());
    let rates = made.hosts.iter().map(|host| host.nic.tx_bits_per_sec);
    let together = rates.fold(0, u64::saturating_add);
    let paths = path_count(&[&rack.paths, &file.paths])?;
    let declared = [
        (&rack.uplink, &rack.oversubscription),
        (&file.uplink, &file.oversubscription),
    ];
    let uplink = uplink_rate(&declared, together.max(*first))?;
    made.paths = even_paths(uplink, paths);
    Ok(made)
}

fn read_nics(nics: &Spanned<Nics>) -> Result<Vec<u64>, Located> {
    let rates = nics.value.0.iter().map(|rate| read_rate(&rate.0));
    rates
        .collect::<Result<_, _>>()
        .map_err(|problem| (nics.referenced, problem))
}

/// A member gets the same part of the uplink as every other.
fn even_paths(uplink_bits_per_sec: u64, paths: usize) -> Vec<PathSpec> {
    vec![PathSpec::healthy(uplink_bits_per_sec / paths.max(1) as u64); paths]
}

fn path_count(declared: &[&Field]) -> Result<usize, Located> {
    let field = declared.iter().find_map(|field| field.as_ref());
    let Some(field) = field else {
        return Ok(1);
    };
    match whole_number(field, "number of paths", "4")? {
        count @ 1..=MAX_PATHS => Ok(count),
        _ => Err((
            field.referenced,
            Problem::Range("an uplink has 1 to 30 paths"),
        )),
    }
}

/// What all hosts have in common.
fn set_hosts(topology: &mut Topology, file: &LabFile) -> Result<(), Located> {
    let located = |field: &Spanned<Scalar>| {
        let location = field.referenced;
        move |problem| (location, problem)
    };
    let flow_cap = file.flow_cap.as_ref().map(rate).transpose()?;
    let bucket = file.bucket.as_ref();
    let bucket = bucket.map(|field| read_bucket(&field.value.0).map_err(located(field)));
    let bucket = bucket.transpose()?;
    let control = file.congestion_control.as_ref();
    let control = control.map(|field| read_congestion(&field.value.0).map_err(located(field)));
    let control = control.transpose()?.unwrap_or_default();
    let members = file.lag_members.as_ref();
    let members = members.map(|field| whole_number(field, "number of links", "2"));
    let members = members.transpose()?.unwrap_or(1);
    for host in topology.racks.iter_mut().flat_map(|rack| &mut rack.hosts) {
        host.shaper.flow_bits_per_sec = flow_cap;
        host.shaper.bucket = bucket;
        host.congestion_control = control;
        host.nic.lag_members = members as u32;
    }
    Ok(())
}

/// Racks belong to pods in their order.
fn add_pods(topology: &mut Topology, entries: &[Spanned<PodEntry>]) -> Result<(), Located> {
    if entries.is_empty() {
        return Ok(());
    }
    let each = topology.racks.len().div_ceil(entries.len().max(1));
    let mut racks = topology.racks.iter_mut();
    for (number, entry) in (0..).zip(entries) {
        let pod = &entry.value;
        let count = pod.racks.as_ref();
        let count = count.map_or(Ok(each), |field| {
            whole_number(field, "number of racks", "2")
        })?;
        let mut together = 0_u64;
        for rack in racks.by_ref().take(count) {
            rack.pod = Some(number);
            together = rack.up_bits_per_sec().saturating_add(together);
        }
        let uplink = uplink_rate(&[(&pod.uplink, &pod.oversubscription)], together)?;
        let name = pod.name.as_ref().map(|name| name.value.0.clone());
        topology.pods.push(PodSpec {
            name: name.unwrap_or_else(|| format!("pod{}", number + 1)),
            paths: even_paths(uplink, path_count(&[&pod.paths])?),
        });
    }
    match (racks.next(), entries.last()) {
        (Some(rack), Some(last)) => {
            let rule = "the rack is in no pod: the pods' `racks` are too few";
            Err(setting(last.referenced, &rack.name, rule))
        }
        _ => Ok(()),
    }
}

fn read_background(
    topology: &Topology,
    entry: &Spanned<BackgroundEntry>,
) -> Result<BackgroundSpec, Located> {
    let traffic = &entry.value;
    let rack = |field: &Spanned<Scalar>| {
        let found = find_rack(topology, &field.value.0);
        let problem = || {
            let unknown = Problem::Unknown {
                what: "rack",
                name: field.value.0.clone(),
                known: String::new(),
            };
            (field.referenced, unknown)
        };
        found.map(|rack| RackId(rack as u32)).ok_or_else(problem)
    };
    let duration = |field: &Spanned<Scalar>| {
        let wrong = |error: units::UnitError| (field.referenced, error.into());
        units::parse_duration_ns(&field.value.0).map_err(wrong)
    };
    let streams = traffic.streams.as_ref();
    let streams = streams.map(|field| whole_number(field, "number of streams", "16"));
    let bursts = match (&traffic.on, &traffic.off) {
        (Some(on), Some(off)) => Some(BurstSpec {
            on_ns: duration(on)?,
            off_ns: duration(off)?,
        }),
        (None, None) => None,
        _ => {
            let rule = "bursts have both an `on` and an `off` time";
            return Err(setting(entry.referenced, "background", rule));
        }
    };
    Ok(BackgroundSpec {
        from: rack(&traffic.from)?,
        to: rack(&traffic.to)?,
        rate_bits_per_sec: rate(&traffic.rate)?,
        streams: streams.transpose()?.map_or(DEFAULT_STREAMS, |s| s as u32),
        bursts,
    })
}

/// The part's own words go before the file's; without any, it is not oversubscribed.
fn uplink_rate(declared: &[(&Field, &Field)], below_together: u64) -> Result<u64, Located> {
    for (uplink, oversubscription) in declared {
        match (uplink, oversubscription) {
            (Some(_), Some(ratio)) => {
                let rule = "`oversubscription` is the same setting: give one";
                return Err(setting(ratio.referenced, "uplink", rule));
            }
            (Some(field), None) => return rate(field),
            (None, Some(field)) => {
                let ratio = field.value.0.trim_end_matches(":1").parse::<f64>();
                let ratio = ratio
                    .ok()
                    .filter(|r| (0.1..=1000.0).contains(r))
                    .ok_or_else(|| {
                        let problem = unreadable(&field.value.0, "ratio", "4, for 4:1");
                        (field.referenced, problem)
                    })?;
                return Ok((below_together as f64 / ratio).round() as u64);
            }
            (None, None) => {}
        }
    }
    Ok(below_together)
}

const NO_FAULT: &str = "the fault has no kind: add `nic: 100M`, `rx`, `tx`, `loss`, `cpu-quota`, `receive-buffer`, `send-buffer`, \
    `mtu`, `congestion-control`, `flow-cap`, `bucket`, `neighbour`, `cpu-hog`, `disk-writer` or `link: down` of a host; `uplink`, `up`, \
    `down`, `loss`, `up-loss`, `down-loss`, `black-hole`, `withdrawn`, `weight` or `link: down` of a rack, a pod or a path";

fn add_fault(spec: &mut LabSpec, entry: &Spanned<FaultEntry>) -> Result<(), Located> {
    let fault = &entry.value;
    let target = target(entry)?;
    let kinds = fault_kinds(fault)?;
    if kinds.is_empty() {
        return Err(setting(entry.referenced, &target, NO_FAULT));
    }
    for (location, kind) in kinds {
        let target = target.clone();
        spec.apply(&Fault { target, kind })
            .map_err(|problem| (location, problem))?;
    }
    Ok(())
}

/// `r1h1`, `r1`, `r1/2`, `pod1/2`, `spine/2`, `core/2`.
fn target(entry: &Spanned<FaultEntry>) -> Result<String, Located> {
    let fault = &entry.value;
    let name = |field: &Spanned<Scalar>| field.value.0.clone();
    let of_path = |owner: String| match &fault.path {
        Some(path) => format!("{owner}/{}", path.value.0),
        None => owner,
    };
    let named = [
        fault.host.as_ref().map(name),
        fault.rack.as_ref().map(|rack| of_path(name(rack))),
        fault.pod.as_ref().map(|pod| of_path(name(pod))),
        fault
            .spine
            .as_ref()
            .map(|spine| format!("spine/{}", name(spine))),
        fault
            .core
            .as_ref()
            .map(|core| format!("core/{}", name(core))),
    ];
    let mut named = named.into_iter().flatten();
    match (named.next(), named.next()) {
        (Some(target), None) => Ok(target),
        _ => {
            let rule = "name one of a `host`, a `rack`, a `pod`, a `spine` or a `core`; a rack or pod with a `path` or without";
            Err(setting(entry.referenced, "fault", rule))
        }
    }
}

fn fault_kinds(fault: &FaultEntry) -> Result<Vec<(Location, FaultKind)>, Located> {
    let mut kinds = Vec::new();
    let fields = [
        ("nic", &fault.nic),
        ("tx", &fault.tx),
        ("rx", &fault.rx),
        ("uplink", &fault.uplink),
        ("up", &fault.up),
        ("down", &fault.down),
        ("loss", &fault.loss),
        ("up-loss", &fault.up_loss),
        ("down-loss", &fault.down_loss),
        ("black-hole", &fault.black_hole),
        ("withdrawn", &fault.withdrawn),
        ("weight", &fault.weight),
        ("cpu-quota", &fault.cpu_quota),
        ("receive-buffer", &fault.receive_buffer),
        ("send-buffer", &fault.send_buffer),
        ("mtu", &fault.mtu),
        ("congestion-control", &fault.congestion_control),
        ("flow-cap", &fault.flow_cap),
        ("bucket", &fault.bucket),
        ("neighbour", &fault.neighbour),
        ("cpu-hog", &fault.cpu_hog),
        ("disk-writer", &fault.disk_writer),
    ];
    for (word, field) in fields {
        if let Some(field) = field {
            let kind = FaultKind::read(word, Some(&field.value.0));
            kinds.push((field.referenced, kind.map_err(|p| (field.referenced, p))?));
        }
    }
    if let Some(link) = &fault.link {
        let kind = FaultKind::read(&format!("link-{}", link.value.0), None);
        let wrong = |_| (link.referenced, Problem::Range("`link` is `up` or `down`"));
        kinds.push((link.referenced, kind.map_err(wrong)?));
    }
    Ok(kinds)
}

fn rate(field: &Spanned<Scalar>) -> Result<u64, Located> {
    read_rate(&field.value.0).map_err(|problem| (field.referenced, problem))
}

fn whole_number(
    field: &Spanned<Scalar>,
    what: &'static str,
    example: &'static str,
) -> Result<usize, Located> {
    let number: Option<u16> = field.value.0.parse().ok();
    let problem = || (field.referenced, unreadable(&field.value.0, what, example));
    number.map(usize::from).ok_or_else(problem)
}

fn setting(location: Location, owner: &str, rule: &'static str) -> Located {
    let owner = owner.into();
    (location, Problem::Setting { owner, rule })
}

fn syntax(error: &serde_saphyr::Error, file_name: &str) -> LabError {
    let error = error.without_snippet();
    LabError::Spec {
        location: source_location(file_name, error.location()),
        problem: Problem::Syntax(error.to_string()),
    }
}

fn source_location(file_name: &str, location: Option<Location>) -> String {
    match location {
        Some(at) if at != Location::UNKNOWN => {
            format!("{file_name}:{}:{}", at.line(), at.column())
        }
        _ => file_name.into(),
    }
}

/// A number or text, as it is in the file.
struct Scalar(String);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl Visitor<'_> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a number or a word")
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
        Ok(Scalar(text.into()))
    }

    /// YAML takes `on` and `off` for these.
    fn visit_bool<E>(self, is_on: bool) -> Result<Scalar, E> {
        Ok(Scalar(if is_on { "on" } else { "off" }.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Scalar, E> {
        Ok(Scalar(number.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Scalar, E> {
        Ok(Scalar(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Scalar, E> {
        Ok(Scalar(number.to_string()))
    }
}

/// The rates of a rack's NICs, in turn: one, or a list.
struct Nics(Vec<Scalar>);

impl<'de> Deserialize<'de> for Nics {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NicsVisitor)
    }
}

struct NicsVisitor;

impl<'de> Visitor<'de> for NicsVisitor {
    type Value = Nics;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a rate, or a list such as [1G, 10G]")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Nics, E> {
        ScalarVisitor.visit_str(text).map(|one| Nics(vec![one]))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Nics, E> {
        ScalarVisitor.visit_u64(number).map(|one| Nics(vec![one]))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Nics, E> {
        ScalarVisitor.visit_f64(number).map(|one| Nics(vec![one]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, entries: A) -> Result<Nics, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(entries)).map(Nics)
    }
}

/// Parts that are alike, or a list of them.
enum Counted<T> {
    Count(u64),
    List(Vec<Spanned<T>>),
}

impl<T: Default> Counted<T> {
    fn take(&mut self) -> Vec<Spanned<T>> {
        match self {
            Self::List(entries) => std::mem::take(entries),
            Self::Count(count) => (0..*count)
                .map(|_| Spanned {
                    value: T::default(),
                    referenced: Location::UNKNOWN,
                    defined: Location::UNKNOWN,
                })
                .collect(),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Counted<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountedVisitor(PhantomData))
    }
}

struct CountedVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for CountedVisitor<T> {
    type Value = Counted<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a number, or a list such as [{name: r1, hosts: 4}]")
    }

    fn visit_u64<E: serde::de::Error>(self, count: u64) -> Result<Counted<T>, E> {
        if (1..=1000).contains(&count) {
            return Ok(Counted::Count(count));
        }
        Err(E::custom("a lab has at least one rack, and pods have some"))
    }

    fn visit_i64<E: serde::de::Error>(self, count: i64) -> Result<Counted<T>, E> {
        self.visit_u64(u64::try_from(count).unwrap_or(0))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, entries: A) -> Result<Counted<T>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(entries)).map(Counted::List)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::troubles;

    const DEMO: &str = "\
name: demo
racks: 2
hosts-per-rack: 4
nic: 200M
oversubscription: 4
sshd: true
faults:
  - {host: r2h3, nic: 100M}
  - {host: r1h2, rx: 50M}
  - {rack: r1, uplink: 50M}
  - {host: r1h1, cpu-quota: 20%}
  - {host: r2h1, receive-buffer: 64K}
  - {host: r2h2, mtu: 1400}
  - {host: r1h3, loss: 2%, neighbour: 40M, cpu-hog: 98%, disk-writer: on, send-buffer: 16K}
  - {rack: r2, loss: 1%}
";

    #[test]
    fn the_demo_file_means_what_it_says() {
        let spec = LabSpec::parse(DEMO, "demo.yaml").unwrap();
        let host = |name| spec.find_host(name).unwrap().1;
        assert!(spec.sshd);
        assert_eq!(spec.hosts().count(), 8);
        assert_eq!(spec.topology.racks[0].up_bits_per_sec(), 50_000_000);
        assert_eq!(spec.topology.racks[1].up_bits_per_sec(), 200_000_000);
        assert_eq!(host("r2h3").nic.tx_bits_per_sec, 100_000_000);
        assert_eq!(host("r2h3").nic.rx_bits_per_sec, 100_000_000);
        assert_eq!(host("r1h2").nic.tx_bits_per_sec, 200_000_000);
        assert_eq!(host("r1h2").nic.rx_bits_per_sec, 50_000_000);
        assert_eq!(host("r1h1").cpu_quota_cores, Some(0.2));
        assert_eq!(host("r2h1").receive_buffer_bytes, Some(65536));
        assert_eq!(host("r2h2").nic.mtu_bytes, 1400);
        assert_eq!(
            troubles(host("r1h3")),
            [
                "loss 2%",
                "send-buffer 16.0 KiB",
                "cpu-hog 98%",
                "neighbour 40.0 Mb/s",
                "disk-writer"
            ]
        );
        assert_eq!(spec.topology.racks[1].paths[0].up.loss_share, 0.01);
    }

    #[test]
    fn racks_may_differ() {
        let text = "name: x\nnic: 1G\nracks:\n  - {name: a, hosts: 2, uplink: 500M}\n  - {hosts: 3, nic: 100M}\n";
        let spec = LabSpec::parse(text, "x.yaml").unwrap();
        assert_eq!(spec.folded_hosts(), "ah[1-2],r2h[1-3]");
        assert_eq!(spec.topology.racks[0].up_bits_per_sec(), 500_000_000);
        assert_eq!(spec.topology.racks[1].up_bits_per_sec(), 300_000_000);
    }

    #[test]
    fn errors_point_at_the_line() {
        let cases = [
            (
                "name: x\nracks: 1\nhosts-per-rack: 2\nnic: fast\n",
                "f.yaml:4:6",
                "rate",
            ),
            (
                "name: x\nracks: 1\nhosts-per-rack: 2\nfaults:\n  - {host: r9h1, nic: 1M}\n",
                "f.yaml:5",
                "r1h[1-2]",
            ),
            (
                "name: x\nracks: 1\nhosts-per-rack: 2\nfaults:\n  - {host: r1h1, uplink: 1M}\n",
                "f.yaml:5",
                "rack",
            ),
            (
                "name: x\nracks: 1\nhosts-per-rack: 2\nfaults:\n  - {host: r1h1}\n",
                "f.yaml:5",
                "no kind",
            ),
            (
                "name: x\nracks: 1\nhosts-per-rack: 2\nspeed: 1G\n",
                "f.yaml:4",
                "speed",
            ),
            (
                "name: X!\nracks: 1\nhosts-per-rack: 2\n",
                "f.yaml:1",
                "lower-case",
            ),
            (
                "name: x\nracks: 0\nhosts-per-rack: 2\n",
                "f.yaml",
                "at least one rack",
            ),
            ("name: x\nracks: 2\n", "f.yaml", "hosts-per-rack"),
            ("name: x\nracks: [\n", "f.yaml:", ""),
            (
                "name: x\nracks: 1\nhosts-per-rack: 1\nuplink: 1G\noversubscription: 4\n",
                "f.yaml:5",
                "give one",
            ),
        ];
        for (text, location, words) in cases {
            let error = LabSpec::parse(text, "f.yaml").unwrap_err().to_string();
            assert!(
                error.starts_with(location) && error.contains(words),
                "{text}: {error}"
            );
        }
    }
}
