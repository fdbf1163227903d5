//! Pages for a browser: a run as it goes (`run --web`), and stored runs (`eastwest serve`).
//!
//! Whoever knows the token of a path may read; nobody else is served anything.

mod live;
mod stored;

pub(crate) use live::LivePage;
pub(crate) use stored::StoredRuns;

use crate::exit::Failure;
use crate::http::{Answer, Endpoint};
use anyhow::anyhow;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// What `--web` and `serve` listen at by default: this machine alone, any free port.
pub(crate) const USUAL_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// 128 random bits as 32 hexadecimal digits.
#[derive(Clone)]
pub(crate) struct Token(String);

impl Token {
    /// # Errors
    /// Where the system has no random numbers.
    pub(crate) fn random() -> Result<Self, Failure> {
        let mut bytes = [0u8; 16];
        getrandom::fill(&mut bytes)
            .map_err(|error| Failure::failed(anyhow!("no random token: {error}")))?;
        Ok(Self(
            bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        ))
    }

    /// What is behind `/TOKEN/`. `None` without the token. Takes as long for any wrong one.
    fn opens<'p>(&self, path: &'p str) -> Option<&'p str> {
        let (given, rest) = path.strip_prefix('/')?.split_once('/')?;
        let (given, own) = (given.as_bytes(), self.0.as_bytes());
        let differing = given.iter().zip(own).fold(0, |sum, (a, b)| sum | (a ^ b));
        (given.len() == own.len() && differing == 0).then_some(rest)
    }

    /// The address to open.
    pub(crate) fn url(&self, endpoint: &Endpoint) -> String {
        format!("http://{}/{}/", endpoint.address(), self.0)
    }
}

/// No help on what there would be with it.
fn without_token() -> Answer {
    Answer::not_found("not here; open the address that eastwest printed, with its token")
}

/// The value of `name=value` among `a=b&c=d`, percent-decoded.
fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, _)| *key == name)?;
    decoded(value)
}

/// `None` where it is no text.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        rest = others;
        match first {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits = std::str::from_utf8(others.get(..2)?).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                rest = &others[2..];
            }
            other => bytes.push(*other),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_opens() {
        let token = Token("ab12".into());
        assert_eq!(token.opens("/ab12/state"), Some("state"));
        assert_eq!(token.opens("/ab12/"), Some(""));
        for wrong in [
            "/",
            "/ab12",
            "/ab1/state",
            "/ab123/",
            "/ab13/",
            "/x/ab12/",
            "ab12/",
        ] {
            assert_eq!(token.opens(wrong), None, "{wrong}");
        }
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert!(one.0.len() == 32 && one.0 != other.0);
    }

    #[test]
    fn parameters_are_decoded() {
        let query = "base=a%20b&other=c%2Bd+e&bad=%zz&empty=";
        assert_eq!(parameter(query, "base").as_deref(), Some("a b"));
        assert_eq!(parameter(query, "other").as_deref(), Some("c+d e"));
        assert_eq!(parameter(query, "empty").as_deref(), Some(""));
        assert_eq!(parameter(query, "bad"), None);
        assert_eq!(parameter(query, "none"), None);
    }
}
