//! The agent's first bytes: one line with the protocol's version, found behind whatever a login
//! shell prints before it.

use crate::message::PROTOCOL_VERSION;
use crate::text;
use thiserror::Error;

/// How much a login shell may print before the agent's line.
pub const MAX_BANNER_BYTES: usize = 64 * 1024;

const MARK: &[u8] = b"\nEASTWEST-AGENT ";
const MAX_LINE_BYTES: usize = 256;

/// What an agent writes before its first frame: `\nEASTWEST-AGENT <protocol> <build>\n`.
///
/// Characters in `build` that would break the line (white space, control characters) become `_`,
/// and it is cut at 128 bytes.
#[must_use]
pub fn preamble(build: &str) -> Vec<u8> {
    let build = clean_build(build);
    format!("\nEASTWEST-AGENT {PROTOCOL_VERSION} {build}\n").into_bytes()
}

/// Why the bytes at the start of a link were refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PreambleError {
    /// Too much text, and no agent in it.
    #[error(
        "no eastwest agent answered within the first {MAX_BANNER_BYTES} bytes; the host printed: `{said}`. \
         Make the login shell quiet for commands (`ssh HOST true` must print nothing)"
    )]
    NotFound {
        /// The end of what came instead.
        said: String,
    },
    /// The line is there and makes no sense.
    #[error(
        "the agent's first line is damaged: `{line}`. Something on the way alters the stream; check what the login shell runs"
    )]
    Damaged {
        /// The line, as far as it can be printed.
        line: String,
    },
    /// The agent is another eastwest.
    #[error(
        "the agent is eastwest {agent_build} with protocol {agent_protocol}, this controller is {own_build} with \
         protocol {PROTOCOL_VERSION}: both must be the same build. Remove the old copy from the host, or run the \
         same eastwest on both sides"
    )]
    Mismatch {
        /// The agent's wire format.
        agent_protocol: u32,
        /// The agent's build.
        agent_build: String,
        /// This side's build.
        own_build: String,
    },
}

/// Finds the agent's line in a stream that comes in pieces.
#[derive(Clone, Debug)]
pub struct PreambleScanner {
    own_build: String,
    seen: Vec<u8>,
    /// Before this there is no mark.
    searched: usize,
}

impl PreambleScanner {
    /// A scanner that accepts agents of this build only.
    #[must_use]
    pub fn new(own_build: &str) -> Self {
        Self {
            own_build: clean_build(own_build),
            seen: Vec::new(),
            searched: 0,
        }
    }

    /// Takes the next bytes. `Some(rest)` when the line is complete and fits: `rest` are the bytes
    /// behind it.
    ///
    /// # Errors
    /// [`PreambleError`] when the agent does not fit or no agent is there; the link is then of no
    /// use.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Option<Vec<u8>>, PreambleError> {
        self.seen.extend_from_slice(bytes);
        let Some(found) = find(&self.seen[self.searched..], MARK) else {
            self.searched = self.seen.len().saturating_sub(MARK.len() - 1);
            return self.check_banner(self.searched).map(|()| None);
        };
        self.searched += found;
        let start = self.searched;
        self.check_banner(start)?;
        let line_start = start + MARK.len();
        let line = &self.seen[line_start..];
        match line.iter().take(MAX_LINE_BYTES).position(|b| *b == b'\n') {
            Some(end) => {
                self.check_line(&line[..end])?;
                Ok(Some(line[end + 1..].to_vec()))
            }
            None if line.len() >= MAX_LINE_BYTES => Err(PreambleError::Damaged {
                line: text::printable(&String::from_utf8_lossy(&line[..MAX_LINE_BYTES])),
            }),
            None => Ok(None),
        }
    }

    /// The end of what was seen so far, printable: what the host sent instead of an agent.
    #[must_use]
    pub fn said(&self) -> String {
        let tail = &self.seen[self.seen.len().saturating_sub(400)..];
        text::printable(&String::from_utf8_lossy(tail))
    }

    fn check_banner(&self, banner_bytes: usize) -> Result<(), PreambleError> {
        if banner_bytes > MAX_BANNER_BYTES {
            return Err(PreambleError::NotFound { said: self.said() });
        }
        Ok(())
    }

    fn check_line(&self, line: &[u8]) -> Result<(), PreambleError> {
        let line = String::from_utf8_lossy(line);
        let damaged = || PreambleError::Damaged {
            line: text::printable(&line),
        };
        let (protocol, build) = line.split_once(' ').ok_or_else(damaged)?;
        let agent_protocol: u32 = protocol.parse().map_err(|_| damaged())?;
        if build.is_empty() {
            return Err(damaged());
        }
        if agent_protocol != PROTOCOL_VERSION || build != self.own_build {
            return Err(PreambleError::Mismatch {
                agent_protocol,
                agent_build: text::printable(build),
                own_build: self.own_build.clone(),
            });
        }
        Ok(())
    }
}

fn clean_build(build: &str) -> String {
    let mut clean = String::new();
    for c in build.chars() {
        let c = if c.is_whitespace() || c.is_control() {
            '_'
        } else {
            c
        };
        if clean.len() + c.len_utf8() > 128 {
            break;
        }
        clean.push(c);
    }
    if clean.is_empty() {
        "unknown".into()
    } else {
        clean
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|w| w == needle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_line_is_found_behind_a_banner() {
        let mut scanner = PreambleScanner::new("0.1.0+abc");
        assert_eq!(
            scanner.push(b"Welcome to node7!\nEASTWEST-AG no\n"),
            Ok(None)
        );
        let mut bytes = preamble("0.1.0+abc");
        bytes.extend_from_slice(b"rest");
        assert_eq!(scanner.push(&bytes), Ok(Some(b"rest".to_vec())));
    }

    #[test]
    fn another_protocol_or_build_is_refused_with_both_versions() {
        let mut scanner = PreambleScanner::new("0.1.0+abc");
        let error = scanner.push(b"\nEASTWEST-AGENT 99 0.9.0\n").unwrap_err();
        let words = error.to_string();
        for part in ["0.9.0", "protocol 99", "0.1.0+abc", "same build"] {
            assert!(words.contains(part), "{words}");
        }
        let mut scanner = PreambleScanner::new("0.1.0+abc");
        let error = scanner.push(&preamble("0.1.0+def")).unwrap_err();
        assert!(matches!(error, PreambleError::Mismatch { .. }));
    }

    #[test]
    fn an_endless_banner_and_an_endless_line_are_refused() {
        let mut scanner = PreambleScanner::new("b");
        let mut result = Ok(None);
        for _ in 0..70 {
            result = scanner.push(&[b'x'; 1024]);
            if result.is_err() {
                break;
            }
        }
        assert!(matches!(result, Err(PreambleError::NotFound { .. })));
        let mut scanner = PreambleScanner::new("b");
        let mut bytes = b"\nEASTWEST-AGENT 1 ".to_vec();
        bytes.extend([b'x'; 400]);
        assert!(matches!(
            scanner.push(&bytes),
            Err(PreambleError::Damaged { .. })
        ));
    }

    #[test]
    fn a_damaged_line_is_refused() {
        for line in [
            "\nEASTWEST-AGENT one b\n",
            "\nEASTWEST-AGENT 1\n",
            "\nEASTWEST-AGENT 1 \n",
        ] {
            let result = PreambleScanner::new("b").push(line.as_bytes());
            assert!(
                matches!(result, Err(PreambleError::Damaged { .. })),
                "{line:?}"
            );
        }
    }

    #[test]
    fn a_build_cannot_break_the_line() {
        let bytes = preamble("a b\nc");
        assert_eq!(bytes.iter().filter(|b| **b == b'\n').count(), 2);
        assert_eq!(
            PreambleScanner::new("a b\nc").push(&bytes),
            Ok(Some(vec![]))
        );
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(banner in prop::collection::vec(any::<u8>(), 0..200), cuts in prop::collection::vec(1..9usize, 1..80)) {
            prop_assume!(find(&banner, MARK).is_none());
            let mut bytes = banner;
            bytes.extend(preamble("build"));
            bytes.extend_from_slice(b"frames");
            let mut scanner = PreambleScanner::new("build");
            let mut rest = None;
            let mut cuts = cuts.into_iter().cycle();
            let mut at = 0;
            while at < bytes.len() {
                let end = (at + cuts.next().unwrap_or(1)).min(bytes.len());
                match &mut rest {
                    None => rest = scanner.push(&bytes[at..end]).unwrap(),
                    Some(rest) => rest.extend_from_slice(&bytes[at..end]),
                }
                at = end;
            }
            prop_assert_eq!(rest, Some(b"frames".to_vec()));
        }
    }
}
