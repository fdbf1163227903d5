//! What the fuzz target runs, and the test that replays its inputs: it panics when a promise is
//! broken and returns otherwise.

use crate::bootstrap::Line;
use crate::tail::Tail;

/// What comes from a host before its agent runs: the script's lines among those of its shell, and
/// what ssh and Slurm print. Nothing that is shown of it is what a terminal would obey.
pub fn launch_output(data: &[u8]) {
    let tail = Tail::default();
    for line in data.split_inclusive(|byte| *byte == b'\n') {
        tail.push(line);
        let shown = match Line::find(&String::from_utf8_lossy(line)) {
            Some(Line::Greeting(greeting)) => [greeting.system, greeting.machine],
            Some(Line::Failed(failure)) => [failure.word, failure.directory],
            Some(Line::Arrived { .. } | Line::Ready) | None => Default::default(),
        };
        assert!(!shown.concat().contains(char::is_control));
    }
    let is_obeyed = |c: char| c.is_control() && c != '\n' && c != '\t';
    assert!(!tail.text().contains(is_obeyed));
    assert!(!tail.words().contains('\n'));
}
