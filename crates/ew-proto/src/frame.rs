//! Frames: a big-endian `u32` length and that many bytes of postcard
//! (<https://postcard.jamesmunns.com/wire-format>).

use crate::budget::{Budget, Charged};
use crate::limits::{MAX_FRAME_BYTES, Message};
use thiserror::Error;

const HEADER_BYTES: usize = 4;

/// What a message may take in memory before it is a message: this much, and so many times its
/// length. The lists of honest messages take less than ten times their length. Lists that grow take
/// up to three times what is charged for a moment, so the peak stays below 64 times the length.
const MEMORY_BASE_BYTES: usize = 256 * 1024;
const MEMORY_PER_BYTE: usize = 20;

/// Why bytes are not a frame, or a message does not fit one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The peer announced more than the limit of this kind of message.
    #[error(
        "the peer announced a message of {announced} bytes, over the limit of {limit}: it does not speak this protocol"
    )]
    Oversized {
        /// The length field's value.
        announced: u64,
        /// Its max value.
        limit: usize,
    },
    /// The peer announced nothing.
    #[error("the peer announced a message of no bytes: it does not speak this protocol")]
    Empty,
    /// The bytes are no message.
    #[error(
        "the peer sent a message that cannot be read ({detail}): it does not speak this protocol"
    )]
    Malformed {
        /// The decoder's words.
        detail: String,
    },
    /// The message ended before its frame did.
    #[error(
        "the peer sent a message with {surplus} surplus bytes: it does not speak this protocol"
    )]
    Trailing {
        /// How many.
        surplus: usize,
    },
    /// The message is short for what it would take in memory.
    #[error(
        "the peer sent a message of {size} bytes that would take much more memory: it does not speak this protocol"
    )]
    TooDense {
        /// Its length.
        size: usize,
    },
    /// Our own message is longer than the limit.
    #[error(
        "a message of {size} bytes is over the limit of {limit}: use fewer rounds or hosts per stage, or longer intervals"
    )]
    TooLarge {
        /// Its length.
        size: usize,
        /// What it may be.
        limit: usize,
    },
    /// Our own message cannot be written.
    #[error("a message cannot be written: {detail}")]
    Unwritable {
        /// The encoder's words.
        detail: String,
    },
}

/// One message as a frame.
///
/// # Errors
/// [`FrameError::TooLarge`] above the limit of its kind; [`FrameError::Unwritable`] for types
/// postcard has no form for.
pub fn encode<T: Message>(message: &T) -> Result<Vec<u8>, FrameError> {
    encode_within(message, MAX_FRAME_BYTES)
}

/// As [`encode`], of at most `limit` bytes.
pub(crate) fn encode_within<T: Message>(message: &T, limit: usize) -> Result<Vec<u8>, FrameError> {
    let mut frame = postcard::to_extend(message, vec![0; HEADER_BYTES]).map_err(|error| {
        FrameError::Unwritable {
            detail: error.to_string(),
        }
    })?;
    let size = frame.len() - HEADER_BYTES;
    let kind = frame.get(HEADER_BYTES).copied().unwrap_or(0);
    let limit = limit.min(T::limit_bytes(kind));
    if size > limit {
        return Err(FrameError::TooLarge { size, limit });
    }
    let length = u32::try_from(size).map_err(|_| FrameError::TooLarge { size, limit })?;
    frame[..HEADER_BYTES].copy_from_slice(&length.to_be_bytes());
    Ok(frame)
}

/// Cuts a byte stream into messages.
///
/// Holds at most one incomplete frame and what was pushed since the last `None` of
/// [`FrameDecoder::next`], so a caller that drains it after each push bounds it at
/// [`MAX_FRAME_BYTES`] plus one piece. After an error it stays in error: a stream that lost its
/// place is of no use.
#[derive(Clone, Debug, Default)]
pub struct FrameDecoder {
    buffer: Vec<u8>,
    consumed: usize,
    failed: Option<FrameError>,
}

impl FrameDecoder {
    /// An empty decoder.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        self.compact();
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete message; `None` until more bytes come.
    ///
    /// # Errors
    /// [`FrameError`] for a length of zero or above the limit of the message's kind (seen before
    /// anything is allocated for it), bytes that are no `T`, and bytes left over behind it. Every
    /// later call returns the same error.
    #[expect(
        clippy::should_implement_trait,
        reason = "generic in the message, so no Iterator"
    )]
    pub fn next<T: Message>(&mut self) -> Result<Option<T>, FrameError> {
        self.next_within(T::limit_bytes)
    }

    /// As [`FrameDecoder::next`], with narrower limits of the kinds of messages.
    pub(crate) fn next_within<T: Message>(
        &mut self,
        limit_bytes: impl Fn(u8) -> usize,
    ) -> Result<Option<T>, FrameError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let result = self.decode(limit_bytes);
        if let Err(error) = &result {
            self.failed = Some(error.clone());
            self.buffer = Vec::new();
            self.consumed = 0;
        }
        result
    }

    /// Whether a frame has begun and not ended.
    #[must_use]
    pub fn is_inside_frame(&self) -> bool {
        self.consumed < self.buffer.len()
    }

    fn decode<T: Message>(
        &mut self,
        limit_bytes: impl Fn(u8) -> usize,
    ) -> Result<Option<T>, FrameError> {
        let pending = &self.buffer[self.consumed..];
        let Some((header, body)) = pending.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let announced = u32::from_be_bytes(*header);
        check_length(announced, MAX_FRAME_BYTES)?;
        let Some(kind) = body.first() else {
            return Ok(None);
        };
        let length = check_length(announced, limit_bytes(*kind))?;
        let Some(body) = body.get(..length) else {
            return Ok(None);
        };
        let message = decode_body(body)?;
        self.consumed += HEADER_BYTES + length;
        Ok(Some(message))
    }

    fn compact(&mut self) {
        if self.consumed == self.buffer.len() {
            self.buffer.clear();
            // A rare large frame must not hold its memory for the rest of the session.
            self.buffer.shrink_to(64 * 1024);
        } else if self.consumed > 0 {
            self.buffer.drain(..self.consumed);
        }
        self.consumed = 0;
    }
}

fn check_length(announced: u32, limit: usize) -> Result<usize, FrameError> {
    match usize::try_from(announced) {
        Ok(0) => Err(FrameError::Empty),
        Ok(length) if length <= limit => Ok(length),
        _ => Err(FrameError::Oversized {
            announced: announced.into(),
            limit,
        }),
    }
}

fn decode_body<T: Message>(body: &[u8]) -> Result<T, FrameError> {
    let malformed = |error: postcard::Error| FrameError::Malformed {
        detail: error.to_string(),
    };
    let budget = Budget::new(MEMORY_BASE_BYTES + MEMORY_PER_BYTE * body.len());
    let mut bytes = postcard::Deserializer::from_bytes(body);
    let message =
        T::deserialize(Charged::new(&mut bytes, &budget)).map_err(|error| {
            match budget.is_spent() {
                true => FrameError::TooDense { size: body.len() },
                false => malformed(error),
            }
        })?;
    let rest = bytes.finalize().map_err(malformed)?;
    if rest.is_empty() {
        Ok(message)
    } else {
        Err(FrameError::Trailing {
            surplus: rest.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ToAgent, ToController};
    use proptest::prelude::*;

    fn framed(body: &[u8]) -> Vec<u8> {
        let mut frame = (body.len() as u32).to_be_bytes().to_vec();
        frame.extend_from_slice(body);
        frame
    }

    #[test]
    fn messages_come_back_however_the_stream_is_cut() {
        let messages = [
            ToAgent::Heartbeat,
            ToAgent::ClockProbe { sequence: 300 },
            ToAgent::Goodbye,
        ];
        let stream: Vec<u8> = messages.iter().flat_map(|m| encode(m).unwrap()).collect();
        for piece in 1..=stream.len() {
            let mut decoder = FrameDecoder::new();
            let mut got: Vec<ToAgent> = vec![];
            for bytes in stream.chunks(piece) {
                decoder.push(bytes);
                while let Some(message) = decoder.next().unwrap() {
                    got.push(message);
                }
            }
            assert_eq!(got, messages);
            assert!(!decoder.is_inside_frame());
        }
    }

    #[test]
    fn a_truncated_frame_waits() {
        let frame = encode(&ToAgent::ClockProbe { sequence: 300 }).unwrap();
        for end in 0..frame.len() {
            let mut decoder = FrameDecoder::new();
            decoder.push(&frame[..end]);
            assert_eq!(decoder.next::<ToAgent>(), Ok(None));
            assert_eq!(decoder.is_inside_frame(), end > 0);
        }
    }

    #[test]
    fn an_oversized_length_is_an_error_before_its_bytes_come_and_stays_one() {
        let mut decoder = FrameDecoder::new();
        decoder.push(&(MAX_FRAME_BYTES as u32 + 1).to_be_bytes());
        let error = FrameError::Oversized {
            announced: MAX_FRAME_BYTES as u64 + 1,
            limit: MAX_FRAME_BYTES,
        };
        assert_eq!(decoder.next::<ToAgent>(), Err(error.clone()));
        decoder.push(&encode(&ToAgent::Heartbeat).unwrap());
        assert_eq!(decoder.next::<ToAgent>(), Err(error));
        assert_eq!(decoder.buffer.capacity(), 0);
    }

    #[test]
    fn the_limit_itself_is_no_error() {
        let mut decoder = FrameDecoder::new();
        decoder.push(&(MAX_FRAME_BYTES as u32).to_be_bytes());
        assert_eq!(decoder.next::<ToAgent>(), Ok(None));
    }

    #[test]
    fn empty_malformed_and_surplus_are_errors() {
        for (bytes, expected) in [
            (framed(&[]), "no bytes"),
            (framed(&[0xff]), "cannot be read"),
            (framed(&[5, 1, 2, 3]), "3 surplus"),
        ] {
            let mut decoder = FrameDecoder::new();
            decoder.push(&bytes);
            let words = decoder.next::<ToAgent>().unwrap_err().to_string();
            assert!(words.contains(expected), "{words}");
        }
    }

    #[test]
    fn an_announced_element_count_allocates_nothing() {
        // A sequence that announces 2^63 elements and holds one: memory for the announcement would
        // abort the test.
        let count = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        for start in [&[4, 0, 0][..], &[8], &[9]] {
            let body = [start, &count, &[0x01]].concat();
            let mut decoder = FrameDecoder::new();
            decoder.push(&framed(&body));
            assert!(matches!(
                decoder.next::<ToController>(),
                Err(FrameError::Malformed { .. })
            ));
        }
    }

    #[test]
    fn a_message_over_the_limit_is_not_sent() {
        let message = ToController::Fault {
            message: "x".repeat(MAX_FRAME_BYTES),
        };
        assert!(matches!(encode(&message), Err(FrameError::TooLarge { .. })));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut decoder = FrameDecoder::new();
            decoder.push(&bytes);
            while let Ok(Some(message)) = decoder.next::<ToController>() {
                prop_assert!(encode(&message).is_ok());
            }
        }
    }
}
