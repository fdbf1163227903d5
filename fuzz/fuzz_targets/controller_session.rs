//! See `ew_proto::fuzzing::controller_session`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| ew_proto::fuzzing::controller_session(data));
