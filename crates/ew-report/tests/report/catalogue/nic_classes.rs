//! Classes of NIC speed.

use super::{golden, host};
use ew_model::HostId;
use ew_model::finding::Details;
use ew_model::finding::details::{NicClass, NicClasses};

#[test]
fn with_link_speeds_and_without() {
    insta::assert_snapshot!(golden(&cases()));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let all = [host(1, 1), host(1, 2), host(1, 3), host(2, 1), host(2, 2)];
    let class = |hosts: &[HostId], bits_per_sec, speeds: &[f64]| NicClass {
        hosts: hosts.to_vec(),
        bits_per_sec,
        link_speeds_bits_per_sec: speeds.to_vec(),
    };
    let of = |classes: Vec<NicClass>| Details::NicClasses(NicClasses { classes });
    vec![
        (
            "with link speeds",
            of(vec![
                class(&all[..4], 9.41e9, &[10e9, 25e9]),
                class(&all[4..], 0.94e9, &[1e9]),
            ]),
        ),
        (
            "three classes, without link speeds",
            of(vec![
                class(&all[..3], 940e6, &[]),
                class(&all[3..4], 470e6, &[]),
                class(&all[4..], 94e6, &[]),
            ]),
        ),
    ]
}
