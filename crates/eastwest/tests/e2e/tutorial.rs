//! The tutorial's commands, run over ssh in a lab: what the page shows is what they print, but for
//! figures.

use crate::common::{TestLab, can_run_labs, text};
use crate::docs::{Shown, shown_on};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

/// The page's hosts, and the lab's in their place.
const HOSTS: [(&str, &str); 2] = [("srv1", "r1h1"), ("srv2", "r1h2")];
/// What a page cannot know: how to get to the lab's hosts.
const LAUNCHING: &str = "pair|latency|run|doctor";

#[test]
fn the_tutorial_shows_what_its_commands_print() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up("racks: 1\nhosts-per-rack: 2\nnic: 1G\nsshd: true\n");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/two-hosts.md");
    let commands = shown_on(&page);
    assert!(commands.len() >= 6, "{} commands", commands.len());
    let mut wrong = Vec::new();
    for Shown { line, output, .. } in commands {
        let done = run(&lab, &line);
        let printed = on_the_page(&text(&done.stdout));
        let page = masked(&output.join("\n"));
        // Whether all of doctor's checks pass is this machine's affair.
        let is_expected = done.status.success() || line.starts_with("doctor");
        if !is_expected || !is_like(&masked(&printed), &page) {
            wrong.push(format!(
                "$ eastwest {line}\n{printed}{}",
                text(&done.stderr)
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The command as a user of the page types it, on the lab's controller.
fn run(lab: &TestLab, line: &str) -> Output {
    let program = lab.work.path().join("eastwest");
    let (config, remote) = (lab.dir.join("ssh_config"), lab.work.path().join("remote"));
    std::fs::create_dir_all(&remote).unwrap();
    let script = format!(
        "#!/bin/sh\ncase $1 in {LAUNCHING}) set -- \"$@\" --ssh-config {} --remote-dir {} ;; esac\nexec {} \"$@\"\n",
        config.display(),
        remote.display(),
        env!("CARGO_BIN_EXE_eastwest"),
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let line = HOSTS
        .iter()
        .fold(line.to_owned(), |line, (page, lab)| line.replace(page, lab));
    let line = format!(
        "cd {} && {} {line}",
        lab.work.path().display(),
        program.display()
    );
    let mut command = lab.exec("controller");
    command.args(["sh", "-c", &line]).output().unwrap()
}

fn on_the_page(printed: &str) -> String {
    let names = HOSTS.iter();
    names.fold(printed.to_owned(), |text, (page, lab)| {
        text.replace(lab, page)
    })
}

/// The words, with `#` for every number, `time` or `rate` for its unit, and `RUN` for the name of a
/// run:
/// lines break elsewhere when figures are longer.
fn masked(text: &str) -> Vec<String> {
    let is_of_number = |c: char| matches!(c, '.' | ',' | '-' | ':' | '\u{2013}');
    let words = text.split_whitespace().map(|word| {
        if word.contains("Z-") {
            return "RUN".to_owned();
        }
        let unit = word.trim_end_matches(['.', ',', ';']);
        if ["ns", "us", "\u{b5}s", "ms", "s"].contains(&unit) {
            return "time".to_owned();
        }
        if ["kb/s", "Mb/s", "Gb/s"].contains(&unit) {
            return "rate".to_owned();
        }
        let mut masked = String::new();
        for c in word.chars() {
            let goes_on =
                masked.ends_with('#') && is_of_number(c) || masked.ends_with(c) && c == '\u{2500}';
            match c.is_ascii_digit() {
                true if masked.ends_with('#') => {}
                true => masked.push('#'),
                false if goes_on => {}
                false => masked.push(c),
            }
        }
        masked
    });
    words.collect()
}

/// `...` on the page replaces what it leaves out.
fn is_like(printed: &[String], page: &[String]) -> bool {
    let Some(skip) = page.iter().position(|word| word == "...") else {
        return printed == page;
    };
    let (head, tail) = (&page[..skip], &page[skip + 1..]);
    let Some(rest) = printed.strip_prefix(head) else {
        return false;
    };
    (0..=rest.len()).any(|from| is_like(&rest[from..], tail))
}

#[test]
fn pages_are_like_what_is_printed_but_for_figures() {
    let page = masked("srv1 has 95.6 Mb/s, 1.3 ms.\n...\n13 of 15 in 20261125T215937Z-pair-0b0845");
    let like = |printed: &str| is_like(&masked(printed), &page);
    assert!(like(
        "srv1  has 956\nMb/s, 13 ns.\nmore\n7 of 9 in 20260101T000000Z-pair-ffffff\n"
    ));
    assert!(!like(
        "srv1 has 95.6 Mb/s, 1.3 ms.\n13 of 15 in 20260101T000000Z-pair-ffffff more"
    ));
    assert!(!like(
        "srv1 had 95.6 Mb/s, 1.3 ms.\n13 of 15 in 20260101T000000Z-pair-ffffff"
    ));
}
