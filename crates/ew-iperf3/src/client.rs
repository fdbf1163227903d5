//! A client: starts a test with an iperf3 server, ours or another.

use crate::auth::ClientAuth;
use crate::control::{ANSWER_NS, Control, Heard};
use crate::error::Error;
use crate::goal::Goal;
use crate::net::Route;
use crate::report::{Event, Head, Observer, Role};
use crate::running::{Bounds, Ending, Running};
use crate::stream::{EndOptions, Stream};
use crate::wire::cookie::Cookie;
use crate::wire::datagram::{GREETING, is_reply};
use crate::wire::frame::MAX_SERVER_RESULTS_BYTES;
use crate::wire::params::{
    DEFAULT_UDP_BLOCK_BYTES, Direction, End, MAX_UDP_BLOCK_BYTES, Params, Protocol,
};
use crate::wire::results::Results;
use crate::wire::state::State;
use ew_sys::clock::{monotonic_ns, realtime_ns};
use ew_sys::thread::run_on_cpu;
use socket2::{SockRef, Socket};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const SECOND_NS: u64 = 1_000_000_000;
/// A server that is busy with somebody else's setup may take its time before the test starts.
const SETUP_NS: u64 = 60 * SECOND_NS;
/// The server works out its results after the end; many streams of a slow host take a while.
const RESULTS_NS: u64 = 30 * SECOND_NS;
/// How long the answer to each greeting of a UDP stream is waited for: one of them may be lost, and
/// iperf3's servers answer the first only.
const ANSWERED_AFTER_NS: [u64; 4] = [2 * SECOND_NS, 4 * SECOND_NS, 8 * SECOND_NS, 16 * SECOND_NS];

/// A test to be done.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The server as the user wrote it.
    pub host: String,
    /// The way to it.
    pub route: Route,
    /// The test. A `block_bytes` of 0 takes the protocol's default.
    pub params: Params,
    /// Between reports, ms; 0 is never.
    pub interval_ms: u64,
    /// What concerns this end alone.
    pub end: EndOptions,
    /// How long a receiver may hear nothing, ms.
    pub idle_timeout_ms: u64,
    /// Who asks.
    pub auth: Option<ClientAuth>,
}

/// Does a test from beginning to end. What happens is reported to the observer, also the error,
/// last.
///
/// # Errors
/// When there is no server, it refuses, goes away, or `stop` is raised.
pub fn run_client(
    options: &ClientOptions,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<(), Error> {
    let result = connect_and_run(options, stop, observer);
    if let Err(error) = &result {
        observer.observe(&Event::Failed(error.to_string()));
    }
    result
}

fn connect_and_run(
    options: &ClientOptions,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<(), Error> {
    observer.observe(&Event::Connecting {
        host: options.host.clone(),
        port: options.route.server.port(),
    });
    if let Some(cpu) = options.end.cpu {
        run_on_cpu(cpu).map_err(Error::option("the CPU affinity"))?;
    }
    let cookie = Cookie::draw()?;
    let control = Control::new(options.route.control()?, stop)?;
    control.send_cookie(&cookie)?;
    let mut client = Client {
        options,
        params: complete(options, &control)?,
        control,
        cookie,
        observer,
    };
    client.run()
}

/// The test with what can only be known now.
fn complete(options: &ClientOptions, control: &Control<'_>) -> Result<Params, Error> {
    let mut params = options.params.clone();
    if params.block_bytes == 0 {
        params.block_bytes = match params.protocol {
            Protocol::Tcp => crate::wire::params::DEFAULT_TCP_BLOCK_BYTES,
            Protocol::Udp => match control_mss_bytes(control) as usize {
                mss @ 1..=MAX_UDP_BLOCK_BYTES => mss,
                _ => DEFAULT_UDP_BLOCK_BYTES,
            },
        };
    }
    if let Some(auth) = &options.auth {
        params.auth_token = auth.token(realtime_ns() / SECOND_NS)?;
    }
    Ok(params)
}

fn control_mss_bytes(control: &Control<'_>) -> u32 {
    SockRef::from(control.stream()).tcp_mss().unwrap_or(0)
}

struct Client<'run> {
    options: &'run ClientOptions,
    params: Params,
    control: Control<'run>,
    cookie: Cookie,
    observer: &'run mut dyn Observer,
}

impl Client<'_> {
    fn run(&mut self) -> Result<(), Error> {
        self.expect(State::ParamExchange)?;
        self.control.send_json(&self.params.to_json())?;
        self.expect(State::CreateStreams)
            .map_err(|error| match error {
                // Versions before 3.15 just close.
                Error::ControlClosed if self.options.auth.is_some() => Error::Unauthorized,
                other => other,
            })?;
        let goal = Goal::of(&self.params).map_err(Error::Init)?;
        let mut running = Running::new(self.params.clone(), goal, self.options.end.clone(), true);
        let streams = self.create_streams()?;
        self.expect(State::TestStart)?;
        running.prepare(streams)?;
        self.observer
            .observe(&Event::Started(Box::new(self.head(&running.streams)?)));
        self.expect(State::TestRunning)?;
        let ending = running.run(&self.control, self.bounds(), self.observer);
        let end_ns = running.work.goal.reached_ns();
        let end_ns = end_ns.unwrap_or_else(monotonic_ns);
        running.last_interval(end_ns, self.bounds(), self.observer);
        let result = match ending {
            Ok(ending) => self.end(ending, &mut running),
            Err(error) => Err(error),
        };
        if result.is_err() {
            running.stop();
            self.observe_end(&running, None);
        }
        result
    }

    fn bounds(&self) -> Bounds {
        let lasts_ns = match self.params.end {
            End::Time(0) | End::Bytes(_) | End::Blocks(_) => None,
            End::Time(seconds) => Some(u64::from(seconds + self.params.omit_s) * SECOND_NS),
        };
        Bounds {
            interval_ns: self.options.interval_ms * 1_000_000,
            lasts_ns,
            idle_ns: self.options.idle_timeout_ms * 1_000_000,
            ends_at_goal: true,
        }
    }

    /// Waits for the one state that may come now. Everything else is the end.
    fn expect(&self, wanted: State) -> Result<(), Error> {
        let wait_ns = match wanted {
            State::ExchangeResults | State::DisplayResults => RESULTS_NS,
            _ => SETUP_NS,
        };
        match self.control.hear(monotonic_ns() + wait_ns, None)? {
            Heard::State(state) if state == wanted => Ok(()),
            Heard::State(state) => Err(self.bad_news(state)),
            Heard::Stopped => Err(self.interrupted()),
            Heard::Nothing | Heard::Other => Err(Error::Silent("go on")),
        }
    }

    fn bad_news(&self, state: State) -> Error {
        match state {
            State::AccessDenied => Error::Busy,
            State::ServerTerminate => Error::ServerTerminated,
            State::ServerError => match self.control.read_refusal() {
                Ok(refusal) => Error::Refused(refusal),
                Err(error) => error,
            },
            other => Error::Unexpected(other.to_wire()),
        }
    }

    fn interrupted(&self) -> Error {
        // Best effort: the server notices the closed connection as well.
        let _ = self.control.send_state(State::ClientTerminate);
        Error::Interrupted("the client has terminated")
    }

    fn create_streams(&self) -> Result<Vec<Stream>, Error> {
        let count = self.params.streams;
        let (senders, receivers) = match self.params.direction {
            Direction::Forward => (count, 0),
            Direction::Reverse => (0, count),
            Direction::Both => (count, count),
        };
        let mut streams = Vec::with_capacity(senders + receivers);
        for index in 0..senders + receivers {
            let socket = self.options.route.stream(&self.params, index)?;
            match self.params.protocol {
                Protocol::Tcp => introduce(&socket, &self.cookie)?,
                Protocol::Udp => greet(&socket, &self.control)?,
            }
            streams.push(Stream::new(index, index < senders, socket));
        }
        Ok(streams)
    }

    fn head(&self, streams: &[Stream]) -> Result<Head, Error> {
        let (control, server) = (self.control.stream(), self.options.route.server);
        Ok(Head {
            host: self.options.host.clone(),
            ..Head::of(
                Role::Client,
                &self.params,
                &self.cookie,
                control,
                server,
                streams,
            )?
        })
    }

    fn end(&mut self, ending: Ending, running: &mut Running) -> Result<(), Error> {
        match ending {
            Ending::Reached => running.let_file_arrive(),
            Ending::State(state) => return Err(self.bad_news(state)),
            Ending::Interrupted => return Err(self.interrupted()),
            Ending::Idle => {
                let _ = self.control.send_state(State::ClientTerminate);
                return Err(Error::Silent("send data"));
            }
        }
        self.control.send_state(State::TestEnd)?;
        // Receivers still drain, so that a server that is stuck in sending hears us.
        self.expect(State::ExchangeResults)?;
        running.stop();
        if let Some(meter) = running.meter() {
            let ours = meter.results(&running.streams, running.cpu());
            self.control.send_json(&ours.to_json())?;
        }
        let theirs = Results::parse(&self.control.read_json(MAX_SERVER_RESULTS_BYTES)?)?;
        for stream in &running.streams {
            if theirs.streams.iter().all(|result| result.id != stream.id) {
                return Err(Error::StreamId(stream.id));
            }
        }
        self.expect(State::DisplayResults)?;
        self.observe_end(running, Some(theirs));
        self.control.send_state(State::IperfDone)?;
        self.control.close_gently(SECOND_NS);
        Ok(())
    }

    fn observe_end(&mut self, running: &Running, theirs: Option<Results>) {
        if let Some(meter) = running.meter() {
            let ended = meter.ended(&running.streams, running.cpu(), theirs);
            self.observer.observe(&Event::Ended(Box::new(ended)));
        }
    }
}

/// A TCP stream identifies its client.
fn introduce(socket: &Socket, cookie: &Cookie) -> Result<(), Error> {
    let timeout = Some(Duration::from_nanos(ANSWER_NS));
    socket
        .set_write_timeout(timeout)
        .map_err(Error::StreamConnect)?;
    let mut left = &cookie.as_bytes()[..];
    while !left.is_empty() {
        let sent = socket.send(left).map_err(Error::StreamConnect)?;
        left = &left[sent..];
    }
    Ok(())
}

/// A UDP stream makes itself known and waits for the answer. A server that goes on has heard all of
/// them, and one that gives up is heard after that.
fn greet(socket: &Socket, control: &Control<'_>) -> Result<(), Error> {
    socket.set_nonblocking(true).map_err(Error::StreamConnect)?;
    for patience_ns in ANSWERED_AFTER_NS {
        socket.send(&GREETING).map_err(Error::StreamConnect)?;
        let deadline_ns = monotonic_ns() + patience_ns;
        while let left_ns @ 1.. = deadline_ns.saturating_sub(monotonic_ns()) {
            let ready = control.wait(left_ns, Some(socket.as_fd()))?;
            if ready.first() == Some(&true) || is_answered(socket)? {
                return Ok(());
            }
        }
    }
    let silent = io::Error::new(
        io::ErrorKind::TimedOut,
        "no answer from the server; is UDP let through to its port?",
    );
    Err(Error::StreamConnect(silent))
}

/// Datagrams of a sender that was faster than its answer are passed over.
fn is_answered(mut socket: &Socket) -> Result<bool, Error> {
    let mut answer = [0; 64];
    match socket.read(&mut answer) {
        Ok(count) => Ok(is_reply(&answer[..count])),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(Error::StreamConnect(error)),
    }
}
