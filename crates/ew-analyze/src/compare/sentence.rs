//! The answer in one sentence.

use ew_model::comparison::{Change, Metric, StageComparison};

/// From this ratio on, "times" says more than per cent.
const TIMES: f64 = 2.0;
/// So many differences are told.
const TOLD: usize = 3;

/// A figure that differs.
struct Difference {
    /// "throughput in `mesh`", "throughput of h3 as sender in `mesh`".
    what: String,
    metric: Metric,
    ratio: f64,
    /// Whether it is what the stage is about: its throughput, its median latency.
    is_first: bool,
}

/// What got worse beyond the threshold, whole stages before hosts; else the greatest differences, what stages are about before their
/// other figures; else that there is none.
pub(super) fn sentence(stages: &[StageComparison], threshold: Option<f64>) -> String {
    let mut changed = worse_stages(stages);
    changed.extend(worse_hosts(stages));
    let is_worse = !changed.is_empty();
    if !is_worse {
        changed = changed_stages(stages);
    }
    let more = changed.len().saturating_sub(TOLD);
    let mut parts: Vec<String> = changed.iter().take(TOLD).map(Difference::words).collect();
    if more > 0 {
        parts.push(format!("and {more} more"));
    }
    let list = parts.join("; ");
    let mut all = stages.iter().flat_map(|stage| &stage.metrics);
    let is_tested = all.any(|m| m.change != Change::Unknown);
    match (is_worse, list.is_empty(), threshold) {
        (true, _, Some(most)) => format!("Worse by more than {}: {list}", percent(most)),
        (_, true, _) if !is_tested => "Too little was measured to tell a difference".into(),
        (_, true, _) => "No significant difference".into(),
        (_, false, Some(most)) => format!("Nothing worse by more than {}: {list}", percent(most)),
        (_, false, None) => list,
    }
}

fn worse_stages(stages: &[StageComparison]) -> Vec<Difference> {
    let mut worse = of_stages(stages, |_, is_beyond| is_beyond);
    worse.sort_by(|x, y| y.worsening().total_cmp(&x.worsening()));
    worse
}

fn worse_hosts(stages: &[StageComparison]) -> Vec<Difference> {
    let mut worse = Vec::new();
    for stage in stages {
        for metric in &stage.metrics {
            let name = metric.metric.name();
            let hosts = metric.hosts_beyond_threshold();
            worse.extend(hosts.map(|(host, role, at)| Difference {
                what: format!("{name} of {host} as {role} in `{}`", stage.name),
                metric: metric.metric,
                ratio: at.ratio,
                is_first: false,
            }));
        }
    }
    worse.sort_by(|x, y| y.worsening().total_cmp(&x.worsening()));
    worse
}

fn changed_stages(stages: &[StageComparison]) -> Vec<Difference> {
    let is_told = |change, _| matches!(change, Change::Better | Change::Worse);
    let mut changed = of_stages(stages, is_told);
    changed.sort_by(|x, y| y.ratio.ln().abs().total_cmp(&x.ratio.ln().abs()));
    changed.sort_by_key(|difference| !difference.is_first);
    changed
}

fn of_stages(
    stages: &[StageComparison],
    is_told: impl Fn(Change, bool) -> bool,
) -> Vec<Difference> {
    let mut told = Vec::new();
    for stage in stages {
        let metrics = stage.metrics.iter().enumerate();
        let meant = metrics.filter(|(_, m)| is_told(m.change, m.beyond_threshold));
        told.extend(meant.map(|(index, m)| Difference {
            what: format!("{} in `{}`", m.metric.name(), stage.name),
            metric: m.metric,
            ratio: m.ratio.map_or(1.0, |ratio| ratio.value),
            is_first: index == 0,
        }));
    }
    told
}

impl Difference {
    fn worsening(&self) -> f64 {
        self.metric.worsening(self.ratio)
    }

    /// "throughput in `mesh` is 9.87 times as high", "median latency in `rtt` is 4.2 % lower".
    fn words(&self) -> String {
        let Self { what, ratio, .. } = self;
        let word = if *ratio > 1.0 { "higher" } else { "lower" };
        if *ratio >= TIMES {
            format!("{what} is {ratio:.2} times as high")
        } else {
            format!("{what} is {} {word}", percent((ratio - 1.0).abs()))
        }
    }
}

fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        p if (p - p.round()).abs() < 0.05 || p >= 10.0 => format!("{p:.0} %"),
        p => format!("{p:.1} %"),
    }
}
