//! A test with `sizes` as one stage a size.

use ew_model::scenario::Test;
use ew_model::units::format_whole_bytes;
use ew_model::workload::Workload;

/// Messages that a window is long enough for at the line rate, so that there is a figure at all.
const MESSAGES_PER_WINDOW: f64 = 8.0;

/// The line rate where none is stated. On slower links great messages get windows too short;
/// stating the rate helps.
const USUAL_NIC_BITS_PER_SEC: f64 = 1e9;

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
        assert_eq!(windows("sizes: '64,8M'", None), [100, 536]);
        let there_and_back = "workload: tcp-rr, sizes: '64,8M'";
        assert_eq!(windows(there_and_back, None), [100, 1073]);
        assert_eq!(windows(there_and_back, Some(1e8)), [100, 10_737]);
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
