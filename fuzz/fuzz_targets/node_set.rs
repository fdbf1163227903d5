//! See `ew_plan::fuzzing::node_set`.

#![no_main]

use ew_fuzz::{Bound, check};
use libfuzzer_sys::fuzz_target;

const BOUND: Bound = Bound {
    base_bytes: ew_plan::fuzzing::NODES_BYTES,
    ..Bound::USUAL
};

fuzz_target!(|data: &[u8]| check(BOUND, data, ew_plan::fuzzing::node_set));
