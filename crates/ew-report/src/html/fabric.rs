//! The fabric: racks with their hosts, uplinks with capacity and load, parallel paths, and the
//! faulty parts marked, each leading to its evidence. What it shows is collected here; how it is
//! laid out and drawn is in [`drawing`].

mod drawing;
mod parts;

use super::accused::{Accused, Mark};
use super::anchors::{host_anchor, rack_anchor};
use crate::view::Tone;
use crate::words::{host_name, host_state, plural, rack_name, rate};
use drawing::Shape;
use ew_model::Analysis;
use ew_model::analysis::{HostAnalysis, HostState, RackAnalysis, UplinkAnalysis};
use ew_model::finding::{Cause, Finding, Severity, Subject};
use ew_model::inventory::RackId;
use parts::{Gauge, HostClass, HostPart, MAX_WIRES, PairPart, Parts, RackPart, Wire};
use serde::Serialize;

/// More hosts than this are drawn as dots, and only accused ones are named.
const MAX_NAMED: usize = 48;

/// The drawing, laid out for two widths of the page.
#[derive(Serialize)]
pub(super) struct Fabric {
    wide: String,
    narrow: String,
    has_racks: bool,
}

/// `None` where no host came up.
pub(super) fn view(analysis: &Analysis, accused: &Accused<'_>) -> Option<Fabric> {
    if analysis.hosts.is_empty() {
        return None;
    }
    let parts = parts(analysis, accused);
    Some(Fabric {
        wide: drawing::draw(&parts, &Shape::WIDE),
        narrow: drawing::draw(&parts, &Shape::NARROW),
        has_racks: parts.spine.is_some(),
    })
}

fn parts(analysis: &Analysis, accused: &Accused<'_>) -> Parts {
    let inventory = analysis.inventory();
    let mut racks: Vec<RackPart> = inventory
        .rack_ids()
        .map(|rack| rack_part(analysis, accused, rack))
        .collect();
    let rackless = analysis.hosts.iter();
    let rackless = rackless.filter(|host| inventory.rack_of(host.host).is_none());
    let rackless: Vec<HostPart> = rackless
        .map(|host| host_part(analysis, accused, host))
        .collect();
    let has_racks = !racks.is_empty();
    if !rackless.is_empty() {
        racks.push(RackPart {
            id: None,
            name: if has_racks { "no rack" } else { "hosts" }.to_owned(),
            to: "hosts".to_owned(),
            about: format!("{} without a rack", plural(rackless.len(), "host")),
            gauges: Vec::new(),
            marks: Vec::new(),
            wires: Vec::new(),
            hosts: rackless,
        });
    }
    let is_dense = analysis.hosts.len() > MAX_NAMED;
    if is_dense {
        // What is wrong must not be below the fold.
        racks.sort_by_key(|rack| std::cmp::Reverse(rack.accusations()));
    }
    let hosts = plural(analysis.hosts.len(), "host");
    Parts {
        spine: has_racks.then(|| spine(&racks)),
        summary: match racks.len() {
            0 | 1 => format!("Drawing of {hosts}"),
            racks => format!("Drawing of {hosts} in {}", plural(racks, "rack")),
        },
        pairs: pairs(analysis),
        racks,
        is_dense,
    }
}

/// `Between racks: 8 parallel paths a rack`.
fn spine(racks: &[RackPart]) -> String {
    let counts = || racks.iter().map(|r| r.wires.len()).filter(|n| *n > 0);
    match (counts().min(), counts().max()) {
        (Some(1), Some(1)) | (None, _) | (_, None) => "Between racks".to_owned(),
        (Some(least), Some(most)) if least == most => {
            format!("Between racks: {most} parallel paths a rack")
        }
        (Some(least), Some(most)) => {
            format!("Between racks: {least} to {most} parallel paths a rack")
        }
    }
}

fn rack_part(analysis: &Analysis, accused: &Accused<'_>, rack: RackId) -> RackPart {
    let inventory = analysis.inventory();
    let measured = analysis.racks.iter().find(|one| one.rack == rack);
    let marks = accused.rack(analysis, rack);
    let name = rack_name(inventory, rack);
    let wires = wires(analysis, rack, measured);
    let of_rack = |host: &&HostAnalysis| inventory.rack_of(host.host) == Some(rack);
    RackPart {
        id: Some(rack),
        to: match marks.first() {
            Some(mark) => mark.to().to_owned(),
            None => figures_of(analysis, rack),
        },
        about: about_rack(&name, &marks, &wires, measured),
        gauges: measured.map_or_else(Vec::new, gauges),
        wires,
        marks,
        name,
        hosts: analysis
            .hosts
            .iter()
            .filter(of_rack)
            .map(|host| host_part(analysis, accused, host))
            .collect(),
    }
}

/// The row of the rack table that is about this rack.
fn figures_of(analysis: &Analysis, rack: RackId) -> String {
    let mut pairs = analysis.rack_pairs.iter();
    let pair = pairs.find(|pair| pair.from == rack);
    pair.map_or_else(|| "run".to_owned(), |pair| rack_anchor(pair.from, pair.to))
}

fn about_rack(
    name: &str,
    marks: &[Mark],
    wires: &[Wire],
    measured: Option<&RackAnalysis>,
) -> String {
    let mut parts: Vec<String> = marks.iter().map(|mark| mark.word().to_owned()).collect();
    if let Some(rack) = measured {
        parts.push(about_direction("out", "send", &rack.tx));
        parts.push(about_direction("in", "receive", &rack.rx));
    }
    if wires.len() > 1 {
        let bad = wires.iter().filter(|wire| **wire != Wire::Used).count();
        let bad = match bad {
            0 => String::new(),
            bad => format!(", {bad} of them bad"),
        };
        parts.push(format!("{}{bad}", plural(wires.len(), "parallel path")));
    }
    format!("Rack {name}: {}", parts.join("; "))
}

fn about_direction(direction: &str, verb: &str, uplink: &UplinkAnalysis) -> String {
    let carried = rate(Some(uplink.carried_bits_per_sec));
    let hosts = rate(Some(uplink.hosts_bits_per_sec));
    let capacity = uplink.capacity_bits_per_sec.map(|e| rate(Some(e.value)));
    let state = match (uplink.limited, capacity, uplink.oversubscription) {
        (Some(true), Some(capacity), Some(ratio)) => {
            format!("capacity {capacity}, {:.1}:1", ratio.value)
        }
        (Some(false), ..) => "not limiting".to_owned(),
        _ => "capacity not tested".to_owned(),
    };
    format!(
        "{direction}: load {carried}, {state}; its hosts can {verb} {hosts} at the rate of their class"
    )
}

fn gauges(rack: &RackAnalysis) -> Vec<Gauge> {
    vec![gauge('\u{2191}', &rack.tx), gauge('\u{2193}', &rack.rx)]
}

fn gauge(arrow: char, uplink: &UplinkAnalysis) -> Gauge {
    let carried = rate(Some(uplink.carried_bits_per_sec));
    let of_hosts = |value: f64| match uplink.hosts_bits_per_sec {
        hosts if hosts > 0.0 && value.is_finite() => (value / hosts).clamp(0.0, 1.0),
        _ => 0.0,
    };
    let ratio = uplink.oversubscription.map(|ratio| ratio.value);
    let (class, text, capacity) = match (uplink.limited, uplink.capacity_bits_per_sec, ratio) {
        (Some(true), Some(capacity), Some(ratio)) => (
            "full",
            format!("{}, {ratio:.1}:1", rate(Some(capacity.value))),
            Some(of_hosts(capacity.value)),
        ),
        (Some(false), ..) => ("free", format!("{carried}, not limiting"), None),
        _ => ("untested", format!("{carried}, not tested"), None),
    };
    Gauge {
        arrow,
        text,
        class,
        carried: of_hosts(uplink.carried_bits_per_sec).min(capacity.unwrap_or(1.0)),
        capacity,
    }
}

/// The rack's parallel paths: as traced, else as the run concluded, else as expected, else one.
fn wires(analysis: &Analysis, rack: RackId, measured: Option<&RackAnalysis>) -> Vec<Wire> {
    let traced = measured.map_or(&[][..], |rack| &rack.paths);
    let mut wires: Vec<Wire> = match traced {
        [] => vec![Wire::Used; parallel_paths(analysis)],
        traced => traced
            .iter()
            .map(|path| if path.is_bad { Wire::Bad } else { Wire::Used })
            .collect(),
    };
    let findings = || analysis.verdict.findings.iter();
    let is_here = |finding: &&Finding| {
        matches!(finding.subject, Subject::Run) || finding.subject == Subject::Rack { rack }
    };
    for finding in findings().filter(is_here) {
        match finding.cause {
            Cause::BadPath if !wires.contains(&Wire::Bad) => {
                // Which one it is is not known here; that it is one of several is.
                if wires.len() < 2 {
                    wires.push(Wire::Used);
                }
                if let Some(last) = wires.last_mut() {
                    *last = Wire::Bad;
                }
            }
            Cause::LostPath => {
                let figure = |q: Option<&ew_model::finding::Quantity>| q.map_or(0.0, |q| q.value);
                let (used, of) = (
                    figure(finding.measured.as_ref()),
                    figure(finding.expected.as_ref()),
                );
                let lost = (of - used).clamp(0.0, MAX_WIRES as f64) as usize;
                let used = wires.len().min(used.max(1.0) as usize);
                wires.truncate(used);
                wires.extend(std::iter::repeat_n(Wire::Unused, lost));
            }
            _ => {}
        }
    }
    wires
}

/// How many equal paths the run saw between racks; 1 where that is not known.
fn parallel_paths(analysis: &Analysis) -> usize {
    let measured = |cause: Cause| {
        let findings = analysis.verdict.findings.iter();
        let of_cause = findings.filter(move |finding| finding.cause == cause);
        of_cause.filter_map(|finding| Some(finding.measured.as_ref()?.value))
    };
    let seen = measured(Cause::HashCollisions).map(|paths| paths as usize);
    // A bad path is measured by its share of the connections.
    let shares = measured(Cause::BadPath).filter(|share| *share > 0.0);
    let shared = shares.map(|share| (1.0 / share).round() as usize);
    let expected = analysis
        .run
        .scenario
        .expect
        .paths
        .map(|paths| paths as usize);
    let known = seen.chain(expected).chain(shared).find(|paths| *paths > 1);
    known.unwrap_or(1).min(256)
}

fn host_part(analysis: &Analysis, accused: &Accused<'_>, host: &HostAnalysis) -> HostPart {
    let name = host_name(analysis.inventory(), host.host);
    let marks = accused.host(host.host);
    let rates = format!(
        "sends {}, receives {}",
        rate(host.tx_bits_per_sec.map(|e| e.value)),
        rate(host.rx_bits_per_sec.map(|e| e.value))
    );
    let own = || host_anchor(host.host);
    let (state, to, about) = match (&host.state, marks.first()) {
        (HostState::Alive, Some(mark)) => {
            let state = match mark.class() {
                "bad" => HostClass::Fault,
                _ => HostClass::Notice,
            };
            let about = format!("{name}: {}; {rates}", mark.word());
            (state, mark.to().to_owned(), about)
        }
        (HostState::Alive, None) => (HostClass::Fine, own(), format!("{name}: {rates}")),
        (state, mark) => {
            let to = mark.map_or_else(own, |mark| mark.to().to_owned());
            let about = format!("{name}: {}", host_state(state));
            (HostClass::Gone, to, about)
        }
    };
    HostPart {
        id: host.host,
        name,
        to,
        about,
        state,
    }
}

fn pairs(analysis: &Analysis) -> Vec<PairPart> {
    let inventory = analysis.inventory();
    let findings = (1..).zip(&analysis.verdict.findings);
    let shown = findings.filter(|(_, finding)| finding.severity != Severity::Info);
    shown
        .filter_map(|(number, finding)| {
            let Subject::Pair { src, dst } = finding.subject else {
                return None;
            };
            let (from, to) = (host_name(inventory, src), host_name(inventory, dst));
            Some(PairPart {
                src,
                dst,
                to: format!("finding-{number}"),
                about: format!("{from} to {to}: {}", crate::words::cause(finding.cause)),
                class: Tone::of_severity(finding.severity).class(),
            })
        })
        .collect()
}
