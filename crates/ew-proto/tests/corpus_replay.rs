//! Replays the fuzzer's committed inputs, and keeps the generated part of it in step with the
//! messages.

use ew_fuzz::{Bound, check, replay};
use ew_proto::fuzzing::{self, seeds};
use std::fs;
use std::path::Path;

/// A fuzz target: its name and what it runs.
type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 4] = [
    ("frame_decoder", fuzzing::frame_decoder),
    ("preamble", fuzzing::preamble_scanner),
    ("controller_session", fuzzing::controller_session),
    ("agent_session", fuzzing::agent_session),
];

#[test]
fn committed_inputs_are_in_step_with_the_messages_and_keep_the_promises() {
    check_generated_inputs();
    for (target, run) in TARGETS {
        replay(target, 10, |data| check(Bound::USUAL, data, run));
    }
}

fn check_generated_inputs() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for seed in seeds::all() {
        let path = corpus.join(seed.target).join(&seed.name);
        let committed = fs::read(&path).unwrap_or_default();
        assert!(
            committed == seed.bytes,
            "{} is stale: run `cargo run -p ew-proto --example make_corpus` and commit the result",
            path.display()
        );
    }
}
