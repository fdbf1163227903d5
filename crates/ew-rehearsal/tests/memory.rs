//! What a host that floods its link costs the controller. Alone in its file: it measures the
//! memory of the whole process.

use ew_fuzz::peak_bytes;
use ew_model::event::RunEvent;
use ew_model::inventory::HostId;
use ew_rehearsal::{Fault, Trace, draw_healthy, rehearse, violations};

/// What may wait of one host: events, a frame that is not whole yet, and what its link holds.
const MAX_OF_A_HOST_BYTES: usize = 1 << 20;
const FLOODING: HostId = HostId(2);

/// A run in which a host sends a frame so many times, and the most memory that it took.
fn flooded(times: usize) -> (Trace, usize) {
    let mut drawn = draw_healthy(3, 9);
    drawn.scenario.tests.truncate(3);
    if times > 0 {
        let at_ns = 4_000_000_000;
        let flood = Fault::Floods { at_ns, times };
        drawn.hosts[FLOODING.index()].faults.push(flood);
    }
    peak_bytes(|| rehearse(drawn).expect("a run"))
}

#[test]
fn a_flood_of_two_million_frames_takes_no_more_memory_than_may_wait() {
    let (_, usual_bytes) = flooded(0);
    let (trace, most_bytes) = flooded(2_000_000);
    assert_eq!(violations(&trace), Vec::<String>::new());
    let is_lost =
        |event: &RunEvent| matches!(event, RunEvent::HostLost { host, .. } if *host == FLOODING);
    assert!(trace.events.iter().any(|event| is_lost(&event.event)));
    assert!(
        most_bytes < usual_bytes + MAX_OF_A_HOST_BYTES,
        "{usual_bytes} bytes without a flood, {most_bytes} with one"
    );
}
