//! See `ew_plan::fuzzing::scenario`.

#![no_main]

use ew_fuzz::{Bound, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| check(Bound::DOCUMENT_TREE, data, ew_plan::fuzzing::scenario));
