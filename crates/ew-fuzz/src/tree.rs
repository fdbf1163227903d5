//! Inputs that are directories: readers of /proc and /sys, and of run directories.
//!
//! A file begins at a line `=== PATH`; what is before the first one is passed over.

use crate::memory::{Bound, check_length};
use std::fs;
use std::path::{Component, Path, PathBuf};

const MARK: &[u8] = b"=== ";
/// Files of one input; more are passed over.
const MAX_FILES: usize = 64;
const MAX_DEPTH: usize = 12;

/// Runs a target on the directory that an input describes. Writing it is not measured.
///
/// # Panics
/// When the target does, or takes more memory than its bound; or when there is no directory for
/// temporary files.
pub fn check_tree(bound: Bound, input: &[u8], target: impl FnOnce(&Path)) {
    let Ok(directory) = tempfile::tempdir() else {
        panic!("no directory for temporary files: set TMPDIR");
    };
    for (path, content) in files(input).take(MAX_FILES) {
        let path = directory.path().join(path);
        // A file where another one needs a directory is not written.
        let _ = path.parent().map(fs::create_dir_all);
        let _ = fs::write(path, content);
    }
    check_length(bound, input.len(), || target(directory.path()));
}

fn files(input: &[u8]) -> impl Iterator<Item = (PathBuf, &[u8])> {
    let starts: Vec<usize> = (0..input.len())
        .filter(|at| input[*at..].starts_with(MARK) && (*at == 0 || input[at - 1] == b'\n'))
        .collect();
    let ends: Vec<usize> = starts
        .iter()
        .skip(1)
        .copied()
        .chain([input.len()])
        .collect();
    starts
        .into_iter()
        .zip(ends)
        .filter_map(move |(start, end)| {
            let file = &input[start + MARK.len()..end];
            let line_end = file.iter().position(|byte| *byte == b'\n')?;
            let path = std::str::from_utf8(&file[..line_end]).ok()?;
            Some((inside(path)?, &file[line_end + 1..]))
        })
}

/// A path that does not lead out of the directory.
fn inside(path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    let is_name = |part: Component<'_>| matches!(part, Component::Normal(_));
    let depth = path.components().count();
    let fits = (1..=MAX_DEPTH).contains(&depth) && path.components().all(is_name);
    (fits && !path.as_os_str().as_encoded_bytes().contains(&0)).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_written_and_none_outside() {
        let input = b"x\n=== a/b\none\n=== ../c\ntwo\n=== d\n\xff\n=== /e\n=== f";
        let found: Vec<_> = files(input).collect();
        let expected = [("a/b", &b"one\n"[..]), ("d", &b"\xff\n"[..])];
        assert_eq!(found, expected.map(|(path, text)| (path.into(), text)));
        check_tree(Bound::USUAL, input, |root| {
            assert_eq!(fs::read(root.join("a/b")).unwrap(), b"one\n");
            assert_eq!(fs::read_dir(root).unwrap().count(), 2);
        });
    }
}
