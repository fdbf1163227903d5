//! The columns of `flows.parquet`.

use crate::table::{Column, int};
use ew_model::latency::{Histogram, LatencySummary};
use ew_model::record::{CpuUse, DatagramCounts, EndRecord};
use ew_model::{FlowOutcome, FlowRecord, TcpInfo};
use std::sync::{Arc, LazyLock};

/// All columns, in file order.
pub(super) static FLOWS: LazyLock<Vec<Column<FlowRow>>> = LazyLock::new(|| {
    let groups = [
        identity(),
        rates(),
        repeated_segments(),
        tcp_info(),
        transactions(),
        latency(),
        uncorrected(),
        connect(),
        datagrams(),
        one_way(),
        completions(),
        sender_cpu(),
        receiver_cpu(),
        notes(),
    ];
    groups.into_iter().flatten().collect()
});

/// One flow and round, with what the plan specifies about it.
pub(super) struct FlowRow {
    at_ns: u64,
    planned: Planned,
    /// Without intervals, which have their own table, and without times, which are below.
    record: FlowRecord,
    latency: Option<Times>,
    uncorrected: Option<Times>,
    connect: Option<Times>,
    one_way: Option<Times>,
    /// By size of message, and without buckets.
    completions: Vec<(u64, LatencySummary)>,
}

/// What the plan and the inventory specify about a row.
pub(super) struct Planned {
    pub(super) stage: Option<Arc<StageWords>>,
    pub(super) senders_per_rack: Option<u32>,
    pub(super) src: Endpoint,
    pub(super) dst: Endpoint,
}

/// What a stage's rows repeat.
pub(super) struct StageWords {
    pub(super) name: String,
    pub(super) pattern: &'static str,
    pub(super) workload: &'static str,
    /// What its aggressors carry.
    pub(super) aggressors: &'static str,
    pub(super) tool: &'static str,
}

/// A host and its rack by name.
pub(super) struct Endpoint {
    pub(super) host: Arc<str>,
    pub(super) rack: Option<String>,
}

/// A distribution, summed up once for its many columns.
struct Times {
    summary: LatencySummary,
    buckets: Vec<(u64, u64)>,
}

impl FlowRow {
    pub(super) fn new(at_ns: u64, planned: Planned, mut record: FlowRecord) -> Self {
        // At the end that asked; a tool may know it at the other.
        let mut latency = None;
        let mut connect = None;
        let mut one_way = None;
        let mut completions = Vec::new();
        for end in [&mut record.sender, &mut record.receiver] {
            let Some(end) = end else { continue };
            end.intervals = Vec::new();
            latency = latency.or(end.latency.take());
            connect = connect.or(end.connect_latency.take());
            one_way = one_way.or(end.one_way_delay.take());
            let sizes = std::mem::take(&mut end.completions).into_iter();
            completions.extend(sizes.filter_map(|one| Some((one.bytes, one.times.summary()?))));
        }
        let (times, uncorrected) = latency.map_or((None, None), |l| (Some(l.times), l.uncorrected));
        Self {
            at_ns,
            planned,
            record,
            latency: times.and_then(Times::new),
            uncorrected: uncorrected.and_then(Times::new),
            connect: connect.and_then(Times::new),
            one_way: one_way.and_then(Times::new),
            completions,
        }
    }

    /// Roughly how many values it contains while it waits to be written.
    pub(super) fn weight(&self) -> usize {
        let times = [
            &self.latency,
            &self.uncorrected,
            &self.connect,
            &self.one_way,
        ];
        let buckets: usize = times.into_iter().flatten().map(|t| t.buckets.len()).sum();
        let ends = [&self.record.sender, &self.record.receiver];
        let streams: usize = ends
            .into_iter()
            .flatten()
            .map(|end| end.streams.len())
            .sum();
        1 + buckets + streams
    }
}

impl Times {
    fn new(histogram: Histogram) -> Option<Self> {
        Some(Self {
            summary: histogram.summary()?,
            buckets: histogram.buckets,
        })
    }
}

fn part(record: &FlowRecord) -> &'static str {
    match record.is_aggressor {
        true => "aggressor",
        false => "measured",
    }
}

fn identity() -> Vec<Column<FlowRow>> {
    vec![
        Column::int("stage", "index of the stage in the plan", |r| {
            r.record.stage.0.into()
        }),
        Column::maybe_text("stage_name", "the stage's name", |r| {
            r.planned.stage.as_ref().map(|s| s.name.clone())
        }),
        Column::maybe_text("pattern", "the stage's pattern", |r| {
            r.planned.stage.as_ref().map(|s| s.pattern.to_owned())
        }),
        Column::maybe_text("workload", "what the flow carries", |r| {
            let stage = r.planned.stage.as_ref();
            let word = stage.map(|stage| match r.record.is_aggressor {
                true => stage.aggressors,
                false => stage.workload,
            });
            word.map(str::to_owned)
        }),
        Column::text(
            "part",
            "measured; aggressor of a flow that was there to be in the others' way",
            |r| part(&r.record).to_owned(),
        ),
        Column::maybe_text("tool", "what moves the bytes: engine, iperf3", |r| {
            r.planned.stage.as_ref().map(|s| s.tool.to_owned())
        }),
        Column::int(
            "round",
            "index of the round in its stage; repair rounds continue the count",
            |r| r.record.round.0.into(),
        ),
        Column::int("sample", "repetition of the round, from 0", |r| {
            r.record.sample.into()
        }),
        Column::maybe_int("senders_per_rack", "senders per rack in a ramp", |r| {
            r.planned.senders_per_rack.map(i64::from)
        }),
        Column::int("flow", "number of the flow in the plan", |r| {
            r.record.flow.0.into()
        }),
        Column::int(
            "finished_at_ns",
            "when the round's reports were in, since the run began, controller's clock",
            |r| int(r.at_ns),
        ),
        Column::text("src", "sending host", |r| r.planned.src.host.to_string()),
        Column::maybe_text("src_rack", "its rack", |r| r.planned.src.rack.clone()),
        Column::text("dst", "receiving host", |r| r.planned.dst.host.to_string()),
        Column::maybe_text("dst_rack", "its rack", |r| r.planned.dst.rack.clone()),
        Column::text("outcome", "measured or missing", |r| {
            match r.record.outcome {
                FlowOutcome::Measured => "measured".to_owned(),
                FlowOutcome::Missing { .. } => "missing".to_owned(),
            }
        }),
        Column::maybe_text("missing_reason", "why there is no figure", |r| {
            match &r.record.outcome {
                FlowOutcome::Measured => None,
                FlowOutcome::Missing { reason } => Some(reason.clone()),
            }
        }),
    ]
}

fn rates() -> Vec<Column<FlowRow>> {
    vec![
        Column::maybe_float(
            "bits_per_sec",
            "payload rate: the receiver's bytes over its window",
            |r| r.record.bits_per_sec(),
        ),
        Column::maybe_int("tx_bytes", "payload sent inside the sender's window", |r| {
            sender(r).map(|e| int(e.bytes))
        }),
        Column::maybe_int(
            "rx_bytes",
            "payload received inside the receiver's window",
            |r| receiver(r).map(|e| int(e.bytes)),
        ),
        Column::maybe_int("tx_window_ns", "the sender's window as achieved", |r| {
            sender(r).map(|e| int(e.window_ns))
        }),
        Column::maybe_int("rx_window_ns", "the receiver's window as achieved", |r| {
            receiver(r).map(|e| int(e.window_ns))
        }),
        Column::maybe_int(
            "tx_window_start_ns",
            "when the sender's window was to begin, its agent's monotonic clock",
            |r| sender(r).and_then(|e| e.window_start_ns).map(int),
        ),
        Column::maybe_int(
            "rx_window_start_ns",
            "when the receiver's window was to begin, its agent's monotonic clock",
            |r| receiver(r).and_then(|e| e.window_start_ns).map(int),
        ),
        Column::maybe_int(
            "tx_start_skew_ns",
            "achieved minus planned time of the first send",
            |r| sender(r).map(|e| e.start_skew_ns),
        ),
        Column::maybe_int(
            "rx_start_skew_ns",
            "achieved minus planned time of the window's first read",
            |r| receiver(r).map(|e| e.start_skew_ns),
        ),
        Column::maybe_int(
            "tx_clock_error_ns",
            "the sender's clock was known within this",
            |r| sender(r).and_then(|e| e.clock_error_ns).map(int),
        ),
        Column::maybe_int(
            "rx_clock_error_ns",
            "the receiver's clock was known within this",
            |r| receiver(r).and_then(|e| e.clock_error_ns).map(int),
        ),
        Column::maybe_int(
            "streams",
            "parallel connections that reported at the sender, else at the receiver",
            |r| {
                sender(r)
                    .or(receiver(r))
                    .map(|e| int(e.streams.len() as u64))
            },
        ),
    ]
}

fn repeated_segments() -> Vec<Column<FlowRow>> {
    vec![
        Column::maybe_int(
            "retransmits",
            "segments retransmitted inside the window, all streams",
            |r| r.record.retransmits().map(int),
        ),
        Column::maybe_int(
            "spurious_retransmits",
            "those of them that the receiver reported to have got twice (DSACK)",
            |r| r.record.spurious_retransmits().map(int),
        ),
    ]
}

fn tcp_info() -> Vec<Column<FlowRow>> {
    vec![
        Column::maybe_int(
            "rtt_us",
            "TCP_INFO at the sender, window's end: max smoothed round trip over streams",
            |r| tcp(r).map(|i| i.rtt_us.into()).max(),
        ),
        Column::maybe_int(
            "min_rtt_us",
            "TCP_INFO at the sender: min round trip over streams",
            |r| tcp(r).filter_map(|i| i.min_rtt_us).min().map(i64::from),
        ),
        Column::maybe_int(
            "delivery_rate_bytes_per_sec",
            "TCP_INFO at the sender: sum over streams",
            |r| sum(r, |i| i.delivery_rate_bytes_per_sec),
        ),
        Column::maybe_int(
            "busy_us",
            "TCP_INFO at the sender: time with data in flight since the connection began, sum over streams",
            |r| sum(r, |i| i.busy_us),
        ),
        Column::maybe_int(
            "receive_window_limited_us",
            "part of busy_us limited by the receiver's window",
            |r| sum(r, |i| i.receive_window_limited_us),
        ),
        Column::maybe_int(
            "send_buffer_limited_us",
            "part of busy_us limited by the send buffer",
            |r| sum(r, |i| i.send_buffer_limited_us),
        ),
        Column::maybe_int(
            "send_buffer_bytes",
            "SO_SNDBUF at the sender, the kernel's overhead included: min over streams",
            |r| {
                tcp(r)
                    .filter_map(|i| i.send_buffer_bytes)
                    .min()
                    .map(|b| b as i64)
            },
        ),
        Column::maybe_int(
            "congestion_window_segments",
            "TCP_INFO at the sender: sum over streams",
            |r| sum(r, |i| Some(i.congestion_window_segments.into())),
        ),
        Column::maybe_int(
            "send_mss_bytes",
            "TCP_INFO at the sender: min over streams",
            |r| tcp(r).map(|i| i.send_mss_bytes.into()).min(),
        ),
        Column::maybe_int(
            "path_mtu_bytes",
            "TCP_INFO at the sender: min over streams",
            |r| tcp(r).map(|i| i.path_mtu_bytes.into()).min(),
        ),
    ]
}

fn transactions() -> Vec<Column<FlowRow>> {
    vec![Column::maybe_int(
        "transactions",
        "transactions completed inside the client's window",
        |r| sender(r)?.transactions.map(int),
    )]
}

/// The columns of one distribution. Buckets are two lists of equal length, so that `unnest` of both
/// gives one row a bucket.
macro_rules! distribution {
    ($prefix:literal, $times:literal, $field:ident) => {
        vec![
            Column::maybe_int(
                concat!($prefix, "_count"),
                concat!("number of ", $times),
                |r| r.$field.as_ref().map(|t| int(t.summary.count)),
            ),
            Column::maybe_int(concat!($prefix, "_min_ns"), "least", |r| {
                r.$field.as_ref().map(|t| int(t.summary.min_ns))
            }),
            Column::maybe_int(concat!($prefix, "_mean_ns"), "arithmetic mean", |r| {
                r.$field.as_ref().map(|t| int(t.summary.mean_ns))
            }),
            Column::maybe_int(concat!($prefix, "_p50_ns"), "median", |r| {
                r.$field.as_ref().map(|t| int(t.summary.p50_ns))
            }),
            Column::maybe_int(concat!($prefix, "_p90_ns"), "90th percentile", |r| {
                r.$field.as_ref().map(|t| int(t.summary.p90_ns))
            }),
            Column::maybe_int(concat!($prefix, "_p99_ns"), "99th percentile", |r| {
                r.$field.as_ref().map(|t| int(t.summary.p99_ns))
            }),
            Column::maybe_int(concat!($prefix, "_p999_ns"), "99.9th percentile", |r| {
                r.$field.as_ref().map(|t| int(t.summary.p999_ns))
            }),
            Column::maybe_int(concat!($prefix, "_p9999_ns"), "99.99th percentile", |r| {
                r.$field.as_ref().map(|t| int(t.summary.p9999_ns))
            }),
            Column::maybe_int(concat!($prefix, "_max_ns"), "max", |r| {
                r.$field.as_ref().map(|t| int(t.summary.max_ns))
            }),
            Column::maybe_ints(
                concat!($prefix, "_bucket_ns"),
                "histogram: the max time in each bucket, ascending",
                |r| {
                    r.$field
                        .as_ref()
                        .map(|t| bucket_values(t, |bucket| bucket.0))
                },
            ),
            Column::maybe_ints(
                concat!($prefix, "_bucket_count"),
                "histogram: how many times in each bucket",
                |r| {
                    r.$field
                        .as_ref()
                        .map(|t| bucket_values(t, |bucket| bucket.1))
                },
            ),
        ]
    };
}

fn latency() -> Vec<Column<FlowRow>> {
    distribution!(
        "latency",
        "times from when a request was due to its answer",
        latency
    )
}

fn uncorrected() -> Vec<Column<FlowRow>> {
    distribution!(
        "uncorrected",
        "times from when a request was really sent (open loop)",
        uncorrected
    )
}

fn connect() -> Vec<Column<FlowRow>> {
    distribution!("connect", "times of connecting (tcp-crr)", connect)
}

fn one_way() -> Vec<Column<FlowRow>> {
    distribution!(
        "one_way",
        "times from sending to receiving (udp-stream), as well as the two hosts' clocks are known (`clock-synced` events)",
        one_way
    )
}

/// Lists of equal length, so that `unnest` of all gives one row a size.
fn completions() -> Vec<Column<FlowRow>> {
    fn list(row: &FlowRow, value: fn(&(u64, LatencySummary)) -> u64) -> Option<Vec<i64>> {
        let values = row.completions.iter().map(value).map(int);
        (!row.completions.is_empty()).then(|| values.collect())
    }
    vec![
        Column::maybe_ints(
            "message_bytes",
            "sizes of messages that were completed (flow-sizes), ascending",
            |r| list(r, |(bytes, _)| *bytes),
        ),
        Column::maybe_ints("message_count", "messages of each size", |r| {
            list(r, |(_, times)| times.count)
        }),
        Column::maybe_ints(
            "message_mean_ns",
            "arithmetic mean of their times, from arrival to the answer to the end",
            |r| list(r, |(_, times)| times.mean_ns),
        ),
        Column::maybe_ints("message_p50_ns", "median", |r| {
            list(r, |(_, times)| times.p50_ns)
        }),
        Column::maybe_ints("message_p99_ns", "99th percentile", |r| {
            list(r, |(_, times)| times.p99_ns)
        }),
        Column::maybe_ints("message_max_ns", "max", |r| {
            list(r, |(_, times)| times.max_ns)
        }),
    ]
}

fn datagrams() -> Vec<Column<FlowRow>> {
    fn counts(row: &FlowRow) -> Option<DatagramCounts> {
        receiver(row)?.datagrams
    }
    vec![
        Column::maybe_int(
            "datagrams_received",
            "datagrams that came, duplicates not counted",
            |r| counts(r).map(|c| int(c.received)),
        ),
        Column::maybe_int("datagrams_lost", "sequence numbers that never came", |r| {
            counts(r).map(|c| int(c.lost))
        }),
        Column::maybe_int(
            "datagrams_reordered",
            "datagrams that came after one with a greater sequence number",
            |r| counts(r).map(|c| int(c.reordered)),
        ),
        Column::maybe_int("datagrams_duplicate", "datagrams that came again", |r| {
            counts(r).map(|c| int(c.duplicates))
        }),
        Column::maybe_int(
            "jitter_ns",
            "interarrival jitter at the window's end (RFC 3550), mean over streams",
            |r| counts(r).map(|c| int(c.jitter_ns)),
        ),
    ]
}

/// The columns of one end's host.
macro_rules! host_cpu {
    ($prefix:literal, $end:ident) => {{
        fn used(row: &FlowRow) -> Option<CpuUse> {
            $end(row)?.cpu
        }
        vec![
            Column::maybe_int(
                concat!($prefix, "_cpu_engine_ns"),
                "CPU time of the threads that drove the host's streams",
                |r| used(r).map(|c| int(c.engine_ns)),
            ),
            Column::maybe_int(
                concat!($prefix, "_cpu_engine_wait_ns"),
                "time those threads could have run and waited for a CPU",
                |r| used(r).and_then(|c| c.engine_wait_ns).map(int),
            ),
            Column::maybe_int(
                concat!($prefix, "_cpu_busy_ns"),
                "time all CPUs of the host were busy, whoever used them",
                |r| used(r).map(|c| int(c.busy_ns)),
            ),
            Column::maybe_int(
                concat!($prefix, "_cpu_softirq_ns"),
                "part of it in software interrupts",
                |r| used(r).map(|c| int(c.softirq_ns)),
            ),
            Column::maybe_int(
                concat!($prefix, "_cpu_steal_ns"),
                "time a hypervisor gave to others",
                |r| used(r).map(|c| int(c.steal_ns)),
            ),
            Column::maybe_int(
                concat!($prefix, "_cpu_user_ns"),
                "time in programs, all CPUs of the host together",
                |r| used(r).and_then(|c| c.split).map(|s| int(s.user_ns)),
            ),
            Column::maybe_int(
                concat!($prefix, "_cpu_nice_ns"),
                "the same in programs of low priority",
                |r| used(r).and_then(|c| c.split).map(|s| int(s.nice_ns)),
            ),
            Column::maybe_int(
                concat!($prefix, "_cpu_system_ns"),
                "the same in the kernel, for programs",
                |r| used(r).and_then(|c| c.split).map(|s| int(s.system_ns)),
            ),
            Column::maybe_int(
                concat!($prefix, "_cpu_iowait_ns"),
                "the same idle, waiting for disks",
                |r| used(r).and_then(|c| c.split).map(|s| int(s.iowait_ns)),
            ),
            Column::maybe_int(
                concat!($prefix, "_cpu_irq_ns"),
                "the same in interrupts",
                |r| used(r).and_then(|c| c.split).map(|s| int(s.irq_ns)),
            ),
            Column::maybe_int(concat!($prefix, "_cpus"), "CPUs of the host", |r| {
                used(r).map(|c| c.cpus.into())
            }),
            Column::maybe_int(
                concat!($prefix, "_host_moved_bytes"),
                "payload that all the host's streams sent and received",
                |r| used(r).map(|c| int(c.moved_bytes)),
            ),
            Column::maybe_int(
                concat!($prefix, "_host_transactions"),
                "transactions that all the host's streams completed",
                |r| used(r).map(|c| int(c.transactions)),
            ),
        ]
    }};
}

fn sender_cpu() -> Vec<Column<FlowRow>> {
    host_cpu!("tx", sender)
}

fn receiver_cpu() -> Vec<Column<FlowRow>> {
    host_cpu!("rx", receiver)
}

fn notes() -> Vec<Column<FlowRow>> {
    vec![
        Column::maybe_text(
            "tx_remarks",
            "what a reader must know of the sender's figures, separated by commas",
            |r| sender(r).map(note_words),
        ),
        Column::maybe_text("rx_remarks", "the same of the receiver's figures", |r| {
            receiver(r).map(note_words)
        }),
    ]
}

fn bucket_values(times: &Times, value: fn(&(u64, u64)) -> u64) -> Vec<i64> {
    times.buckets.iter().map(value).map(int).collect()
}

/// The words of `events.jsonl`.
fn note_words(end: &EndRecord) -> String {
    let words = end.notes.iter().filter_map(|note| {
        let word = serde_json::to_value(note).ok()?;
        Some(word.as_str()?.to_owned())
    });
    words.collect::<Vec<_>>().join(",")
}

fn sender(row: &FlowRow) -> Option<&EndRecord> {
    row.record.sender.as_ref()
}

fn receiver(row: &FlowRow) -> Option<&EndRecord> {
    row.record.receiver.as_ref()
}

fn tcp(row: &FlowRow) -> impl Iterator<Item = &TcpInfo> {
    let streams = sender(row).map_or(&[][..], |end| &end.streams);
    streams.iter().filter_map(|stream| stream.tcp_info.as_ref())
}

/// Sum over streams; `None` when no stream, or not every one, has the field.
fn sum(row: &FlowRow, field: fn(&TcpInfo) -> Option<u64>) -> Option<i64> {
    let mut fields = tcp(row).map(field).peekable();
    fields.peek()?;
    fields.sum::<Option<u64>>().map(int)
}
