//! What a run amounts to, for one that is over: series per stage.

use super::page::{Family, Label, Page};
use crate::words::one_line;
use ew_model::Analysis;
use ew_model::analysis::{LatencyFigures, StageAnalysis};

const EXIT_CODE: Family = Family::gauge(
    "eastwest_result_exit_code",
    "Exit code of the verdict: 0 no fault, 1 worse than expected, 3 figures are missing, 4 not determined.",
);
const FINISHED: Family = Family::gauge(
    "eastwest_result_finish_timestamp_seconds",
    "When the run ended, since 1970.",
);
const GOODPUT: Family = Family::gauge(
    "eastwest_result_stage_flow_goodput_bytes_per_second",
    "Payload rate of a flow, median over the stage's flows.",
);
const TRANSACTIONS: Family = Family::gauge(
    "eastwest_result_stage_transactions_per_second",
    "Transactions of all flows together, median over the stage's rounds.",
);
const LATENCY: Family = Family::gauge(
    "eastwest_result_stage_latency_seconds",
    "Time of a transaction, by quantile.",
);
const LOSS: Family = Family::gauge(
    "eastwest_result_stage_datagram_loss_ratio",
    "Datagrams lost, 0 to 1.",
);
const PODS: Family = Family::gauge(
    "eastwest_result_pods_ratio",
    "Rate of pods over that of their baseline, between the same nodes: 0.9 is 10% lower.",
);
const SIGNIFICANT: Family = Family::gauge(
    "eastwest_result_pods_significant",
    "1 where that ratio is significant, else 0.",
);

pub(super) fn render(analysis: &Analysis, page: &mut Page) {
    let code = f64::from(analysis.verdict.status.exit_code());
    page.family(&EXIT_CODE, [(Vec::new(), code)]);
    let finished = analysis.run.finished_unix_ns;
    page.family(&FINISHED, finished.map(|ns| (Vec::new(), ns as f64 / 1e9)));
    let names: Vec<String> = analysis.stages.iter().map(|s| one_line(&s.name)).collect();
    let stages: Vec<(&str, &StageAnalysis)> = names
        .iter()
        .map(String::as_str)
        .zip(&analysis.stages)
        .collect();
    by_stage(page, &GOODPUT, &stages, |stage| {
        Some(stage.flow_bits_per_sec?.value / 8.0)
    });
    by_stage(page, &TRANSACTIONS, &stages, |stage| {
        Some(stage.latency.as_ref()?.transactions_per_sec?.value)
    });
    page.family(
        &LATENCY,
        stages.iter().flat_map(|(name, stage)| {
            let times = stage.latency.as_ref().map(|latency| latency.times);
            let quantiles = times.into_iter().flat_map(quantiles);
            quantiles.map(|(quantile, seconds)| {
                let mut labels = labels(name, stage);
                labels.push(("quantile", quantile));
                (labels, seconds)
            })
        }),
    );
    by_stage(page, &LOSS, &stages, |stage| stage.datagrams?.loss);
    render_pods(analysis, page);
}

fn render_pods(analysis: &Analysis, page: &mut Page) {
    let names: Vec<String> = analysis.pods.iter().map(|c| one_line(&c.stage)).collect();
    let samples = |value: fn(&ew_model::pods::PodComparison) -> f64| {
        let pods = names.iter().zip(&analysis.pods);
        pods.map(move |(name, found)| {
            let labels = vec![
                ("stage", name.as_str()),
                ("workload", found.kind.name()),
                ("path", found.path.name()),
                ("baseline", found.baseline_path.name()),
            ];
            (labels, value(found))
        })
    };
    page.family(&PODS, samples(|found| found.ratio.value));
    page.family(
        &SIGNIFICANT,
        samples(|found| f64::from(u8::from(found.significant))),
    );
}

fn by_stage(
    page: &mut Page,
    family: &Family,
    stages: &[(&str, &StageAnalysis)],
    value: fn(&StageAnalysis) -> Option<f64>,
) {
    let known = stages
        .iter()
        .filter_map(|(name, stage)| Some((labels(name, stage), value(stage)?)));
    page.family(family, known);
}

fn labels<'a>(name: &'a str, stage: &StageAnalysis) -> Vec<Label<'a>> {
    vec![("stage", name), ("workload", stage.kind.name())]
}

fn quantiles(times: LatencyFigures) -> impl Iterator<Item = (&'static str, f64)> {
    let all = [
        ("0.5", Some(times.p50_ns)),
        ("0.99", times.p99_ns),
        ("0.999", times.p999_ns),
    ];
    all.into_iter()
        .filter_map(|(quantile, ns)| Some((quantile, ns? as f64 / 1e9)))
}
