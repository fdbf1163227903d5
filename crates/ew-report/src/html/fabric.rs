//! The fabric drawn: racks with their hosts, uplinks with what they carry, parallel paths, and the
//! faulty parts marked, each leading to its evidence.

use super::accused::{Accused, Mark};
use super::view::host_anchor;
use crate::words::{host_name, host_state, plural, rack_name, rate};
use ew_model::Analysis;
use ew_model::analysis::{HostAnalysis, HostState, RackAnalysis, UplinkAnalysis};
use ew_model::finding::{Cause, Subject};
use ew_model::inventory::RackId;
use serde::Serialize;

/// More hosts than this are drawn as dots, and only accused ones are named.
const MOST_NAMED: usize = 48;
/// The class of a host that nothing is said of.
const FINE: &str = "fine";
/// More parallel paths than this are one thick line.
const MOST_WIRES: u32 = 16;

/// The drawing. Every rack has its uplinks above it and its hosts below.
#[derive(Serialize)]
pub(super) struct Fabric {
    /// What connects the racks, in words. `None` without racks.
    spine: Option<String>,
    racks: Vec<RackView>,
    dense: bool,
    /// In words, for those who do not see it.
    summary: String,
}

#[derive(Serialize)]
struct RackView {
    name: String,
    /// Out of the rack and into it.
    uplinks: Vec<UplinkView>,
    marks: Vec<Mark>,
    /// One per parallel path.
    wires: Vec<&'static str>,
    hosts: Vec<HostCell>,
}

impl RackView {
    fn accusations(&self) -> usize {
        let is_accused = |host: &&HostCell| host.class != FINE;
        self.marks.len() + self.hosts.iter().filter(is_accused).count()
    }
}

#[derive(Serialize)]
struct UplinkView {
    arrow: &'static str,
    text: String,
    about: String,
    class: &'static str,
}

#[derive(Serialize)]
struct HostCell {
    name: String,
    to: String,
    about: String,
    class: &'static str,
}

/// `None` where no host came up.
pub(super) fn view(analysis: &Analysis, accused: &Accused<'_>) -> Option<Fabric> {
    if analysis.hosts.is_empty() {
        return None;
    }
    let inventory = analysis.inventory();
    let paths = parallel_paths(analysis);
    let mut racks: Vec<RackView> = inventory
        .rack_ids()
        .map(|rack| rack_view(analysis, accused, rack, paths))
        .collect();
    let lone = |host: &&HostAnalysis| inventory.rack_of(host.host).is_none();
    let lone: Vec<HostCell> = analysis
        .hosts
        .iter()
        .filter(lone)
        .map(|host| cell(analysis, accused, host))
        .collect();
    if !lone.is_empty() {
        racks.push(RackView {
            name: "no rack".to_owned(),
            uplinks: Vec::new(),
            marks: Vec::new(),
            wires: Vec::new(),
            hosts: lone,
        });
    }
    let has_racks = !inventory.racks.is_empty();
    let is_dense = analysis.hosts.len() > MOST_NAMED;
    if is_dense {
        // What is wrong must not be below the fold.
        racks.sort_by_key(|rack| std::cmp::Reverse(rack.accusations()));
    }
    let spine = match paths {
        Some(paths) => format!(
            "Between racks: {} a rack",
            plural(paths as usize, "parallel path")
        ),
        None => "Between racks".to_owned(),
    };
    Some(Fabric {
        spine: has_racks.then_some(spine),
        summary: summary(analysis, &racks),
        dense: is_dense,
        racks,
    })
}

fn summary(analysis: &Analysis, racks: &[RackView]) -> String {
    let hosts = plural(analysis.hosts.len(), "host");
    match racks.len() {
        0 | 1 => format!("Drawing of {hosts}"),
        racks => format!("Drawing of {hosts} in {}", plural(racks, "rack")),
    }
}

fn rack_view(
    analysis: &Analysis,
    accused: &Accused<'_>,
    rack: RackId,
    paths: Option<u32>,
) -> RackView {
    let inventory = analysis.inventory();
    let measured = analysis.racks.iter().find(|one| one.rack == rack);
    RackView {
        name: rack_name(inventory, rack),
        uplinks: measured.map_or_else(Vec::new, uplinks),
        wires: wires(analysis, rack, paths),
        marks: accused.rack(analysis, rack),
        hosts: analysis
            .hosts
            .iter()
            .filter(|host| inventory.rack_of(host.host) == Some(rack))
            .map(|host| cell(analysis, accused, host))
            .collect(),
    }
}

fn uplinks(rack: &RackAnalysis) -> Vec<UplinkView> {
    vec![
        uplink("\u{2191}", "out of the rack", &rack.tx),
        uplink("\u{2193}", "into the rack", &rack.rx),
    ]
}

fn uplink(arrow: &'static str, direction: &str, uplink: &UplinkAnalysis) -> UplinkView {
    let carried = rate(Some(uplink.carried_bits_per_sec));
    let hosts = rate(Some(uplink.hosts_bits_per_sec));
    let ratio = uplink
        .oversubscription
        .map(|ratio| format!("{:.1}:1", ratio.value));
    let (class, text, about) = match (uplink.limited, uplink.capacity_bits_per_sec, ratio) {
        (Some(true), Some(capacity), Some(ratio)) => {
            let capacity = rate(Some(capacity.value));
            let about = format!(
                "{direction}: carries {capacity} of the {hosts} that its hosts can do, {ratio}"
            );
            ("full", format!("{capacity}, {ratio}"), about)
        }
        (Some(false), ..) => {
            let about = format!("{direction}: carried {carried} and did not limit its hosts");
            ("free", format!("{carried}, not limiting"), about)
        }
        _ => {
            let about = format!(
                "{direction}: carried {carried}; its hosts can do {hosts}, which nothing asked of it"
            );
            ("untested", format!("{carried}, not tested"), about)
        }
    };
    UplinkView {
        arrow,
        text,
        about,
        class,
    }
}

/// How many equal paths the run saw between racks.
fn parallel_paths(analysis: &Analysis) -> Option<u32> {
    let findings = analysis.verdict.findings.iter();
    let hashed = findings.filter(|finding| finding.cause == Cause::HashCollisions);
    let paths = hashed.filter_map(|finding| finding.measured.as_ref());
    paths
        .map(|paths| paths.value as u32)
        .find(|paths| *paths > 1)
}

/// The bad one is among them where a path was found bad; which of them it is does not matter to the
/// eye.
fn wires(analysis: &Analysis, rack: RackId, paths: Option<u32>) -> Vec<&'static str> {
    let is_bad = analysis.verdict.findings.iter().any(|finding| {
        let is_here =
            matches!(finding.subject, Subject::Run) || finding.subject == Subject::Rack { rack };
        matches!(finding.cause, Cause::BadPath | Cause::LostPath) && is_here
    });
    let least = if is_bad { 2 } else { 1 };
    let count = paths.unwrap_or(least).clamp(least, MOST_WIRES) as usize;
    let mut wires = vec!["wire"; count];
    if let (true, Some(last)) = (is_bad, wires.last_mut()) {
        *last = "wire bad";
    }
    wires
}

fn cell(analysis: &Analysis, accused: &Accused<'_>, host: &HostAnalysis) -> HostCell {
    let name = host_name(analysis.inventory(), host.host);
    let marks = accused.host(host.host);
    let own = || host_anchor(host.host);
    let rates = format!(
        "sends {}, receives {}",
        rate(host.tx_bits_per_sec.map(|e| e.value)),
        rate(host.rx_bits_per_sec.map(|e| e.value))
    );
    let (class, to, about) = match (&host.state, marks.first()) {
        (HostState::Alive, Some(mark)) => (
            mark.class(),
            mark.to().to_owned(),
            format!("{name}: {}; {rates}", mark.word()),
        ),
        (HostState::Alive, None) => (FINE, own(), format!("{name}: {rates}")),
        (state, _) => ("gone", own(), format!("{name}: {}", host_state(state))),
    };
    HostCell {
        name,
        to,
        about,
        class,
    }
}
