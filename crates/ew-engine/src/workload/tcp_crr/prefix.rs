//! How a stream's requests begin.

/// Length of a cookie in a request that is long enough.
const COOKIE_BYTES: usize = 8;

/// The first bytes of a stream's requests.
pub(super) fn prefix(cookie: u64, request_bytes: usize) -> Vec<u8> {
    let length = request_bytes.min(COOKIE_BYTES);
    cookie.to_be_bytes()[..length].to_vec()
}
