//! Hosts in words.

use super::filled_table::filled_table;
use super::rate_words::RateWords;
use crate::figures::Figures;
use crate::words::{
    MISSING, count, duration, host_name, host_state, or_missing, percent, plural, rack_of,
};
use ew_model::Analysis;
use ew_model::analysis::{HostAnalysis, HostState};
use ew_model::finding::Subject;
use ew_model::units::format_bits_per_sec;

/// Up to this many hosts are listed one by one; above it only those that differ.
const LISTED: usize = 16;
/// A host whose rate is off its peers' by more than this is listed among many.
const NOTABLE_EFFECT: f64 = 0.05;
const COLUMNS: [&str; 9] = [
    "host",
    "rack",
    "state",
    "send",
    "receive",
    "send vs peers",
    "recv vs peers",
    "idle rtt",
    "retrans",
];
/// Those of them that are words.
const WORDS: [&str; 3] = ["host", "rack", "state"];

/// A host in words.
pub(crate) struct HostWords {
    pub(crate) name: String,
    pub(crate) rack: String,
    pub(crate) is_up: bool,
    /// "up", "lost" or "failed".
    pub(crate) state: &'static str,
    /// The same with the reason.
    pub(crate) state_and_reason: String,
    pub(crate) sends: RateWords,
    pub(crate) receives: RateWords,
    pub(crate) sends_of_peers: String,
    pub(crate) receives_of_peers: String,
    pub(crate) idle_rtt: String,
    pub(crate) retransmits: String,
    /// Whether it differs from the rest in a way the tables show.
    pub(crate) differs: bool,
}

/// In inventory order.
pub(super) fn all(analysis: &Analysis) -> Vec<HostWords> {
    let inventory = analysis.inventory();
    let words = |host: &HostAnalysis| HostWords {
        name: host_name(inventory, host.host),
        rack: rack_of(inventory, host.host),
        is_up: host.state == HostState::Alive,
        state: state_word(&host.state),
        state_and_reason: host_state(&host.state),
        sends: RateWords::of(host.tx_bits_per_sec),
        receives: RateWords::of(host.rx_bits_per_sec),
        sends_of_peers: percent(host.tx_effect),
        receives_of_peers: percent(host.rx_effect),
        idle_rtt: duration(host.idle_rtt_ns),
        retransmits: count(host.retransmits),
        differs: differs(analysis, host),
    };
    analysis.hosts.iter().map(words).collect()
}

fn state_word(state: &HostState) -> &'static str {
    match state {
        HostState::Alive => "up",
        HostState::Lost { .. } => "lost",
        HostState::Failed { .. } => "failed",
    }
}

fn differs(analysis: &Analysis, host: &HostAnalysis) -> bool {
    let off = |effect: Option<f64>| effect.is_some_and(|e| (e - 1.0).abs() > NOTABLE_EFFECT);
    let named = analysis.verdict.findings.iter().any(|f| match f.subject {
        Subject::Host { host: named } => named == host.host,
        Subject::Pair { src, dst } => src == host.host || dst == host.host,
        Subject::RackPair { .. } | Subject::Rack { .. } | Subject::Run => false,
    });
    host.state != HostState::Alive || off(host.tx_effect) || off(host.rx_effect) || named
}

/// Columns that would be empty all the way down are skipped.
pub(super) fn table(hosts: &[HostWords]) -> Figures {
    let few = hosts.len() <= LISTED;
    let listed: Vec<&HostWords> = hosts.iter().filter(|h| few || h.differs).collect();
    let (header, rows) = filled_table(&COLUMNS, &listed, |host, column| match column {
        "host" => host.name.clone(),
        "rack" => host.rack.clone(),
        "state" => host.state.into(),
        "send" => host.sends.short.clone(),
        "receive" => host.receives.short.clone(),
        "send vs peers" => host.sends_of_peers.clone(),
        "recv vs peers" => host.receives_of_peers.clone(),
        "idle rtt" => host.idle_rtt.clone(),
        "retrans" => host.retransmits.clone(),
        _ => MISSING.into(),
    });
    Figures {
        title: "Hosts",
        left: header.iter().filter(|name| WORDS.contains(name)).count(),
        header,
        rows,
        notes: Vec::new(),
    }
}

/// The line for the hosts that the table skips.
pub(super) fn alike(analysis: &Analysis, hosts: &[HostWords]) -> Option<String> {
    if hosts.len() <= LISTED {
        return None;
    }
    let both = analysis.hosts.iter().zip(hosts);
    let others: Vec<&HostAnalysis> = both
        .filter_map(|(host, words)| (!words.differs).then_some(host))
        .collect();
    let of = |side: fn(&HostAnalysis) -> Option<f64>| {
        let rates = || others.iter().filter_map(|h| side(h));
        let span = rates().reduce(f64::min).zip(rates().reduce(f64::max));
        or_missing(span, |(low, high)| {
            let (low, high) = (format_bits_per_sec(low), format_bits_per_sec(high));
            format!("{low} to {high}")
        })
    };
    let verb = if others.len() == 1 { "is" } else { "are" };
    (!others.is_empty()).then(|| {
        format!(
            "{} {verb} alike: they send {} and receive {}.",
            plural(others.len(), "other host"),
            of(|h| h.tx_bits_per_sec.map(|e| e.value)),
            of(|h| h.rx_bits_per_sec.map(|e| e.value)),
        )
    })
}
