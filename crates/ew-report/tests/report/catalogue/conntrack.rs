//! What connection tracking refused, where it ended a run.

use ew_model::analysis::ConntrackRefusals;
use ew_report::conntrack_words;

#[test]
fn by_what_is_known_of_the_table() {
    let words = [None, Some(262_144), Some(65_536)].map(|max_entries| {
        let refused = ConntrackRefusals {
            packets: 1234,
            entries: 65_100,
            max_entries,
        };
        conntrack_words("n1", &refused)
    });
    insta::assert_snapshot!(words.join("\n"));
}
