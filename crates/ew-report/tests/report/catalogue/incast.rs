//! Many senders to one receiver.

use super::golden;
use ew_model::finding::Details;
use ew_model::finding::details::Incast;

#[test]
fn collapsed_uneven_and_with_a_long_queue() {
    insta::assert_snapshot!(golden(&cases()));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let collapsed = Incast {
        goodput_share: 0.31,
        has_collapsed: true,
        queueing_delay_ns: Some(800_000),
        ..incast()
    };
    let uneven = Incast {
        fairness: 0.284,
        ..incast()
    };
    let slow = Incast {
        queueing_delay_ns: Some(21_400_000),
        ..incast()
    };
    vec![
        ("collapsed", Details::Incast(collapsed)),
        ("uneven, delay not known", Details::Incast(uneven)),
        ("a long queue", Details::Incast(slow)),
    ]
}

fn incast() -> Incast {
    Incast {
        stage: "incast".into(),
        senders: 7,
        goodput_share: 0.94,
        has_collapsed: false,
        queueing_delay_ns: None,
        fairness: 0.917,
        samples: 16,
        retransmitted_share: 0.0031,
    }
}
