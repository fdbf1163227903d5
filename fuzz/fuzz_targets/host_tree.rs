//! See `ew_telemetry::fuzzing::host_tree`.

#![no_main]

use ew_fuzz::{Bound, check_tree};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| check_tree(Bound::USUAL, data, ew_telemetry::fuzzing::host_tree));
