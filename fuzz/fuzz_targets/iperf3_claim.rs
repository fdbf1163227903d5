//! See `ew_iperf3::fuzzing::claim`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| ew_iperf3::fuzzing::claim(data));
