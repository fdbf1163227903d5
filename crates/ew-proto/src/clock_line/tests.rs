use super::*;
use proptest::prelude::*;

const S: u64 = 1_000_000_000;
const US: u64 = 1_000;
/// What the agent's clock shows when the controller's shows 0: 500 s.
const AHEAD_NS: i128 = 500 * 1_000_000_000;

/// An exchange with a clock of this rate, with the delays of both messages.
fn exchange(sent_ns: u64, rate_ppb: i128, there_ns: u64, back_ns: u64) -> Exchange {
    let read_ns = i128::from(sent_ns + there_ns);
    Exchange {
        sent_ns,
        agent_ns: clamped(AHEAD_NS + read_ns + gained_ns(read_ns, rate_ppb)),
        received_ns: sent_ns + there_ns + back_ns,
    }
}

fn true_offset_ns(now_ns: u64, rate_ppb: i128) -> i128 {
    AHEAD_NS + gained_ns(now_ns.into(), rate_ppb)
}

/// How far the line is off, ns.
fn off_ns(line: &ClockLine, now_ns: u64, rate_ppb: i128) -> u64 {
    let estimate = line.estimate(now_ns).unwrap();
    clamped((i128::from(estimate.offset_ns) - true_offset_ns(now_ns, rate_ppb)).abs())
}

#[test]
fn a_timeline_passes_at_the_clocks_rate() {
    let timeline = Timeline {
        start_ns: 500 * S,
        rate_ppb: 100_000,
    };
    assert_eq!(timeline.at(0), 500 * S);
    assert_eq!(timeline.at(1000 * S), 1500 * S + S / 10);
    assert_eq!(Timeline::from_start(7).at(5), 12);
    let slow = Timeline {
        start_ns: 0,
        rate_ppb: i32::MIN,
    };
    assert_eq!(slow.at(u64::MAX), 0, "absurd rates are kept in range");
    assert_eq!(Timeline::from_start(u64::MAX).at(1), u64::MAX);
}

#[test]
fn one_exchange_is_its_middle() {
    let mut line = ClockLine::default();
    assert_eq!(line.estimate(0), None);
    assert_eq!(line.timeline(0), None);
    line.settle(exchange(S, 0, 60 * US, 40 * US));
    let estimate = line.estimate(S + 50 * US).unwrap();
    assert_eq!(i128::from(estimate.offset_ns), AHEAD_NS + 10_000);
    assert!(
        (50_000..50_010).contains(&estimate.error_ns),
        "{estimate:?}"
    );
    assert_eq!((estimate.rtt_ns, estimate.rate_ppb), (100_000, None));
    let later = line.estimate(S + 50 * US + 10 * S).unwrap();
    let by_rate_ns = 10 * S / 1_000_000_000 * 500_000;
    assert!((later.error_ns - estimate.error_ns).abs_diff(by_rate_ns) < 10);
}

/// Queues in one direction only, as load makes them, shift the middle of every exchange.
#[test]
fn load_on_the_link_does_not_move_a_clock_that_is_right() {
    let mut line = ClockLine::default();
    line.settle(exchange(S, 0, 50 * US, 50 * US));
    for beat in 1..1000 {
        line.follow(exchange(S + beat * S / 2, 0, 50 * US, 8000 * US));
    }
    assert!(off_ns(&line, 501 * S, 0) < 60_000, "{line:?}");
}

#[test]
fn a_clock_that_drifts_is_followed_and_its_rate_found() {
    for rate_ppb in [100_000, -100_000, 1_000] {
        let mut line = ClockLine::default();
        line.settle(exchange(S, rate_ppb, 50 * US, 50 * US));
        for beat in 1..400 {
            let sent_ns = S + beat * S / 2;
            // Every ninth finds the link idle.
            let wait_ns = if beat % 9 == 0 { 0 } else { 5000 * US };
            line.follow(exchange(sent_ns, rate_ppb, 60 * US + wait_ns, 60 * US));
            assert!(off_ns(&line, sent_ns, rate_ppb) < 1_000_000, "{beat}");
        }
        let estimate = line.estimate(201 * S).unwrap();
        assert!(off_ns(&line, 201 * S, rate_ppb) < 150_000, "{estimate:?}");
        let found = i128::from(estimate.rate_ppb.unwrap());
        assert!((found - rate_ppb).abs() < 4_000, "{estimate:?}");
        let timeline = line.timeline(5 * S).unwrap();
        let shown_ns = i128::from(timeline.at(196 * S)) - i128::from(201 * S);
        assert!((shown_ns - true_offset_ns(201 * S, rate_ppb)).abs() < 150_000);
    }
}

/// CLOCK_MONOTONIC does not count the time that a host is suspended.
#[test]
fn a_step_is_followed_at_once() {
    let mut line = ClockLine::default();
    for beat in 0..60 {
        line.follow(exchange(S + beat * S / 2, 0, 50 * US, 50 * US));
    }
    // Also where another exchange was a moment ago.
    for (sent_ns, steps) in [(40 * S, 1), (41 * S, 2)] {
        let right = exchange(sent_ns, 0, 60 * US, 60 * US);
        line.follow(Exchange {
            agent_ns: right.agent_ns - steps * 3 * S,
            ..right
        });
        let estimate = line.estimate(sent_ns).unwrap();
        let expected_ns = AHEAD_NS - i128::from(steps * 3 * S);
        let off_ns = (i128::from(estimate.offset_ns) - expected_ns).abs();
        assert!(off_ns < 100_000, "{off_ns}");
    }
}

#[test]
fn absurd_clocks_are_kept_in_range() {
    let mut line = ClockLine::default();
    for (sent_ns, agent_ns, received_ns) in [
        (0, u64::MAX, 1),
        (u64::MAX, 0, 0),
        (u64::MAX, u64::MAX, u64::MAX),
        (5, 0, u64::MAX),
    ] {
        let exchange = Exchange {
            sent_ns,
            agent_ns,
            received_ns,
        };
        line.follow(exchange);
        line.settle(exchange);
        assert!(line.estimate(0).is_some());
        let timeline = line.timeline(u64::MAX).unwrap();
        assert!(timeline.at(0) <= timeline.at(u64::MAX), "{timeline:?}");
    }
}

/// Pauses before exchanges, and the delays of their two messages.
fn exchanges() -> impl Strategy<Value = Vec<(u64, u64, u64)>> {
    let delay_ns = 0u64..20_000_000;
    prop::collection::vec((0u64..3 * S, delay_ns.clone(), delay_ns), 1..80)
}

proptest! {
    /// Whatever delays the messages, and whatever the clock's rate.
    #[test]
    fn the_truth_is_within_the_error(
        rate_ppb in -500_000i128..500_000,
        exchanges in exchanges(),
    ) {
        let mut line = ClockLine::default();
        let mut now_ns = S;
        for (pause_ns, there_ns, back_ns) in exchanges {
            now_ns += pause_ns;
            line.follow(exchange(now_ns, rate_ppb, there_ns, back_ns));
            now_ns += there_ns + back_ns;
            let error_ns = line.estimate(now_ns).unwrap().error_ns;
            // A clock's line bends a little inside a round trip, by its rate.
            let inside_ns = 40_000_000 / 2000 + 10;
            prop_assert!(off_ns(&line, now_ns, rate_ppb) <= error_ns + inside_ns);
        }
    }
}
