//! Lines of older format versions, brought to the present one.

use ew_model::RecordedEvent;
use serde_json::{Value, json};

/// A line that only an older version wrote like this; `None` when it is of no version known.
///
/// Version 1 kept of round trips only a summary. It becomes a histogram of as many buckets as the
/// summary has percentiles: what lies between them is not known, so the percentiles it did not have
/// are upper bounds.
pub(crate) fn upgraded(line: &[u8]) -> Option<RecordedEvent> {
    let mut event: Value = serde_json::from_slice(line).ok()?;
    let records = event.pointer_mut("/event/data/records")?.as_array_mut()?;
    for record in records {
        for end in ["sender", "receiver"] {
            let latency = record.get_mut(end).and_then(|end| end.get_mut("latency"));
            if let Some(latency) = latency
                && let Some(histogram) = histogram(latency)
            {
                *latency = json!({ "times": histogram, "uncorrected": null });
            }
        }
    }
    serde_json::from_value(event).ok()
}

fn histogram(summary: &Value) -> Option<Value> {
    let figure = |name| summary.get(name)?.as_u64();
    let count = figure("count")?;
    let half = count.div_ceil(2);
    let most = count - count / 100;
    let buckets: Vec<(u64, u64)> = [
        (figure("p50_ns")?, half),
        (figure("p99_ns")?, most - half),
        (figure("max_ns")?, count - most),
    ]
    .into_iter()
    .filter(|(_, count)| *count > 0)
    .collect();
    Some(json!({
        "buckets": buckets,
        "sum_ns": figure("mean_ns")?.saturating_mul(count),
        "min_ns": figure("min_ns")?,
        "max_ns": figure("max_ns")?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::RunEvent;

    #[test]
    fn round_trips_of_version_1_keep_their_percentiles() {
        let line = br#"{"at_ns":7,"event":{"type":"round-finished","data":{"stage":0,"round":0,"records":[{"stage":0,"round":0,"flow":0,
            "sample":0,"src":0,"dst":1,"outcome":"measured","sender":{"bytes":1,"window_ns":2,"start_skew_ns":-3,"streams":[],
            "intervals":[],"latency":{"count":1001,"min_ns":30,"mean_ns":45,"p50_ns":40,"p99_ns":90,"max_ns":700}},
            "receiver":{"bytes":1,"window_ns":2,"start_skew_ns":0,"streams":[],"intervals":[],"latency":null}}]}}}"#;
        let RunEvent::RoundFinished { records, .. } = upgraded(line).unwrap().event else {
            panic!("another event");
        };
        let latency = records[0]
            .sender
            .as_ref()
            .unwrap()
            .latency
            .as_ref()
            .unwrap();
        let summary = latency.times.summary().unwrap();
        assert_eq!(
            (summary.count, summary.min_ns, summary.mean_ns),
            (1001, 30, 45)
        );
        assert_eq!(
            (summary.p50_ns, summary.p99_ns, summary.max_ns),
            (40, 90, 700)
        );
        assert_eq!(records[0].receiver.as_ref().unwrap().latency, None);
        assert_eq!(upgraded(b"{\"at_ns\":7"), None);
        assert_eq!(
            upgraded(br#"{"at_ns":7,"event":{"type":"interrupted"}}"#),
            None
        );
    }
}
