//! See `ew_analyze_storage::fuzzing::testdfsio_figures`.

#![no_main]

use ew_fuzz::{Bound, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| check(Bound::USUAL, data, ew_analyze_storage::fuzzing::testdfsio_figures));
