//! What senders send.

/// Bytes that do not compress, or iperf2's pattern of digits.
pub(super) fn payload(length: usize, repeating: bool) -> Vec<u8> {
    if repeating {
        return (b'0'..=b'9').cycle().take(length).collect();
    }
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut bytes = vec![0; length];
    for chunk in bytes.chunks_mut(8) {
        state = next_random(state);
        chunk.copy_from_slice(&state.to_le_bytes()[..chunk.len()]);
    }
    bytes
}

/// Marsaglia's xorshift64 (Journal of Statistical Software 8(14), 2003).
fn next_random(mut state: u64) -> u64 {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_as_long_as_asked_for() {
        assert_eq!(payload(12, true), b"012345678901");
        let random = payload(1001, false);
        assert_eq!(random.len(), 1001);
        assert!(random.windows(8).all(|eight| eight != [0; 8]));
    }
}
