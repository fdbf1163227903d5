//! What a test binary printed, and which of its tests failed.

use super::binaries::TestBinary;
use std::time::{Duration, Instant};

pub(super) struct Outcome {
    pub(super) binary: TestBinary,
    pub(super) took: Duration,
    pub(super) failed: Vec<String>,
    pub(super) has_passed: bool,
    words: String,
}

impl Outcome {
    pub(super) fn of(binary: TestBinary, threads: &str) -> Self {
        let start = Instant::now();
        let result = binary.run(&["--test-threads", threads]);
        let (words, has_passed) = result.unwrap_or_else(|error| (error.to_string(), false));
        Self {
            took: start.elapsed(),
            failed: failed_tests(&words),
            binary,
            has_passed,
            words,
        }
    }

    pub(super) fn show(&self) {
        println!(
            "\n== {} ({} s)\n{}",
            self.binary,
            self.took.as_secs(),
            self.words.trim()
        );
    }
}

fn failed_tests(words: &str) -> Vec<String> {
    let failed = |line: &str| {
        let test = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
        Some(test.to_owned())
    };
    words.lines().filter_map(failed).collect()
}

#[cfg(test)]
mod tests {
    use super::failed_tests;

    #[test]
    fn failed_tests_are_known_by_name() {
        let words =
            "running 2 tests\ntest a::b ... ok\ntest a::c ... FAILED\n\nfailures:\n    a::c\n";
        assert_eq!(failed_tests(words), ["a::c"]);
    }
}
