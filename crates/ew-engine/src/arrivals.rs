//! From a connection to a stream that can run: one thread's connections, as the opener and the
//! acceptor hand them over.

use crate::clock_wait::Cancelled;
use crate::connect::{ConnectError, is_timeout};
use crate::shared::RoundShared;
use crate::stream::Stream;
use crate::stream_error::StreamError;
use crate::workload::machine::{Machine, OFFER_BYTES, Offer, Prepared};
use ew_sys::clock::monotonic_ns;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// How often a wait for connections checks whether it was cut short.
const SLICE: Duration = Duration::from_millis(50);
/// How often the peers' offers are polled for.
const OFFER_SLICE: Duration = Duration::from_millis(1);
/// The opener reports how every connection went; this is its time to do so.
const WORD_OF_OPENER_NS: u64 = 100_000_000;

/// How a stream's connection came about.
#[derive(Debug)]
pub(crate) struct Arrival {
    /// The stream's index on its thread.
    pub(crate) index: usize,
    pub(crate) connection: Result<TcpStream, ConnectError>,
}

/// A stream whose machine is ready to start.
pub(crate) struct Member {
    pub(crate) stream: Arc<Stream>,
    pub(crate) machine: Box<dyn Machine>,
}

/// One thread's streams until all are ready.
pub(crate) struct Arrivals {
    pub(crate) prepared: Arc<dyn Prepared>,
    pub(crate) streams: Vec<Arc<Stream>>,
    pub(crate) channel: Receiver<Arrival>,
    /// By index; true until it is ready or has failed.
    missing: Vec<bool>,
    missing_count: usize,
    /// Waiting for the peers' offers.
    greeting: Vec<Greeting>,
}

struct Greeting {
    index: usize,
    connection: Arc<TcpStream>,
    machine: Box<dyn Machine>,
    wire: [u8; OFFER_BYTES],
    filled: usize,
}

impl Arrivals {
    pub(crate) fn new(
        prepared: Arc<dyn Prepared>,
        streams: Vec<Arc<Stream>>,
        channel: Receiver<Arrival>,
    ) -> Self {
        Self {
            prepared,
            missing: vec![true; streams.len()],
            missing_count: streams.len(),
            streams,
            channel,
            greeting: Vec::new(),
        }
    }

    /// Whether nobody is waited for any more.
    pub(crate) fn is_complete(&self) -> bool {
        self.missing_count == 0
    }

    /// Waits for all, until this time at most.
    pub(crate) fn gather(
        &mut self,
        shared: &RoundShared,
        until_ns: u64,
        members: &mut Vec<Member>,
    ) -> Result<(), Cancelled> {
        self.begin_alone(shared, members);
        while !self.is_complete() {
            if shared.is_over() {
                return Err(Cancelled);
            }
            let now_ns = monotonic_ns();
            if now_ns >= until_ns {
                return Ok(());
            }
            let slice = match self.greeting.is_empty() {
                true => SLICE,
                false => OFFER_SLICE,
            };
            let left = Duration::from_nanos(until_ns - now_ns).min(slice);
            match self.channel.recv_timeout(left) {
                Ok(arrival) => self.take(shared, arrival, members),
                Err(RecvTimeoutError::Timeout) => {}
                // All have come, and some wait for their peers' offers.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(left.min(OFFER_SLICE)),
            }
            self.poll(shared, members);
        }
        Ok(())
    }

    /// Takes whoever has come meanwhile, and gives up those whose time is over.
    pub(crate) fn poll(&mut self, shared: &RoundShared, members: &mut Vec<Member>) {
        while let Ok(arrival) = self.channel.try_recv() {
            self.take(shared, arrival, members);
        }
        self.read_offers(shared, members);
        self.give_up_late(shared);
    }

    /// Workloads whose streams have no connection are ready at once.
    fn begin_alone(&mut self, shared: &RoundShared, members: &mut Vec<Member>) {
        if self.prepared.connects() {
            return;
        }
        for index in 0..self.streams.len() {
            if !self.resolve(index) {
                continue;
            }
            let stream = Arc::clone(&self.streams[index]);
            match self.prepared.alone(&shared.slot(&stream)) {
                Ok(machine) => members.push(Member { stream, machine }),
                Err(error) => stream.fail(&error),
            }
        }
    }

    fn take(&mut self, shared: &RoundShared, arrival: Arrival, members: &mut Vec<Member>) {
        let Arrival { index, connection } = arrival;
        let Some(stream) = self.streams.get(index).map(Arc::clone) else {
            return;
        };
        if !self.missing[index] {
            return;
        }
        let connection = connection.map_err(StreamError::from);
        match connection.and_then(|connection| self.greet(shared, index, connection)) {
            Ok(None) => {}
            Ok(Some(machine)) => {
                self.resolve(index);
                members.push(Member { stream, machine });
            }
            Err(error) => {
                self.resolve(index);
                stream.fail(&error);
            }
        }
    }

    /// `None` when the machine needs the peer's offer first.
    fn greet(
        &mut self,
        shared: &RoundShared,
        index: usize,
        connection: TcpStream,
    ) -> Result<Option<Box<dyn Machine>>, StreamError> {
        let stream = &self.streams[index];
        let peer = stream.peer;
        let broken = |source| StreamError::Connection { peer, source };
        // At the opening end once more: a route may bring a congestion control of its own (congctl
        // of ip-route(8)).
        shared
            .settings
            .apply(&connection, stream.peer.ip())
            .map_err(broken)?;
        connection.set_nonblocking(true).map_err(broken)?;
        for note in shared.settings.notes(&connection) {
            stream.note(note);
        }
        let connection = stream.publish(connection);
        let slot = shared.slot(stream);
        let mut machine = self.prepared.machine(&slot, Arc::clone(&connection))?;
        let Some(own) = machine.own_socket() else {
            return Ok(Some(machine));
        };
        let offer = own.offer(&slot)?;
        // The send buffer of a fresh connection has space for it.
        (&*connection).write_all(&offer.encode()).map_err(broken)?;
        self.greeting.push(Greeting {
            index,
            connection,
            machine,
            wire: [0; OFFER_BYTES],
            filled: 0,
        });
        Ok(None)
    }

    fn read_offers(&mut self, shared: &RoundShared, members: &mut Vec<Member>) {
        for mut greeting in std::mem::take(&mut self.greeting) {
            let stream = Arc::clone(&self.streams[greeting.index]);
            let peer = stream.peer;
            let accepted = match greeting.read() {
                Ok(None) if self.missing[greeting.index] => {
                    self.greeting.push(greeting);
                    continue;
                }
                Ok(None) => continue,
                Ok(Some(offer)) => {
                    let own = greeting.machine.own_socket();
                    own.map_or(Ok(()), |own| own.accept_offer(&shared.slot(&stream), offer))
                }
                Err(source) => Err(StreamError::NoOffer { peer, source }),
            };
            self.resolve(greeting.index);
            match accepted {
                Ok(()) => members.push(Member {
                    stream,
                    machine: greeting.machine,
                }),
                Err(error) => stream.fail(&error),
            }
        }
    }

    /// A little beyond the start is waited: the opener's clock may be later than ours.
    fn give_up_late(&mut self, shared: &RoundShared) {
        let now_ns = monotonic_ns();
        let accept_by_ns = shared.window_ns.start.max(shared.start_ns);
        if now_ns < accept_by_ns || self.is_complete() {
            return;
        }
        for index in 0..self.streams.len() {
            let stream = &self.streams[index];
            let is_late = !stream.opens || now_ns >= accept_by_ns + WORD_OF_OPENER_NS;
            if self.missing[index] && is_late {
                stream.fail(&stream.missed(&shared.cancel));
                self.resolve(index);
            }
        }
    }

    /// Whether it was still missing.
    fn resolve(&mut self, index: usize) -> bool {
        let was_missing = std::mem::replace(&mut self.missing[index], false);
        self.missing_count -= usize::from(was_missing);
        was_missing
    }
}

impl Greeting {
    /// `None` until it is complete.
    fn read(&mut self) -> io::Result<Option<Offer>> {
        match (&*self.connection).read(&mut self.wire[self.filled..]) {
            Ok(0) => return Err(io::Error::other("the peer closed the connection")),
            Ok(count) => self.filled += count,
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error),
        }
        Ok((self.filled == OFFER_BYTES).then(|| Offer::decode(&self.wire)))
    }
}
