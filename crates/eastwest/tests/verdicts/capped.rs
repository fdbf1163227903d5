//! What `--max-rate` lets through, by the hosts' own interface counters, and what is found below
//! it.

use super::accuracy::{QUICK_QUALIFY, assert_oversubscription};
use crate::common::{TestLab, can_run_labs, text};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Bits per second.
const NIC: f64 = 50e6;
const RACKS: &str = "racks: 2\nhosts-per-rack: 3\nnic: 50M\noversubscription: 4\n";

#[test]
fn a_ratio_is_found_with_30_percent_and_no_nic_carries_more() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up(RACKS);
    let limit = ["--set", "expect.nic=50M", "--max-rate", "30%"];
    let (finished, highest) = watched(&lab, || {
        lab.run("qualify", &[&QUICK_QUALIFY[..], &limit].concat())
    });
    assert!(highest < 0.33 * NIC, "{highest:.0} b/s in a second");
    // Without a limit that is in force nothing would be shown by that.
    assert!(highest > 0.25 * NIC, "{highest:.0} b/s in a second");
    assert_oversubscription(&finished.json, 4.0);
    let accused = finished.findings();
    let accused = accused
        .iter()
        .filter(|(cause, _)| cause.starts_with("slow"));
    assert_eq!(accused.count(), 0, "{:?}", finished.findings());
}

/// Wire bytes count, of all streams together.
#[test]
fn with_10_percent_no_nic_carries_more_than_11() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up(RACKS);
    let flows = ["--set", "streams=4", "--set", "samples=8", "-t", "1s"];
    let limit = ["--set", "expect.nic=50M", "--max-rate", "10%"];
    let (finished, highest) = watched(&lab, || {
        lab.run("permutation", &[&flows[..], &limit].concat())
    });
    assert!(finished.json["stages"][0]["aggregate_bits_per_sec"]["value"].is_f64());
    assert!(highest < 0.11 * NIC, "{highest:.0} b/s in a second");
    assert!(highest > 0.08 * NIC, "{highest:.0} b/s in a second");
}

/// The most that a host's interface carried in a second or so while something was done, in either
/// direction, bits per second.
fn watched<T>(lab: &TestLab, done: impl FnOnce() -> T) -> (T, f64) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watches = ["r1h1", "r2h2"].map(|host| scope.spawn(|| highest(lab, host, &is_over)));
        let done = done();
        is_over.store(true, Ordering::Relaxed);
        let highest = watches.map(|watch| watch.join().unwrap());
        (done, highest[0].max(highest[1]))
    })
}

fn highest(lab: &TestLab, host: &str, is_over: &AtomicBool) -> f64 {
    let mut highest: f64 = 0.0;
    let mut last = reading(lab, host);
    while !is_over.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_secs(1));
        let now = reading(lab, host);
        for (now_bytes, last_bytes) in now.bytes.iter().zip(&last.bytes) {
            highest = highest.max((now_bytes - last_bytes) * 8.0 / (now.at_secs - last.at_secs));
        }
        last = now;
    }
    highest
}

/// Bytes that a host has sent and received, and when.
struct Reading {
    at_secs: f64,
    bytes: [f64; 2],
}

/// The machine may pause between reading the clock and the counters; then it is read
/// anew.
fn reading(lab: &TestLab, host: &str) -> Reading {
    let of = |file: &str| format!("/sys/class/net/eth0/statistics/{file}");
    let files = [
        "/proc/uptime".into(),
        of("tx_bytes"),
        of("rx_bytes"),
        "/proc/uptime".into(),
    ];
    loop {
        let shown = lab.exec(host).arg("cat").args(&files).output().unwrap();
        let numbers = text(&shown.stdout);
        let lines = numbers.lines().filter_map(|line| line.split(' ').next());
        let numbers: Vec<f64> = lines.map(|number| number.parse().unwrap()).collect();
        let [before, tx, rx, after] = numbers[..] else {
            panic!("{shown:?}");
        };
        if after - before < 0.015 {
            return Reading {
                at_secs: after,
                bytes: [tx, rx],
            };
        }
    }
}
