//! One stream on a thread of its own: its calls block, which has the lowest cost per message.

use super::{Scratch, note_end};
use crate::arrivals::Member;
use crate::shared::RoundShared;
use crate::workload::machine::{Broken, CALL_TIMEOUT, Io, Machine, Poll, Wait};
use ew_proto::message::Role;
use ew_sys::clock::{monotonic_ns, sleep_until_ns};

/// Drives the stream from the start until the round stops.
pub(crate) fn drive(shared: &RoundShared, mut member: Member, scratch: &mut Scratch) {
    let stream = std::sync::Arc::clone(&member.stream);
    let tally = scratch.tally_index(stream.flow);
    let mut io = scratch.io(shared, &stream, tally, Poll::Blocking);
    if stream.role == Role::Send {
        ew_sys::thread::schedule_first();
    }
    if shared.cancel.sleep_until(shared.start_ns).is_err() {
        return;
    }
    let ended = run(&mut *member.machine, &mut io);
    // Where it broke before it could.
    ew_sys::thread::schedule_ordinarily();
    if let Err(broken) = ended {
        note_end(shared, &stream, broken);
    }
    scratch.finish(member);
}

fn run(machine: &mut dyn Machine, io: &mut Io<'_>) -> Result<(), Broken> {
    if let Some(socket) = machine.socket() {
        let adopted = io.adopt(&socket);
        adopted.map_err(|error| Broken {
            action: "prepare the socket to",
            error,
        })?;
    }
    machine.start(io)?;
    // From the first send on, a sender is scheduled like everybody else.
    ew_sys::thread::schedule_ordinarily();
    while !io.shared.is_stopping() {
        match machine.step(io)? {
            Wait::Again | Wait::Socket => {}
            Wait::Until(at_ns) | Wait::SocketOrUntil(at_ns) => sleep(io.shared, at_ns),
            Wait::Done => return Ok(()),
        }
    }
    Ok(())
}

/// Until the time or the round's end.
fn sleep(shared: &RoundShared, until_ns: u64) {
    loop {
        let now_ns = monotonic_ns();
        if now_ns >= until_ns || shared.is_stopping() {
            return;
        }
        sleep_until_ns(until_ns.min(now_ns + CALL_TIMEOUT.as_nanos() as u64));
    }
}
