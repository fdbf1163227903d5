//! Full disks.

use super::{golden, host};
use ew_model::analysis::DiskShare;
use ew_model::finding::Details;
use ew_model::finding::details::{BusyDisk, BusyDisks};

#[test]
fn of_one_host_and_of_most() {
    insta::assert_snapshot!(golden(&cases()));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let without_requests = BusyDisk {
        disk: DiskShare {
            await_ns: None,
            ..busy().disk
        },
        ..busy()
    };
    let most = |hosts| {
        Details::BusyDisks(BusyDisks {
            hosts,
            busy_share: 0.94,
            busiest: busy(),
        })
    };
    vec![
        ("one host", Details::BusyDisk(busy())),
        ("no time of a request", Details::BusyDisk(without_requests)),
        ("one host with a disk", most(1)),
        ("most hosts", most(8)),
    ]
}

pub(super) fn busy() -> BusyDisk {
    BusyDisk {
        host: host(2, 3),
        disk: DiskShare {
            name: "nvme0n1".into(),
            busy_share: 0.98,
            read_bytes_per_sec: 0.0,
            written_bytes_per_sec: 412e6,
            await_ns: Some(8_300_000),
        },
    }
}
