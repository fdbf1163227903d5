//! Our node sets against ClusterShell's own `nodeset`, on listed and on generated expressions.
//!
//! Listed cases go through the `nodeset` program, generated ones through the library behind it;
//! both run in one Python process each, because every start costs a tenth of a second. Without
//! ClusterShell the comparisons are skipped, but not when `CI` is set.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests: a failure is a failed test, a skip is printed"
)]

use ew_plan::inventory::{
    GroupEnvironment, GroupSources, NodeSet, NodeSetError, count, expand, fold,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

/// Understood alike by both.
const ACCEPTED: &[&str] = &[
    "n[1-8/3]",
    "n[01-10]",
    "n[1,01]",
    "n[9-10,08]",
    "n[-2-2]",
    "n[-12--9,-2]",
    "r[1-2]n[1-3]",
    "r1n[1-2],r2n[1-2]",
    "n-00[00-02]",
    "n[1-2]5",
    "n[1-10]5",
    "n1[2-3]4",
    "n[1-2]5x6",
    "n[1-6]!n3,n3",
    "n3,n[1-6]!n3",
    "n1, n2 ,n3",
    "n[1, 2]",
    "n[1 - 3]",
    "n[1-6] ! n2",
    "10.0.0.[1-3]",
    "node[1-3].example.com",
    "[1-3]",
    "n[4/1]",
    "n[1-6]&n[4-9]^n[6-7]",
    "n1^n1",
    "n1!n1",
    "a[1-2],a",
    "a%b[1-2]c%",
    "n[08,99,100]",
    "n[98-100]",
    "n[2,4,6,7,8]",
    "n[3,8,13,14,99,101]",
    "n[1-2]x[1-2],n3x1,n3x5",
    "r[1-3]n[1-3]!r2n2",
    "r[1-3]n[1-3]p[1-2]!r2n[1-2]p1",
    "r1n1,r2n2,r3n3,r1n2,r10n1",
    "host[102,104-140/2].my.company.com",
    "n1\nn2\n\nn[4-5]!n4",
    "",
    "  ",
    "n123456789012345678901234567890",
    "n[00-02,0,000]",
    "é[1-2]",
    "n[ 4 ],m[1-9/ 4]",
];

/// Refused by both.
const REFUSED: &[&str] = &[
    "n[1-010]",
    "n[001-10]",
    "host[302,304,305-0333].my.company.com",
    "n[3-1]",
    "n[1-4/0]",
    "n[1-4/-1]",
    "n[4/2]",
    "n[]",
    "n[1",
    "n1]",
    "n[1]]",
    "n[[1]]",
    "n[1-2][3-4]",
    "n[1-2]5[3-4]",
    "n[1-4/2]5",
    "n[0-10]5",
    "n0[1-10]",
    "n[a]",
    "n[1-]",
    "n[1,]",
    "n[-05]",
    "n[0x1]",
    "n[1 2]",
    "!n1",
    "n1!",
    "n1,",
    ",n1",
    "n1,,n2",
    "n1, ,n2",
    "n1&^n2",
    "n[1-2],",
];

/// Differences that are meant: ClusterShell takes these for something nobody wants.
const REFUSED_BY_US_ONLY: &[&str] = &[
    "n1 n2",
    "n[1-3] n4",
    "n1[1-10]",
    "n1[9,10]",
    "n[1-2-3]",
    "@nosuch",
    "n1,@nosuch",
    "@rack*",
    "@",
    "n[1_0]",
    "n[+1]",
];

const GROUP_CASES: &[&str] = &[
    "@rack[1-3]",
    "@rack[1-3]!@rack2",
    "@rack1,@rack3",
    "@all&@rack[1-2]",
    "@rack1^n[2-5]",
    "@local:rack1",
    "@roles:cpu",
    "@roles:compute!@roles:gpu",
    "@roles:list",
    "@roles:old",
    "@*",
    "@roles:*",
    "@nodefault:*",
    "@@",
    "@@roles",
    "@pad[01-02]",
    "*",
    "n*",
    "n?",
    "*!n[1-3]",
    "n[1-2]*",
    "*2*",
    "s*,@rack1",
    "zzz*",
    "@multi",
];

const LOCAL_GROUPS: &str = "\
# comment
all: n[1-12] s[1-2]r[1-3] login
rack1: n[1-4]
rack2: n[5-8] n20
rack3:n[9-12],s1r1
pad01: p[01-03]
pad02: p[04-06]
multi: @rack[1,3] s[1-2]r2
";

const YAML_GROUPS: &str = "\
roles:
  compute: 'n[1-10]'
  gpu: '@local:rack2'
  cpu: '@compute!@gpu'
  list: ['n[1-2]', 's1r1,s2r2', '@gpu']
  old: '@compute^@gpu'
  all: '@compute,login'
nodefault:
  a: 'n[1-3]'
  b: '@a,m[7-9]'
";

/// Reads expressions separated by NUL and answers each with fold, count and expansion as the
/// library computes them, or with `error`.
const LIBRARY: &str = r#"
import sys
from ClusterShell.NodeSet import NodeSet
for text in sys.stdin.buffer.read().decode().split("\0"):
    try:
        s = NodeSet()
        s.update(NodeSet.fromlist(text.splitlines()))
        answer = "\2".join([str(s), str(len(s)), "\n".join(s.striter())])
    except Exception as e:
        answer = "error"
    sys.stdout.buffer.write((answer + "\0").encode())
"#;

/// The same with what `nodeset -f`, `-c` and `-e` print.
const PROGRAM: &str = r#"
import io, sys
from ClusterShell.CLI.Nodeset import main
out = sys.stdout.buffer
def run(option, text):
    sys.argv = ["nodeset", option, "-S", "\\n", "--", text]
    sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise ValueError(sys.stderr.getvalue())
    return sys.stdout.getvalue()[:-1]
for text in sys.stdin.buffer.read().decode().split("\0"):
    try:
        answer = "\2".join(run(option, text) for option in ("-f", "-c", "-e"))
    except ValueError:
        answer = "error"
    out.write((answer + "\0").encode())
"#;

/// ClusterShell as installed here.
struct Reference {
    nodeset: PathBuf,
    /// The interpreter that the program's first line names.
    python: String,
}

#[derive(Debug, PartialEq, Eq)]
struct Answer {
    folded: String,
    count: usize,
    expanded: Vec<String>,
}

/// `None`, with the reason printed, when there is no ClusterShell to compare with.
fn reference() -> Option<Reference> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let nodeset = std::env::split_paths(&path)
        .map(|d| d.join("nodeset"))
        .find(|p| p.is_file());
    let Some(nodeset) = nodeset else {
        assert!(
            std::env::var_os("CI").is_none(),
            "nodeset is not installed; CI needs the package clustershell"
        );
        println!("skipped: nodeset (package clustershell) is not installed");
        return None;
    };
    let script = fs::read_to_string(&nodeset).unwrap();
    let python = script
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("#!"))
        .unwrap_or("/usr/bin/python3")
        .trim()
        .to_owned();
    Some(Reference { nodeset, python })
}

impl Reference {
    /// Asks one Python process for all answers; `None` means an error.
    fn ask(&self, script: &str, sets: &[&str], cfgdir: &Path) -> Vec<Option<Answer>> {
        let mut words = self.python.split_whitespace();
        let mut child = Command::new(words.next().unwrap())
            .args(words)
            .args(["-c", script])
            .env("CLUSTERSHELL_CFGDIR", cfgdir)
            .env("HOME", cfgdir)
            .env_remove("XDG_CONFIG_HOME")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = sets.join("\0");
        let writer = thread::spawn(move || stdin.write_all(input.as_bytes()));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        let answers: Vec<_> = text.split_terminator('\0').map(read_answer).collect();
        assert_eq!(answers.len(), sets.len());
        answers
    }

    fn ask_library(&self, sets: &[String]) -> Vec<Option<Answer>> {
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let cfgdir = tempfile::tempdir().unwrap();
        self.ask(LIBRARY, &sets, cfgdir.path())
    }
}

fn read_answer(answer: &str) -> Option<Answer> {
    let mut fields = answer.split('\u{2}');
    let folded = fields.next()?.to_owned();
    let count = fields.next()?.parse().ok()?;
    let expanded = fields.next()?.lines().map(str::to_owned).collect();
    Some(Answer {
        folded,
        count,
        expanded,
    })
}

fn ours(set: &str, sources: &GroupSources) -> Result<Answer, NodeSetError> {
    Ok(Answer {
        folded: NodeSet::parse(set, sources)?.to_string(),
        count: count(set, sources)?,
        expanded: expand(set, sources)?,
    })
}

#[test]
fn the_installed_command_says_the_same() {
    let Some(reference) = reference() else {
        return;
    };
    let set = "host[102,104-140/2].my.company.com,r1n1,r2n1!host108.my.company.com";
    let output = Command::new(&reference.nodeset)
        .args(["-f", "--", set])
        .output()
        .unwrap();
    let folded = ours(set, &GroupSources::default()).unwrap().folded;
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim_end(), folded);
}

#[test]
fn accepted_and_refused_as_nodeset_does() {
    let Some(reference) = reference() else {
        return;
    };
    let cfgdir = group_directory();
    let none = GroupSources::default();
    for (set, theirs) in ACCEPTED
        .iter()
        .zip(reference.ask(PROGRAM, ACCEPTED, cfgdir.path()))
    {
        assert_eq!(ours(set, &none).ok(), theirs, "{set:?}");
    }
    for (set, theirs) in REFUSED
        .iter()
        .zip(reference.ask(PROGRAM, REFUSED, cfgdir.path()))
    {
        assert!(theirs.is_none(), "nodeset takes {set:?}: {theirs:?}");
        let error = ours(set, &none).expect_err(set);
        assert!(
            !error.remedy.is_empty() && error.offset + error.length <= set.len(),
            "{set:?}: {error}"
        );
    }
}

#[test]
fn meant_differences_are_still_differences() {
    let Some(reference) = reference() else {
        return;
    };
    let cfgdir = group_directory();
    let sources = GroupSources::load(&environment(cfgdir.path()));
    let theirs = reference.ask(PROGRAM, REFUSED_BY_US_ONLY, cfgdir.path());
    for (set, theirs) in REFUSED_BY_US_ONLY.iter().zip(theirs) {
        assert!(theirs.is_some(), "{set:?}");
        assert!(ours(set, &sources).is_err(), "{set:?}");
    }
}

#[test]
fn groups_as_nodeset_resolves_them() {
    let Some(reference) = reference() else {
        return;
    };
    let cfgdir = group_directory();
    let sources = GroupSources::load(&environment(cfgdir.path()));
    assert!(sources.problem().is_none(), "{:?}", sources.problem());
    let theirs = reference.ask(PROGRAM, GROUP_CASES, cfgdir.path());
    for (set, theirs) in GROUP_CASES.iter().zip(theirs) {
        assert_eq!(ours(set, &sources).ok(), theirs, "{set:?}");
    }
    let refused = ["@nosrc:x", "@rack[1", "@rack1,"];
    let theirs = reference.ask(PROGRAM, &refused, cfgdir.path());
    for (set, theirs) in refused.iter().zip(theirs) {
        assert!(theirs.is_none() && ours(set, &sources).is_err(), "{set}");
    }
}

#[test]
fn generated_expressions_as_clustershell_computes_them() {
    let Some(reference) = reference() else {
        return;
    };
    let mut runner = TestRunner::default();
    let sets: Vec<String> = (0..4000)
        .map(|_| expression().new_tree(&mut runner).unwrap().current())
        .collect();
    let none = GroupSources::default();
    let mut accepted = 0;
    for (set, theirs) in sets.iter().zip(reference.ask_library(&sets)) {
        match ours(set, &none) {
            Ok(answer) => {
                accepted += 1;
                assert_eq!(Some(answer), theirs, "{set:?}");
            }
            Err(error) => {
                let meant = error.problem.starts_with("digits `");
                assert!(
                    theirs.is_none() || meant,
                    "we refuse {set:?}: {error}\nnodeset: {theirs:?}"
                );
            }
        }
    }
    assert!(accepted > 1500, "only {accepted} expressions were valid");
}

#[test]
fn generated_several_dimensions_fold_alike() {
    let Some(reference) = reference() else {
        return;
    };
    let mut runner = TestRunner::default();
    let name = (1..6_u8, 1..13_u8, 0..3_u8).prop_map(|(a, b, c)| match c {
        0 => format!("r{a}n{b}"),
        1 => format!("r{a}n{b:02}"),
        _ => format!("r{a}n{b}p{}", a % 3),
    });
    let names = prop::collection::vec(name, 2..60);
    let sets: Vec<String> = (0..1000)
        .map(|_| names.new_tree(&mut runner).unwrap().current().join(","))
        .collect();
    for (set, theirs) in sets.iter().zip(reference.ask_library(&sets)) {
        let ours = ours(set, &GroupSources::default()).unwrap();
        assert_eq!(fold(set.split(',')), ours.folded);
        assert_eq!(Some(ours), theirs, "{set:?}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        check_any_text(&text);
    }

    #[test]
    fn no_near_miss_makes_it_panic(text in "[n1-3é@\\[\\]!&^,/ *?:%\n-]{0,24}") {
        check_any_text(&text);
    }

    #[test]
    fn folded_sets_expand_to_themselves(set in expression()) {
        let none = GroupSources::default();
        if let Ok(nodes) = NodeSet::parse(&set, &none) {
            let folded = nodes.to_string();
            // A negative number in a name reads back as a dash and a number.
            if !folded.contains("n-") && !folded.contains("[-") {
                prop_assert_eq!(NodeSet::parse(&folded, &none).unwrap(), nodes);
            }
        }
    }
}

fn check_any_text(text: &str) {
    let sources =
        GroupSources::from_flat("n", "n1: n[1-3]\nall: n[1-31]\n1: @n[1-2]\n", "test").unwrap();
    match NodeSet::parse(text, &sources) {
        Ok(nodes) => {
            assert_eq!(nodes.names().len(), nodes.len());
            let _ = nodes.to_string();
        }
        Err(error) => {
            assert!(error.to_string().contains('^'));
            assert!(
                error
                    .input
                    .get(error.offset..error.offset + error.length)
                    .is_some()
            );
        }
    }
}

/// Expressions most of which are valid, with all operators, padding, steps, several dimensions and
/// blanks.
fn expression() -> impl Strategy<Value = String> {
    let operator = prop_oneof![
        4 => Just(","), 2 => Just("!"), 1 => Just("&"), 1 => Just("^"), 1 => Just(" , ")
    ];
    (
        operand(),
        prop::collection::vec((operator, operand()), 0..6),
    )
        .prop_map(|(first, rest)| {
            rest.into_iter()
                .fold(first, |mut set, (operator, operand)| {
                    set.push_str(operator);
                    set.push_str(&operand);
                    set
                })
        })
}

fn operand() -> impl Strategy<Value = String> {
    let text = prop_oneof![Just("n"), Just("r"), Just("n-"), Just("m%"), Just("")];
    let suffix = prop_oneof![
        6 => Just(""), 1 => Just("-ib"), 1 => Just("5"), 1 => Just(".x0"), 1 => Just("p3")
    ];
    let list = prop::collection::vec(range(), 1..4)
        .prop_map(|ranges| ranges.join(","))
        .boxed();
    prop_oneof![
        2 => (0..14_u8).prop_map(|i| format!("n{i}")),
        1 => (0..14_u8).prop_map(|i| format!("n{i:02}")),
        1 => Just("login".to_owned()),
        6 => (text, list.clone(), suffix).prop_map(|(t, l, s)| format!("{t}[{l}]{s}")),
        2 => (list.clone(), list.clone()).prop_map(|(a, b)| format!("r[{a}]n[{b}]")),
        1 => (0..3_u8, list).prop_map(|(d, l)| format!("n{d}[{l}]")),
    ]
}

fn range() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (0..30_u8).prop_map(|i| i.to_string()),
        1 => (0..120_u8).prop_map(|i| format!("{i:02}")),
        4 => (0..30_u8, 0..12_u8).prop_map(|(a, n)| format!("{a}-{}", a + n)),
        2 => (0..110_u8, 0..12_u8).prop_map(|(a, n)| format!("{a:03}-{:03}", a + n)),
        2 => (0..12_u8, 0..20_u8, 1..5_u8).prop_map(|(a, n, s)| format!("{a}-{}/{s}", a + n)),
        1 => (0..99_u8, 0..99_u8).prop_map(|(a, b)| format!("{a:02}-{b}")),
        1 => (1..12_i8, 0..12_i8).prop_map(|(a, n)| format!("-{a}-{n}")),
    ]
}

/// A configuration directory like the one the package installs, with groups of our own.
fn group_directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let groups_conf = "\
[Main]
default: local
confdir: $CFGDIR/groups.conf.d
autodir: $CFGDIR/groups.d
[local]
map: sed -n 's/^$GROUP:\\(.*\\)/\\1/p' $CFGDIR/groups
all: sed -n 's/^all:\\(.*\\)/\\1/p' $CFGDIR/groups
list: sed -n 's/^\\([0-9A-Za-z_-]*\\):.*/\\1/p' $CFGDIR/groups
";
    fs::write(dir.path().join("groups.conf"), groups_conf).unwrap();
    fs::write(dir.path().join("groups"), LOCAL_GROUPS).unwrap();
    fs::create_dir(dir.path().join("groups.d")).unwrap();
    fs::write(dir.path().join("groups.d/c.yaml"), YAML_GROUPS).unwrap();
    dir
}

fn environment(cfgdir: &Path) -> GroupEnvironment {
    GroupEnvironment {
        cfgdir: Some(cfgdir.to_owned()),
        xdg_config_home: None,
        home: None,
        system_dir: cfgdir.join("nowhere"),
    }
}
