//! Traffic that is not the run's.

use super::{golden, host};
use ew_model::finding::Details;
use ew_model::finding::details::{BackgroundTraffic, Directions, TrafficOwner};

#[test]
fn of_processes_and_of_nobody_seen() {
    insta::assert_snapshot!(golden(&cases()));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let hidden = TrafficOwner {
        pid: None,
        command: String::new(),
        peer: None,
    };
    let of = Details::BackgroundTraffic;
    vec![
        ("a process sends", of(sent(Some(rsync())))),
        ("a process receives", of(received(Some(rsync())))),
        ("a hidden process sends", of(sent(Some(hidden.clone())))),
        ("a hidden process receives", of(received(Some(hidden)))),
        ("nobody is seen to send", of(sent(None))),
        ("nobody is seen to receive", of(received(None))),
    ]
}

pub(super) fn sent(process: Option<TrafficOwner>) -> BackgroundTraffic {
    BackgroundTraffic {
        host: host(1, 2),
        direction: Directions::Tx,
        bits_per_sec: 58e6,
        link_share: 0.29,
        process,
    }
}

pub(super) fn rsync() -> TrafficOwner {
    TrafficOwner {
        pid: Some(812),
        command: "rsync".into(),
        peer: Some([198, 18, 0, 9].into()),
    }
}

fn received(process: Option<TrafficOwner>) -> BackgroundTraffic {
    BackgroundTraffic {
        direction: Directions::Rx,
        bits_per_sec: 12.4e6,
        link_share: 0.062,
        ..sent(process)
    }
}
