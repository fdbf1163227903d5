//! See `ew_lab::fuzzing::lab_file`.

#![no_main]

use ew_fuzz::{Bound, check};
use libfuzzer_sys::fuzz_target;

const BOUND: Bound = Bound {
    base_bytes: ew_lab::fuzzing::LAB_BYTES,
    ..Bound::USUAL
};

fuzz_target!(|data: &[u8]| check(BOUND, data, ew_lab::fuzzing::lab_file));
