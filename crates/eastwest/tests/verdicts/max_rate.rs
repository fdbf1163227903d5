//! What `--max-rate` lets through, by the hosts' own interface counters, and what is found below
//! it.

use super::accuracy::{QUICK_QUALIFY, assert_oversubscription};
use crate::common::{TestLab, can_run_labs, text};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const RACKS: &str = "racks: 2\nhosts-per-rack: 3\nnic: 100M\noversubscription: 4\n";

#[test]
fn a_ratio_is_found_with_30_percent_and_no_nic_carries_more() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up(RACKS);
    let limit = ["--set", "expect.nic=100M", "--max-rate", "30%"];
    let (finished, highest) = watched(&lab, || {
        lab.run("qualify", &[&QUICK_QUALIFY[..], &limit].concat())
    });
    assert!(highest < 0.33 * 100e6, "{highest:.0} b/s in a second");
    // Without a limit that is in force nothing would be shown by that.
    assert!(highest > 0.25 * 100e6, "{highest:.0} b/s in a second");
    assert_oversubscription(&finished.json, 4.0);
    let accused = finished.findings();
    let accused = accused
        .iter()
        .filter(|(cause, _)| cause.starts_with("slow"));
    assert_eq!(accused.count(), 0, "{:?}", finished.findings());
}

/// The most that a host's interface carried in a second while something was done, in either
/// direction, bits per second.
fn watched<T>(lab: &TestLab, done: impl FnOnce() -> T) -> (T, f64) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut highest: f64 = 0.0;
            let mut last = counters(lab);
            while !is_over.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_secs(1));
                let now = counters(lab);
                let seconds = (now.0 - last.0).as_secs_f64();
                for (now, last) in now.1.iter().zip(&last.1) {
                    highest = highest.max((now - last) * 8.0 / seconds);
                }
                last = now;
            }
            highest
        });
        let done = done();
        is_over.store(true, Ordering::Relaxed);
        (done, watch.join().unwrap())
    })
}

/// Bytes that a host of each rack has sent and received.
fn counters(lab: &TestLab) -> (Instant, Vec<f64>) {
    let files =
        ["tx_bytes", "rx_bytes"].map(|file| format!("/sys/class/net/eth0/statistics/{file}"));
    let at = Instant::now();
    let of_host = |host| {
        let shown = lab.exec(host).arg("cat").args(&files).output().unwrap();
        let numbers = text(&shown.stdout);
        let numbers: Vec<f64> = numbers.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(numbers.len(), 2, "{shown:?}");
        numbers
    };
    (at, ["r1h1", "r2h2"].into_iter().flat_map(of_host).collect())
}
