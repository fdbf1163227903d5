//! Messages of a distribution's sizes between two engines over loopback.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall panic")]

mod common;

use common::{LOCALHOST, data_address, engine, order, round, start, wait, with_flows, workload};
use ew_engine::RoundSpec;
use ew_model::record::EndRecord;
use ew_model::sizes::SizeDistribution;
use ew_model::workload::{Workload, WorkloadKind};
use ew_proto::message::{FlowReport, Role};

fn messages(distribution: SizeDistribution, streams: u32) -> Workload {
    Workload {
        distribution,
        ..workload(WorkloadKind::FlowSizes, streams, 1)
    }
}

fn at_a_load(distribution: SizeDistribution, streams: u32) -> RoundSpec {
    let mut workload = messages(distribution, streams);
    workload.pace.line_share = Some(0.5);
    round(workload)
}

/// What the sender and the receiver report, at a payload rate of the flow.
fn run(spec: &RoundSpec, bits_per_sec: Option<f64>) -> (FlowReport, FlowReport) {
    let (near, far) = (engine(LOCALHOST), engine(LOCALHOST));
    let end = |role, opens, peer| {
        let mut end = order(5, role, opens, data_address(peer, LOCALHOST));
        end.bits_per_sec = bits_per_sec;
        with_flows(spec, vec![end])
    };
    let received = start(&far, end(Role::Receive, false, &near));
    let sent = wait(&start(&near, end(Role::Send, true, &far))).remove(0);
    (sent, wait(&received).remove(0))
}

/// What both ends measured.
fn measure(spec: &RoundSpec, bits_per_sec: Option<f64>) -> (EndRecord, EndRecord) {
    let (sent, received) = run(spec, bits_per_sec);
    assert_eq!((&sent.error, &received.error), (&None, &None));
    (*sent.sender.unwrap(), *received.receiver.unwrap())
}

/// Sizes with how many messages of each were completed, which are all that were counted.
fn completed(sender: &EndRecord) -> Vec<(u64, u64)> {
    let sizes = sender.completions.iter();
    let counts: Vec<_> = sizes.map(|one| (one.bytes, one.times.count())).collect();
    let all = sender.latency.as_ref().unwrap().times.count();
    assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), all);
    assert!(counts.is_sorted_by_key(|(bytes, _)| *bytes));
    counts
}

#[test]
fn one_at_a_time_every_size_is_completed() {
    let workload = messages(SizeDistribution::Hadoop, 1);
    let (sender, receiver) = measure(&round(workload), None);
    let counts = completed(&sender);
    let classes = SizeDistribution::Hadoop.classes();
    let sizes: Vec<u64> = classes.iter().map(|class| class.bytes).collect();
    assert_eq!(counts.iter().map(|(b, _)| *b).collect::<Vec<_>>(), sizes);
    assert!(receiver.bytes > sizes[sizes.len() - 1] && receiver.latency.is_none());
    assert_eq!(sender.latency.unwrap().uncorrected, None);
}

#[test]
fn a_load_is_carried_by_several_connections() {
    let spec = at_a_load(SizeDistribution::W3, 4);
    // Some 20,000 messages a second.
    let rate = 20_000.0 * 8.0 * SizeDistribution::W3.mean_bytes();
    let (sender, receiver) = measure(&spec, Some(rate));
    completed(&sender);
    assert!(sender.transactions.unwrap() > 100);
    assert!(sender.latency.unwrap().uncorrected.is_some());
    let used = receiver.streams.iter().filter(|stream| stream.bytes > 0);
    assert_eq!(used.count(), 4);
}

/// Far more than one connection carries: messages wait for it, and that counts.
#[test]
fn waiting_for_a_connection_counts() {
    let spec = at_a_load(SizeDistribution::W2, 1);
    let (sender, _) = measure(&spec, Some(1e12));
    let latency = sender.latency.unwrap();
    let median = |times: &ew_model::latency::Histogram| times.quantile(0.5).unwrap();
    let (from_arrival, from_sending) = (
        median(&latency.times),
        median(latency.uncorrected.as_ref().unwrap()),
    );
    // The window opens 50 ms after the first arrival, and one in a thousand has been sent by then.
    assert!(from_arrival > 40_000_000, "{from_arrival}");
    assert!(
        from_sending < from_arrival / 2,
        "{from_sending} {from_arrival}"
    );
}

#[test]
fn a_load_may_have_no_message_in_the_window() {
    let spec = at_a_load(SizeDistribution::WebSearch, 2);
    let (sender, receiver) = measure(&spec, Some(1.0));
    assert_eq!((sender.bytes, receiver.bytes), (0, 0));
    assert!(sender.completions.is_empty() && sender.latency.is_none());
}

#[test]
fn a_load_that_is_not_known_is_an_error() {
    let spec = at_a_load(SizeDistribution::Hadoop, 1);
    let error = run(&spec, None).0.error.unwrap();
    assert!(
        error.contains("the load of this flow is not known"),
        "{error}"
    );
}
