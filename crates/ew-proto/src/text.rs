//! Text that came from another machine, made safe to show.

use ew_model::facts::HostFacts;
use ew_model::telemetry::InterfaceLink;

const MAX_CHARS: usize = 2000;
/// A host is at work with one job, and nobody reads hundreds.
const MAX_OTHER_WORK: usize = 100;

/// Every text of a host's facts, made safe to show.
pub(crate) fn printable_facts(mut facts: HostFacts) -> HostFacts {
    let words = [
        &mut facts.kernel,
        &mut facts.hostname,
        &mut facts.architecture,
    ];
    words.into_iter().for_each(make_printable);
    for (tool, version) in &mut facts.tools {
        make_printable(tool);
        make_printable(version);
    }
    for interface in &mut facts.interfaces {
        make_printable(&mut interface.name);
        let words = [
            &mut interface.driver,
            &mut interface.duplex,
            &mut interface.kind,
            &mut interface.lower,
        ];
        words.into_iter().flatten().for_each(make_printable);
        if let Some(bond) = &mut interface.bond {
            let words = [&mut bond.mode, &mut bond.hash_policy];
            let words = words.into_iter().flatten();
            words.chain(&mut bond.members).for_each(make_printable);
        }
        if let Some(at) = &mut interface.switch_port {
            make_printable(&mut at.switch);
            make_printable(&mut at.port);
        }
    }
    if let Some(os) = &mut facts.os {
        let words = os.id_like.iter_mut().chain([&mut os.id, &mut os.name]);
        words.for_each(make_printable);
    }
    facts.other_work.truncate(MAX_OTHER_WORK);
    facts.other_work.iter_mut().for_each(make_printable);
    if let Some(claim) = &mut facts.in_use_by {
        make_printable(&mut claim.run);
        make_printable(&mut claim.by);
    }
    for (name, link) in facts.hardware.iter_mut().flat_map(|h| &mut h.links) {
        make_printable(name);
        printable_link(link);
    }
    facts
}

/// Every text of a link's settings, made safe to show.
pub(crate) fn printable_link(link: &mut InterfaceLink) {
    let words = [&mut link.duplex, &mut link.driver];
    words.into_iter().flatten().for_each(make_printable);
    link.offloads_on.iter_mut().for_each(make_printable);
}

/// As [`printable`], with the spaces that the line begins with.
pub(crate) fn printable_indented(text: &str) -> String {
    let indent = text.len() - text.trim_start_matches(' ').len();
    let indent = " ".repeat(indent.min(MAX_CHARS));
    indent + &printable(text)
}

/// One line without control characters (a terminal would obey them), at most 2000 characters.
pub(crate) fn printable(text: &str) -> String {
    let mut line: String = text
        .trim()
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MAX_CHARS)
        .collect();
    line.truncate(line.trim_end().len());
    line
}

/// The same in place.
pub(crate) fn make_printable(text: &mut String) {
    *text = printable(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_and_length_are_tamed() {
        assert_eq!(printable(" a\x1b[31m\nb\n"), "a [31m b");
        assert_eq!(printable(&"x".repeat(5000)).len(), MAX_CHARS);
    }

    #[test]
    fn other_work_is_tamed_too() {
        let facts = HostFacts {
            other_work: vec!["job\x1b[2J 1".to_owned(); 5000],
            ..HostFacts::default()
        };
        let shown = printable_facts(facts).other_work;
        assert_eq!(shown, vec!["job [2J 1"; MAX_OTHER_WORK]);
    }
}
