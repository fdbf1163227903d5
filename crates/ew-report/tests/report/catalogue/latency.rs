//! Long idle round trips.

use super::{golden, host};
use ew_model::HostId;
use ew_model::finding::Details;
use ew_model::finding::details::{IdleRoundTrip, LongRoundTrips};

#[test]
fn of_one_host_and_of_several() {
    insta::assert_snapshot!(golden(&cases()));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let one = round_trips(&[(host(1, 2), 2_310_000)]);
    let several = LongRoundTrips {
        expected_rtt_ns: 200_000,
        is_configured: true,
        ..round_trips(&[(host(1, 2), 2_310_000), (host(2, 1), 640_000)])
    };
    vec![
        ("one host, unlike peers", Details::LongRoundTrips(one)),
        (
            "two hosts, longer than configured",
            Details::LongRoundTrips(several),
        ),
    ]
}

fn round_trips(of: &[(HostId, u64)]) -> LongRoundTrips {
    let round_trip = |(host, rtt_ns): &(HostId, u64)| IdleRoundTrip {
        host: *host,
        rtt_ns: *rtt_ns,
    };
    LongRoundTrips {
        hosts: of.iter().map(|(host, _)| *host).collect(),
        worst_rtt_ns: of[0].1,
        expected_rtt_ns: 142_000,
        is_configured: false,
        round_trips: of.iter().map(round_trip).collect(),
    }
}
