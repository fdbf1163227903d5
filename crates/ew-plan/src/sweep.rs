//! A test with `sizes` as one stage a size.

use ew_model::plan::{Plan, Stage};
use ew_model::record::FlowRecord;
use ew_model::scenario::Test;
use ew_model::units::format_whole_bytes;
use ew_model::workload::{Tool, Workload};
use std::collections::BTreeMap;

/// Messages that a window is long enough for, so that there is a figure at all.
const MESSAGES_PER_WINDOW: f64 = 10.0;

/// The line rate before the first size has shown a slower one.
const USUAL_NIC_BITS_PER_SEC: f64 = 1e9;

/// No window grows beyond this; a size that needs more has too few messages.
const LONGEST_WINDOW_NS: u64 = 20_000_000_000;

/// How long a message took in each sweep: what the windows of its next sizes are made for.
#[derive(Clone, Debug, Default)]
pub(crate) struct MessageTimes(BTreeMap<String, MessageTime>);

#[derive(Clone, Copy, Debug)]
struct MessageTime {
    bytes: u64,
    /// Of the slowest flow; of a flow without a figure, its whole window.
    time_ns: f64,
}

impl MessageTimes {
    /// Takes a stage's records, if it is a size of a sweep.
    pub(crate) fn note(&mut self, stage: &Stage, records: &[FlowRecord]) {
        let Some(sweep) = &stage.sweep else { return };
        let times = records.iter().map(|record| message_ns(stage, record));
        if let Some(time_ns) = times.max_by(f64::total_cmp) {
            let bytes = stage.workload.message_bytes;
            self.0.insert(sweep.clone(), MessageTime { bytes, time_ns });
        }
    }

    /// Lengthens the windows of later sizes that would see fewer than ten messages. Whether there
    /// were any.
    pub(crate) fn lengthen(&self, plan: &mut Plan, next: usize) -> bool {
        let mut is_changed = false;
        for stage in &mut plan.stages[next..] {
            let time = stage.sweep.as_ref().and_then(|sweep| self.0.get(sweep));
            let Some(time) = time else { continue };
            let growth = stage.workload.message_bytes as f64 / time.bytes.max(1) as f64;
            let needed_ns = MESSAGES_PER_WINDOW * time.time_ns * growth.max(1.0);
            let mut needed_ns = (needed_ns as u64).min(LONGEST_WINDOW_NS);
            if stage.workload.tool != Tool::Engine {
                needed_ns = needed_ns.next_multiple_of(1_000_000_000);
            }
            if needed_ns > stage.duration_ns {
                stage.duration_ns = needed_ns;
                is_changed = true;
            }
        }
        is_changed
    }
}

/// A flow's window over its messages, each with its answer where there are any.
fn message_ns(stage: &Stage, record: &FlowRecord) -> f64 {
    let ends = || record.sender.iter().chain(&record.receiver);
    let window_ns = ends().map(|end| end.window_ns).max();
    let window_ns = window_ns.unwrap_or(stage.duration_ns) as f64;
    let transactions = ends().filter_map(|end| end.transactions).max();
    let messages = match transactions {
        Some(transactions) => transactions as f64,
        None => {
            let bytes = record.receiver.as_ref().map_or(0, |end| end.bytes);
            bytes as f64 / stage.workload.message_bytes.max(1) as f64
        }
    };
    window_ns / messages.max(1.0)
}

/// One test for each size that its tool carries, and what is skipped, as `NAME SIZES: reason`. A
/// test without sizes stays as it is.
pub(crate) fn tests_of(test: &Test, nic_bits_per_sec: Option<f64>) -> (Vec<Test>, Vec<String>) {
    if test.sizes.is_empty() {
        return (vec![test.clone()], Vec::new());
    }
    let mut tests = Vec::with_capacity(test.sizes.len());
    let mut left_out: Vec<(Vec<u64>, String)> = Vec::new();
    for bytes in &test.sizes {
        let workload = Workload {
            message_bytes: *bytes,
            ..test.workload.clone()
        };
        match workload.refusal() {
            None => tests.push(of_size(test, workload, nic_bits_per_sec)),
            Some(refusal) => match left_out.last_mut() {
                Some((sizes, expected)) if *expected == refusal.expected => sizes.push(*bytes),
                _ => left_out.push((vec![*bytes], refusal.expected)),
            },
        }
    }
    let tool = test.workload.tool.name();
    let line = |(sizes, expected): (Vec<u64>, String)| {
        let sizes = span(&sizes);
        format!("{} of {sizes}: {tool} carries {expected}", test.name)
    };
    (tests, left_out.into_iter().map(line).collect())
}

fn span(sizes: &[u64]) -> String {
    match sizes {
        [one] => format_whole_bytes(*one),
        [first, .., last] => format!(
            "{} to {}",
            format_whole_bytes(*first),
            format_whole_bytes(*last)
        ),
        [] => String::new(),
    }
}

fn of_size(test: &Test, workload: Workload, nic_bits_per_sec: Option<f64>) -> Test {
    Test {
        name: format!(
            "{} {}",
            test.name,
            format_whole_bytes(workload.message_bytes)
        ),
        duration_ns: window_ns(test.duration_ns, &workload, nic_bits_per_sec),
        workload,
        sizes: Vec::new(),
        ..test.clone()
    }
}

/// The test's window, or a longer one for great messages.
fn window_ns(duration_ns: u64, workload: &Workload, nic_bits_per_sec: Option<f64>) -> u64 {
    let answer_bytes = match workload.kind.is_bulk() {
        true => 0,
        false => workload.answer_bytes(),
    };
    let bits = 8.0 * (workload.message_bytes + answer_bytes) as f64;
    let message_ns = 1e9 * bits / nic_bits_per_sec.unwrap_or(USUAL_NIC_BITS_PER_SEC);
    duration_ns.max((MESSAGES_PER_WINDOW * message_ns) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario;

    fn swept(settings: &str, nic: Option<f64>) -> (Vec<Test>, Vec<String>) {
        let text =
            format!("name: a\ntests: [{{name: s, pattern: pair, duration: 100ms, {settings}}}]\n");
        let scenario = scenario::parse(&text, "a.yaml", &[]).unwrap();
        tests_of(&scenario.tests[0], nic)
    }

    #[test]
    fn every_size_is_a_test_with_a_name_to_the_byte() {
        let (tests, left_out) = swept("sizes: '1,65533,64k,8M'", None);
        let names: Vec<&str> = tests.iter().map(|test| test.name.as_str()).collect();
        assert_eq!(names, ["s 1 B", "s 65533 B", "s 64 KiB", "s 8 MiB"]);
        let bytes: Vec<u64> = tests.iter().map(|t| t.workload.message_bytes).collect();
        assert_eq!(bytes, [1, 65_533, 65_536, 8 << 20]);
        assert!(left_out.is_empty());
    }

    #[test]
    fn great_messages_get_windows_they_fit_into() {
        let windows = |settings, nic| {
            let (tests, _) = swept(settings, nic);
            let ms = tests.iter().map(|test| test.duration_ns / 1_000_000);
            ms.collect::<Vec<u64>>()
        };
        assert_eq!(windows("sizes: '64,8M'", None), [100, 671]);
        let there_and_back = "workload: tcp-rr, sizes: '64,8M'";
        assert_eq!(windows(there_and_back, None), [100, 1342]);
        assert_eq!(windows(there_and_back, Some(1e8)), [100, 13_421]);
        assert_eq!(windows(there_and_back, Some(100e9)), [100, 100]);
    }

    #[test]
    fn sizes_that_a_tool_does_not_carry_are_left_out_and_named() {
        let (tests, left_out) = swept("tool: iperf3, sizes: 512k-8M", None);
        assert_eq!(tests.len(), 2);
        let expected = "s of 2 MiB to 8 MiB: iperf3 carries 1 to 1048576 bytes with `tool: iperf3`";
        assert_eq!(left_out, [expected]);
        let text = "name: a\ntests: [{pattern: pair, tool: iperf3, sizes: '2M,4M'}]\n";
        let message = scenario::parse(text, "a.yaml", &[])
            .unwrap_err()
            .to_string();
        assert!(message.contains("iperf3 does not send"), "{message}");
    }
}
