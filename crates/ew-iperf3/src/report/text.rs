//! iperf3's lines, in iperf3's columns: scripts cut them.

use super::{Ended, Event, Figures, Head, Interval, Role, StreamInterval, StreamTotal, TcpState};
use crate::units;
use crate::wire::params::{Direction, End, Protocol};
use crate::wire::results::{CpuPercent, ServerOutput};
use std::fmt::Write;

const SEPARATOR: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -";
const COLUMNS: &str = "Interval           Transfer     Bitrate";

/// How to write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextStyle {
    /// Letter of `-f`.
    pub format: Option<char>,
    /// `-V`
    pub verbose: bool,
}

/// Writes one test's lines as things happen.
#[derive(Clone, Debug)]
pub struct TextReport {
    style: TextStyle,
    head: Option<Head>,
}

/// The lines of a server that waits.
#[must_use]
pub fn listening(port: u16, test_number: u64) -> String {
    let rule = "-----------------------------------------------------------";
    format!("{rule}\nServer listening on {port} (test #{test_number})\n{rule}\n")
}

impl TextReport {
    /// Begins.
    #[must_use]
    pub fn new(style: TextStyle) -> Self {
        Self { style, head: None }
    }

    /// The lines of an event, each with its line feed; empty when there is nothing to report.
    pub fn lines(&mut self, event: &Event) -> String {
        let text = match event {
            Event::Connecting { host, port } => format!("Connecting to host {host}, port {port}\n"),
            Event::Accepted { peer } => {
                format!(
                    "Accepted connection from {}, port {}\n",
                    peer.ip(),
                    peer.port()
                )
            }
            Event::Authenticated { user, believed } => {
                let how = if *believed { "succeeded" } else { "failed" };
                format!("Authentication {how} for user '{}'\n", user.escape_debug())
            }
            Event::Started(head) => self.started(head),
            Event::Interval(interval) => self.interval(interval),
            Event::Ended(ended) => self.ended(ended),
            Event::Warning(text) => format!("warning: {text}\n"),
            Event::Failed(text) => format!("iperf3: error - {text}\n"),
        };
        printable(&self.titled(text))
    }

    fn titled(&self, text: String) -> String {
        let title = self.head.as_ref().map_or("", |head| &head.params.title);
        if title.is_empty() {
            return text;
        }
        let title = title.replace('\n', " ");
        text.lines()
            .map(|line| format!("{title}:  {line}\n"))
            .collect()
    }

    fn started(&mut self, head: &Head) -> String {
        self.head = Some(head.clone());
        let mut text = String::new();
        if head.role == Role::Client && head.params.direction == Direction::Reverse {
            put(
                &mut text,
                format_args!("Reverse mode, remote host {} is sending", head.host),
            );
        }
        for stream in &head.streams {
            let (local, remote) = (stream.local, stream.remote);
            let line = format_args!(
                "[{:3}] local {} port {} connected to {} port {}",
                stream.shown,
                local.ip(),
                local.port(),
                remote.ip(),
                remote.port()
            );
            put(&mut text, line);
        }
        if head.params.skip_rx_copy {
            text.push_str(
                "Receivers do not copy (--skip-rx-copy): the application does not see the bytes\n",
            );
        }
        if self.style.verbose {
            put(&mut text, format_args!("{}", test_line(head)));
        }
        put(&mut text, format_args!("{}", self.columns(false)));
        text
    }

    /// The line above intervals, or above the summary.
    fn columns(&self, summary: bool) -> String {
        let Some(head) = &self.head else {
            return String::new();
        };
        let bidir = head.params.direction == Direction::Both;
        let id = if bidir { "[ ID][Role]" } else { "[ ID]" };
        let sends = head.streams.iter().any(|stream| stream.sends);
        let receives = head.streams.iter().any(|stream| !stream.sends);
        // A client knows the retransmissions of both ends.
        let retransmits = sends || (summary && head.role == Role::Client);
        let rest = match (head.params.protocol, summary) {
            (Protocol::Udp, false) if !receives => "         Total Datagrams",
            (Protocol::Udp, _) => "         Jitter    Lost/Total Datagrams",
            (Protocol::Tcp, true) if retransmits => "         Retr",
            (Protocol::Tcp, false) if retransmits => "         Retr  Cwnd",
            (Protocol::Tcp, _) => "",
        };
        format!("{id} {COLUMNS}{rest}")
    }

    fn interval(&self, interval: &Interval) -> String {
        let Some(head) = &self.head else {
            return String::new();
        };
        let mut text = String::new();
        let omitted = if interval.omitted { "(omitted)" } else { "" };
        for stream in &interval.streams {
            let id = format!("{:3}", stream.shown);
            self.interval_line(&mut text, head, &id, stream, omitted);
        }
        for sends in [true, false] {
            let group: Vec<_> = interval
                .streams
                .iter()
                .filter(|s| s.sends == sends)
                .collect();
            if group.len() > 1 {
                let sum = StreamInterval {
                    shown: 0,
                    sends,
                    figures: Figures::sum(group.iter().map(|stream| &stream.figures)),
                    tcp: None,
                };
                self.interval_line(&mut text, head, "SUM", &sum, omitted);
            }
        }
        if head.params.streams > 1 {
            put(&mut text, format_args!("{SEPARATOR}"));
        }
        text
    }

    fn interval_line(
        &self,
        text: &mut String,
        head: &Head,
        id: &str,
        stream: &StreamInterval,
        omitted: &str,
    ) {
        let figures = &stream.figures;
        let front = self.front(head, id, stream.sends, figures);
        let bidir = head.params.direction == Direction::Both;
        match (head.params.protocol, stream.sends) {
            (Protocol::Tcp, true) => {
                let retransmits = figures.retransmits.unwrap_or(0);
                match stream.tcp {
                    Some(TcpState {
                        congestion_window_bytes: window,
                        ..
                    }) => {
                        let window = units::bytes(window as f64);
                        let line =
                            format_args!("{front}  {retransmits:3}   {window}s       {omitted}");
                        put(text, line);
                    }
                    None => put(
                        text,
                        format_args!("{front}  {retransmits:3}             {omitted}"),
                    ),
                }
            }
            (Protocol::Tcp, false) => put(text, format_args!("{front}                  {omitted}")),
            (Protocol::Udp, true) => {
                let blank = if bidir { "          " } else { "" };
                put(
                    text,
                    format_args!("{front} {blank} {}  {omitted}", figures.packets),
                );
            }
            (Protocol::Udp, false) => put_udp(text, &front, figures, omitted),
        }
    }

    fn ended(&self, ended: &Ended) -> String {
        let Some(head) = &self.head else {
            return String::new();
        };
        let mut text = String::new();
        // With several streams the last interval has drawn the line.
        if head.params.streams == 1 {
            put(&mut text, format_args!("{SEPARATOR}"));
        }
        put(&mut text, format_args!("{}", self.columns(true)));
        for stream in &ended.streams {
            let id = format!("{:3}", stream.shown);
            self.total_lines(&mut text, head, &id, stream);
        }
        for sends in [true, false] {
            let group: Vec<_> = ended.streams.iter().filter(|s| s.sends == sends).collect();
            if group.len() > 1 {
                self.total_lines(&mut text, head, "SUM", &sum_of_totals(sends, &group));
            }
        }
        if self.style.verbose {
            verbose_end(&mut text, head, ended);
        }
        if let Some(output) = &ended.server_output {
            let shown = match output {
                ServerOutput::Text(output) => output.clone(),
                ServerOutput::Json(value) => value.to_string(),
            };
            put(&mut text, format_args!("\nServer output:\n{shown}"));
        }
        if head.role == Role::Client && ended.complete {
            text.push_str("\niperf Done.\n");
        }
        text
    }

    fn total_lines(&self, text: &mut String, head: &Head, id: &str, total: &StreamTotal) {
        let ends = [
            ("sender", total.sender, true),
            ("receiver", total.receiver, false),
        ];
        for (name, figures, is_sender) in ends {
            // A server shows its own end, as iperf3's does.
            if head.role == Role::Server && is_sender != total.sends {
                continue;
            }
            let Some(figures) = figures else {
                put(
                    text,
                    format_args!("[{id}] ({name} statistics not available)"),
                );
                continue;
            };
            let front = self.front(head, id, total.sends, &figures);
            match (
                head.params.protocol,
                figures.retransmits.filter(|_| is_sender),
            ) {
                (Protocol::Udp, _) => {
                    let shown = if is_sender {
                        as_sent(&figures)
                    } else {
                        figures
                    };
                    put_udp(text, &front, &shown, name);
                }
                (Protocol::Tcp, Some(count)) => {
                    put(text, format_args!("{front}  {count:3}             {name}"));
                }
                (Protocol::Tcp, None) => put(text, format_args!("{front}                  {name}")),
            }
        }
    }

    /// Up to the rate, the same for all lines.
    fn front(&self, head: &Head, id: &str, sends: bool, figures: &Figures) -> String {
        let role = match (head.params.direction, sends, head.role) {
            (Direction::Forward | Direction::Reverse, _, _) => "",
            (Direction::Both, true, Role::Client) => "[TX-C]",
            (Direction::Both, false, Role::Client) => "[RX-C]",
            (Direction::Both, true, Role::Server) => "[TX-S]",
            (Direction::Both, false, Role::Server) => "[RX-S]",
        };
        let (start, end) = (figures.start_s, figures.end_s);
        let bytes = units::bytes(figures.bytes as f64);
        let rate = units::rate(figures.bits_per_sec(), self.style.format);
        format!("[{id}]{role} {start:6.2}-{end:<6.2} sec  {bytes}s  {rate}s/sec")
    }
}

/// Some of it is the peer's: title, output, names. None of that may move a terminal's cursor.
fn printable(text: &str) -> String {
    let shown = |c: char| {
        if c.is_control() && !matches!(c, '\n' | '\t') {
            '\u{fffd}'
        } else {
            c
        }
    };
    text.chars().map(shown).collect()
}

/// A sender does not know what was lost.
fn as_sent(figures: &Figures) -> Figures {
    Figures {
        lost: 0,
        jitter_s: 0.0,
        ..*figures
    }
}

fn sum_of_totals(sends: bool, group: &[&StreamTotal]) -> StreamTotal {
    let sum = |pick: fn(&StreamTotal) -> Option<Figures>| {
        let all: Option<Vec<Figures>> = group.iter().map(|total| pick(total)).collect();
        all.map(|all| Figures::sum(&all))
    };
    StreamTotal {
        shown: 0,
        sends,
        sender: sum(|total| total.sender),
        receiver: sum(|total| total.receiver),
        extremes: super::TcpExtremes::default(),
    }
}

fn put_udp(text: &mut String, front: &str, figures: &Figures, last: &str) {
    let line = format_args!(
        "{front}  {:5.3} ms  {}/{} ({}%)  {last}",
        figures.jitter_s * 1000.0,
        figures.lost,
        figures.packets,
        two_digits(figures.lost_percent())
    );
    put(text, line);
}

/// Two significant digits, as C's `%.2g` below 100.
fn two_digits(percent: f64) -> String {
    if percent <= 0.0 {
        return "0".into();
    }
    let decimals = (1.0 - percent.log10().floor()).clamp(0.0, 6.0) as usize;
    let text = format!("{percent:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

fn test_line(head: &Head) -> String {
    let params = &head.params;
    let protocol = match params.protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
    };
    let end = match params.end {
        End::Time(seconds) => format!("{seconds} second test"),
        End::Bytes(bytes) => format!("{bytes} bytes to send"),
        End::Blocks(blocks) => format!("{blocks} blocks to send"),
    };
    format!(
        "Starting Test: protocol: {protocol}, {} streams, {} byte blocks, omitting {} seconds, {end}, tos {}",
        params.streams, params.block_bytes, params.omit_s, params.tos
    )
}

fn verbose_end(text: &mut String, head: &Head, ended: &Ended) {
    let (local, remote) = match head.params.direction {
        Direction::Both => ("sender/receiver", "sender/receiver"),
        _ if ended.streams.iter().any(|stream| stream.sends) => ("sender", "receiver"),
        _ => ("receiver", "sender"),
    };
    let shown =
        |cpu: &CpuPercent| format!("{:.1}% ({:.1}%u/{:.1}%s)", cpu.total, cpu.user, cpu.system);
    let line = format_args!(
        "CPU Utilization: local/{local} {}, remote/{remote} {}",
        shown(&ended.local_cpu),
        shown(&ended.remote_cpu)
    );
    put(text, line);
    if let (Some(ours), Some(theirs)) = (&ended.local_congestion, &ended.remote_congestion) {
        let (sender, receiver) = if local == "receiver" {
            (theirs, ours)
        } else {
            (ours, theirs)
        };
        put(
            text,
            format_args!("snd_tcp_congestion {sender}\nrcv_tcp_congestion {receiver}"),
        );
    }
}

fn put(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_have_two_digits() {
        let shown: Vec<String> = [0.0, 0.0123, 1.26, 12.3, 100.0].map(two_digits).into();
        assert_eq!(shown, ["0", "0.012", "1.3", "12", "100"]);
    }

    #[test]
    fn a_peers_words_cannot_move_the_cursor() {
        let mut report = TextReport::new(TextStyle::default());
        let lines = report.lines(&Event::Warning("a\x1b[2Jb\r".into()));
        assert_eq!(lines, "warning: a\u{fffd}[2Jb\u{fffd}\n");
    }

    #[test]
    fn the_banner_is_iperf3s() {
        assert!(listening(5201, 3).contains("\nServer listening on 5201 (test #3)\n"));
    }
}
