//! The few shell commands at the far end of an ssh connection that receive the binary and start it.
//!
//! One connection does it all. The script greets (with `uname`, so that a binary is never sent to another kind of machine),
//! reads exactly the binary's length from standard input into a private directory, checks the length, says that it is ready
//! and starts `eastwest agent --remove-self`, which removes file and directory at once. Whatever ends the script before that removes
//! them too. Reading ahead is harmless: nothing is sent after the binary until the script has said that it is ready.
//!
//! The user's login shell sees only `exec sh -c '...'`. So that csh and fish pass the script on as it is, it has no single quote,
//! backslash, exclamation mark or line break.

use crate::error::LaunchError;

/// Begins the line that says on what kind of machine the script runs.
pub(crate) const GREETING: &str = "eastwest-bootstrap-on ";
/// The line that says that the binary is whole and is being started.
pub(crate) const READY: &str = "eastwest-bootstrap-ready";
/// Begins the line that says which step failed, and in which directory.
pub(crate) const FAILED: &str = "eastwest-bootstrap-failed ";

/// Where the binary lies when the user does not say: `$TMPDIR` of the host, or `/tmp`.
const DEFAULT_DIRECTORY: &str = "${TMPDIR:-/tmp}";

/// The command for the remote login shell.
///
/// `directory` is absolute, relative to the home directory, or begins with `~/`; the copy must be over within `copy_seconds`
/// where the host has timeout(1), so that a link cut in mid-copy leaves nothing either.
///
/// # Errors
/// [`LaunchError::BadRemoteDir`] for a directory with characters that a shell may take for something else.
pub fn remote_command(
    directory: Option<&str>,
    size_bytes: usize,
    copy_seconds: u64,
) -> Result<String, LaunchError> {
    let parent = shell_directory(directory)?;
    let script = [
        "umask 077; d=;".to_owned(),
        r#"clean() { [ -z "$d" ] || rm -rf "$d"; };"#.to_owned(),
        format!(r#"p="{parent}"; fail() {{ echo "{FAILED}$1 $p"; exit 1; }};"#),
        r#"trap clean EXIT; trap "exit 1" HUP INT TERM PIPE;"#.to_owned(),
        r#"d=$(mktemp -d "$p/eastwest.XXXXXX") || { d=; fail directory; };"#.to_owned(),
        format!(r#"echo "{GREETING}$(uname -s) $(uname -m)";"#),
        format!("limit=; timeout 1 true 2>/dev/null && limit=\"timeout {copy_seconds}\";"),
        format!(r#"f="$d/eastwest"; $limit head -c {size_bytes} > "$f" || fail copy;"#),
        format!(r#"[ $(wc -c < "$f") -eq {size_bytes} ] || fail copy;"#),
        r#"chmod 700 "$f"; [ -x "$f" ] || fail execute;"#.to_owned(),
        format!(r#"echo {READY}; "$f" agent --remove-self; s=$?;"#),
        format!(r#"[ $s -ne 126 ] || echo "{CANNOT_EXECUTE}" >&2; exit $s"#),
    ]
    .join(" ");
    Ok(format!("exec sh -c '{script}'"))
}

/// For shells whose `test -x` does not see a noexec mount: said after the kernel's refusal.
const CANNOT_EXECUTE: &str = "the host does not run the binary in $d (mounted noexec?): choose another directory with --remote-dir";

/// What the greeting line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Greeting {
    pub(crate) system: String,
    pub(crate) machine: String,
}

impl Greeting {
    /// From the line's rest after [`GREETING`]; missing words are empty.
    pub(crate) fn parse(rest: &str) -> Self {
        let mut words = rest.split_whitespace().map(str::to_owned);
        Self {
            system: words.next().unwrap_or_default(),
            machine: words.next().unwrap_or_default(),
        }
    }

    /// Whether a Linux binary for `built_for` can run there. 32-bit binaries run on their 64-bit kin.
    pub(crate) fn runs(&self, built_for: &str) -> bool {
        let kin: &[&str] = match built_for {
            "i686" => &["i386", "i486", "i586", "i686", "x86_64"],
            "armv7l" => &["armv7l", "armv8l", "aarch64"],
            "x86_64" => &["x86_64", "amd64"],
            "aarch64" => &["aarch64", "arm64"],
            other => &[other],
        };
        self.system == "Linux" && kin.contains(&self.machine.as_str())
    }
}

/// The directory as it stands inside double quotes in the script.
fn shell_directory(directory: Option<&str>) -> Result<String, LaunchError> {
    let Some(directory) = directory else {
        return Ok(DEFAULT_DIRECTORY.to_owned());
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
    use proptest::prelude::*;

    #[test]
    fn home_and_relative_directories_are_spelled_out() {
        let spelled = |directory| shell_directory(directory).unwrap();
        assert_eq!(spelled(None), "${TMPDIR:-/tmp}");
        assert_eq!(spelled(Some("/var/tmp")), "/var/tmp");
        assert_eq!(spelled(Some("~")), "$HOME");
        assert_eq!(spelled(Some("~/scratch")), "$HOME/scratch");
        assert_eq!(spelled(Some("-scratch")), "./-scratch");
    }

    #[test]
    fn machines_are_compared() {
        let greeting = Greeting::parse("Linux aarch64\n");
        assert!(greeting.runs("aarch64") && greeting.runs("armv7l"));
        assert!(!greeting.runs("x86_64"));
        assert!(!Greeting::parse("FreeBSD amd64").runs("x86_64"));
        assert!(!Greeting::parse("").runs("x86_64"));
    }

    proptest! {
        #[test]
        fn no_login_shell_can_misread_the_script(directory in ".{0,40}") {
            if let Ok(command) = remote_command(Some(&directory), 1, 60) {
                let script = command.strip_prefix("exec sh -c '").unwrap();
                let script = script.strip_suffix('\'').unwrap();
                prop_assert!(!script.contains(['\'', '\\', '!', '\n', '\r', '\0']));
                let home = directory.starts_with('~');
                prop_assert!(home || script.contains(&directory));
            }
        }
    }
}
