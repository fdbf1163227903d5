//! Proof of identity: a user's name, password and the time, encrypted with the server's RSA key.
//!
//! It keeps unauthenticated peers from using a server. It protects nothing else: whoever reads
//! along can send the same token again for as long as the clocks may differ, and neither control
//! nor data are encrypted.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use rsa::pkcs1::{DecodeRsaPrivateKey, DecodeRsaPublicKey};
use rsa::pkcs8::{DecodePrivateKey, DecodePublicKey};
use rsa::{Oaep, Pkcs1v15Encrypt, RsaPrivateKey, RsaPublicKey};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Largest key file and token that are read, bytes.
const MAX_KEY_BYTES: u64 = 64 * 1024;
/// A list of ten thousand users is shorter.
const MAX_USERS_BYTES: u64 = 1024 * 1024;

/// How far a client's clock may be off when nothing else is set, seconds.
pub const DEFAULT_SKEW_S: u64 = 10;

/// Keys and users that cannot be used.
#[derive(Debug, Error)]
pub enum AuthError {
    /// A file.
    #[error("cannot read {path}: {error}")]
    File {
        /// Which.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// A key.
    #[error("{path} contains no {kind} in PEM form (as `openssl` writes it, without a passphrase)")]
    Key {
        /// Which.
        path: PathBuf,
        /// What was expected.
        kind: &'static str,
    },
    /// Name and password are longer than the key can encrypt.
    #[error("user name and password are too long for this RSA key")]
    TooLong,
    /// No random bytes.
    #[error("the system has no random bytes: {0}")]
    Random(#[from] getrandom::Error),
}

/// How a token is padded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Padding {
    /// RSA-OAEP with SHA-1: iperf3 since 3.17.
    #[default]
    Oaep,
    /// PKCS #1 v1.5: iperf3 before 3.17, and `--use-pkcs1-padding` since.
    Pkcs1,
}

/// A client that proves who it is.
#[derive(Clone, Debug)]
pub struct ClientAuth {
    user: String,
    password: String,
    key: RsaPublicKey,
    padding: Padding,
}

impl ClientAuth {
    /// Reads the server's public key.
    ///
    /// # Errors
    /// When the file cannot be read or contains no public key.
    pub fn new(
        user: &str,
        password: &str,
        public_key: &Path,
        padding: Padding,
    ) -> Result<Self, AuthError> {
        let pem = read_text(public_key, MAX_KEY_BYTES)?;
        let key = RsaPublicKey::from_public_key_pem(&pem)
            .or_else(|_| RsaPublicKey::from_pkcs1_pem(&pem))
            .map_err(|_| AuthError::Key {
                path: public_key.to_owned(),
                kind: "public RSA key",
            })?;
        Ok(Self {
            user: user.to_owned(),
            password: password.to_owned(),
            key,
            padding,
        })
    }

    /// The token for this second, in Base64 on one line.
    ///
    /// # Errors
    /// When name and password are too long for the key.
    pub fn token(&self, now_unix_s: u64) -> Result<String, AuthError> {
        let text = format!(
            "user: {}\npwd:  {}\nts:   {now_unix_s}",
            self.user, self.password
        );
        let mut random = random()?;
        let encrypted = match self.padding {
            Padding::Oaep => self
                .key
                .encrypt(&mut random, Oaep::<Sha1>::new(), text.as_bytes()),
            Padding::Pkcs1 => self
                .key
                .encrypt(&mut random, Pkcs1v15Encrypt, text.as_bytes()),
        };
        let encrypted = encrypted.map_err(|_| AuthError::TooLong)?;
        Ok(STANDARD.encode(encrypted))
    }
}

/// A server that lets only its users in.
#[derive(Clone, Debug)]
pub struct ServerAuth {
    key: RsaPrivateKey,
    users: PathBuf,
    skew_s: u64,
    padding: Padding,
}

/// What a token amounts to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its identity as it reports it; empty when it could not be read.
    pub user: String,
    /// Whether name, password and time are right.
    pub believed: bool,
}

impl ServerAuth {
    /// Reads the private key and checks the list of users, which is read again for every client.
    ///
    /// # Errors
    /// When a file cannot be read or contains no private key.
    pub fn new(
        private_key: &Path,
        users: &Path,
        skew_s: u64,
        padding: Padding,
    ) -> Result<Self, AuthError> {
        let pem = read_text(private_key, MAX_KEY_BYTES)?;
        let key = RsaPrivateKey::from_pkcs8_pem(&pem)
            .or_else(|_| RsaPrivateKey::from_pkcs1_pem(&pem))
            .map_err(|_| AuthError::Key {
                path: private_key.to_owned(),
                kind: "private RSA key",
            })?;
        read_text(users, MAX_USERS_BYTES)?;
        Ok(Self {
            key,
            users: users.to_owned(),
            skew_s,
            padding,
        })
    }

    /// Checks a client's token.
    ///
    /// # Errors
    /// When the list of users cannot be read any more, or the system has no random bytes.
    pub fn check(&self, token: &str, now_unix_s: u64) -> Result<Identity, AuthError> {
        let other = Identity {
            user: String::new(),
            believed: false,
        };
        let Some(text) = self.decrypt(token)? else {
            return Ok(other);
        };
        let Some(claim) = Claim::parse(&text) else {
            return Ok(other);
        };
        let users = read_text(&self.users, MAX_USERS_BYTES)?;
        let is_fresh = claim.unix_s.abs_diff(now_unix_s) <= self.skew_s;
        Ok(Identity {
            believed: is_user(&users, claim.user, claim.password) && is_fresh,
            user: claim.user.to_owned(),
        })
    }

    fn decrypt(&self, token: &str) -> Result<Option<String>, AuthError> {
        let Ok(encrypted) = STANDARD.decode(token.trim()) else {
            return Ok(None);
        };
        let mut random = random()?;
        let decrypted = match self.padding {
            Padding::Oaep => {
                let oaep = Oaep::<Sha1>::new();
                self.key.decrypt_blinded(&mut random, oaep, &encrypted)
            }
            Padding::Pkcs1 => self
                .key
                .decrypt_blinded(&mut random, Pkcs1v15Encrypt, &encrypted),
        };
        Ok(decrypted.ok().and_then(|text| String::from_utf8(text).ok()))
    }
}

/// A token's plain text.
struct Claim<'text> {
    user: &'text str,
    password: &'text str,
    unix_s: u64,
}

impl<'text> Claim<'text> {
    fn parse(text: &'text str) -> Option<Self> {
        let mut lines = text.trim_end_matches('\0').split('\n');
        let user = lines.next()?.strip_prefix("user:")?.trim_start();
        let password = lines.next()?.strip_prefix("pwd:")?.trim_start();
        let unix_s = lines.next()?.strip_prefix("ts:")?.trim().parse().ok()?;
        (!user.is_empty() && lines.next().is_none()).then_some(Self {
            user,
            password,
            unix_s,
        })
    }
}

/// Name and password of a token's plain text.
pub(crate) fn read_claim(text: &str) -> Option<(&str, &str)> {
    Claim::parse(text).map(|claim| (claim.user, claim.password))
}

/// Whether a line of the list is `user,sha256("{user}password")` in hexadecimal digits.
fn is_user(users: &str, user: &str, password: &str) -> bool {
    let mut wanted = String::new();
    for byte in Sha256::digest(format!("{{{user}}}{password}")) {
        // Writing to a string cannot fail.
        let _ = write!(wanted, "{byte:02x}");
    }
    let lines = users.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.trim_end().split_once(','))
        .any(|(name, hash)| name == user && hash.eq_ignore_ascii_case(&wanted))
}

fn read_text(path: &Path, limit: u64) -> Result<String, AuthError> {
    use std::io::Read;
    let read = || -> io::Result<String> {
        let mut text = String::new();
        let file = std::fs::File::open(path)?;
        file.take(limit).read_to_string(&mut text)?;
        Ok(text)
    };
    read().map_err(|error| AuthError::File {
        path: path.to_owned(),
        error,
    })
}

fn random() -> Result<ChaCha20Rng, getrandom::Error> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)?;
    Ok(ChaCha20Rng::from_seed(seed))
}
