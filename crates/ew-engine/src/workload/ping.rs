//! ICMP echo from the sending end; the receiving end's kernel answers, and its engine does nothing.
//!
//! With a rate, echoes leave at their times, whatever comes back. Without one it is a flood as
//! ping(8) has it: the next echo leaves when an answer came, and one more whenever 10 ms have
//! passed without, so that losses do not end it. `outstanding` echoes are kept in flight then;
//! ping(8)'s flood has one.
//!
//! An echo is lost when no answer came within 1 s, or, at the round's end, when it has been out for
//! longer than any answer took. Loss, order and copies count by the echoes sent inside the window,
//! times by the answers that came inside it. Bytes are the data of answered echoes, so that silence
//! is a failure and not a figure.
//!
//! An answer counts only with the stream's cookie in its data: others on the host may ping, too.

mod outstanding;
mod wire;

use super::cookie;
use super::machine::{Broken, Bystander, Io, Machine, Prepared, Slot, Wait};
use super::requests::{Asking, Schedule, record};
use crate::buffer::PageBuffer;
use crate::connect::is_timeout;
use crate::refusal::Refusal;
use crate::stream::Stream;
use crate::stream_error::StreamError;
use crate::tally::Tally;
use ew_model::workload::Workload;
use ew_proto::message::Role;
use ew_sys::clock::monotonic_ns;
use outstanding::{LOST_AFTER_NS, Outstanding};
use socket2::{SockRef, Socket};
use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// A flood's longest pause.
const FLOOD_GAP: Duration = Duration::from_millis(10);
const FLOOD_GAP_NS: u64 = FLOOD_GAP.as_nanos() as u64;
/// Echoes that may be out at once: min and max.
const MIN_SLOTS: u64 = 512;
const MAX_SLOTS: u64 = 65_536;
/// When an echo could not be sent, for lack of buffer space.
const RETRY_NS: u64 = 100_000;
/// Answers taken in one step.
const ANSWERS_IN_A_ROW: usize = 64;
/// A full queue, or what routers and neighbours report meanwhile: no route, host down or
/// unreachable, refused. The echo or its answer is lost, and the next one may arrive.
const PASSING: [i32; 5] = [105, 101, 111, 112, 113];

pub(super) struct Pings {
    asking: Asking,
    outstanding: u64,
    /// Echoes of a stream that may be out at once.
    slots: usize,
    content: Arc<PageBuffer>,
}

struct Pinger {
    socket: Socket,
    echo: wire::Echo,
    asking: Asking,
    out: Outstanding,
    /// Echoes in flight, in a flood.
    most_out: u64,
    schedule: Option<Schedule>,
    left: Option<u64>,
    last_send_ns: u64,
    /// When a flood next checks whether it has paused for too long.
    check_ns: u64,
    /// What the system reported of an echo that was lost.
    reported: Option<io::Error>,
}

impl Pings {
    pub(super) fn new(workload: &Workload) -> Result<Self, Refusal> {
        let bytes = workload.message_bytes;
        let possible = wire::MIN_DATA_BYTES as u64..=wire::MAX_DATA_BYTES as u64;
        if !possible.contains(&bytes) {
            return Err(Refusal::EchoSize { bytes, possible });
        }
        let outstanding = u64::from(workload.outstanding.max(1));
        Ok(Self {
            asking: Asking::new(workload),
            outstanding,
            slots: slots(workload, outstanding),
            content: Arc::new(PageBuffer::incompressible(bytes as usize)),
        })
    }

    fn pinger(&self, slot: &Slot<'_>) -> Result<Pinger, StreamError> {
        let peer = slot.stream.peer.ip();
        let (socket, dialect) = wire::open(peer)?;
        let echo = wire::Echo::new(dialect, cookie::fresh()?, self.content.as_slice());
        prepare(slot, &socket, &echo).map_err(|source| StreamError::Ping { peer, source })?;
        Ok(Pinger {
            socket,
            echo,
            asking: self.asking,
            out: Outstanding::with_capacity(self.slots, slot.shared.window_ns.clone()),
            most_out: self.outstanding,
            schedule: self.asking.schedule(slot),
            left: self.asking.limit,
            last_send_ns: 0,
            check_ns: 0,
            reported: None,
        })
    }
}

impl Prepared for Pings {
    fn machine(
        &self,
        slot: &Slot<'_>,
        _connection: Arc<TcpStream>,
    ) -> Result<Box<dyn Machine>, StreamError> {
        self.alone(slot)
    }

    fn alone(&self, slot: &Slot<'_>) -> Result<Box<dyn Machine>, StreamError> {
        Ok(match slot.stream.role {
            Role::Send => Box::new(self.pinger(slot)?),
            Role::Receive => Box::new(Bystander),
        })
    }

    fn buffer_bytes(&self, role: Role) -> usize {
        match role {
            Role::Send => {
                self.asking.request_bytes + wire::HEADER_BYTES + wire::MAX_IP_HEADER_BYTES
            }
            Role::Receive => 0,
        }
    }

    /// Echoes that leave at their times do not wait for answers.
    fn may_block(&self) -> bool {
        !self.asking.is_open_loop()
    }

    fn connects(&self) -> bool {
        false
    }

    fn counts(&self, role: Role) -> bool {
        role == Role::Send
    }

    fn data_is_on_the_connection(&self) -> bool {
        false
    }
}

impl Machine for Pinger {
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn start(&mut self, io: &mut Io<'_>) -> Result<(), Broken> {
        self.asking.allocate(io);
        if io.blocks() {
            let limited = self.socket.set_read_timeout(Some(FLOOD_GAP));
            limited.map_err(|error| broken("prepare the socket to", error))?;
        }
        io.note_start();
        self.send_due(io, monotonic_ns())
    }

    fn step(&mut self, io: &mut Io<'_>) -> Result<Wait, Broken> {
        let may_have_more = self.receive(io)?;
        let now_ns = monotonic_ns();
        let lost = self.out.give_up(now_ns);
        if lost > 0 && !self.out.has_answers() {
            return Err(self.silence());
        }
        if self.left == Some(0) && self.out.count() == 0 {
            io.counters.note_done(now_ns);
            return Ok(Wait::Done);
        }
        self.send_due(io, now_ns)?;
        Ok(if may_have_more {
            Wait::Again
        } else if !io.blocks() {
            Wait::SocketOrUntil(self.next_time_ns(now_ns))
        } else if self.out.count() == 0 {
            Wait::Until(now_ns + FLOOD_GAP_NS)
        } else {
            Wait::Socket
        })
    }

    fn finish(&mut self, _stream: &Stream, tally: &mut Tally) {
        tally.datagrams.push(self.out.end(monotonic_ns()));
    }
}

impl Pinger {
    /// Takes what has come; where calls block, one answer. Returns whether there may be more.
    fn receive(&mut self, io: &mut Io<'_>) -> Result<bool, Broken> {
        let (most, may_wait) = match io.blocks() {
            true => (1, self.out.count() > 0),
            false => (ANSWERS_IN_A_ROW, true),
        };
        if !may_wait {
            return Ok(false);
        }
        for _ in 0..most {
            match self.socket.read(io.buffer) {
                Ok(count) => self.take(io, count),
                Err(error) if is_timeout(&error) => return Ok(false),
                Err(error) => self.pass_over("receive from", error)?,
            }
        }
        Ok(!io.blocks())
    }

    fn take(&mut self, io: &mut Io<'_>, count: usize) {
        let Some(number) = self.echo.answered(&io.buffer[..count]) else {
            return;
        };
        let now_ns = monotonic_ns();
        if let Some(sent_ns) = self.out.note_answer(number, now_ns) {
            io.counters.add_sent(self.asking.request_bytes as u64);
            let due_ns = self.schedule.map(|schedule| schedule.due_ns(number));
            record(io, due_ns, sent_ns, now_ns);
        }
    }

    /// Sends all echoes that may leave now.
    fn send_due(&mut self, io: &Io<'_>, mut now_ns: u64) -> Result<(), Broken> {
        while self.left != Some(0)
            && let Some(number) = self.out.next()
            && self.is_due(number, now_ns)
        {
            self.last_send_ns = now_ns;
            match self.socket.send(self.echo.request(number)) {
                Ok(_) => {}
                Err(error) if is_timeout(&error) => return Ok(()),
                Err(error) => return self.pass_over("send to", error),
            }
            self.out.note_sent(now_ns);
            if let Some(left) = &mut self.left
                && io.shared.is_window_open()
            {
                *left -= 1;
            }
            now_ns = monotonic_ns();
        }
        Ok(())
    }

    fn is_due(&self, number: u64, now_ns: u64) -> bool {
        match &self.schedule {
            Some(schedule) => schedule.due_ns(number) <= now_ns,
            None => self.out.count() < self.most_out || now_ns >= self.last_send_ns + FLOOD_GAP_NS,
        }
    }

    /// When there is something to do if nothing comes.
    fn next_time_ns(&mut self, now_ns: u64) -> u64 {
        let gives_up_ns = self.out.oldest_sent_ns().map(|at| at + LOST_AFTER_NS);
        let gives_up_ns = gives_up_ns.unwrap_or(now_ns + LOST_AFTER_NS);
        let Some(number) = self.out.next().filter(|_| self.left != Some(0)) else {
            return gives_up_ns;
        };
        if let Some(schedule) = &self.schedule {
            return match schedule.due_ns(number) {
                due_ns if due_ns > now_ns => due_ns.min(gives_up_ns),
                // It could not be sent.
                _ => now_ns + RETRY_NS,
            };
        }
        // Not moved with every echo, which would leave a timer for each.
        if self.check_ns <= now_ns {
            self.check_ns = now_ns.max(self.last_send_ns + FLOOD_GAP_NS);
        }
        self.check_ns
    }

    /// Goes on where the next echo may arrive.
    fn pass_over(&mut self, action: &'static str, error: io::Error) -> Result<(), Broken> {
        let code = error.raw_os_error();
        if !code.is_some_and(|code| PASSING.contains(&code)) {
            return Err(broken(action, error));
        }
        self.reported = Some(error);
        Ok(())
    }

    fn silence(&mut self) -> Broken {
        let why = match self.reported.take() {
            Some(error) => error.to_string(),
            None => "does a firewall drop ICMP echo?".to_owned(),
        };
        let reported = format!(
            "no answer within {} s; {why}",
            LOST_AFTER_NS / 1_000_000_000
        );
        broken("ping", io::Error::other(reported))
    }
}

/// For all echoes that leave before the first of them is lost, twice.
fn slots(workload: &Workload, outstanding: u64) -> usize {
    let leaving = match workload.pace.requests_per_sec {
        Some(rate) => (rate / f64::from(workload.streams)) as u64 * (LOST_AFTER_NS / 1_000_000_000),
        None => outstanding + LOST_AFTER_NS / FLOOD_GAP_NS,
    };
    leaving.saturating_mul(2).clamp(MIN_SLOTS, MAX_SLOTS) as usize
}

fn prepare(slot: &Slot<'_>, socket: &Socket, echo: &wire::Echo) -> io::Result<()> {
    let settings = &slot.shared.settings;
    settings.apply_to_any(&SockRef::from(socket), slot.stream.peer.ip())?;
    if let Some(bytes) = settings.0.receive_buffer_bytes {
        // A smaller buffer loses answers, which are counted.
        let _ = socket.set_recv_buffer_size(bytes as usize);
    }
    echo.filter(socket)?;
    socket.bind(&SocketAddr::new(slot.shared.address, 0).into())?;
    let mut peer = slot.stream.peer;
    peer.set_port(0);
    socket.connect(&peer.into())
}

fn broken(action: &'static str, error: io::Error) -> Broken {
    Broken { action, error }
}
