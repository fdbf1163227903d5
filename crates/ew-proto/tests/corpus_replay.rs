//! Replays the fuzzer's committed corpus, and keeps the generated part of it in step with the
//! messages.

use ew_proto::fuzzing::{self, seeds};
use std::fs;
use std::path::{Path, PathBuf};

/// A fuzz target: its name and what it runs.
type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 4] = [
    ("frame_decoder", fuzzing::frame_decoder),
    ("preamble", fuzzing::preamble_scanner),
    ("controller_session", fuzzing::controller_session),
    ("agent_session", fuzzing::agent_session),
];

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

#[test]
fn every_committed_input_keeps_the_promises() {
    for (target, run) in TARGETS {
        let folder = corpus().join(target);
        let mut count = 0;
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            println!("{}", path.display());
            run(&fs::read(&path).unwrap());
            count += 1;
        }
        assert!(count >= 10, "{} contains {count} inputs", folder.display());
    }
}

#[test]
fn generated_inputs_are_in_step_with_the_messages() {
    for seed in seeds::all() {
        let path = corpus().join(seed.target).join(&seed.name);
        let committed = fs::read(&path).unwrap_or_default();
        assert!(
            committed == seed.bytes,
            "{} is stale: run `cargo run -p ew-proto --example make_corpus` and commit the result",
            path.display()
        );
    }
}
