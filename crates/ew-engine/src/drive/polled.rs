//! Many streams on one thread: an edge-triggered epoll set selects the stream that goes on.

use super::{Scratch, note_end};
use crate::arrivals::{Arrivals, Member};
use crate::clock_wait::Cancelled;
use crate::shared::RoundShared;
use crate::stream_error::StreamError;
use crate::workload::machine::{Broken, CALL_TIMEOUT, Poll, Wait};
use ew_proto::message::Role;
use ew_sys::clock::monotonic_ns;
use ew_sys::epoll::{Epoll, Ready};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::time::Duration;

/// Steps of one stream in a row before others go on.
const STEPS_IN_A_ROW: usize = 16;
const EVENTS: usize = 512;
/// First sends made before everybody else on the CPU is let in again.
const FIRST_SENDS_AHEAD: usize = 64;
/// How often late connections are polled for.
const LATE_ARRIVALS_SLICE: Duration = Duration::from_millis(2);

/// A thread's streams and the queue of those that can go on.
struct EventLoop<'a> {
    shared: &'a RoundShared,
    scratch: &'a mut Scratch,
    epoll: Epoll,
    slots: Vec<Slot>,
    /// Streams that can go on.
    queue: VecDeque<usize>,
    /// Times that streams wait for, earliest first; those that changed their minds since are passed
    /// over.
    timers: BinaryHeap<Reverse<(u64, usize)>>,
}

struct Slot {
    member: Member,
    tally: usize,
    is_queued: bool,
    /// Broken, or done.
    is_over: bool,
    /// 0: it waits for no time.
    due_ns: u64,
}

/// Drives the streams from the start until the round stops, or all of them are over.
pub(crate) fn drive(
    shared: &RoundShared,
    arrivals: &mut Arrivals,
    mut members: Vec<Member>,
    scratch: &mut Scratch,
) -> io::Result<()> {
    let mut event_loop = EventLoop {
        shared,
        scratch,
        epoll: Epoll::new()?,
        slots: Vec::with_capacity(members.len()),
        queue: VecDeque::with_capacity(members.len()),
        timers: BinaryHeap::with_capacity(members.len()),
    };
    for member in members.drain(..) {
        event_loop.add(member);
    }
    if event_loop.start_all().is_ok() {
        event_loop.run(arrivals)?;
    }
    for slot in event_loop.slots {
        event_loop.scratch.finish(slot.member);
    }
    Ok(())
}

impl EventLoop<'_> {
    fn add(&mut self, member: Member) {
        let index = self.slots.len();
        let tally = self.scratch.tally_index(member.stream.flow);
        let io = self.scratch.io(
            self.shared,
            &member.stream,
            tally,
            Poll::Watched(&self.epoll, index as u64),
        );
        let adopted = member.machine.socket().map_or(Ok(()), |s| io.adopt(&s));
        let is_over = adopted.is_err();
        if let Err(source) = adopted {
            let peer = member.stream.peer;
            let error = StreamError::Connection { peer, source };
            member.stream.fail(&error);
        }
        self.slots.push(Slot {
            member,
            tally,
            is_queued: false,
            is_over,
            due_ns: 0,
        });
    }

    /// All first sends at the start, back to back.
    fn start_all(&mut self) -> Result<(), Cancelled> {
        let sends = |slot: &Slot| slot.member.stream.role == Role::Send;
        if self.slots.iter().any(sends) {
            ew_sys::thread::schedule_first();
        }
        self.shared.cancel.sleep_until(self.shared.start_ns)?;
        for index in 0..self.slots.len() {
            if index == FIRST_SENDS_AHEAD {
                ew_sys::thread::schedule_ordinarily();
            }
            self.start(index);
        }
        ew_sys::thread::schedule_ordinarily();
        Ok(())
    }

    fn start(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        if slot.is_over {
            return;
        }
        let poll = Poll::Watched(&self.epoll, index as u64);
        let stream = &slot.member.stream;
        let mut io = self.scratch.io(self.shared, stream, slot.tally, poll);
        match slot.member.machine.start(&mut io) {
            Ok(()) => self.enqueue(index),
            Err(broken) => self.end(index, broken),
        }
    }

    fn run(&mut self, arrivals: &mut Arrivals) -> io::Result<()> {
        let mut ready = Ready::with_capacity(EVENTS);
        while !self.shared.is_stopping() && !self.has_ended(arrivals) {
            let patience = self.patience(arrivals);
            self.epoll.wait(&mut ready, patience)?;
            for token in ready.tokens() {
                self.enqueue(token as usize);
            }
            self.enqueue_due();
            for _ in 0..self.queue.len() {
                if let Some(index) = self.queue.pop_front() {
                    self.slots[index].is_queued = false;
                    self.go_on(index);
                }
            }
            if !arrivals.is_complete() {
                self.take_late(arrivals);
            }
        }
        Ok(())
    }

    /// Whether there is nothing left to do. What was counted is there then before the round's end,
    /// for which a thread without a CPU may come too late.
    fn has_ended(&self, arrivals: &Arrivals) -> bool {
        arrivals.is_complete() && self.slots.iter().all(|slot| slot.is_over)
    }

    fn patience(&self, arrivals: &Arrivals) -> Duration {
        if !self.queue.is_empty() {
            return Duration::ZERO;
        }
        let longest = match arrivals.is_complete() {
            true => CALL_TIMEOUT,
            false => LATE_ARRIVALS_SLICE,
        };
        match self.timers.peek() {
            Some(Reverse((at_ns, _))) => {
                Duration::from_nanos(at_ns.saturating_sub(monotonic_ns())).min(longest)
            }
            None => longest,
        }
    }

    fn enqueue(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        if !slot.is_queued && !slot.is_over {
            slot.is_queued = true;
            self.queue.push_back(index);
        }
    }

    fn enqueue_due(&mut self) {
        if self.timers.is_empty() {
            return;
        }
        let now_ns = monotonic_ns();
        while let Some(Reverse((at_ns, index))) = self.timers.peek().copied()
            && at_ns <= now_ns
        {
            self.timers.pop();
            if self.slots[index].due_ns == at_ns {
                self.slots[index].due_ns = 0;
                self.enqueue(index);
            }
        }
    }

    fn go_on(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let poll = Poll::Watched(&self.epoll, index as u64);
        let stream = &slot.member.stream;
        let mut io = self.scratch.io(self.shared, stream, slot.tally, poll);
        for _ in 0..STEPS_IN_A_ROW {
            match slot.member.machine.step(&mut io) {
                Ok(Wait::Again) => {}
                Ok(Wait::Socket) => return,
                Ok(Wait::Until(at_ns) | Wait::SocketOrUntil(at_ns)) => {
                    return self.wait_until(index, at_ns);
                }
                Ok(Wait::Done) => {
                    slot.is_over = true;
                    return;
                }
                Err(broken) => return self.end(index, broken),
            }
        }
        self.enqueue(index);
    }

    fn wait_until(&mut self, index: usize, at_ns: u64) {
        let slot = &mut self.slots[index];
        if slot.due_ns != at_ns {
            slot.due_ns = at_ns;
            self.timers.push(Reverse((at_ns, index)));
        }
    }

    fn end(&mut self, index: usize, broken: Broken) {
        let slot = &mut self.slots[index];
        slot.is_over = true;
        note_end(self.shared, &slot.member.stream, broken);
    }

    fn take_late(&mut self, arrivals: &mut Arrivals) {
        let mut members = Vec::new();
        arrivals.poll(self.shared, &mut members);
        for member in members {
            let index = self.slots.len();
            self.add(member);
            self.start(index);
        }
    }
}
