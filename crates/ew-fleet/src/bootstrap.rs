//! The few shell commands at the far end of an ssh connection that receive the binary and start it:
//! `bootstrap.sh`.
//!
//! One connection does it all. The script asks a neighbour for the binary, if it was given one. It
//! greets (with `uname`, so that a binary is never sent to another kind of machine, and with how it
//! wants the binary: by gzip, as it is, or not at all because it has it), reads exactly as many
//! bytes from standard input into a private directory, reports every second how much has arrived,
//! unpacks, checks the length, tries whether the binary runs, reports that it is ready and starts
//! `eastwest agent --remove-self`, which removes file and directory at once. Whatever ends the
//! script before that removes them too, also a copy that stalls because the link was cut. Reading
//! ahead is harmless: nothing is sent after the binary until the script has reported that it is
//! ready.
//!
//! The user's login shell sees only `exec sh -c '...'`. So that csh and fish pass the script on as
//! it is, it has no single quote, backslash or line break, and an exclamation mark only before a
//! blank, where csh does not take it for a piece of its history.

use crate::error::LaunchError;
use crate::greeting::{Greeting, kin};
use crate::payload::{Payload, Payloads};
use crate::relay::Neighbour;

/// Begins every line that the script means for us.
const SAY: &str = "eastwest-bootstrap";
/// Seconds of waiting for the next byte after which the script gives the copy up. It checks once a
/// second, so it is over within the next one: a host is promised to be clean 5 s after a cut.
const STALL_SECONDS: u64 = 3;
/// Where the binary lies when the user does not specify it: `$TMPDIR` of the host, or `/tmp`.
const DEFAULT_DIRECTORY: &str = "${TMPDIR:-/tmp}";
/// The same for a binary that is kept.
const DEFAULT_STORE: &str = "${XDG_CACHE_HOME:-$HOME/.cache}/eastwest";

/// What stays on the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keeping {
    /// Nothing: the agent removes its file at once.
    #[default]
    Nothing,
    /// The binary, under its digest, for later runs.
    Binary,
}

/// What the script at the far end is to do.
#[derive(Clone, Copy, Debug)]
pub struct Bootstrap<'a> {
    /// Where the binary lies: absolute, relative to the home directory, or beginning with `~/`.
    pub directory: Option<&'a str>,
    /// The binaries, of which it takes the one for its machine.
    pub payloads: &'a Payloads,
    /// The copy must be over within this, and never wait for its next byte for more than 4 s.
    pub copy_seconds: u64,
    /// What stays there.
    pub keeping: Keeping,
    /// A host that is asked for the binary first.
    pub neighbour: Option<&'a Neighbour>,
}

impl Bootstrap<'_> {
    /// The command for the remote login shell.
    ///
    /// # Errors
    /// [`LaunchError::BadRemoteDir`] for a directory with characters that a shell may take for
    /// something else.
    pub fn command(&self) -> Result<String, LaunchError> {
        let default = match self.keeping {
            Keeping::Nothing => DEFAULT_DIRECTORY,
            Keeping::Binary => DEFAULT_STORE,
        };
        let parent = shell_directory(self.directory, default)?;
        let script = one_line(include_str!("bootstrap.sh"));
        let choice = self.choice();
        let (limit, neighbour) = (self.copy_seconds, self.question());
        Ok(format!(
            r#"exec sh -c 'parent="{parent}"; {choice} {neighbour} limit={limit}; stall={STALL_SECONDS}; say={SAY}; {script}'"#
        ))
    }

    /// How a neighbour is asked, by HTTP or by bash alone.
    fn question(&self) -> String {
        let Some(Neighbour { address, key }) = self.neighbour else {
            return "url=; tcp=; path=;".to_owned();
        };
        let (ip, port) = (address.ip(), address.port());
        format!("url=http://{address}/{key}; tcp=/dev/tcp/{ip}/{port}; path=/{key};")
    }

    /// The facts of the binary for the script's machine: the first that runs there, or else the
    /// first, as [`Payloads`] chooses it.
    fn choice(&self) -> String {
        let facts = |payload: &Payload| {
            let keep = match self.keeping {
                Keeping::Nothing => "",
                Keeping::Binary => payload.digest(),
            };
            let (size, full) = (payload.compressed().len(), payload.program_bytes());
            let digest = payload.digest();
            format!("digest={digest}; size={size}; full={full}; keep={keep};")
        };
        let all = self.payloads.all();
        let cases = all.iter().filter_map(|payload| {
            let machines = kin(payload.architecture()?).join("|");
            Some(format!("{machines}) {};", facts(payload)))
        });
        let cases: String = cases.collect();
        let otherwise = all.first().map(facts).unwrap_or_default();
        format!("case $(uname -m) in {cases} *) {otherwise}; esac;")
    }
}

/// The script without its comments, indentation and line breaks.
fn one_line(script: &str) -> String {
    let commands = script.lines().map(str::trim);
    let commands: Vec<_> = commands
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    commands.join(" ")
}

/// The script's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// First of all: the kind of machine.
    Greeting(Greeting),
    /// How much of the binary is there.
    Arrived { bytes: u64 },
    /// The binary is whole and is being started.
    Ready,
    /// It ends.
    Failed(Failure),
}

/// What failed, by the script's own word for it, and in which directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) word: String,
    pub(crate) directory: String,
}

impl Line {
    /// The script's line at the end of a line of output; before it may be a prompt without a line
    /// break.
    pub(crate) fn find(text: &str) -> Option<Self> {
        let (_, said) = text.split_once(SAY)?;
        // What it reports is shown to people, and a terminal must not obey it.
        let said = said.replace(|c: char| c.is_control(), " ");
        let said = said.trim();
        let (word, rest) = said.split_once(' ').unwrap_or((said, ""));
        match word {
            "-on" => Some(Self::Greeting(Greeting::parse(rest))),
            "-arrived" => rest.parse().ok().map(|bytes| Self::Arrived { bytes }),
            "-ready" => Some(Self::Ready),
            "-failed" => {
                let (word, directory) = rest.split_once(' ').unwrap_or((rest, ""));
                Some(Self::Failed(Failure {
                    word: word.to_owned(),
                    directory: directory.to_owned(),
                }))
            }
            _ => None,
        }
    }
}

/// The directory as it is inside double quotes in the script.
fn shell_directory(directory: Option<&str>, default: &str) -> Result<String, LaunchError> {
    let Some(directory) = directory else {
        return Ok(default.to_owned());
    };
    let unsafe_character = |c: &char| c.is_control() || "'\"\\$`!".contains(*c);
    if let Some(character) = directory.chars().find(unsafe_character) {
        return Err(LaunchError::BadRemoteDir {
            directory: directory.to_owned(),
            character,
        });
    }
    Ok(match directory.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("$HOME{rest}"),
        _ if directory.starts_with('/') => directory.to_owned(),
        _ => format!("./{directory}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::greeting::Packing;
    use proptest::prelude::*;

    #[test]
    fn home_and_relative_directories_are_spelled_out() {
        let spelled = |directory| shell_directory(directory, DEFAULT_DIRECTORY).unwrap();
        assert_eq!(spelled(None), "${TMPDIR:-/tmp}");
        assert_eq!(spelled(Some("/var/tmp")), "/var/tmp");
        assert_eq!(spelled(Some("~")), "$HOME");
        assert_eq!(spelled(Some("~/scratch")), "$HOME/scratch");
        assert_eq!(spelled(Some("-scratch")), "./-scratch");
    }

    #[test]
    fn machines_are_compared() {
        let greeting = Greeting::parse("Linux aarch64 gzip\n");
        assert_eq!(greeting.packing, Packing::Gzip);
        assert!(greeting.runs("aarch64") && greeting.runs("armv7l"));
        assert!(!greeting.runs("x86_64"));
        assert!(!Greeting::parse("FreeBSD amd64").runs("x86_64"));
        assert!(!Greeting::parse("").runs("x86_64"));
    }

    /// The script knows the sizes before the controller knows the machine.
    #[test]
    fn script_and_controller_choose_the_same_binary() {
        let built_for = |machine: u8, bytes: usize| {
            let mut program = vec![0; bytes];
            program[..4].copy_from_slice(b"\x7fELF");
            program[18] = machine;
            Payload::new(program)
        };
        let payloads = Payloads::from_iter([built_for(62, 1000), built_for(183, 2000)]);
        let bootstrap = Bootstrap {
            directory: None,
            payloads: &payloads,
            copy_seconds: 60,
            keeping: Keeping::Binary,
            neighbour: None,
        };
        let chosen = |machine: &str| {
            let script = format!(
                "uname() {{ echo {machine}; }}; {} echo $size $full $keep",
                bootstrap.choice()
            );
            let mut shell = std::process::Command::new("sh");
            let said = shell.args(["-c", &script]).output().unwrap();
            String::from_utf8(said.stdout).unwrap().trim().to_owned()
        };
        let words = |payload: &Payload| {
            let (size, full) = (payload.compressed().len(), payload.program_bytes());
            format!("{size} {full} {}", payload.digest())
        };
        for machine in ["x86_64", "amd64", "aarch64", "arm64"] {
            let greeting = Greeting::parse(&format!("Linux {machine} gzip"));
            let payload = payloads.for_machine(&greeting).unwrap();
            assert_eq!(chosen(machine), words(payload), "{machine}");
        }
        let other = Greeting::parse("Linux riscv64 gzip");
        assert!(payloads.for_machine(&other).is_none());
        assert_eq!(chosen("riscv64"), words(&payloads.all()[0]));
        assert_eq!(payloads.machines(), "x86_64 and aarch64");
    }

    #[test]
    fn lines_are_told_from_noise() {
        let greeting = Line::find("prompt> eastwest-bootstrap-on Linux x86_64\n");
        assert_eq!(
            greeting,
            Some(Line::Greeting(Greeting::parse("Linux x86_64")))
        );
        let arrived = Line::find("eastwest-bootstrap-arrived 4096\n");
        assert_eq!(arrived, Some(Line::Arrived { bytes: 4096 }));
        assert_eq!(
            Line::find("eastwest-bootstrap-ready\r\n"),
            Some(Line::Ready)
        );
        let Some(Line::Failed(failure)) = Line::find("eastwest-bootstrap-failed copy /a b\n")
        else {
            panic!("no failure");
        };
        assert_eq!((&*failure.word, &*failure.directory), ("copy", "/a b"));
        let Some(Line::Failed(failure)) =
            Line::find("eastwest-bootstrap-failed directory \u{1b}]0;owned\u{7}\u{1b}[31mred")
        else {
            panic!("no failure");
        };
        assert!(!failure.directory.contains(char::is_control));
        // What a login shell that repeats its command prints.
        let command = command_in(None, Keeping::Nothing).unwrap();
        for noise in ["", "eastwest-bootstrap-arrived soon", &command] {
            assert_eq!(Line::find(noise), None);
        }
    }

    fn command_in(directory: Option<&str>, keeping: Keeping) -> Result<String, LaunchError> {
        Bootstrap {
            directory,
            payloads: &Payload::new(vec![0]).into(),
            copy_seconds: 60,
            keeping,
            neighbour: None,
        }
        .command()
    }

    proptest! {
        #[test]
        fn no_login_shell_can_misread_the_script(directory in ".{0,40}") {
            if let Ok(command) = command_in(Some(&directory), Keeping::Binary) {
                let script = command.strip_prefix("exec sh -c '").unwrap();
                let script = script.strip_suffix('\'').unwrap();
                prop_assert!(!script.contains(['\'', '\\', '\n', '\r', '\0']));
                prop_assert!(script.split('!').skip(1).all(|rest| rest.starts_with(' ')));
                let home = directory.starts_with('~');
                prop_assert!(home || script.contains(&directory));
            }
        }
    }
}
