//! One flow between two engines, from its sending to its receiving end.

use crate::common::{data_address, engine, order, start, wait, with_flows};
use ew_engine::{Engine, RoundSpec};
use ew_model::latency::Histogram;
use ew_model::record::EndRecord;
use ew_proto::message::{FlowReport, Role};
use std::net::IpAddr;
use std::sync::mpsc::Receiver;

pub(crate) type Reports = Receiver<Vec<FlowReport>>;

/// Runs a round on fresh engines; the figures of the sender and the receiver.
pub(crate) fn exchange(address: IpAddr, spec: &RoundSpec) -> (EndRecord, EndRecord) {
    let (near, far) = (engine(address), engine(address));
    let (near_reports, far_reports) = start_pair(&near, &far, address, spec);
    ends(&near_reports, &far_reports)
}

/// Flow 5, opened by the sender.
pub(crate) fn start_pair(
    near: &Engine,
    far: &Engine,
    address: IpAddr,
    spec: &RoundSpec,
) -> (Reports, Reports) {
    let send = order(5, Role::Send, true, data_address(far, address));
    let receive = order(5, Role::Receive, false, data_address(near, address));
    (
        start(near, with_flows(spec, vec![send])),
        start(far, with_flows(spec, vec![receive])),
    )
}

/// What both measured.
pub(crate) fn ends(near: &Reports, far: &Reports) -> (EndRecord, EndRecord) {
    let (near, far) = (wait(near), wait(far));
    for report in near.iter().chain(&far) {
        assert_eq!(report.error, None);
    }
    let sender = near[0].sender.clone().unwrap();
    (*sender, *far[0].receiver.clone().unwrap())
}

/// The figures of a distribution are in the order that their names specify.
pub(crate) fn assert_in_order(times: &Histogram) {
    let summary = times.summary().unwrap();
    let ascending = [
        1,
        summary.min_ns,
        summary.p50_ns,
        summary.p90_ns,
        summary.p99_ns,
        summary.p999_ns,
        summary.p9999_ns,
        summary.max_ns,
    ];
    assert!(ascending.is_sorted(), "{summary:?}");
    assert!((summary.min_ns..=summary.max_ns).contains(&summary.mean_ns));
}

pub(crate) fn has_ipv6_loopback() -> bool {
    let here = std::net::TcpListener::bind((std::net::Ipv6Addr::LOCALHOST, 0)).is_ok();
    if !here {
        println!("skipped: this host has no IPv6 loopback address");
    }
    here
}
