//! The tutorial's commands, run over ssh in a lab: what the page shows is what they print, but for
//! figures.

use crate::common::{TestLab, can_run_labs, text};
use crate::docs::{Shown, is_like, shown_on};
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
        let page: Vec<String> = output.iter().map(|line| masked(line)).collect();
        if !done.status.success() || !is_like(&masked(&printed), &page) {
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

/// With `#` for every number and its unit, and one blank for several.
fn masked(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let words = line.split_whitespace().map(|word| {
            let mut masked = String::new();
            for c in word.chars() {
                match c.is_ascii_digit()
                    || (matches!(c, '.' | ',' | '-' | '\u{2013}') && masked.ends_with('#'))
                {
                    true if masked.ends_with('#') => {}
                    true => masked.push('#'),
                    false => masked.push(c),
                }
            }
            masked
        });
        let words: Vec<String> = words.collect();
        words.join(" ")
    });
    let masked = lines.map(|line| line + "\n").collect::<String>();
    ["ns", "us", "\u{b5}s", "ms", "s"]
        .iter()
        .fold(masked, |text, unit| {
            text.replace(&format!("# {unit}"), "# time")
        })
}
