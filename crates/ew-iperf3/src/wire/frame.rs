//! JSON on the control connection: four bytes of length, most significant first, and the text
//! without a NUL.

use thiserror::Error;

/// Bytes of a frame's length.
pub const HEADER_BYTES: usize = 4;

/// Parameters may be this long (`MAX_PARAMS_JSON_STRING` of iperf_api.h).
pub const MAX_PARAMS_BYTES: usize = 8192;

/// A client's results may be this long: 256 streams take less than 64 KiB.
pub const MAX_CLIENT_RESULTS_BYTES: usize = 256 * 1024;

/// A server's results may be this long: they may contain its whole output, which grows with streams
/// and intervals.
pub const MAX_SERVER_RESULTS_BYTES: usize = 32 * 1024 * 1024;

/// A length that no frame of its kind can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the peer announced a message of {length} bytes, where at most {limit} are taken")]
pub struct BadLength {
    /// What was announced.
    pub length: u32,
    /// What is taken.
    pub limit: usize,
}

/// The frame's bytes.
#[must_use]
pub fn encode(text: &str) -> Vec<u8> {
    // Nothing we send comes near 4 GiB: parameters and results are bounded.
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let mut frame = length.to_be_bytes().to_vec();
    frame.extend_from_slice(text.as_bytes());
    frame
}

/// How many bytes follow the header. Asked before anything is allocated.
///
/// # Errors
/// When it is more than the limit, or nothing.
pub fn payload_length(header: [u8; HEADER_BYTES], limit: usize) -> Result<usize, BadLength> {
    let length = u32::from_be_bytes(header);
    match usize::try_from(length) {
        Ok(bytes) if bytes > 0 && bytes <= limit => Ok(bytes),
        _ => Err(BadLength { length, limit }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_its_length_and_its_text() {
        assert_eq!(encode("{}"), [0, 0, 0, 2, b'{', b'}']);
        assert_eq!(payload_length([0, 0, 0, 2], MAX_PARAMS_BYTES), Ok(2));
    }

    #[test]
    fn lengths_that_would_overflow_or_exhaust_memory_are_refused() {
        // CVE-2023-38403: 0xffffffff plus one for the NUL was zero bytes of memory.
        for header in [[0xff; 4], [0x80, 0, 0, 0], [0, 0, 0x20, 1], [0; 4]] {
            assert!(payload_length(header, MAX_PARAMS_BYTES).is_err());
        }
    }
}
