//! A control link over TCP, where the launcher has no byte stream of its own to every host (Slurm):
//! the agent dials back. Both sides prove that they know a secret of this run, which the launcher
//! hands over, and everything that follows is encrypted and authenticated.
//!
//! Noise_NNpsk0 (Noise Protocol Framework, revision 34, section 9) with X25519, ChaCha20-Poly1305
//! and SHA-256. Records are Noise messages after their length, two bytes, most significant first.
//! The caller's third message confirms that it is no replay of another call.

use snow::{Builder, HandshakeState, StatelessTransportState};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use thiserror::Error;

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_SHA256";
const PROLOGUE: &[u8] = b"eastwest control link 1";
/// The position of the secret in the pattern.
const PSK: u8 = 0;
const SECRET_BYTES: usize = 32;
const LENGTH_BYTES: usize = 2;
const TAG_BYTES: usize = 16;
/// No Noise message is longer.
const MAX_RECORD_BYTES: usize = u16::MAX as usize;
/// No call is longer: what comes before anything is proved.
pub const MAX_CALL_BYTES: usize = 512;
/// No name of a caller is longer.
const MAX_NAME_BYTES: usize = 255;

/// What both ends of the run's links know, and nobody else.
#[derive(Clone, PartialEq, Eq)]
pub struct LinkSecret([u8; SECRET_BYTES]);

/// The other side does not know the secret, or somebody changed what it sent.
#[derive(Debug, Error)]
pub enum SealError {
    /// Not 64 hexadecimal digits.
    #[error("the secret of the control link is not {SECRET_BYTES} bytes in hexadecimal")]
    Secret,
    /// Wrong secret, or changed, replayed or cut bytes.
    #[error("the other side of the control link is not authentic ({0})")]
    NotAuthentic(#[from] snow::Error),
    /// Longer than what is taken before anything is proved.
    #[error("a call of {0} bytes; at most {MAX_CALL_BYTES} are taken")]
    LongCall(usize),
    /// A name that no host has.
    #[error("the caller's name is no host name")]
    Name,
}

impl LinkSecret {
    /// Of random bytes.
    #[must_use]
    pub fn new(bytes: [u8; SECRET_BYTES]) -> Self {
        Self(bytes)
    }

    /// For the launcher's channel; never for logs or command lines.
    #[must_use]
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl FromStr for LinkSecret {
    type Err = SealError;

    fn from_str(text: &str) -> Result<Self, SealError> {
        let text = text.trim();
        let mut bytes = [0; SECRET_BYTES];
        if text.len() != 2 * SECRET_BYTES || !text.is_ascii() {
            return Err(SealError::Secret);
        }
        for (position, byte) in bytes.iter_mut().enumerate() {
            let digits = &text[2 * position..2 * position + 2];
            *byte = u8::from_str_radix(digits, 16).map_err(|_| SealError::Secret)?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Debug for LinkSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkSecret(..)")
    }
}

/// The side that dials, before it has an answer.
pub struct Call(HandshakeState);

impl Call {
    /// A call by a host's name, and the record to send.
    ///
    /// # Errors
    /// [`SealError::Name`] for a name that is too long.
    pub fn new(secret: &LinkSecret, name: &str) -> Result<(Self, Vec<u8>), SealError> {
        if name.is_empty() || name.len() > MAX_NAME_BYTES {
            return Err(SealError::Name);
        }
        let mut state = builder(secret)?.build_initiator()?;
        let record = handshake_record(&mut state, name.as_bytes())?;
        Ok((Self(state), record))
    }

    /// The link, and the record that confirms it.
    ///
    /// # Errors
    /// [`SealError::NotAuthentic`] when the other side does not know the secret.
    pub fn answered(mut self, answer: &[u8]) -> Result<(Sealer, Opener, Vec<u8>), SealError> {
        self.0.read_message(answer, &mut [0; MAX_CALL_BYTES])?;
        let (mut sealer, opener) = ends(self.0)?;
        let confirmation = sealer.seal(&[])?;
        Ok((sealer, opener, confirmation))
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Call(..)")
    }
}

/// A call that was taken.
#[derive(Debug)]
pub struct Taken {
    /// The caller as it identifies itself. Proved only when [`Opener::next_record`] gives the
    /// confirmation.
    pub name: String,
    /// The record to send.
    pub answer: Vec<u8>,
    /// What is sent.
    pub sealer: Sealer,
    /// What comes.
    pub opener: Opener,
}

/// Takes a call, given its record without the length.
///
/// # Errors
/// [`SealError`] when the caller does not know the secret.
pub fn take_call(secret: &LinkSecret, record: &[u8]) -> Result<Taken, SealError> {
    if record.len() > MAX_CALL_BYTES {
        return Err(SealError::LongCall(record.len()));
    }
    let mut state = builder(secret)?.build_responder()?;
    let mut name = [0; MAX_CALL_BYTES];
    let length = state.read_message(record, &mut name)?;
    let name = std::str::from_utf8(&name[..length]).map_err(|_| SealError::Name)?;
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.contains(char::is_control) {
        return Err(SealError::Name);
    }
    let name = name.to_owned();
    let answer = handshake_record(&mut state, &[])?;
    let (sealer, opener) = ends(state)?;
    Ok(Taken {
        name,
        answer,
        sealer,
        opener,
    })
}

fn builder(secret: &LinkSecret) -> Result<Builder<'_>, SealError> {
    let builder = Builder::new(PATTERN.parse()?);
    Ok(builder.psk(PSK, &secret.0)?.prologue(PROLOGUE)?)
}

fn handshake_record(state: &mut HandshakeState, payload: &[u8]) -> Result<Vec<u8>, SealError> {
    let mut message = [0; MAX_CALL_BYTES];
    let length = state.write_message(payload, &mut message)?;
    Ok(with_length(&message[..length]))
}

fn ends(state: HandshakeState) -> Result<(Sealer, Opener), SealError> {
    let state = Arc::new(state.into_stateless_transport_mode()?);
    let sealer = Sealer {
        state: Arc::clone(&state),
        sent: 0,
    };
    let opener = Opener {
        state,
        received: 0,
        records: Records::default(),
    };
    Ok((sealer, opener))
}

fn with_length(message: &[u8]) -> Vec<u8> {
    let length = u16::try_from(message.len()).unwrap_or(u16::MAX);
    [&length.to_be_bytes(), message].concat()
}

/// Seals what is sent.
pub struct Sealer {
    state: Arc<StatelessTransportState>,
    sent: u64,
}

impl Sealer {
    /// Records with these bytes; at least one, also for none.
    ///
    /// # Errors
    /// After 2^64 records.
    pub fn seal(&mut self, plain: &[u8]) -> Result<Vec<u8>, SealError> {
        let mut records = Vec::with_capacity(plain.len() + LENGTH_BYTES + TAG_BYTES);
        let mut rest = plain;
        loop {
            let (part, more) = rest.split_at(rest.len().min(MAX_RECORD_BYTES - TAG_BYTES));
            let mut message = vec![0; part.len() + TAG_BYTES];
            let length = self.state.write_message(self.sent, part, &mut message)?;
            self.sent += 1;
            records.extend(with_length(&message[..length]));
            rest = more;
            if rest.is_empty() {
                return Ok(records);
            }
        }
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").field("sent", &self.sent).finish()
    }
}

/// Opens what comes.
pub struct Opener {
    state: Arc<StatelessTransportState>,
    received: u64,
    records: Records,
}

impl Opener {
    /// Takes bytes as they come.
    pub fn push(&mut self, bytes: &[u8]) {
        self.records.push(bytes);
    }

    /// The content of the next whole record, which may be empty. `None`: more bytes are needed.
    ///
    /// # Errors
    /// [`SealError::NotAuthentic`]; nothing that follows can be opened.
    pub fn next_record(&mut self) -> Result<Option<Vec<u8>>, SealError> {
        let Some(record) = self.records.next_record() else {
            return Ok(None);
        };
        let mut plain = vec![0; record.len()];
        let length = self
            .state
            .read_message(self.received, &record, &mut plain)?;
        self.received += 1;
        plain.truncate(length);
        Ok(Some(plain))
    }
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener")
            .field("received", &self.received)
            .finish_non_exhaustive()
    }
}

/// Cuts a stream into records. Holds at most one record and what was pushed last.
#[derive(Debug, Default)]
pub struct Records {
    bytes: Vec<u8>,
}

impl Records {
    /// Takes bytes as they come.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole record, without its length.
    pub fn next_record(&mut self) -> Option<Vec<u8>> {
        let (length, rest) = self.bytes.split_first_chunk::<LENGTH_BYTES>()?;
        let record = rest.get(..u16::from_be_bytes(*length).into())?.to_vec();
        self.bytes.drain(..LENGTH_BYTES + record.len());
        Some(record)
    }

    /// What follows the handshake's records is the link's.
    pub fn drain_into(&mut self, opener: &mut Opener) {
        opener.push(&std::mem::take(&mut self.bytes));
    }

    /// How long the record at hand will be, once that is known.
    #[must_use]
    pub fn announced_bytes(&self) -> Option<usize> {
        let length = self.bytes.first_chunk::<LENGTH_BYTES>()?;
        Some(u16::from_be_bytes(*length).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn secret(byte: u8) -> LinkSecret {
        LinkSecret::new([byte; SECRET_BYTES])
    }

    fn record(bytes: &[u8]) -> Vec<u8> {
        let mut records = Records::default();
        records.push(bytes);
        records.next_record().unwrap()
    }

    /// Both ends of a link; the confirmation has been taken.
    fn link() -> ((Sealer, Opener), (Sealer, Opener)) {
        let (call, first) = Call::new(&secret(7), "n1").unwrap();
        let taken = take_call(&secret(7), &record(&first)).unwrap();
        assert_eq!(taken.name, "n1");
        let (sealer, opener, confirmation) = call.answered(&record(&taken.answer)).unwrap();
        let mut theirs = taken.opener;
        theirs.push(&confirmation);
        assert_eq!(theirs.next_record().unwrap(), Some(Vec::new()));
        ((sealer, opener), (taken.sealer, theirs))
    }

    #[test]
    fn a_secret_travels_as_hexadecimal_and_is_not_shown() {
        let text = secret(171).to_hex();
        assert_eq!(text.parse::<LinkSecret>().unwrap(), secret(171));
        for wrong in ["", "ab", &"g".repeat(64), &"é".repeat(32), &"a".repeat(66)] {
            assert!(wrong.parse::<LinkSecret>().is_err(), "{wrong}");
        }
        assert!(!format!("{:?}", secret(171)).contains("ab"));
    }

    #[test]
    fn who_does_not_know_the_secret_gets_nowhere_on_either_side() {
        let (call, first) = Call::new(&secret(1), "n1").unwrap();
        assert!(take_call(&secret(2), &record(&first)).is_err());
        // A controller that does not know it cannot even answer; one that answers another call can.
        let (_, other) = Call::new(&secret(1), "n2").unwrap();
        let other = take_call(&secret(1), &record(&other)).unwrap();
        assert!(call.answered(&record(&other.answer)).is_err());
    }

    #[test]
    fn a_call_that_is_replayed_is_never_confirmed() {
        let (call, first) = Call::new(&secret(1), "n1").unwrap();
        let first_taken = take_call(&secret(1), &record(&first)).unwrap();
        let (_, _, confirmation) = call.answered(&record(&first_taken.answer)).unwrap();
        let mut replayed = take_call(&secret(1), &record(&first)).unwrap();
        replayed.opener.push(&confirmation);
        assert!(replayed.opener.next_record().is_err());
    }

    #[test]
    fn names_and_calls_have_bounds() {
        assert!(Call::new(&secret(1), "").is_err());
        assert!(Call::new(&secret(1), &"n".repeat(256)).is_err());
        let (_, longest) = Call::new(&secret(1), &"n".repeat(255)).unwrap();
        assert!(take_call(&secret(1), &record(&longest)).is_ok());
        assert!(take_call(&secret(1), &vec![0; MAX_CALL_BYTES + 1]).is_err());
    }

    proptest! {
        #[test]
        fn what_is_sealed_is_opened_whole_and_in_order(
            sizes in prop::collection::vec(0_usize..200_000, 1..5), cut in 1_usize..70_000,
        ) {
            let ((mut sealer, _), (_, mut opener)) = link();
            let (mut sent, mut opened) = (Vec::new(), Vec::new());
            for (number, size) in sizes.into_iter().enumerate() {
                let plain = vec![number as u8; size];
                let sealed = sealer.seal(&plain).unwrap();
                sent.extend(plain);
                for part in sealed.chunks(cut) {
                    opener.push(part);
                    while let Some(plain) = opener.next_record().unwrap() {
                        opened.extend(plain);
                    }
                }
            }
            prop_assert!(sent == opened);
        }

        #[test]
        fn a_changed_byte_is_noticed(position in 2_usize..60, bit in 0_u8..8) {
            let ((mut sealer, _), (_, mut opener)) = link();
            let mut sealed = sealer.seal(&[5; 42]).unwrap();
            sealed[position] ^= 1 << bit;
            opener.push(&sealed);
            prop_assert!(opener.next_record().is_err());
        }

        #[test]
        fn whatever_calls_is_refused_or_taken(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            prop_assert!(take_call(&secret(3), &bytes).is_err());
        }
    }
}
