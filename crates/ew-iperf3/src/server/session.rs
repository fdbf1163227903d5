//! One client's test, seen from the server.

use super::registry::{Arrival, Slot, Turn};
use super::{Server, hear_greetings};
use crate::control::{ANSWER_NS, Control, Heard};
use crate::error::Error;
use crate::goal::Goal;
use crate::meter::Meter;
use crate::net;
use crate::report::text::{TextReport, TextStyle};
use crate::report::{Event, Head, Observer, Report, Role, Silent, json};
use crate::running::{Bounds, Ending, Running};
use crate::stream::Stream;
use crate::wire::datagram::{GREETING_BYTES, reply_to};
use crate::wire::frame::{MAX_CLIENT_RESULTS_BYTES, MAX_PARAMS_BYTES};
use crate::wire::params::{Direction, End, Params, Protocol};
use crate::wire::refusal::Refusal;
use crate::wire::results::{Results, ServerOutput};
use crate::wire::state::State;
use ew_sys::clock::{monotonic_ns, realtime_ns, sleep_until_ns};
use socket2::Socket;
use std::collections::BTreeMap;
use std::io::Read;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const SECOND_NS: u64 = 1_000_000_000;
/// A client's next stream must come within this time: iperf3 opens them one after another, however
/// far away it is.
const NEXT_STREAM_NS: u64 = 10 * SECOND_NS;
/// All of them must be there within this time.
const ALL_STREAMS_NS: u64 = 120 * SECOND_NS;
/// A client waits this long for others of its address.
const TURN_NS: u64 = 60 * SECOND_NS;
/// Between two checks of the control connection while streams are awaited.
const LOOK: Duration = Duration::from_millis(20);
/// A client that sets its own end may take this much longer (iperf3 gives 30 s and 10 s).
const GRACE_S: u64 = 40;
/// What the client has sent and we have not read yet is taken for this long after its end.
const TAIL_NS: u64 = 200_000_000;
/// The same when the client has announced how much it sends.
const KNOWN_TAIL_NS: u64 = 500_000_000;
/// Nothing within this time is the end of what is coming.
const TAIL_PAUSE_NS: u64 = 2_000_000;
/// The same while less has come than announced. Clients before 3.16 announce more than they send:
/// they count every part of a block as one.
const KNOWN_TAIL_PAUSE_NS: u64 = 50_000_000;
/// Between two looks at what has come.
const TAIL_LOOK: Duration = Duration::from_micros(200);
/// A client that was refused is answered so after this time, whatever was wrong (CVE-2024-26306).
const REFUSAL_AFTER_NS: u64 = 200_000_000;
/// What a client gets of the server's output at most, where that is text.
const MAX_OUTPUT_BYTES: usize = 4 * 1024 * 1024;
/// Where it is JSON: intervals times streams, of less than 1 kB each with their part of the sums. A
/// client of ours takes more ([`MAX_SERVER_RESULTS_BYTES`]).
///
/// [`MAX_SERVER_RESULTS_BYTES`]: crate::wire::frame::MAX_SERVER_RESULTS_BYTES
const MAX_OUTPUT_STREAM_INTERVALS: usize = 10_000;

/// Serves one client from its cookie to its end.
pub(super) fn serve(server: &Server, slot: &Slot, socket: Socket, number: u64, stop: &AtomicBool) {
    let watcher = server.options.watcher.as_ref();
    let observer = watcher.map_or_else(|| Box::new(Silent) as _, |w| w.session(number));
    let mut observer = Fork {
        observer,
        kept: None,
    };
    let result = Control::new(socket.into(), stop).and_then(|control| {
        let mut session = Session {
            server,
            slot,
            observer: &mut observer,
            peer: peer_of(&control)?,
            control,
        };
        let result = session.run();
        if let Err(error) = &result {
            session.say_why(error);
        }
        session.control.close_gently(SECOND_NS / 2);
        result
    });
    if let Err(error) = result {
        let error = match error {
            Error::ControlClosed => Error::ClientGone,
            other => other,
        };
        observer.observe(&Event::Failed(error.to_string()));
    }
}

fn peer_of(control: &Control<'_>) -> Result<SocketAddr, Error> {
    let peer = control.stream().peer_addr().map_err(Error::Control)?;
    Ok(net::canonical(peer))
}

/// Notifies the server's watcher, and keeps what the client wants to have.
struct Fork {
    observer: Box<dyn Observer>,
    kept: Option<Kept>,
}

enum Kept {
    Text(Box<TextReport>, String),
    Json(Box<Report>),
}

impl Observer for Fork {
    fn observe(&mut self, event: &Event) {
        self.observer.observe(event);
        match &mut self.kept {
            Some(Kept::Text(report, text)) if text.len() < MAX_OUTPUT_BYTES => {
                text.push_str(&report.lines(event));
            }
            Some(Kept::Json(report)) => match event {
                Event::Interval(interval) => report.keep(interval, MAX_OUTPUT_STREAM_INTERVALS),
                _ => report.observe(event),
            },
            _ => {}
        }
    }
}

impl Fork {
    fn take_output(&mut self) -> Option<ServerOutput> {
        Some(match self.kept.take()? {
            Kept::Text(_, text) => ServerOutput::Text(text),
            Kept::Json(report) => ServerOutput::Json(json::value(&report)),
        })
    }
}

struct Session<'run> {
    server: &'run Server,
    slot: &'run Slot,
    observer: &'run mut Fork,
    control: Control<'run>,
    peer: SocketAddr,
}

impl<'run> Session<'run> {
    fn run(&mut self) -> Result<(), Error> {
        self.control.send_state(State::ParamExchange)?;
        let received_ns = monotonic_ns();
        let params = self.read_params(received_ns)?;
        self.keep_output(&params);
        self.observer.observe(&Event::Accepted { peer: self.peer });
        let streams = self.create_streams(&params)?;
        let mut options = self.server.options.end.clone();
        options.cpu = params.server_cpu.or(options.cpu);
        let mut running = Running::new(params.clone(), goal(&params)?, options, false);
        running.prepare(streams)?;
        self.control.send_state(State::TestStart)?;
        self.observer.observe(&Event::Started(Box::new(
            self.head(&params, &running.streams)?,
        )));
        self.control.send_state(State::TestRunning)?;
        let bounds = self.bounds(&params);
        let ending = running.run(&self.control, bounds, self.observer);
        let end_ns = match ending {
            Ok(Ending::State(State::TestEnd)) => await_tail(&running),
            _ => monotonic_ns(),
        };
        running.last_interval(end_ns, bounds, self.observer);
        running.stop();
        let result = self.end(ending?, &running);
        if result.is_err() {
            self.observe_end(&running, None);
        }
        result
    }

    /// What the client wants, when it may have it.
    fn read_params(&mut self, received_ns: u64) -> Result<Params, Error> {
        let text = self.control.read_json(MAX_PARAMS_BYTES)?;
        let params = Params::parse(&text).map_err(Error::Refused)?;
        self.authenticate(&params, received_ns)?;
        let limits = &self.server.options.limits;
        if let Some(limit) = limits.bits_per_sec {
            let wanted = params.bits_per_sec.saturating_mul(count(&params) as u64);
            if wanted == 0 || wanted > limit {
                return Err(Error::Refused(Refusal::TOTAL_RATE));
            }
        }
        if let End::Time(seconds) = params.end
            && u64::from(seconds + params.omit_s) > limits.duration_s
        {
            return Err(Error::Refused(Refusal::DURATION));
        }
        if !self.slot.reserve_streams(count(&params)) {
            return Err(Error::Refused(Refusal::STREAMS));
        }
        Ok(params)
    }

    fn authenticate(&mut self, params: &Params, received_ns: u64) -> Result<(), Error> {
        let Some(auth) = &self.server.options.auth else {
            return Ok(());
        };
        let identity = auth.check(&params.auth_token, realtime_ns() / SECOND_NS)?;
        let believed = identity.believed;
        self.observer.observe(&Event::Authenticated {
            user: identity.user,
            believed,
        });
        if believed {
            return Ok(());
        }
        sleep_until_ns(received_ns + REFUSAL_AFTER_NS);
        Err(Error::Refused(Refusal::AUTHORIZATION))
    }

    fn keep_output(&mut self, params: &Params) {
        if !params.get_server_output {
            return;
        }
        self.observer.kept = Some(if self.server.options.json_output {
            Kept::Json(Box::default())
        } else {
            let style = TextStyle::default();
            Kept::Text(Box::new(TextReport::new(style)), String::new())
        });
    }

    fn create_streams(&mut self, params: &Params) -> Result<Vec<Stream>, Error> {
        let sockets = match params.protocol {
            Protocol::Tcp => self.collect_tcp(params)?,
            Protocol::Udp => self.collect_udp(params)?,
        };
        let receives = match params.direction {
            Direction::Forward | Direction::Both => params.streams,
            Direction::Reverse => 0,
        };
        let placed = sockets.into_iter().enumerate();
        Ok(placed
            .map(|(index, socket)| Stream::new(index, index >= receives, socket))
            .collect())
    }

    /// TCP streams in the order in which they were accepted, whichever identified itself first.
    fn collect_tcp(&mut self, params: &Params) -> Result<Vec<Socket>, Error> {
        let wanted = count(params);
        self.slot.await_streams(wanted);
        self.control.send_state(State::CreateStreams)?;
        let last_ns = monotonic_ns() + ALL_STREAMS_NS;
        let mut arrived = BTreeMap::new();
        while arrived.len() < wanted {
            if let Arrival::Tcp(order, socket) = self.next_arrival(last_ns, || {})? {
                arrived.insert(order, socket);
            }
        }
        for socket in arrived.values() {
            self.prepare(socket, params)?;
        }
        Ok(arrived.into_values().collect())
    }

    /// UDP streams, one greeting after another. Each is answered from the port it was sent to.
    fn collect_udp(&mut self, params: &Params) -> Result<Vec<Socket>, Error> {
        let turn = self.await_turn()?;
        self.control.send_state(State::CreateStreams)?;
        let last_ns = monotonic_ns() + ALL_STREAMS_NS;
        let mut streams: BTreeMap<SocketAddr, usize> = BTreeMap::new();
        let mut sockets: Vec<Socket> = Vec::new();
        while sockets.len() < count(params) {
            let again = || sockets.iter().for_each(answer_again);
            let Arrival::Greeting(peer, greeting) = self.next_arrival(last_ns, again)? else {
                continue;
            };
            // A greeting may come twice: its answer was late.
            let index = match streams.get(&peer) {
                Some(index) => *index,
                None => {
                    sockets.push(self.udp_stream(peer, params)?);
                    streams.insert(peer, sockets.len() - 1);
                    sockets.len() - 1
                }
            };
            // No answer is as good as a lost one.
            let _ = sockets[index].send(&reply_to(greeting));
        }
        drop(turn);
        Ok(sockets)
    }

    fn udp_stream(&mut self, peer: SocketAddr, params: &Params) -> Result<Socket, Error> {
        let local = self.control.stream().local_addr().map_err(Error::Control)?;
        let socket = net::udp_pair(local, peer).map_err(Error::StreamConnect)?;
        // Between bind and connect it may have taken what others sent to the listener.
        hear_greetings(&socket, self.slot.registry());
        let socket = Socket::from(socket);
        self.prepare(&socket, params)?;
        Ok(socket)
    }

    /// Clients behind one address set up their UDP streams one after another: greetings do not
    /// identify whose they are.
    fn await_turn(&self) -> Result<Turn<'run>, Error> {
        let turn = self.slot.queue_for_turn(self.peer.ip());
        let deadline_ns = monotonic_ns() + TURN_NS;
        while !turn.has_come() {
            self.look_at_control(deadline_ns)?;
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(turn)
    }

    /// Does `meanwhile` again and again until there is one.
    fn next_arrival(&self, last_ns: u64, meanwhile: impl Fn()) -> Result<Arrival, Error> {
        let deadline_ns = last_ns.min(monotonic_ns() + NEXT_STREAM_NS);
        loop {
            if let Some(arrival) = self.slot.next_arrival(LOOK) {
                return Ok(arrival);
            }
            self.look_at_control(deadline_ns)?;
            meanwhile();
        }
    }

    /// Whether the client is still there and there is time.
    fn look_at_control(&self, deadline_ns: u64) -> Result<(), Error> {
        match self.control.hear(0, None)? {
            Heard::Nothing | Heard::Other => {}
            Heard::Stopped => return Err(stopped()),
            Heard::State(State::ClientTerminate) => return Err(Error::ClientTerminated),
            Heard::State(other) => return Err(Error::Unexpected(other.to_wire())),
        }
        if monotonic_ns() >= deadline_ns {
            return Err(Error::Silent("open its streams"));
        }
        Ok(())
    }

    /// As the client wants it; an algorithm that this host does not have is no reason to refuse, as
    /// with iperf3.
    fn prepare(&mut self, socket: &Socket, params: &Params) -> Result<(), Error> {
        let missing = !params.congestion.is_empty()
            && socket
                .set_tcp_congestion(params.congestion.as_bytes())
                .is_err();
        if params.protocol == Protocol::Tcp && missing {
            let algorithm = &params.congestion;
            let text = format!("no congestion control algorithm \"{algorithm}\" here");
            self.observer.observe(&Event::Warning(text));
            let without = Params {
                congestion: String::new(),
                ..params.clone()
            };
            return net::prepare(socket, &without, self.peer.ip());
        }
        net::prepare(socket, params, self.peer.ip())
    }

    fn bounds(&self, params: &Params) -> Bounds {
        let limits = &self.server.options.limits;
        let announced_s = match params.end {
            End::Time(0) | End::Bytes(_) | End::Blocks(_) => limits.duration_s,
            End::Time(seconds) => u64::from(seconds + params.omit_s) + GRACE_S,
        };
        Bounds {
            interval_ns: self.server.options.interval_ms * 1_000_000,
            lasts_ns: Some(announced_s.min(limits.duration_s + GRACE_S) * SECOND_NS),
            idle_ns: limits.idle_ms * 1_000_000,
            ends_at_goal: false,
        }
    }

    fn head(&self, params: &Params, streams: &[Stream]) -> Result<Head, Error> {
        let (control, cookie) = (self.control.stream(), self.slot.cookie());
        Head::of(Role::Server, params, &cookie, control, self.peer, streams)
    }

    fn end(&mut self, ending: Ending, running: &Running) -> Result<(), Error> {
        match ending {
            Ending::State(State::TestEnd) => {}
            Ending::State(State::ClientTerminate) => return Err(Error::ClientTerminated),
            Ending::State(other) => return Err(Error::Unexpected(other.to_wire())),
            Ending::Interrupted => return Err(stopped()),
            Ending::Reached => return Err(Error::Refused(Refusal::EXPIRED)),
            Ending::Idle => return Err(Error::Refused(Refusal::NO_DATA)),
        }
        self.control.send_state(State::ExchangeResults)?;
        let theirs = Results::parse(&self.control.read_json(MAX_CLIENT_RESULTS_BYTES)?)?;
        self.observe_end(running, Some(theirs));
        if let Some(meter) = running.meter() {
            let mut ours = meter.results(&running.streams, running.cpu());
            ours.server_output = self.observer.take_output();
            self.control.send_json(&ours.to_json())?;
        }
        self.control.send_state(State::DisplayResults)?;
        // The client may as well just close.
        let _ = self.control.hear(monotonic_ns() + ANSWER_NS, None);
        Ok(())
    }

    fn observe_end(&mut self, running: &Running, theirs: Option<Results>) {
        if let Some(meter) = running.meter() {
            let ended = meter.ended(&running.streams, running.cpu(), theirs);
            self.observer.observe(&Event::Ended(Box::new(ended)));
        }
    }

    fn say_why(&self, error: &Error) {
        // A client that does not listen any more needs no reason.
        let _ = match (error, error.as_refusal()) {
            (Error::Interrupted(_), _) => self.control.send_state(State::ServerTerminate),
            (_, Some(refusal)) => self.control.send_refusal(refusal),
            (_, None) => Ok(()),
        };
    }
}

/// A client whose answer was lost greets again, and now the stream's own socket has its greeting.
fn answer_again(socket: &Socket) {
    let mut datagram = [0; GREETING_BYTES + 1];
    let mut socket: &Socket = socket;
    if let Ok(GREETING_BYTES) = socket.read(&mut datagram) {
        let [a, b, c, d, _] = datagram;
        let _ = socket.send(&reply_to([a, b, c, d]));
    }
}

fn stopped() -> Error {
    Error::Interrupted("the server has terminated")
}

/// Streams in both directions.
fn count(params: &Params) -> usize {
    match params.direction {
        Direction::Both => 2 * params.streams,
        Direction::Forward | Direction::Reverse => params.streams,
    }
}

/// How much the client will send: not to end the test, which is the client's to do, but to know
/// when all has come.
fn goal(params: &Params) -> Result<Goal, Error> {
    let is_counted = params.protocol == Protocol::Tcp && params.direction == Direction::Forward;
    let goal = match is_counted {
        true => Goal::of(params),
        false => Goal::none(),
    };
    goal.map_err(Error::Init)
}

/// The client's end overtakes what it has sent: takes what is still coming. Returns when the last
/// of it came, CLOCK_MONOTONIC: silence is no part of the test.
fn await_tail(running: &Running) -> u64 {
    let goal = &running.work.goal;
    let begun_ns = monotonic_ns();
    let patience_ns = if goal.has_limit() {
        KNOWN_TAIL_NS
    } else {
        TAIL_NS
    };
    let (mut last_ns, mut last_bytes) = (begun_ns, Meter::received_bytes(&running.streams));
    loop {
        let unread = running.has_unread();
        std::thread::sleep(TAIL_LOOK);
        let bytes = Meter::received_bytes(&running.streams);
        let now_ns = monotonic_ns();
        if bytes != last_bytes {
            (last_ns, last_bytes) = (now_ns, bytes);
        }
        let is_short = goal.has_limit() && goal.reached_ns().is_none();
        let pause_ns = if is_short {
            KNOWN_TAIL_PAUSE_NS
        } else {
            TAIL_PAUSE_NS
        };
        let is_quiet = !unread && now_ns - last_ns >= pause_ns;
        if is_quiet || now_ns - begun_ns >= patience_ns {
            return last_ns;
        }
    }
}
