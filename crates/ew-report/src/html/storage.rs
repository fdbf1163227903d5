//! A storage run as one page: throughput and time against storage nodes, and what each node did in
//! every step, side by side over one time axis.

use super::chart::short_rate;
use super::lines::{Plot, STYLES, Series, short};
use super::render_page;
use crate::error::ReportError;
use crate::storage;
use crate::storage::{fan_in_lines, hdfs_line, job_line, notes, step_text, verdict};
use crate::view::Tone;
use crate::words::{one_line, or_missing, percent, plural};
use ew_analyze_storage::fan_in::{Axis, FanIn, FanInPoint};
use ew_analyze_storage::job::{StepAnalysis, StorageAnalysis};
use ew_analyze_storage::nodes::{MovedPoint, NodeFigures, NodePoint, NodeRole};
use ew_model::storage::StorageOperation;
use ew_model::units::{format_bytes_per_sec, format_duration_ns};
use serde::Serialize;

const PANEL: (f64, f64) = (300.0, 150.0);
const WIDE: (f64, f64) = (400.0, 190.0);
/// Width of the steps' text.
const TEXT_WIDTH: usize = 110;

/// In order of x.
type Points = Vec<(f64, f64)>;

#[derive(Serialize)]
struct Page {
    title: String,
    style: &'static str,
    version: &'static str,
    status: String,
    status_class: &'static str,
    sentence: String,
    lines: Vec<String>,
    warnings: Vec<String>,
    fan_ins: Vec<FanInView>,
    /// What comes first: a job's figures, or the charts of what many steps have in common.
    parts: [&'static str; 2],
    operations: Vec<OperationView>,
    steps: Vec<StepView>,
}

/// One operation against storage nodes or clients.
#[derive(Serialize)]
struct FanInView {
    title: String,
    lines: Vec<String>,
    charts: Vec<ChartView>,
    header: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

#[derive(Serialize)]
struct ChartView {
    title: &'static str,
    note: String,
    svg: String,
}

/// All steps of an operation over one time axis.
#[derive(Serialize)]
struct OperationView {
    title: String,
    /// Its charts need no row each.
    has_one_step: bool,
    metrics: Vec<MetricView>,
}

#[derive(Serialize)]
struct MetricView {
    title: &'static str,
    note: &'static str,
    /// Class and name of each line.
    keys: Vec<(String, String)>,
    panels: Vec<PanelView>,
}

#[derive(Serialize)]
struct PanelView {
    title: String,
    svg: String,
}

#[derive(Serialize)]
struct StepView {
    title: String,
    text: String,
}

/// One file that needs no network.
///
/// # Errors
/// [`ReportError::Html`], a defect.
pub fn storage_html(analysis: &StorageAnalysis) -> Result<String, ReportError> {
    let (status, sentence) = verdict(analysis);
    let facts = [
        analysis.job.as_ref().map(job_line),
        analysis.hdfs.as_ref().map(hdfs_line),
    ];
    let page = Page {
        title: format!("{}: storage", one_line(&analysis.run)),
        style: concat!(include_str!("report.css"), include_str!("storage.css")),
        version: env!("CARGO_PKG_VERSION"),
        status: status.to_owned(),
        status_class: Tone::of_status(analysis.status).class(),
        sentence,
        lines: facts.into_iter().flatten().chain(notes(analysis)).collect(),
        warnings: analysis.warnings.iter().map(|w| one_line(w)).collect(),
        fan_ins: analysis.fan_in.iter().map(fan_in).collect(),
        parts: match analysis.fan_in.is_empty() {
            true => ["figures", "charts"],
            false => ["charts", "figures"],
        },
        operations: operations(analysis),
        steps: analysis.steps.iter().map(step).collect(),
    };
    render_page("storage.html", include_str!("storage.html"), &page)
}

fn step(step: &StepAnalysis) -> StepView {
    StepView {
        title: step_title(step),
        text: step_text(step, TEXT_WIDTH),
    }
}

/// `read, 4 storage nodes, 8 clients`.
fn step_title(step: &StepAnalysis) -> String {
    let mut parts = vec![step.operation.name().to_owned()];
    if step.is_disk_alone {
        parts.push("disks alone".into());
    }
    match (step.storage_nodes.len(), step.endpoints.len()) {
        (0, 0) => {}
        (0, endpoints) => parts.push(plural(endpoints, "endpoint")),
        (nodes, _) => parts.push(plural(nodes, "storage node")),
    }
    parts.push(match step.hadoop {
        Some(_) => "Hadoop's TestDFSIO".into(),
        None => plural(step.clients.len(), "client"),
    });
    parts.join(", ")
}

// --- against storage nodes or clients ---

fn fan_in(fan_in: &FanIn) -> FanInView {
    let (name, each) = match fan_in.axis {
        Axis::StorageNodes => ("storage nodes", "per node"),
        Axis::Clients => ("clients", "per client"),
    };
    let bytes = |rate: Option<f64>| or_missing(rate, format_bytes_per_sec);
    let row = |point: &FanInPoint| {
        let count = point.count(fan_in.axis);
        vec![
            count.to_string(),
            format!("{}:{}", point.clients, point.endpoints),
            bytes(point.rate()),
            bytes(point.rate().map(|rate| rate / f64::from(count))),
            format!("{:.2} s", point.exec_s),
            or_missing(point.modelled, |m| storage::term(m.term).to_owned()),
            or_missing(point.binding.as_ref(), storage::binding),
            percent(point.variation),
            or_missing(point.slowest.as_deref(), one_line),
        ]
    };
    FanInView {
        title: format!("{} against {name}", title_case(fan_in.operation)),
        lines: fan_in_lines(fan_in),
        charts: fan_in_charts(fan_in, name),
        header: vec![
            name,
            "fan-in",
            "aggregate",
            each,
            "execution time",
            "model",
            "bound by",
            "variation",
            "worst",
        ],
        rows: fan_in.points.iter().map(row).collect(),
    }
}

fn fan_in_charts(fan_in: &FanIn, name: &str) -> Vec<ChartView> {
    let rates = values(fan_in, FanInPoint::rate);
    let model = values(fan_in, |point| Some(point.modelled?.bytes_per_sec));
    let knee = fan_in.fit.as_ref().and_then(|fit| fit.knee.as_ref());
    let alone = fan_in.alone.by_servers.iter().rev();
    let alone = alone.map(|by| (f64::from(by.servers), by.bytes_per_sec.value));
    let alone: Vec<(f64, f64)> = match fan_in.axis {
        Axis::StorageNodes => alone.collect(),
        Axis::Clients => Vec::new(),
    };
    let drawn = [
        (!model.is_empty(), ", model (dashed)"),
        (!alone.is_empty(), ", network alone (dotted)"),
        (knee.is_some(), "; the vertical line is the knee"),
    ];
    let drawn = drawn.into_iter().filter(|(is_drawn, _)| *is_drawn);
    let drawn: String = drawn.map(|(_, words)| words).collect();
    let model = Series {
        dots: false,
        ..dotted("ideal", model)
    };
    let throughput = vec![dotted("line-0", rates), model, dotted("third", alone)];
    let seconds = values(fan_in, |point| Some(point.exec_s));
    let variation = values(fan_in, |point| point.variation);
    let charts = [
        (
            "Throughput",
            format!("Measured{drawn}."),
            chart(name, throughput, knee.map(|k| k.exact), format_bytes_short),
        ),
        (
            "Execution time",
            "From the orders to the last report, TestDFSIO's Test exec time.".to_owned(),
            chart(name, vec![dotted("line-0", seconds)], None, |s| {
                format!("{} s", short(s))
            }),
        ),
        (
            "Balance",
            "Standard deviation over mean, between storage nodes or endpoints.".to_owned(),
            chart(name, vec![dotted("line-0", variation)], None, share),
        ),
    ];
    let view = |(title, note, svg): (_, _, Option<String>)| {
        Some(ChartView {
            title,
            note,
            svg: svg?,
        })
    };
    charts.into_iter().filter_map(view).collect()
}

/// By count, fewest first.
fn values(fan_in: &FanIn, of: impl Fn(&FanInPoint) -> Option<f64>) -> Vec<(f64, f64)> {
    let points = fan_in.points.iter();
    let known = points.filter_map(|p| Some((f64::from(p.count(fan_in.axis)), of(p)?)));
    let mut values: Vec<(f64, f64)> = known.collect();
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    values
}

/// Measured at each number.
fn dotted(class: &str, points: Points) -> Series {
    Series {
        class: class.to_owned(),
        points,
        dots: true,
    }
}

/// `None` without a point of the first series.
fn chart(
    x_name: &str,
    series: Vec<Series>,
    mark_x: Option<f64>,
    format: fn(f64) -> String,
) -> Option<String> {
    let first = &series.first()?.points;
    let last_x = first.last()?.0;
    let summary = first
        .iter()
        .map(|(x, y)| format!("{} at {}", format(*y), short(*x)));
    let summary: Vec<String> = summary.collect();
    let all = series.iter().flat_map(|series| &series.points);
    let plot = Plot {
        size: WIDE,
        summary: &format!("{} {x_name}", summary.join(", ")),
        x_name,
        x: (0.0, last_x),
        x_whole: true,
        top: all.map(|(_, y)| *y).fold(0.0, f64::max),
        format,
        series,
        mark_x: mark_x.filter(|x| (0.0..=last_x).contains(x)),
    };
    Some(plot.svg())
}

// --- over time ---

/// A quantity of a node over time.
struct Metric {
    title: &'static str,
    note: &'static str,
    of: Of,
    format: fn(f64) -> String,
}

/// Whose, and what of it.
enum Of {
    /// Of storage nodes; where none has readings, of clients.
    Node(fn(&NodePoint, StorageOperation) -> Option<f64>),
    /// Of what clients' workers did.
    Client(fn(&MovedPoint) -> f64),
}

const METRICS: [Metric; 8] = [
    Metric {
        title: "Client throughput",
        note: "Bytes of files, by client.",
        of: Of::Client(|moved| moved.bytes_per_sec),
        format: format_bytes_short,
    },
    Metric {
        title: "Network per storage node",
        note: "RX where files are written, TX where they are read, on the wire.",
        of: Of::Node(|point, operation| match operation.writes() {
            true => point.counters.rx_bits_per_sec,
            false => point.counters.tx_bits_per_sec,
        }),
        format: short_rate,
    },
    Metric {
        title: "Active connections per storage node",
        note: "Established TCP connections.",
        of: Of::Node(|point, _| point.counters.tcp_established.map(|count| count as f64)),
        format: short,
    },
    Metric {
        title: "CPU",
        note: "Busy share of all CPUs.",
        of: Of::Node(|point, _| point.counters.busy_share),
        format: share,
    },
    Metric {
        title: "File operations",
        note: "Open, read or write, and close calls per second, by client.",
        of: Of::Client(|moved| moved.calls_per_sec),
        format: |value| format!("{}/s", thousands(value)),
    },
    Metric {
        title: "Disk throughput",
        note: "Written where files are written, read where they are read.",
        of: Of::Node(|point, operation| {
            let disk = point.counters.disk?;
            Some(match operation.writes() {
                true => disk.written_bytes_per_sec,
                false => disk.read_bytes_per_sec,
            })
        }),
        format: format_bytes_short,
    },
    Metric {
        title: "Disk queue depth",
        note: "Requests in flight, mean.",
        of: Of::Node(|point, _| Some(point.counters.disk?.queue_depth)),
        format: short,
    },
    Metric {
        title: "Disk latency",
        note: "Time of a request, queue included.",
        of: Of::Node(|point, _| Some(point.counters.disk?.await_ns? as f64)),
        format: |ns| format_duration_ns(ns as u64),
    },
];

fn operations(analysis: &StorageAnalysis) -> Vec<OperationView> {
    let of = |operation: StorageOperation| {
        let steps = analysis.steps.iter();
        let steps: Vec<&StepAnalysis> = steps
            .filter(|step| step.operation == operation && !step.is_disk_alone)
            .collect();
        let end = last_second(&steps);
        let metrics = METRICS.iter().filter_map(|one| metric(one, &steps, end));
        OperationView {
            title: title_case(operation),
            has_one_step: steps.len() == 1,
            metrics: metrics.collect(),
        }
    };
    let all = StorageOperation::ALL.into_iter().map(of);
    all.filter(|view| !view.metrics.is_empty()).collect()
}

/// Lines of one step: by host.
type Lines = Vec<(String, Points)>;

/// Where the time axis of all metrics ends.
fn last_second(steps: &[&StepAnalysis]) -> f64 {
    let mut end = 0.0_f64;
    for step in steps {
        let lines = METRICS.iter().flat_map(|one| lines(one, step));
        let points = lines.flat_map(|(_, points)| points);
        end = points.fold(end, |end, (x, _)| end.max(x));
    }
    end
}

/// `None` where no step has a point.
fn metric(metric: &Metric, steps: &[&StepAnalysis], end: f64) -> Option<MetricView> {
    let lines: Vec<Lines> = steps.iter().map(|step| lines(metric, step)).collect();
    let points = || lines.iter().flatten().flat_map(|(_, points)| points);
    let top = points().map(|(_, y)| *y).fold(0.0, f64::max);
    points().next()?;
    let mut hosts: Vec<&str> = Vec::new();
    for (host, _) in lines.iter().flatten() {
        if !hosts.contains(&host.as_str()) {
            hosts.push(host);
        }
    }
    let panel = |(step, lines): (&&StepAnalysis, &Lines)| PanelView {
        title: step_title(step),
        svg: panel(metric, lines, &hosts, (end, top)),
    };
    Some(MetricView {
        title: metric.title,
        note: metric.note,
        keys: keys(&hosts),
        panels: steps.iter().zip(&lines).map(panel).collect(),
    })
}

fn lines(metric: &Metric, step: &StepAnalysis) -> Lines {
    let seconds = |ns: u64| ns as f64 / 1e9;
    match metric.of {
        Of::Client(of) => {
            let clients = step.nodes.iter().filter(|n| !n.moved.is_empty());
            let line = |node: &NodeFigures| {
                let points = node.moved.iter().map(|at| (seconds(at.t_ns), of(at)));
                (one_line(&node.host), points.collect())
            };
            clients.map(line).collect()
        }
        Of::Node(of) => {
            let with_role = |role: NodeRole| -> Lines {
                let nodes = step.nodes.iter().filter(|node| node.role == role);
                let line = |node: &NodeFigures| {
                    let points = node.points.iter();
                    let known =
                        points.filter_map(|p| Some((seconds(p.t_ns), of(p, step.operation)?)));
                    (one_line(&node.host), known.collect::<Vec<_>>())
                };
                nodes
                    .map(line)
                    .filter(|(_, points)| !points.is_empty())
                    .collect()
            };
            let serving = with_role(NodeRole::StorageNode);
            match serving.is_empty() {
                true => with_role(NodeRole::Client),
                false => serving,
            }
        }
    }
}

/// Few hosts have a line each; of many there are the highest, the mean and the lowest.
fn panel(metric: &Metric, lines: &Lines, hosts: &[&str], (end, top): (f64, f64)) -> String {
    let series: Vec<Series> = match hosts.len() <= STYLES {
        true => lines
            .iter()
            .map(|(host, points)| Series {
                class: style(hosts.iter().position(|known| known == host)),
                points: points.clone(),
                dots: false,
            })
            .collect(),
        false => spread(lines),
    };
    let most = lines.iter().flat_map(|(_, points)| points).map(|p| p.1);
    let most = most.fold(0.0, f64::max);
    Plot {
        size: PANEL,
        summary: &format!("{}: max {}", metric.title, (metric.format)(most)),
        x_name: "s",
        x: (0.0, end),
        x_whole: false,
        top,
        format: metric.format,
        series,
        mark_x: None,
    }
    .svg()
}

/// Readings of different hosts are not of the same moment: they are taken in the order of each.
fn spread(lines: &Lines) -> Vec<Series> {
    let longest = lines.iter().map(|(_, points)| points.len()).max();
    let at = |index: usize| -> Vec<(f64, f64)> {
        let points = lines.iter();
        points
            .filter_map(|(_, points)| points.get(index).copied())
            .collect()
    };
    let line = |class: &str, join: fn(&[f64]) -> f64| {
        let points = (0..longest.unwrap_or(0)).map(|index| {
            let near = at(index);
            let (x, y): (Vec<f64>, Vec<f64>) = near.into_iter().unzip();
            (mean(&x), join(&y))
        });
        Series {
            class: class.to_owned(),
            points: points.collect(),
            dots: false,
        }
    };
    vec![
        line("line-0", mean),
        line("line-1", |values| {
            values.iter().copied().fold(0.0, f64::max)
        }),
        line("line-2", |values| {
            values.iter().copied().fold(f64::INFINITY, f64::min)
        }),
    ]
}

fn keys(hosts: &[&str]) -> Vec<(String, String)> {
    let names: Vec<String> = match hosts.len() <= STYLES {
        true => hosts.iter().map(|host| (*host).to_owned()).collect(),
        false => ["mean", "max", "min"].map(str::to_owned).to_vec(),
    };
    let keyed = names.into_iter().enumerate();
    keyed.map(|(at, name)| (style(Some(at)), name)).collect()
}

fn style(at: Option<usize>) -> String {
    format!("line-{}", at.unwrap_or(0) % STYLES)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn title_case(operation: StorageOperation) -> String {
    let name = operation.name();
    let (first, rest) = name.split_at(1);
    format!("{}{rest}", first.to_ascii_uppercase())
}

fn share(value: f64) -> String {
    format!("{}%", short(100.0 * value))
}

/// `1.2k`.
fn thousands(value: f64) -> String {
    match value >= 1000.0 {
        true => format!("{}k", short(value / 1000.0)),
        false => short(value),
    }
}

/// An axis label without digits that show nothing: `200 MB/s`.
fn format_bytes_short(bytes_per_sec: f64) -> String {
    let text = format_bytes_per_sec(bytes_per_sec);
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            let number = number.trim_end_matches('0').trim_end_matches('.');
            format!("{number} {unit}")
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_analyze_storage::nodes::{DiskFigures, NodeCounters};

    /// Every counter has a value of its own, so that a chart of another one shows.
    #[test]
    fn every_chart_shows_the_counter_of_its_title() {
        let disk = DiskFigures {
            read_bytes_per_sec: 5e6,
            written_bytes_per_sec: 6e6,
            requests_per_sec: 7.0,
            queue_depth: 8.0,
            await_ns: Some(9_000_000),
        };
        let counters = NodeCounters {
            tx_bits_per_sec: Some(1e6),
            rx_bits_per_sec: Some(2e6),
            tcp_established: Some(3),
            busy_share: Some(0.4),
            disk: Some(disk),
        };
        let at = NodePoint { t_ns: 0, counters };
        let moved = MovedPoint {
            t_ns: 0,
            bytes_per_sec: 10e6,
            calls_per_sec: 11.0,
        };
        let shown = |metric: &Metric, operation| {
            let value = match metric.of {
                Of::Node(of) => of(&at, operation).unwrap(),
                Of::Client(of) => of(&moved),
            };
            format!("{}: {}", metric.title, (metric.format)(value))
        };
        let all = |operation| -> Vec<String> {
            let of_metric = |metric: &Metric| shown(metric, operation);
            METRICS.iter().map(of_metric).collect()
        };
        let read = all(StorageOperation::Read);
        assert_eq!(
            read,
            [
                "Client throughput: 10 MB/s",
                "Network per storage node: 1 Mb/s",
                "Active connections per storage node: 3",
                "CPU: 40%",
                "File operations: 11/s",
                "Disk throughput: 5 MB/s",
                "Disk queue depth: 8",
                "Disk latency: 9.00 ms",
            ]
        );
        let written = all(StorageOperation::Write);
        assert_eq!(written[1], "Network per storage node: 2 Mb/s");
        assert_eq!(written[5], "Disk throughput: 6 MB/s");
    }

    fn hosts(count: usize) -> Lines {
        let line = |host: usize| {
            let points = vec![(1.0, host as f64), (2.0, 10.0 * host as f64)];
            (format!("dn{host}"), points)
        };
        (1..=count).map(line).collect()
    }

    #[test]
    fn few_hosts_have_a_line_each_and_many_their_mean_and_ends() {
        let lines = hosts(9);
        let names: Vec<&str> = lines.iter().map(|(host, _)| host.as_str()).collect();
        let few = keys(&names[..3]);
        assert_eq!(few[2], ("line-2".to_owned(), "dn3".to_owned()));
        let many: Vec<String> = keys(&names).into_iter().map(|(_, name)| name).collect();
        assert_eq!(many, ["mean", "max", "min"]);
        let [mean, max, min] = &spread(&lines)[..] else {
            panic!("three lines");
        };
        assert_eq!(mean.points, [(1.0, 5.0), (2.0, 50.0)]);
        assert_eq!(max.points, [(1.0, 9.0), (2.0, 90.0)]);
        assert_eq!(min.points, [(1.0, 1.0), (2.0, 10.0)]);
    }

    #[test]
    fn a_chart_needs_a_measured_point() {
        let none = vec![
            dotted("line-0", Vec::new()),
            dotted("ideal", vec![(1.0, 1.0)]),
        ];
        assert!(chart("nodes", none, None, short).is_none());
        let one = vec![dotted("line-0", vec![(4.0, 2.0)])];
        assert!(
            chart("nodes", one, Some(2.5), short)
                .unwrap()
                .contains("2 at 4 nodes")
        );
    }
}
