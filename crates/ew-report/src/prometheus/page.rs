//! The text format itself: metadata, labels, escapes.

use std::fmt::Write as _;

/// What a metric is, as in `# TYPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Only grows, until its source begins anew.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// All samples of one name, and what they mean.
#[derive(Clone, Copy, Debug)]
pub(super) struct Family {
    name: &'static str,
    kind: Kind,
    help: &'static str,
}

impl Family {
    pub(super) const fn counter(name: &'static str, help: &'static str) -> Self {
        let kind = Kind::Counter;
        Self { name, kind, help }
    }

    pub(super) const fn gauge(name: &'static str, help: &'static str) -> Self {
        let kind = Kind::Gauge;
        Self { name, kind, help }
    }
}

/// A family whose value is read from `T`.
pub(super) type Read<T, V> = (Family, fn(&T) -> V);

/// A page under construction.
#[derive(Debug, Default)]
pub(super) struct Page {
    text: String,
    /// In place of the text, where the samples are asked for themselves.
    series: Option<Vec<Series>>,
}

/// One sample with its labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Names and values in the order of names; the metric's own is `__name__`.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: f64,
}

impl Page {
    /// One that collects series instead of text.
    pub(super) fn of_series() -> Self {
        Self {
            text: String::new(),
            series: Some(Vec::new()),
        }
    }

    pub(super) fn into_series(self) -> Vec<Series> {
        self.series.unwrap_or_default()
    }

    /// A family with its samples: the labels of each, and its value. Without samples nothing is
    /// written.
    pub(super) fn family<'a>(
        &mut self,
        family: &Family,
        samples: impl IntoIterator<Item = (Vec<Label<'a>>, f64)>,
    ) {
        let mut reported = false;
        for (labels, value) in samples {
            if !reported && self.series.is_none() {
                self.metadata(family);
                reported = true;
            }
            self.sample(family.name, &labels, value);
        }
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    fn metadata(&mut self, family: &Family) {
        let Family { name, kind, help } = family;
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        self.push(format_args!("# HELP {name} {}\n", escaped(help, false)));
        self.push(format_args!("# TYPE {name} {kind}\n"));
    }

    fn sample(&mut self, name: &'static str, labels: &[Label<'_>], value: f64) {
        if let Some(series) = &mut self.series {
            let given = labels.iter().filter(|(_, value)| !value.is_empty());
            let given = given.map(|(name, value)| (*name, (*value).to_owned()));
            let mut labels: Vec<_> = given.chain([("__name__", name.to_owned())]).collect();
            labels.sort_by_key(|(name, _)| *name);
            series.push(Series { labels, value });
            return;
        }
        self.text.push_str(name);
        // An empty value means the same as no label.
        let given = labels.iter().filter(|(_, value)| !value.is_empty());
        for (position, (label, value)) in given.enumerate() {
            let before = if position == 0 { '{' } else { ',' };
            self.push(format_args!("{before}{label}=\"{}\"", escaped(value, true)));
        }
        if labels.iter().any(|(_, value)| !value.is_empty()) {
            self.text.push('}');
        }
        self.push(format_args!(" {value}\n"));
    }

    fn push(&mut self, words: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.text.write_fmt(words);
    }
}

/// A label's name and value.
pub(super) type Label<'a> = (&'static str, &'a str);

fn escaped(text: &str, quotes_too: bool) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    if quotes_too {
        text.replace('"', "\\\"")
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAMILY: Family = Family {
        name: "x_total",
        kind: Kind::Counter,
        help: "Back\\slash.",
    };

    #[test]
    fn labels_are_escaped_and_empty_ones_left_out() {
        let mut page = Page::default();
        page.family(
            &FAMILY,
            [
                (vec![("host", "a\"b\\c\nd"), ("rack", "")], 1.5),
                (vec![("host", "")], 2e15),
            ],
        );
        let expected = "# HELP x_total Back\\\\slash.\n# TYPE x_total counter\n\
                        x_total{host=\"a\\\"b\\\\c\\nd\"} 1.5\nx_total 2000000000000000\n";
        assert_eq!(page.into_text(), expected);
    }

    #[test]
    fn series_are_the_samples_with_sorted_labels() {
        let mut page = Page::of_series();
        let labels = vec![("rack", ""), ("host", "a\"b"), ("device", "eth0")];
        page.family(&FAMILY, [(labels, 1.5)]);
        let labels = [
            ("__name__", "x_total"),
            ("device", "eth0"),
            ("host", "a\"b"),
        ];
        let labels = labels
            .map(|(name, value)| (name, value.to_owned()))
            .to_vec();
        assert_eq!(page.into_series(), [Series { labels, value: 1.5 }]);
    }

    #[test]
    fn no_samples_no_family() {
        let mut page = Page::default();
        page.family(&FAMILY, []);
        assert_eq!(page.into_text(), "");
    }
}
