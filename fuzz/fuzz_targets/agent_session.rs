//! See `ew_proto::fuzzing::agent_session`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| ew_proto::fuzzing::agent_session(data));
