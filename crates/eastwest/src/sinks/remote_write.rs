//! Prometheus remote write, version 1.0
//! (<https://prometheus.io/docs/specs/prw/remote_write_spec/>): protobuf in a snappy block.

use ew_report::prometheus::Series;
use prost::Message as _;
use std::collections::BTreeSet;

pub(super) const HEADERS: &[(&str, &str)] = &[
    ("content-encoding", "snappy"),
    ("content-type", "application/x-protobuf"),
    ("x-prometheus-remote-write-version", "0.1.0"),
];

/// A series that ends now: what Prometheus writes itself when a target is gone.
const STALE: u64 = 0x7ff0_0000_0000_0002;

#[derive(Clone, PartialEq, prost::Message)]
struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    timeseries: Vec<TimeSeries>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, prost::Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct Sample {
    #[prost(double, tag = "1")]
    value: f64,
    /// ms since 1970.
    #[prost(int64, tag = "2")]
    timestamp: i64,
}

/// Turns series into requests, and knows which series there were.
pub(super) struct Encoder {
    /// On every series, as a scrape would put them there.
    own: [Label; 2],
    known: BTreeSet<Vec<Label>>,
}

impl Encoder {
    pub(super) fn new(scenario: &str) -> Self {
        let label = |name: &str, value: &str| Label {
            name: name.to_owned(),
            value: value.to_owned(),
        };
        Self {
            own: [label("job", "eastwest"), label("scenario", scenario)],
            known: BTreeSet::new(),
        }
    }

    pub(super) fn encode(&mut self, series: &[Series], unix_ns: u64) -> Vec<u8> {
        let timeseries = self.timeseries(series, unix_ns);
        let labels = timeseries.iter().map(|series| series.labels.clone());
        self.known.extend(labels);
        encoded(timeseries)
    }

    /// The same, and an end of every series that is no more.
    pub(super) fn encode_last(&mut self, series: &[Series], unix_ns: u64) -> Vec<u8> {
        let mut timeseries = self.timeseries(series, unix_ns);
        for series in &timeseries {
            self.known.remove(&series.labels);
        }
        let ended = std::mem::take(&mut self.known).into_iter();
        timeseries.extend(ended.map(|labels| TimeSeries {
            labels,
            samples: vec![sample(f64::from_bits(STALE), unix_ns)],
        }));
        encoded(timeseries)
    }

    fn timeseries(&self, series: &[Series], unix_ns: u64) -> Vec<TimeSeries> {
        let one = |series: &Series| {
            let labels = series.labels.iter().map(|(name, value)| Label {
                name: (*name).to_owned(),
                value: value.clone(),
            });
            let mut labels: Vec<Label> = labels.collect();
            // Some series name their scenario themselves; a label must not be there twice.
            for own in &self.own {
                if labels.iter().all(|label| label.name != own.name) {
                    labels.push(own.clone());
                }
            }
            labels.sort();
            TimeSeries {
                labels,
                samples: vec![sample(series.value, unix_ns)],
            }
        };
        series.iter().map(one).collect()
    }
}

fn sample(value: f64, unix_ns: u64) -> Sample {
    Sample {
        value,
        timestamp: (unix_ns / 1_000_000) as i64,
    }
}

fn encoded(timeseries: Vec<TimeSeries>) -> Vec<u8> {
    let plain = WriteRequest { timeseries }.encode_to_vec();
    // Fails above 4 GiB only, which the number of series forbids.
    snap::raw::Encoder::new()
        .compress_vec(&plain)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> Vec<TimeSeries> {
        let plain = snap::raw::Decoder::new().decompress_vec(bytes).unwrap();
        WriteRequest::decode(plain.as_slice()).unwrap().timeseries
    }

    fn series(name: &str, value: f64) -> Series {
        Series {
            labels: vec![("__name__", name.to_owned()), ("rack", "r1".into())],
            value,
        }
    }

    #[test]
    fn a_label_that_is_there_is_not_there_twice() {
        let mut named = series("a", 1.0);
        named.labels.push(("scenario", "mesh".into()));
        let sent = decoded(&Encoder::new("mesh").encode(&[named], 0));
        let names: Vec<&str> = sent[0].labels.iter().map(|l| l.name.as_str()).collect();
        assert_eq!(names, ["__name__", "job", "rack", "scenario"]);
    }

    #[test]
    fn labels_are_sorted_and_ended_series_are_marked_once() {
        let mut encoder = Encoder::new("mesh");
        let first = decoded(&encoder.encode(&[series("a", 1.0), series("b", 2.0)], 5_000_000_000));
        let names: Vec<&str> = first[0].labels.iter().map(|l| l.name.as_str()).collect();
        assert_eq!(names, ["__name__", "job", "rack", "scenario"]);
        assert_eq!(
            first[1].samples,
            [Sample {
                value: 2.0,
                timestamp: 5000
            }]
        );
        let last = decoded(&encoder.encode_last(&[series("a", 3.0)], 6_000_000_000));
        assert_eq!(last.len(), 2);
        assert_eq!(last[1].labels[0].value, "b");
        assert_eq!(last[1].samples[0].value.to_bits(), STALE);
    }
}
