//! The 37 bytes by which a server shows which client a connection belongs to.

use std::fmt;

/// Bytes of a cookie on the wire: 36 characters and a NUL (`COOKIE_SIZE` of iperf.h).
pub const COOKIE_BYTES: usize = 37;

/// The characters of iperf3's cookies.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// A client's cookie: sent first on its control connection and on each of its TCP streams.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cookie([u8; COOKIE_BYTES]);

impl Cookie {
    /// 180 random bits.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn draw() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; COOKIE_BYTES];
        getrandom::fill(&mut bytes[..COOKIE_BYTES - 1])?;
        for byte in &mut bytes[..COOKIE_BYTES - 1] {
            *byte = ALPHABET[usize::from(*byte) % ALPHABET.len()];
        }
        Ok(Self(bytes))
    }

    /// A peer's cookie, whatever it is made of: it is only ever compared.
    #[must_use]
    pub fn from_wire(bytes: [u8; COOKIE_BYTES]) -> Self {
        Self(bytes)
    }

    /// As sent.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; COOKIE_BYTES] {
        &self.0
    }
}

impl fmt::Display for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.split(|byte| *byte == 0).next().unwrap_or_default();
        for byte in text {
            write!(f, "{}", byte.escape_ascii())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cookie({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_drawn_from_iperf3s_alphabet_and_end_with_nul() {
        let (one, other) = (Cookie::draw().unwrap(), Cookie::draw().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.as_bytes()[36], 0);
        assert_eq!(one.to_string().len(), 36);
        assert!(one.as_bytes()[..36].iter().all(|b| ALPHABET.contains(b)));
    }

    #[test]
    fn a_peers_cookie_is_shown_without_control_characters() {
        let mut bytes = [b'a'; COOKIE_BYTES];
        bytes[1] = 0x1b;
        bytes[3] = 0;
        assert_eq!(Cookie::from_wire(bytes).to_string(), "a\\x1ba");
    }
}
