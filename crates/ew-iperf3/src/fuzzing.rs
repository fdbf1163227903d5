//! What the fuzz targets run, and the tests that replay their corpus: one function per target, each
//! panics when a promise is broken and returns otherwise.

use crate::auth::read_claim;
use crate::wire::datagram::{Arrivals, Header, LONG_HEADER_BYTES, is_reply};
use crate::wire::frame::{HEADER_BYTES, MAX_PARAMS_BYTES, payload_length};
use crate::wire::params::{MAX_BLOCK_BYTES, MAX_STREAMS, MAX_WINDOW_BYTES, Params};
use crate::wire::results::Results;
use crate::wire::state::State;

/// A control connection's bytes: a state, or a frame of parameters. No length beyond the limit is
/// believed.
pub fn control(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    if let Some(state) = State::from_wire(*first) {
        assert_eq!(state.to_wire(), *first);
    }
    let Some((header, text)) = rest.split_first_chunk::<HEADER_BYTES>() else {
        return;
    };
    if let Ok(length) = payload_length(*header, MAX_PARAMS_BYTES) {
        assert!((1..=MAX_PARAMS_BYTES).contains(&length));
        params(&text[..length.min(text.len())]);
    }
}

/// Parameters keep to their bounds, and are the same after being written and read again.
pub fn params(data: &[u8]) {
    let Ok(params) = Params::parse(data) else {
        return;
    };
    assert!((1..=MAX_STREAMS).contains(&params.streams));
    assert!((1..=MAX_BLOCK_BYTES).contains(&params.block_bytes));
    assert!(params.window_bytes <= MAX_WINDOW_BYTES);
    assert_eq!(params.problem(), None);
    assert_eq!(Params::parse(params.to_json().as_bytes()), Ok(params));
}

/// Results name no more streams than a test has, and what was read can be written and read again.
pub fn results(data: &[u8]) {
    let Ok(results) = Results::parse(data) else {
        return;
    };
    assert!(results.streams.len() <= 2 * MAX_STREAMS);
    let again = Results::parse(results.to_json().as_bytes());
    assert!(again.is_ok_and(|again| again.streams.len() == results.streams.len()));
}

/// Datagrams, each of the length in its first byte: no count of them is more than was sent, or
/// not a number.
pub fn datagrams(data: &[u8]) {
    let mut rest = data;
    let mut arrivals = [Arrivals::default(), Arrivals::default()];
    let mut now_us = 0_u64;
    while let Some((length, bytes)) = rest.split_first() {
        let length = usize::from(*length) % (2 * LONG_HEADER_BYTES);
        let (datagram, later) = bytes.split_at(length.min(bytes.len()));
        now_us = now_us.wrapping_mul(31).wrapping_add(length as u64);
        for (long, arrivals) in [false, true].into_iter().zip(&mut arrivals) {
            if let Some(header) = Header::read(long, datagram) {
                arrivals.note(header, now_us);
            }
            assert!(arrivals.lost <= arrivals.packets);
            assert!(arrivals.jitter_s.is_finite() && arrivals.jitter_s >= 0.0);
        }
        let _ = is_reply(datagram);
        rest = later;
    }
}

/// A decrypted token: name and password are parts of it.
pub fn claim(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Some((user, password)) = read_claim(text) {
        assert!(!user.is_empty() && text.contains(user) && text.contains(password));
    }
}
