//! Spellings of the release before: they work for one release, with a note.

use std::ffi::OsString;

/// Commands and what they are called now.
const COMMANDS: [(&str, &str); 1] = [("limit", "line-rate")];

/// Built-in scenarios and what they are called now.
const SCENARIOS: [(&str, &str); 1] = [("tools", "compare-tools")];

/// A scenario's name of today.
pub(crate) fn scenario(name: &str, note: impl FnOnce(&str)) -> &str {
    let Some((old, new)) = SCENARIOS.iter().find(|(old, _)| *old == name) else {
        return name;
    };
    note(&format!(
        "note: the scenario `{old}` is `{new}` now; the old name works until the next release"
    ));
    new
}

/// The command line with today's names. Each old one is noted once.
pub(crate) fn in_new_words(mut words: Vec<OsString>, mut note: impl FnMut(&str)) -> Vec<OsString> {
    let Some(command) = words.get_mut(1) else {
        return words;
    };
    if let Some((old, new)) = COMMANDS.iter().find(|(old, _)| *command == **old) {
        note(&format!(
            "note: `eastwest {old}` is `eastwest {new}` now; the old name works until the next release"
        ));
        *command = OsString::from(new);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_commands_work_with_a_note_and_others_without() {
        let mut notes = Vec::new();
        let mut of = |line: &str| {
            let words = line.split(' ').map(OsString::from).collect();
            in_new_words(words, |text| notes.push(text.to_owned()))
        };
        assert_eq!(of("eastwest limit --link 10G")[1], "line-rate");
        assert_eq!(of("eastwest run limit")[1], "run");
        assert_eq!(notes.len(), 1);
        assert!(notes[0].contains("`eastwest line-rate`"), "{notes:?}");
    }
}
