//! After a round nothing of it is left in the process. One test only: it counts what the whole
//! process has.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall panic")]

mod common;

use common::{LOCALHOST, data_address, engine, order, round, start, wait, with_flows, workload};
use ew_model::workload::WorkloadKind;
use ew_proto::message::Role;
use std::time::{Duration, Instant};

#[test]
fn threads_and_descriptors_are_gone_after_the_round_and_after_an_abort() {
    let before = in_use();
    for (kind, is_aborted) in [
        (WorkloadKind::TcpStream, false),
        (WorkloadKind::TcpRr, false),
        (WorkloadKind::TcpStream, true),
        (WorkloadKind::TcpRr, true),
    ] {
        let (near, far) = (engine(LOCALHOST), engine(LOCALHOST));
        // The sockets that answer probes over UDP close with each engine's first round.
        let (threads, files) = in_use();
        let engines = (threads, files - 2);
        let spec = round(workload(kind, 100, 1000));
        let send = vec![order(0, Role::Send, true, data_address(&far, LOCALHOST))];
        let receive = vec![order(
            0,
            Role::Receive,
            false,
            data_address(&near, LOCALHOST),
        )];
        let far_reports = start(&far, with_flows(&spec, receive));
        let near_reports = start(&near, with_flows(&spec, send));
        if is_aborted {
            std::thread::sleep(Duration::from_millis(500));
            near.abort();
            far.abort();
        }
        for reports in [near_reports, far_reports] {
            assert_eq!(wait(&reports)[0].error.is_some(), is_aborted);
        }
        assert_returns_to(engines);
        drop((near, far));
        assert_returns_to(before);
    }
}

/// Threads and open files of the process.
fn in_use() -> (usize, usize) {
    let count = |directory| std::fs::read_dir(directory).unwrap().count();
    (count("/proc/self/task"), count("/proc/self/fd"))
}

/// The round's own thread ends after it has reported.
fn assert_returns_to(expected: (usize, usize)) {
    let begun = Instant::now();
    while in_use() != expected && begun.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(in_use(), expected);
}
