//! Replays the fuzzer's committed inputs.

use ew_fuzz::{Bound, check, replay};
use ew_tools::fuzzing;

#[test]
fn committed_inputs_their_neighbours_and_dense_ones_keep_the_promises() {
    check_dense_inputs();
    replay("tool_output", 60, |data| {
        check(Bound::USUAL, data, fuzzing::tool_output);
    });
    replay("testdfsio_log", 60, |data| {
        check(Bound::USUAL, data, fuzzing::testdfsio_log);
    });
}

/// What has many records in few bytes.
fn check_dense_inputs() {
    let many = |start: &str, part: &str, end: &str| {
        let text = format!("{start}{}{end}", part.repeat(20_000));
        check(Bound::USUAL, text.as_bytes(), fuzzing::tool_output);
    };
    let totals =
        r#""sum_sent":{"start":0,"end":1,"bytes":9},"sum_received":{"start":0,"end":1,"bytes":9}"#;
    many(
        &format!(r#"000{{"end":{{{totals},"streams":[{{}}"#),
        ",{}",
        "]}}",
    );
    many(
        r#"000{"intervals":[{}"#,
        ",{}",
        &format!(r#"],"end":{{{totals}}}}}"#),
    );
    many("100", "1,1,1,1,1,1,1,1,1\n", "");
    many("100", "1,1,1,1,1,1,1,1,1,1,1,1,1,1\n", "");
    many("850", " time=1\n", "");
    many("200", "=\n", "");
}
