//! The committed inputs, and their neighbours.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// A target with fewer committed inputs than this was forgotten.
const MIN_INPUTS: usize = 5;
/// Bytes that mean something to most readers.
const CHANGES: [u8; 6] = [0, b'"', b'-', b'9', b'\n', 0xff];

/// Runs every committed input of a target and, as a cheap stand-in for the fuzzer, its
/// [`neighbours`].
///
/// # Panics
/// When the target does, after naming the input; or when there are hardly any inputs.
pub fn replay(target: &str, places: usize, run: impl Fn(&[u8])) {
    for (path, bytes) in inputs(target) {
        named(&path, || run(&bytes));
        named(&path, || neighbours(&bytes, places, &run));
    }
}

/// An input cut and changed at about `places` offsets.
pub fn neighbours(bytes: &[u8], places: usize, run: impl Fn(&[u8])) {
    for offset in (0..bytes.len()).step_by(1 + bytes.len() / places.max(1)) {
        run(&bytes[..offset]);
        let mut changed = bytes.to_vec();
        for change in CHANGES {
            changed[offset] = change;
            run(&changed);
        }
    }
}

fn inputs(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let folder = corpus.join(target);
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let read = |path: PathBuf| fs::read(&path).map(|bytes| (path, bytes));
    let mut inputs: Vec<_> = entries.flat_map(|entry| read(entry.path())).collect();
    assert!(
        inputs.len() >= MIN_INPUTS,
        "{} contains {} inputs",
        folder.display(),
        inputs.len()
    );
    inputs.sort();
    inputs
}

fn named(path: &Path, run: impl FnOnce()) {
    let ran = catch_unwind(AssertUnwindSafe(run));
    assert!(ran.is_ok(), "{} breaks a promise", path.display());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn neighbours_are_cut_and_changed_everywhere() {
        let seen = RefCell::new(Vec::new());
        neighbours(b"ab", 100, |bytes| seen.borrow_mut().push(bytes.to_vec()));
        let seen = seen.into_inner();
        assert_eq!(seen.len(), 2 * (1 + CHANGES.len()));
        assert!(seen.contains(&b"".to_vec()) && seen.contains(&b"a".to_vec()));
        assert!(seen.contains(&b"\xffb".to_vec()) && seen.contains(&b"a9".to_vec()));
    }

    #[test]
    #[should_panic(expected = "contains 0 inputs")]
    fn a_target_without_inputs_is_noticed() {
        replay("no_such_target", 1, |_| {});
    }
}
