//! A data connection's first bytes, made by hand: so that the engine's layout cannot change
//! unnoticed.

use ew_proto::message::{Role, RunToken};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

pub(crate) const HELLO_BYTES: usize = 72;

/// Of stream 0 of a flow of stage 1, round 2, between 127.0.0.1 and itself.
pub(crate) fn hello(token: RunToken, flow: u32, role: Role) -> Vec<u8> {
    let mut asked = Vec::new();
    for number in [1, 2, flow] {
        asked.extend(u32::to_be_bytes(number));
    }
    let role = match role {
        Role::Send => 1,
        Role::Receive => 2,
    };
    asked.extend([0, 0, role, 0]);
    for _ in ["opener", "acceptor"] {
        asked.extend([0; 10]);
        asked.extend([0xff, 0xff, 127, 0, 0, 1]);
    }
    let magic = b"ewdata\x00\x02";
    [magic, &code(token, &[b"hello", magic, &asked])[..], &asked].concat()
}

/// The code over these parts.
pub(crate) fn code(token: RunToken, parts: &[&[u8]]) -> [u8; 16] {
    let mut mac = Hmac::<Sha256>::new_from_slice(&token.0).unwrap();
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes()[..16].try_into().unwrap()
}
