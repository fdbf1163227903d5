//! How numbers, names and states are worded, the same in every view.

use ew_model::analysis::{Estimate, HostState};
use ew_model::finding::{Cause, Quantity, Severity, VerdictStatus};
use ew_model::network::{MeasuredNetwork, describe_networks, measured_networks};
use ew_model::record::FigureNote;
use ew_model::units::{format_bits_per_sec, format_bytes, format_duration_ns};
use ew_model::{Analysis, HostId, Inventory, Outcome, RackId, RunManifest};

/// What is where nothing was measured.
pub(crate) const MISSING: &str = "-";
/// An uplink that fills below this many senders has no rising part: one sender alone fills it.
const FULL_WITH_ONE: f64 = 1.05;

/// The networks that were measured, most hosts first.
pub(crate) fn networks(analysis: &Analysis) -> Vec<MeasuredNetwork> {
    let inventory = analysis.inventory();
    measured_networks(analysis.hosts.iter().filter_map(|host| {
        let address = inventory.host(host.host).address?;
        Some((host.interface.as_ref()?, address))
    }))
}

/// The same in words: `eth0, 10.20.0.0/16, 25.0 Gb/s, MTU 9000`. `None` where no host reported one.
pub(crate) fn network(analysis: &Analysis) -> Option<String> {
    let networks = networks(analysis);
    (!networks.is_empty()).then(|| one_line(&describe_networks(&networks)))
}

/// Formats a value, or "-".
pub(crate) fn or_missing<T>(value: Option<T>, format: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| MISSING.to_owned(), format)
}

/// A rate in bits per second, or "-". What is not a number is missing too.
pub(crate) fn rate(bits_per_sec: Option<f64>) -> String {
    or_missing(bits_per_sec.filter(|r| r.is_finite()), format_bits_per_sec)
}

/// The point estimate of a rate, or "-".
pub(crate) fn estimated_rate(estimate: Option<Estimate>) -> String {
    rate(estimate.map(|e| e.value))
}

/// A rate with its 95% interval where there is one: `191 Mb/s (190–192)`.
pub(crate) fn rate_with_interval(estimate: Option<Estimate>) -> String {
    or_missing(estimate, |e| {
        with_interval(e.value, e.low, e.high, format_bits_per_sec)
    })
}

/// An oversubscription with its 95% interval: `4.02:1 (3.93–4.11)`.
pub(crate) fn ratio_with_interval(estimate: Option<Estimate>) -> String {
    or_missing(estimate, |e| {
        with_interval(e.value, e.low, e.high, |v| format!("{v:.2}:1"))
    })
}

/// A share of one as per cent: `98%`.
pub(crate) fn percent(share: Option<f64>) -> String {
    or_missing(share.filter(|s| s.is_finite()), |s| match s * 100.0 {
        p if p.abs() >= 10.0 => format!("{p:.0}%"),
        p => format!("{p:.1}%"),
    })
}

/// A share of one as per cent to one decimal, where a small loss matters: `99.6%`.
pub(crate) fn fine_percent(share: Option<f64>) -> String {
    or_missing(share.filter(|s| s.is_finite()), |s| {
        format!("{:.1}%", s * 100.0)
    })
}

/// A duration, or "-".
pub(crate) fn duration(ns: Option<u64>) -> String {
    or_missing(ns, format_duration_ns)
}

/// A count, or "-".
pub(crate) fn count(value: Option<u64>) -> String {
    or_missing(value, |v| v.to_string())
}

/// A finding's quantity with its interval, in the unit it names.
pub(crate) fn quantity(quantity: &Quantity, cause: Cause) -> String {
    let Quantity {
        value, low, high, ..
    } = *quantity;
    match quantity.unit.as_str() {
        "bits_per_sec" => with_interval(value, low, high, format_bits_per_sec),
        "ratio" if cause == Cause::Uplink => {
            with_interval(value, low, high, |v| format!("{v:.2}:1"))
        }
        "ratio" if cause == Cause::Loss => {
            with_interval(value, low, high, |v| format!("{:.1}%", 100.0 * v))
        }
        "ratio" => with_interval(value, low, high, |v| format!("{v:.2}")),
        "share" => with_interval(value, low, high, |v| format!("{:.1}%", 100.0 * v)),
        "ns" => with_interval(value, low, high, |v| format_duration_ns(v.max(0.0) as u64)),
        "bytes" => with_interval(value, low, high, |v| format_bytes(v.max(0.0) as u64)),
        "count" => with_interval(value, low, high, |v| format!("{v:.0}")),
        unit => with_interval(value, low, high, |v| format!("{v:.2} {}", one_line(unit))),
    }
}

/// `1 host`, `2 hosts`.
pub(crate) fn plural(n: usize, noun: &str) -> String {
    if n == 1 {
        format!("1 {noun}")
    } else {
        format!("{n} {noun}s")
    }
}

/// UTC to the second, or "-".
pub(crate) fn utc(unix_ns: Option<u64>) -> String {
    or_missing(unix_ns, |ns| {
        jiff::Timestamp::from_nanosecond(i128::from(ns)).map_or_else(
            |_| MISSING.to_owned(),
            |t| t.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        )
    })
}

/// How long a run took. `None` where its end is not known.
pub(crate) fn took_ns(run: &RunManifest) -> Option<u64> {
    let finished = run.finished_unix_ns?;
    finished.checked_sub(run.started_unix_ns)
}

/// The status in words. Without a configured expectation nothing is worse than expected: there is a
/// fault.
pub(crate) fn status(analysis: &Analysis) -> &'static str {
    let expect = &analysis.run.scenario.expect;
    let is_stated = expect.oversubscription.is_some()
        || expect.nic_bits_per_sec.is_some()
        || expect.rtt_ns.is_some()
        || expect.paths.is_some()
        || expect.pod_loss.is_some()
        || !analysis.thresholds.is_empty();
    match analysis.verdict.status {
        VerdictStatus::NothingWrong => "PASS: nothing wrong found",
        VerdictStatus::AsExpected if is_stated => "WARN: as expected, with notices",
        VerdictStatus::AsExpected => "WARN: no fault found, with notices",
        VerdictStatus::Worse if is_stated => "FAIL: worse than expected",
        VerdictStatus::Worse => "FAIL: fault found",
        VerdictStatus::Partial => "INCOMPLETE: figures are missing",
        VerdictStatus::NotDetermined => "NO DATA: nothing to conclude from",
    }
}

/// The severity as a status: what it does to the verdict.
pub(crate) fn severity_status(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "INFO",
        Severity::Notice => "WARN",
        Severity::Fault => "FAIL",
    }
}

/// The severity in a word.
pub(crate) fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "Info",
        Severity::Notice => "Notice",
        Severity::Fault => "Fault",
    }
}

/// The cause in words.
pub(crate) fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::Uplink => "uplink",
        Cause::SlowSender => "slow sender",
        Cause::SlowReceiver => "slow receiver",
        Cause::SlowHost => "slow host",
        Cause::SlowPair => "slow pair",
        Cause::ToolLimit => "tool",
        Cause::CoreSaturated => "CPU",
        Cause::CpuQuota => "CPU quota",
        Cause::LineRate => "line rate",
        Cause::LinkSpeed => "link speed",
        Cause::Mtu => "MTU",
        Cause::HostMissing => "host missing",
        Cause::PairsMissing => "pairs missing",
        Cause::PodNetwork => "pod network",
        Cause::Congestion => "congestion",
        Cause::Latency => "latency",
        Cause::ReceiveWindow => "receive window",
        Cause::SendBuffer => "send buffer",
        Cause::Loss => "loss",
        Cause::ReceiveDrops => "receive drops",
        Cause::Disk => "disk",
        Cause::BackgroundTraffic => "other traffic",
        Cause::MeasurementQuality => "measurement quality",
        Cause::NicClasses => "NIC classes",
        Cause::FasterNetwork => "faster network idle",
        Cause::BondMember => "one bond member",
        Cause::BelowLinkSpeed => "below link speed",
        Cause::ConnectionLimit => "connection limit",
        Cause::BadPath => "bad path",
        Cause::LostPath => "path not in use",
        Cause::HashCollisions => "hash collisions",
        Cause::NotDetermined => "cause not determined",
    }
}

/// What a reader must know about a figure, in words.
pub(crate) fn note(note: FigureNote) -> &'static str {
    match note {
        FigureNote::SenderDidNotTouchBytes => {
            "the sending application did not touch the bytes (sendfile)"
        }
        FigureNote::ReceiverDidNotSeeBytes => {
            "the receiving application did not see the bytes (the kernel dropped them)"
        }
        FigureNote::ZerocopySendCopied => "zero-copy sending fell back to copying",
        FigureNote::MappedReceiveCopied => "mapped receiving fell back to copying",
        FigureNote::ZerocopyUnavailable => {
            "a zero-copy mode is not there on a host, so ordinary copying was used"
        }
        FigureNote::PacedByKernel => "paced by the kernel (SO_MAX_PACING_RATE)",
        FigureNote::PacedByEngine => "paced by the engine",
        FigureNote::Segmented => "datagrams in trains (GSO, GRO)",
        FigureNote::SettingRefused => "a socket setting was refused, so the host's own was used",
        FigureNote::PortOutsideRange => {
            "the data ports (--data-ports) ran out, so other ports were used"
        }
        FigureNote::MptcpUnavailable => "Multipath TCP is not there, so plain TCP was used",
        FigureNote::SourcePortBusy => "a chosen source port was busy, so another was used",
    }
}

/// How the run ended, in words.
pub(crate) fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Unfinished => "unfinished: cut short",
        Outcome::Complete => "complete",
        Outcome::Partial => "partial: hosts or pairs are missing",
        Outcome::Interrupted => "interrupted by the user",
        Outcome::Failed => "failed",
    }
}

/// Whether a host took part, in words.
pub(crate) fn host_state(state: &HostState) -> String {
    match state {
        HostState::Alive => "up".into(),
        HostState::Lost { message } => format!("lost: {}", one_line(message)),
        HostState::Failed { message } => format!("failed: {}", one_line(message)),
    }
}

/// A host's name. An id from elsewhere is shown as such instead of failing.
pub(crate) fn host_name(inventory: &Inventory, id: HostId) -> String {
    inventory
        .hosts
        .get(id.index())
        .map_or_else(|| id.to_string(), |h| one_line(&h.name))
}

/// A rack's name.
pub(crate) fn rack_name(inventory: &Inventory, id: RackId) -> String {
    inventory
        .racks
        .get(id.index())
        .map_or_else(|| format!("rack#{}", id.0), |r| one_line(&r.name))
}

/// The name of a host's rack, or "-".
pub(crate) fn rack_of(inventory: &Inventory, id: HostId) -> String {
    or_missing(
        inventory.hosts.get(id.index()).and_then(|h| h.rack),
        |rack| rack_name(inventory, rack),
    )
}

/// One line without control characters and without characters that reorder text, so that a host
/// name or another program's message can neither steer a terminal nor disguise itself.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.trim().chars() {
        match c {
            '\n' | '\r' | '\t' if line.ends_with(' ') => {}
            '\n' | '\r' | '\t' => line.push(' '),
            c if c.is_control() || reorders(c) => line.push('\u{fffd}'),
            c => line.push(c),
        }
    }
    line
}

/// Unicode's bidirectional embeddings, overrides and isolates (UAX #9).
fn reorders(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

/// At how many senders an uplink was full: `1.9 senders`, `one sender`.
pub(crate) fn knee(senders: f64) -> String {
    if senders < FULL_WITH_ONE {
        "one sender".into()
    } else {
        format!("{senders:.1} senders")
    }
}

/// The same where there is space to name them: a knee counts hosts that reach their peers' rate,
/// and a slow sender fills less.
pub(crate) fn healthy_knee(senders: f64) -> String {
    knee(senders).replace("sender", "healthy sender")
}

/// Text with a capital at its start, unless it begins with a name or with something that is not a
/// plain word; a word with a colon is the name of a program that speaks (`ssh: ...`).
pub(crate) fn capitalised(inventory: &Inventory, text: &str) -> String {
    let text = one_line(text);
    let first = text.split(' ').next().unwrap_or("");
    let word = first.trim_end_matches([',', ';', '.']);
    let is_word = !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase());
    let is_name = inventory.hosts.iter().any(|h| h.name == word)
        || inventory.racks.iter().any(|r| r.name == word);
    if !is_word || is_name {
        return text;
    }
    let (initial, rest) = text.split_at(1);
    format!("{}{rest}", initial.to_ascii_uppercase())
}

/// A whole sentence: a capital at its start, a full stop at its end.
pub(crate) fn full_sentence(inventory: &Inventory, text: &str) -> String {
    let mut sentence = capitalised(inventory, text);
    if !sentence.is_empty() && !sentence.ends_with(['.', '!', '?', '\u{2026}']) {
        sentence.push('.');
    }
    sentence
}

/// Cut at a word, with an ellipsis.
pub(crate) fn shortened(text: &str, max_chars: usize) -> String {
    if text.chars().count() <= max_chars {
        return text.to_owned();
    }
    let cut: String = text.chars().take(max_chars - 1).collect();
    let end = cut.rfind(' ').unwrap_or(cut.len());
    format!("{}\u{2026}", cut[..end].trim_end_matches([',', ';', '.']))
}

/// Text in pieces: what is between backquotes is code (`true`). A backquote without a partner
/// is text.
pub(crate) fn code_spans(text: &str) -> Vec<(bool, &str)> {
    let mut spans = Vec::new();
    let mut plain = 0;
    let mut at = 0;
    while let Some(open) = text[at..].find('`').map(|i| at + i) {
        let Some(close) = text[open + 1..].find('`').map(|i| open + 1 + i) else {
            break;
        };
        at = close + 1;
        if close == open + 1 {
            continue;
        }
        spans.push((false, &text[plain..open]));
        spans.push((true, &text[open + 1..close]));
        plain = at;
    }
    spans.push((false, &text[plain..]));
    spans.retain(|(_, piece)| !piece.is_empty());
    spans
}

/// `191 Mb/s (190–192)` when both ends share the unit, otherwise with units at each; without an
/// interval where both ends show the same as the value.
pub(crate) fn with_interval(
    value: f64,
    low: Option<f64>,
    high: Option<f64>,
    format: impl Fn(f64) -> String,
) -> String {
    if !value.is_finite() {
        return MISSING.into();
    }
    let point = format(value);
    let (Some(low), Some(high)) = (
        low.filter(|v| v.is_finite()),
        high.filter(|v| v.is_finite()),
    ) else {
        return point;
    };
    let (low, high) = (format(low), format(high));
    if low == point && high == point {
        return point;
    }
    let unit = |text: &str| {
        let digits = text
            .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-')
            .unwrap_or(text.len());
        text[digits..].to_owned()
    };
    if unit(&low) == unit(&high) && unit(&low) == unit(&point) {
        let suffix = unit(&low);
        let bare = |text: &str| text[..text.len() - suffix.len()].to_owned();
        format!("{point} ({}–{})", bare(&low), bare(&high))
    } else {
        format!("{point} ({low} to {high})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_share_their_unit() {
        let estimate = |value, low, high| {
            Some(Estimate {
                value,
                low,
                high,
                samples: 8,
            })
        };
        assert_eq!(
            rate_with_interval(estimate(191e6, Some(190e6), Some(192e6))),
            "191 Mb/s (190–192)"
        );
        assert_eq!(
            rate_with_interval(estimate(1e9, Some(990e6), Some(1.01e9))),
            "1.00 Gb/s (990 Mb/s to 1.01 Gb/s)"
        );
        assert_eq!(rate_with_interval(estimate(1e9, None, None)), "1.00 Gb/s");
        assert_eq!(rate_with_interval(estimate(f64::NAN, None, None)), "-");
        assert_eq!(rate_with_interval(None), "-");
        assert_eq!(
            rate_with_interval(estimate(190.1e6, Some(189.9e6), Some(190.2e6))),
            "190 Mb/s"
        );
        assert_eq!(
            ratio_with_interval(estimate(4.02, Some(3.93), Some(4.11))),
            "4.02:1 (3.93–4.11)"
        );
    }

    #[test]
    fn names_keep_their_case() {
        let inventory = Inventory {
            racks: vec![ew_model::Rack {
                name: "north".into(),
            }],
            ..Inventory::default()
        };
        let sentence = |text| full_sentence(&inventory, text);
        assert_eq!(sentence("look at it"), "Look at it.");
        assert_eq!(sentence("r2h3 is slow!"), "r2h3 is slow!");
        assert_eq!(sentence("north is slow"), "north is slow.");
        assert_eq!(sentence("ssh: refused"), "ssh: refused.");
        assert_eq!(sentence("`mesh` is slow."), "`mesh` is slow.");
        assert_eq!(sentence(""), "");
    }

    #[test]
    fn backquotes_pair_up() {
        assert_eq!(
            code_spans("see `ethtool -S`, `tc`"),
            [
                (false, "see "),
                (true, "ethtool -S"),
                (false, ", "),
                (true, "tc")
            ]
        );
        assert_eq!(code_spans("a ` b"), [(false, "a ` b")]);
        assert_eq!(code_spans("a `` b"), [(false, "a `` b")]);
        assert_eq!(code_spans(""), []);
    }

    #[test]
    fn terminals_cannot_be_steered() {
        assert_eq!(
            one_line("a\x1b[31mb\r\nc\u{202e}d"),
            "a\u{fffd}[31mb c\u{fffd}d"
        );
    }

    #[test]
    fn ids_from_elsewhere_do_not_panic() {
        let inventory = Inventory::default();
        assert_eq!(host_name(&inventory, HostId(7)), "host#7");
        assert_eq!(rack_name(&inventory, RackId(7)), "rack#7");
        assert_eq!(rack_of(&inventory, HostId(7)), "-");
    }
}
