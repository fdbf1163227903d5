//! The lab file: YAML to [`LabSpec`], every error with file, line and column.

use std::fmt;

use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

use crate::error::LabError;
use crate::fault::{Fault, FaultKind, read_rate};
use crate::spec::{DEFAULT_NIC_BITS_PER_SEC, LabSpec, Queue};

type Field = Option<Spanned<Scalar>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct LabFile {
    name: Field,
    racks: Racks,
    hosts_per_rack: Field,
    nic: Field,
    uplink: Field,
    oversubscription: Field,
    #[serde(default)]
    sshd: bool,
    #[serde(default)]
    queue: Queue,
    #[serde(default)]
    faults: Vec<Spanned<FaultEntry>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RackEntry {
    name: Field,
    hosts: Field,
    nic: Field,
    uplink: Field,
    oversubscription: Field,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FaultEntry {
    host: Field,
    rack: Field,
    nic: Field,
    tx: Field,
    rx: Field,
    uplink: Field,
    loss: Field,
    cpu_quota: Field,
    receive_buffer: Field,
    send_buffer: Field,
    mtu: Field,
    neighbour: Field,
    cpu_hog: Field,
    disk_writer: Field,
    link: Field,
}

pub(crate) fn parse(text: &str, file_name: &str) -> Result<LabSpec, LabError> {
    let file: LabFile = serde_saphyr::from_str(text).map_err(|error| syntax(&error, file_name))?;
    let at = |(location, problem): Located| LabError::Spec {
        place: place(file_name, Some(location)),
        problem,
    };
    let mut spec = LabSpec {
        name: file
            .name
            .as_ref()
            .map_or("lab", |name| &name.value.0)
            .into(),
        sshd: file.sshd,
        queue: file.queue,
        racks: Vec::new(),
    };
    add_racks(&mut spec, &file).map_err(at)?;
    for entry in &file.faults {
        add_fault(&mut spec, entry).map_err(at)?;
    }
    let name_location = file.name.map_or(Location::UNKNOWN, |name| name.referenced);
    spec.validate()
        .map_err(|problem| at((name_location, problem)))?;
    Ok(spec)
}

type Located = (Location, String);

fn add_racks(spec: &mut LabSpec, file: &LabFile) -> Result<(), Located> {
    let counted;
    let entries = match &file.racks {
        Racks::List(entries) => entries,
        Racks::Count(count) => {
            counted = (0..*count)
                .map(|_| Spanned {
                    value: RackEntry::default(),
                    referenced: Location::UNKNOWN,
                    defined: Location::UNKNOWN,
                })
                .collect();
            &counted
        }
    };
    for (index, entry) in entries.iter().enumerate() {
        add_rack(spec, file, entry, index + 1)?;
    }
    Ok(())
}

fn add_rack(
    spec: &mut LabSpec,
    file: &LabFile,
    entry: &Spanned<RackEntry>,
    number: usize,
) -> Result<(), Located> {
    let rack = &entry.value;
    let name = match &rack.name {
        Some(name) => name.value.0.clone(),
        None => format!("r{number}"),
    };
    let hosts_field = rack.hosts.as_ref().or(file.hosts_per_rack.as_ref());
    let hosts = hosts_field.ok_or_else(|| {
        let problem = format!("rack `{name}` has no number of hosts: give `hosts-per-rack: 4`");
        (entry.referenced, problem)
    })?;
    let host_count = whole_number(hosts)?;
    let nic = match rack.nic.as_ref().or(file.nic.as_ref()) {
        Some(field) => rate(field)?,
        None => DEFAULT_NIC_BITS_PER_SEC,
    };
    let declared = [
        (&rack.uplink, &rack.oversubscription),
        (&file.uplink, &file.oversubscription),
    ];
    let uplink = uplink_rate(&declared, nic.saturating_mul(host_count as u64))?;
    let location = rack.name.as_ref().unwrap_or(hosts).referenced;
    spec.add_rack(&name, host_count, nic, uplink)
        .map_err(|problem| (location, problem))
}

/// The rack's own words go before the file's; without any, the rack is not oversubscribed.
fn uplink_rate(declared: &[(&Field, &Field)], hosts_together: u64) -> Result<u64, Located> {
    for (uplink, oversubscription) in declared {
        match (uplink, oversubscription) {
            (Some(_), Some(ratio)) => {
                let problem = "`uplink` and `oversubscription` say the same thing: give one";
                return Err((ratio.referenced, problem.into()));
            }
            (Some(field), None) => return rate(field),
            (None, Some(field)) => {
                let ratio = field.value.0.trim_end_matches(":1").parse::<f64>();
                let ratio = ratio
                    .ok()
                    .filter(|r| (0.1..=1000.0).contains(r))
                    .ok_or_else(|| {
                        let problem = format!(
                            "`{}` is no oversubscription: write 4 for 4:1",
                            field.value.0
                        );
                        (field.referenced, problem)
                    })?;
                return Ok((hosts_together as f64 / ratio).round() as u64);
            }
            (None, None) => {}
        }
    }
    Ok(hosts_together)
}

fn add_fault(spec: &mut LabSpec, entry: &Spanned<FaultEntry>) -> Result<(), Located> {
    let fault = &entry.value;
    let target = match (&fault.host, &fault.rack) {
        (Some(target), None) | (None, Some(target)) => target,
        _ => {
            let problem = "a fault names either a `host` or a `rack`";
            return Err((entry.referenced, problem.into()));
        }
    };
    let kinds = fault_kinds(fault)?;
    if kinds.is_empty() {
        let problem = format!(
            "the fault on `{}` says nothing: add `nic: 100M`, `rx`, `tx`, `uplink`, `loss`, `cpu-quota`, `receive-buffer`, `send-buffer`, `mtu`, \
             `neighbour`, `cpu-hog`, `disk-writer` or `link: down`",
            target.value.0
        );
        return Err((entry.referenced, problem));
    }
    for (location, kind) in kinds {
        let fits = match kind {
            FaultKind::Uplink(_) => fault.rack.is_some(),
            FaultKind::Loss(_) => true,
            _ => fault.host.is_some(),
        };
        if !fits {
            let problem =
                "`uplink` belongs to a `rack`, `loss` to either, every other fault to a `host`";
            return Err((location, problem.into()));
        }
        let target = target.value.0.clone();
        spec.apply(&Fault { target, kind })
            .map_err(|problem| (location, problem))?;
    }
    Ok(())
}

fn fault_kinds(fault: &FaultEntry) -> Result<Vec<(Location, FaultKind)>, Located> {
    let mut kinds = Vec::new();
    let fields = [
        ("nic", &fault.nic),
        ("tx", &fault.tx),
        ("rx", &fault.rx),
        ("uplink", &fault.uplink),
        ("loss", &fault.loss),
        ("cpu-quota", &fault.cpu_quota),
        ("receive-buffer", &fault.receive_buffer),
        ("send-buffer", &fault.send_buffer),
        ("mtu", &fault.mtu),
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
        let wrong = |_| (link.referenced, "`link` is `up` or `down`".to_owned());
        kinds.push((link.referenced, kind.map_err(wrong)?));
    }
    Ok(kinds)
}

fn rate(field: &Spanned<Scalar>) -> Result<u64, Located> {
    read_rate(&field.value.0).map_err(|problem| (field.referenced, problem))
}

fn whole_number(field: &Spanned<Scalar>) -> Result<usize, Located> {
    field.value.0.parse().map_err(|_| {
        let problem = format!(
            "`{}` is not a number of hosts; write it like 4",
            field.value.0
        );
        (field.referenced, problem)
    })
}

fn syntax(error: &serde_saphyr::Error, file_name: &str) -> LabError {
    let error = error.without_snippet();
    LabError::Spec {
        place: place(file_name, error.location()),
        problem: error.to_string(),
    }
}

fn place(file_name: &str, location: Option<Location>) -> String {
    match location {
        Some(at) if at != Location::UNKNOWN => {
            format!("{file_name}:{}:{}", at.line(), at.column())
        }
        _ => file_name.into(),
    }
}

/// A number or text, as it stands in the file.
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

enum Racks {
    Count(u64),
    List(Vec<Spanned<RackEntry>>),
}

impl<'de> Deserialize<'de> for Racks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RacksVisitor)
    }
}

struct RacksVisitor;

impl<'de> Visitor<'de> for RacksVisitor {
    type Value = Racks;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a number of racks, or a list such as [{name: r1, hosts: 4}]")
    }

    fn visit_u64<E: serde::de::Error>(self, count: u64) -> Result<Racks, E> {
        if (1..=1000).contains(&count) {
            return Ok(Racks::Count(count));
        }
        Err(E::custom("racks: a lab has at least one rack"))
    }

    fn visit_i64<E: serde::de::Error>(self, count: i64) -> Result<Racks, E> {
        self.visit_u64(u64::try_from(count).unwrap_or(0))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, entries: A) -> Result<Racks, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(entries)).map(Racks::List)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(spec.racks[0].uplink_bits_per_sec, 50_000_000);
        assert_eq!(spec.racks[1].uplink_bits_per_sec, 200_000_000);
        assert_eq!(host("r2h3").tx_bits_per_sec, 100_000_000);
        assert_eq!(host("r2h3").rx_bits_per_sec, 100_000_000);
        assert_eq!(host("r1h2").tx_bits_per_sec, 200_000_000);
        assert_eq!(host("r1h2").rx_bits_per_sec, 50_000_000);
        assert_eq!(host("r1h1").cpu_quota_cores, Some(0.2));
        assert_eq!(host("r2h1").receive_buffer_bytes, Some(65536));
        assert_eq!(host("r2h2").mtu_bytes, 1400);
        assert_eq!(
            host("r1h3").troubles(),
            [
                "loss 2 %",
                "send-buffer 16.0 KiB",
                "cpu-hog 98 %",
                "neighbour 40.0 Mb/s",
                "disk-writer"
            ]
        );
        assert_eq!(spec.racks[1].loss_share, 0.01);
    }

    #[test]
    fn racks_may_differ() {
        let text = "name: x\nnic: 1G\nracks:\n  - {name: a, hosts: 2, uplink: 500M}\n  - {hosts: 3, nic: 100M}\n";
        let spec = LabSpec::parse(text, "x.yaml").unwrap();
        assert_eq!(spec.folded_hosts(), "ah[1-2],r2h[1-3]");
        assert_eq!(spec.racks[0].uplink_bits_per_sec, 500_000_000);
        assert_eq!(spec.racks[1].uplink_bits_per_sec, 300_000_000);
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
                "nothing",
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
        for (text, place, words) in cases {
            let error = LabSpec::parse(text, "f.yaml").unwrap_err().to_string();
            assert!(
                error.starts_with(place) && error.contains(words),
                "{text}: {error}"
            );
        }
    }
}
