//! Messages at a load.

use crate::common;
use ew_model::Analysis;
use ew_model::analysis::Estimate;
use ew_model::completion::{FlowCompletion, SizeSlowdown};
use ew_model::sizes::SizeDistribution;
use ew_report::{Format, TextStyle, render};

#[test]
fn sizes_have_their_slowdowns_and_loads_what_was_carried() {
    let text = render(&loaded(), Format::Text, &TextStyle::default()).unwrap();
    let (_, table) = text.split_once("Flow completion under load\n").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    insta::assert_snapshot!(table);
}

#[test]
fn every_form_has_the_table() {
    for format in [Format::Markdown, Format::Html] {
        let report = render(&loaded(), format, &TextStyle::default()).unwrap();
        assert!(report.contains("Flow completion under load"), "{format:?}");
        assert!(report.contains("43.0 of 80%"), "{format:?}");
    }
}

#[test]
fn a_sentence_has_the_size_that_is_slowed_most() {
    let sentences = completions().map(|one| ew_report::worded_completion(&one).sentence);
    assert_eq!(
        sentences[1],
        "80% load: hadoop messages of 324 B slowed x2.10 (1.90-2.40) at p50, x14.2 at p99; 45.2 µs alone; \
         43.0% of line rate carried (80% offered)"
    );
    let nothing = FlowCompletion {
        sizes: Vec::new(),
        ..completions()[0].clone()
    };
    let nothing = ew_report::worded_completion(&nothing).sentence;
    assert_eq!(nothing, "alone: no message was completed");
}

pub(crate) fn loaded() -> Analysis {
    let mut analysis = common::demo();
    analysis.flow_completion = completions().into();
    analysis
}

/// Alone, and at a load that was not carried.
pub(crate) fn completions() -> [FlowCompletion; 2] {
    let exactly = |value, low, high| {
        Some(Estimate {
            value,
            low: Some(low),
            high: Some(high),
            samples: 6,
        })
    };
    let roughly = |value| {
        Some(Estimate {
            value,
            low: None,
            high: None,
            samples: 1,
        })
    };
    let size = |bytes, share, alone_ns| SizeSlowdown {
        bytes,
        share,
        messages: 1538,
        alone_ns,
        p50: exactly(1.0, 0.98, 1.02),
        p99: roughly(1.2),
    };
    let alone = FlowCompletion {
        stage: "alone".into(),
        baseline_stage: "alone".into(),
        distribution: SizeDistribution::Hadoop,
        load: None,
        achieved_load: None,
        sizes: vec![
            size(324, 0.5, 45_200.0),
            size(5_300_000, 0.000_02, 212_000_000.0),
        ],
    };
    let mut loaded = FlowCompletion {
        stage: "80% load".into(),
        load: Some(0.8),
        achieved_load: exactly(0.43, 0.41, 0.44),
        ..alone.clone()
    };
    loaded.sizes[0].p50 = exactly(2.1, 1.9, 2.4);
    loaded.sizes[0].p99 = roughly(14.2);
    loaded.sizes[1].messages = 0;
    loaded.sizes[1].p50 = None;
    loaded.sizes[1].p99 = None;
    [alone, loaded]
}
