//! A view as plain text, for `--once` and pipes.

use crate::table::Table;
use crate::tables::tables;
use crate::view::View;
use ew_model::units::{format_bytes, format_duration_ns};
use std::fmt::Write;

/// Rows of each table.
const MAX_ROWS: usize = 10;

/// The view, verdict first. Ends with a newline.
#[must_use]
pub fn text(view: &View) -> String {
    let mut out = format!("{}\n", view.verdict.sentence);
    for line in view.verdict.evidence.iter().chain(&view.verdict.also) {
        let _ = writeln!(out, "  {line}");
    }
    out.push('\n');
    for line in summary(view) {
        let _ = writeln!(out, "{line}");
    }
    for table in tables(view).iter().filter(|table| !table.rows.is_empty()) {
        let _ = write!(out, "\n{}\n{}", table.title, rows(table));
    }
    if !view.unseen.is_empty() {
        out.push_str("\nnot seen\n");
    }
    for line in &view.unseen {
        let _ = writeln!(out, "  {line}");
    }
    out
}

/// What no table shows, a line each.
pub(crate) fn summary(view: &View) -> Vec<String> {
    let share =
        |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| format!("{:.1}%", v * 100.0));
    let rate = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.0}/s"));
    let size = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), format_bytes);
    let (tcp, memory) = (&view.protocols, &view.memory);
    let connections = tcp
        .connections
        .map_or_else(|| "-".to_owned(), |n| n.to_string());
    let mut lines = vec![
        format!(
            "tcp: {connections} connections, {} opened, retransmits {} ({}), listen drops {}, buffer drops {}",
            rate(tcp.opens_per_sec),
            rate(tcp.retransmits_per_sec),
            share(tcp.retransmit_share),
            rate(tcp.listen_drops_per_sec),
            rate(tcp.receive_drops_per_sec)
        ),
        format!(
            "udp: {} received, {} sent, {} dropped in full buffers (datagrams; the kernel counts no bytes by process)",
            rate(tcp.udp_in_per_sec),
            rate(tcp.udp_out_per_sec),
            rate(tcp.udp_buffer_errors_per_sec)
        ),
        format!(
            "memory: {} of {} available; waited for: CPUs {}, disks {}, memory {} of the time",
            size(memory.available_bytes),
            size(memory.total_bytes),
            share(view.cpu.pressure),
            share(memory.disk_pressure),
            share(memory.pressure)
        ),
    ];
    for interface in &view.interfaces {
        for (name, rate) in &interface.driver_counters {
            lines.push(format!("{} driver: {name} {rate:.0}/s", interface.name));
        }
    }
    lines.push(format!(
        "over {}; reading took {} of one core, {} late",
        format_duration_ns(view.interval_ns),
        share(Some(view.own_cpu_share)),
        format_duration_ns(view.late_ns)
    ));
    lines
}

fn rows(table: &Table) -> String {
    let shown = Table {
        rows: table.rows.iter().take(MAX_ROWS).cloned().collect(),
        ..table.clone()
    };
    let widths = shown.widths();
    let headings = shown.columns.iter().map(|c| c.heading.to_owned());
    let mut out = line(&shown, &widths, headings);
    for row in &shown.rows {
        out.push_str(&line(
            &shown,
            &widths,
            row.iter().map(|cell| cell.text.clone()),
        ));
    }
    let left = table.rows.len() - shown.rows.len();
    if left > 0 {
        let _ = writeln!(out, "  and {left} more");
    }
    out
}

fn line(table: &Table, widths: &[usize], cells: impl Iterator<Item = String>) -> String {
    let mut out = String::from(" ");
    for ((cell, width), column) in cells.zip(widths).zip(&table.columns) {
        let padded = if column.is_text {
            format!(" {cell:<width$} ")
        } else {
            format!(" {cell:>width$} ")
        };
        out.push_str(&padded);
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{HostVerdict, ProcessView};

    #[test]
    fn verdict_first_tables_cut_and_blind_spots_last() {
        let process = |pid: u32| ProcessView {
            pid: Some(pid),
            name: "mover".into(),
            rx_bits_per_sec: 1e6,
            ..ProcessView::default()
        };
        let view = View {
            verdict: HostVerdict {
                sentence: "nothing is the limit".into(),
                ..HostVerdict::default()
            },
            processes: (1..=13).map(process).collect(),
            unseen: vec!["the sockets of others".into()],
            ..View::default()
        };
        let text = text(&view);
        assert!(text.starts_with("nothing is the limit\n"));
        assert!(
            text.contains(
                "  PID  PROCESS   RECEIVES  SENDS  CONNS  CPU  READS  WRITES  UDP  UDP LOST/s\n"
            ),
            "{text}"
        );
        assert!(
            text.contains(
                "   10  mover    1.00 Mb/s      0      0   0%      -       -    0           0\n"
            ),
            "{text}"
        );
        assert!(!text.contains("   11  mover") && text.contains("  and 3 more\n"));
        assert!(!text.contains("\nflows\n"), "empty tables are not shown");
        assert!(text.ends_with("not seen\n  the sockets of others\n"));
        assert!(text.contains("memory: - of - available"), "missing is no 0");
    }
}
