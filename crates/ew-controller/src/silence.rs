//! What silence at the window's end means. One end alone does not distinguish a dead peer from a
//! flow that others starve: TCP's retransmission timer doubles from 200 ms with every loss, so a
//! flow with a small share of a full link is silent for seconds. The facts of both ends together
//! do. This is the one module where they are judged. Pure.

use ew_model::record::EndRecord;
use ew_proto::message::{EndState, FlowReport};

/// A silence is in doubt when it is this long and retransmissions are unanswered.
const SHORTEST_OUTAGE_MS: u64 = 500;
/// Without unanswered retransmissions the other end may only be short of CPU, which is a low figure
/// and not a missing one; but not for this long.
const SHORTEST_SILENCE_MS: u64 = 1000;

/// Why the sender's figure is none: its peer was silent at the end. In words.
pub(crate) fn at_sender(report: &FlowReport) -> Option<String> {
    doubt(report.sender.as_deref(), report, "the peer was silent for")
}

/// Why the receiver's figure is none: no more data came. In words.
pub(crate) fn at_receiver(report: &FlowReport) -> Option<String> {
    doubt(report.receiver.as_deref(), report, "no data came in")
}

/// Whether a silent flow is only starved, and its low figure true: both hosts' links are up, and
/// while the flow was silent others went on bringing the receiver data.
pub(crate) fn is_starved(sender: &FlowReport, receiver: &FlowReport) -> bool {
    let (Some(sender), Some(receiver)) = (&sender.standing, &receiver.standing) else {
        return false;
    };
    let others_move = receiver
        .others_silent_ms
        .is_some_and(|ms| u64::from(ms) < SHORTEST_OUTAGE_MS);
    sender.link_up && receiver.link_up && others_move
}

fn doubt(end: Option<&EndRecord>, report: &FlowReport, silent: &str) -> Option<String> {
    let (end, standing) = (end?, report.standing?);
    let is_long = u64::from(standing.silent_ms) > limit_ms(end.window_ns, &standing);
    is_long.then(|| words(end.streams.len(), &standing, silent))
}

fn limit_ms(window_ns: u64, standing: &EndState) -> u64 {
    let window_ms = window_ns / 1_000_000;
    match standing.unanswered_timeouts {
        0 => (window_ms / 2).max(SHORTEST_SILENCE_MS),
        _ => (window_ms / 3).max(SHORTEST_OUTAGE_MS),
    }
}

fn words(streams: usize, standing: &EndState, silent: &str) -> String {
    let stream = match streams {
        0 | 1 => String::new(),
        _ => format!("stream {} of {streams}: ", standing.stream + 1),
    };
    let link = if standing.link_up {
        ""
    } else {
        "; this host's link is down"
    };
    format!(
        "{stream}{silent} the window's last {} ms{link}",
        standing.silent_ms
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::plan::FlowId;
    use ew_model::record::StreamRecord;

    const WINDOW_NS: u64 = 2_000_000_000;

    fn report(standing: EndState) -> FlowReport {
        let end = Box::new(EndRecord {
            bytes: 10_000,
            window_ns: WINDOW_NS,
            ..EndRecord::default()
        });
        FlowReport {
            flow: FlowId(0),
            sender: Some(end.clone()),
            receiver: Some(end),
            standing: Some(standing),
            error: None,
        }
    }

    fn silent(silent_ms: u32, unanswered_timeouts: u8) -> FlowReport {
        report(EndState {
            silent_ms,
            unanswered_timeouts,
            link_up: true,
            ..EndState::default()
        })
    }

    fn starved(sender_link: bool, receiver_link: bool, others_silent_ms: Option<u32>) -> bool {
        let end = |link_up| {
            report(EndState {
                silent_ms: 1500,
                link_up,
                others_silent_ms,
                ..EndState::default()
            })
        };
        is_starved(&end(sender_link), &end(receiver_link))
    }

    #[test]
    fn silence_is_in_doubt_sooner_when_retransmissions_are_unanswered() {
        let limit = |seconds: u64, unanswered_timeouts| {
            let standing = EndState {
                unanswered_timeouts,
                ..EndState::default()
            };
            limit_ms(seconds * 1_000_000_000, &standing)
        };
        assert_eq!([limit(1, 0), limit(1, 1)], [1000, 500]);
        assert_eq!([limit(12, 0), limit(12, 3)], [6000, 4000]);
        assert_eq!(at_sender(&silent(1000, 0)), None);
        assert_eq!(
            at_sender(&silent(700, 1)).unwrap(),
            "the peer was silent for the window's last 700 ms"
        );
        assert_eq!(
            at_receiver(&silent(1001, 0)).unwrap(),
            "no data came in the window's last 1001 ms"
        );
    }

    #[test]
    fn one_of_several_streams_and_a_link_that_is_down_are_named() {
        let mut several = report(EndState {
            stream: 2,
            silent_ms: 1700,
            ..EndState::default()
        });
        several.receiver.as_mut().unwrap().streams = vec![StreamRecord::default(); 4];
        assert_eq!(
            at_receiver(&several).unwrap(),
            "stream 3 of 4: no data came in the window's last 1700 ms; this host's link is down"
        );
    }

    #[test]
    fn only_a_flow_among_moving_ones_between_hosts_with_links_is_starved() {
        assert!(starved(true, true, Some(3)));
        assert!(!starved(false, true, Some(3)), "the sender's link is down");
        assert!(
            !starved(true, false, Some(3)),
            "the receiver's link is down"
        );
        assert!(!starved(true, true, None), "nothing else to compare with");
        assert!(
            !starved(true, true, Some(900)),
            "nothing reaches the receiver"
        );
    }

    #[test]
    fn without_facts_nothing_is_starved_and_nothing_in_doubt() {
        let tool = FlowReport {
            standing: None,
            ..silent(1900, 3)
        };
        assert_eq!((at_sender(&tool), at_receiver(&tool)), (None, None));
        assert!(!is_starved(&tool, &silent(1900, 3)));
    }
}
