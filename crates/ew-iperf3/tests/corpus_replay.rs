//! Replays the fuzzer's committed corpus.

use ew_iperf3::fuzzing;
use std::fs;
use std::path::Path;

/// A fuzz target: its name and what it runs.
type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 5] = [
    ("iperf3_control", fuzzing::control),
    ("iperf3_params", fuzzing::params),
    ("iperf3_results", fuzzing::results),
    ("iperf3_datagrams", fuzzing::datagrams),
    ("iperf3_claim", fuzzing::claim),
];

#[test]
fn every_committed_input_keeps_the_promises() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (target, run) in TARGETS {
        let folder = corpus.join(target);
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

/// A cheap stand-in for the fuzzer: every committed input, cut and changed at every offset.
#[test]
fn neighbours_of_committed_inputs_keep_the_promises() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (target, run) in TARGETS {
        for entry in fs::read_dir(corpus.join(target)).unwrap() {
            let bytes = fs::read(entry.unwrap().path()).unwrap();
            for offset in (0..bytes.len()).step_by(1 + bytes.len() / 100) {
                run(&bytes[..offset]);
                for change in [0, b'"', b'-', b'9', 0xff] {
                    let mut changed = bytes.clone();
                    changed[offset] = change;
                    run(&changed);
                }
            }
        }
    }
}
