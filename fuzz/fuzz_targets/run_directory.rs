//! See `ew_controller::fuzzing::run_directory`. Half of the mutations are of values in its JSON.

#![no_main]

use ew_fuzz::{Bound, check_tree, damaged};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

const BOUND: Bound = Bound {
    base_bytes: ew_controller::fuzzing::PAGE_BYTES,
    ..Bound::DOCUMENT_TREE
};

fuzz_target!(|data: &[u8]| {
    check_tree(BOUND, data, ew_controller::fuzzing::run_directory);
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let damaged = (seed % 2 == 0).then(|| damaged(&data[..size], seed));
    match damaged
        .flatten()
        .filter(|damaged| damaged.len() <= max_size)
    {
        Some(damaged) => {
            data[..damaged.len()].copy_from_slice(&damaged);
            damaged.len()
        }
        None => fuzzer_mutate(data, size, max_size),
    }
});
