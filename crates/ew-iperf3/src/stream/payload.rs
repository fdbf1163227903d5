//! What senders send.

use ew_model::content::fill_incompressible;

/// Bytes that do not compress, or iperf2's pattern of digits.
pub(super) fn payload(length: usize, repeating: bool) -> Vec<u8> {
    if repeating {
        return (b'0'..=b'9').cycle().take(length).collect();
    }
    let mut bytes = vec![0; length];
    fill_incompressible(&mut bytes);
    bytes
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
