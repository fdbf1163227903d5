//! What senders send.

/// Fills with bytes that do not compress, the same ones each time, so that no link, tunnel or NIC
/// that compresses looks faster than it is.
pub fn fill_incompressible(bytes: &mut [u8]) {
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    for chunk in bytes.chunks_mut(8) {
        state = next_random(state);
        chunk.copy_from_slice(&state.to_le_bytes()[..chunk.len()]);
    }
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
    fn every_byte_is_filled() {
        let mut bytes = [0; 1001];
        fill_incompressible(&mut bytes);
        assert!(bytes.windows(8).all(|eight| eight != [0; 8]));
    }
}
