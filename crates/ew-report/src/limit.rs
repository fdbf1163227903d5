//! What a link can do at best, step by step: for people and for programs.

use crate::error::ReportError;
use crate::format::TextStyle;
use crate::table::{table, wrap};
use crate::words::one_line;
use ew_model::limit::{Limit, MessageLimit, WindowNeed};
use ew_model::units::{format_bits_per_sec, format_bytes, format_duration_ns};
use serde::Serialize;

/// Version of the JSON document's layout. It grows when a field changes its meaning or goes; new
/// fields do not count.
const SCHEMA_VERSION: u32 = 1;

/// For the terminal. `notes` explain where the figures came from, and what could not be known.
#[must_use]
pub fn limit_text(limit: &Limit, notes: &[String], style: &TextStyle) -> String {
    let width = style.width.max(40);
    let rate = format_bits_per_sec(limit.link_bits_per_sec);
    let mut out = format!("A full packet on a link of {rate}\n");
    out.push_str(&layers(limit, width));
    let mut lines = payload_lines(limit);
    lines.extend(window_lines(&limit.window));
    lines.extend(limit.message.iter().flat_map(message_lines));
    lines.extend(notes.iter().map(|note| one_line(note)));
    for line in lines {
        out.push_str(&wrap(&line, width, ""));
    }
    out
}

/// For programs.
///
/// # Errors
/// [`ReportError::Json`], a defect.
pub fn limit_json(limit: &Limit, notes: &[String]) -> Result<String, ReportError> {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: &'static str,
        schema_version: u32,
        #[serde(flatten)]
        limit: &'a Limit,
        notes: &'a [String],
    }
    let document = Document {
        schema: "eastwest-limit",
        schema_version: SCHEMA_VERSION,
        limit,
        notes,
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

fn layers(limit: &Limit, width: usize) -> String {
    let row = |name: &str, bytes: u32, source: &str| {
        vec![name.to_owned(), source.to_owned(), bytes.to_string()]
    };
    let counted = limit.packet.layers.iter().filter(|layer| layer.counted);
    let mut rows: Vec<Vec<String>> = counted
        .map(|layer| row(layer.name, layer.bytes, layer.source))
        .collect();
    rows.push(row("total", limit.packet.counted_bytes, ""));
    table(&["part", "defined in", "bytes"], &rows, 2, width)
}

fn payload_lines(limit: &Limit) -> Vec<String> {
    vec![
        format!(
            "Max goodput: {} Mb/s, {:.2}% of the link ({} of {} bytes).",
            decimals(limit.payload_bits_per_sec / 1e6),
            100.0 * limit.efficiency,
            limit.packet.payload_bytes,
            limit.packet.counted_bytes
        ),
        format!(
            "Packet rate: {} full packets a second, each {} on the link; {} minimum-size frames a second, each {}.",
            grouped(limit.packets_per_sec),
            time(limit.serialization_ns),
            grouped(limit.least_frames_per_sec),
            time(limit.least_serialization_ns)
        ),
    ]
}

fn window_lines(window: &WindowNeed) -> Vec<String> {
    let scaling = match window.needs_scaling {
        true => " (more than 64 KiB, so window scaling must be on, as it is by default)",
        false => "",
    };
    vec![
        format!(
            "Bandwidth-delay product at a round trip of {}: {} bytes, {}{scaling}.",
            format_duration_ns(window.rtt_ns),
            grouped(window.bytes as f64),
            match window.segments {
                1 => "1 full segment".to_owned(),
                n => format!("{} full segments", grouped(n as f64)),
            }
        ),
        format!(
            "Socket buffers: net.ipv4.tcp_rmem and tcp_wmem must allow {} bytes (third value), twice the product, because the \
             kernel counts its own overhead; a program that sets SO_RCVBUF or SO_SNDBUF asks for {}, which net.core.rmem_max and \
             wmem_max must allow.",
            grouped(window.kernel_buffer_bytes as f64),
            grouped(window.asked_buffer_bytes as f64)
        ),
    ]
}

fn message_lines(message: &MessageLimit) -> Vec<String> {
    let packets = match message.cost.packets {
        1 => "1 packet".to_owned(),
        packets => format!("{packets} packets"),
    };
    vec![
        format!(
            "Messages of {}, each in packets of its own: {packets} and {} bytes each, {} on the link; {} a second carry {} of goodput \
             ({:.1}%).",
            format_bytes(message.cost.message_bytes),
            grouped(message.cost.counted_bytes as f64),
            time(message.serialization_ns),
            grouped(message.per_sec),
            format_bits_per_sec(message.payload_bits_per_sec),
            100.0 * message.cost.efficiency()
        ),
        format!(
            "One connection that waits for each answer: at most {} a second.",
            grouped(message.per_sec_one_at_a_time)
        ),
    ]
}

/// Whole, with commas between thousands.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// One decimal: what distinguishes 94.1 from 94.9.
fn decimals(value: f64) -> String {
    let (whole, part) = (value.trunc(), value.fract());
    match (part * 10.0).round() as u32 {
        10 => format!("{}.0", grouped(whole + 1.0)),
        tenths => format!("{}.{tenths}", grouped(whole)),
    }
}

/// Three digits, from tenths of nanoseconds on.
fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1000.0 => format!("{ns:.1} ns"),
        ns => format_duration_ns(ns.round() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::ceiling::{Framing, Transport, Tunnel, TunnelKind};

    fn text(framing: &Framing, message: Option<u64>) -> String {
        let limit = Limit::new(10e9, framing, 100_000, message);
        limit_text(&limit, &["a\u{1b}note".into()], &TextStyle::default())
    }

    #[test]
    fn the_known_figures_are_shown() {
        let text = text(&Framing::plain(1500), Some(64));
        for expected in [
            "9,414.8 Mb/s, 94.15% of the link (1448 of 1538 bytes)",
            "812,744 full packets a second, each 1.23 µs",
            "14,880,952 minimum-size frames a second, each 67.2 ns",
            "125,000 bytes, 87 full segments",
            "must allow 250,000 bytes",
            "at most 10,000 a second",
            "a\u{fffd}note",
        ] {
            assert!(
                text.replace('\n', " ").contains(expected),
                "{expected}:\n{text}"
            );
        }
    }

    #[test]
    fn every_layer_of_a_tunnel_is_listed() {
        let framing = Framing {
            tunnels: vec![Tunnel::of(TunnelKind::Vxlan)],
            transport: Transport::Tcp { timestamps: false },
            vlan_tags: 2,
            ..Framing::plain(1450)
        };
        let text = text(&framing, None);
        for layer in [
            "outer IPv4 header",
            "VXLAN header",
            "inner Ethernet",
            "VLAN tags",
        ] {
            assert!(text.contains(layer), "{layer}:\n{text}");
        }
        assert!(!text.contains("timestamps"));
    }

    #[test]
    fn json_has_the_layers_and_no_words_to_parse() {
        let limit = Limit::new(1e9, &Framing::plain(1500), 0, None);
        let json: serde_json::Value =
            serde_json::from_str(&limit_json(&limit, &[]).unwrap()).unwrap();
        assert_eq!(json["schema"], "eastwest-limit");
        assert_eq!(json["packet"]["payload_bytes"], 1448);
        assert_eq!(json["packet"]["layers"][0]["bytes"], 8);
        assert_eq!(json["message"], serde_json::Value::Null);
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(grouped(14_880_952.4), "14,880,952");
        assert_eq!(
            (grouped(999.0), grouped(1000.0)),
            ("999".into(), "1,000".into())
        );
        assert_eq!(
            (decimals(94.149), decimals(94.96)),
            ("94.1".into(), "95.0".into())
        );
    }
}
