//! Messages of a published distribution's sizes, each answered at its end: completion times.
//!
//! At a load messages arrive at random (Poisson), whether or not earlier ones are completed, and
//! each takes the next free connection of its flow; its time counts from its arrival, so that
//! waiting for a connection counts. Without a load they go one at a time, size after size.
//!
//! A message begins with a byte that shows its class of size, and the answer is one byte.

use super::machine::{Broken, Io, Machine, Prepared, Slot, Wait};
use super::requests::record;
use super::tcp::{receive, send};
use crate::stream_error::StreamError;
use ew_model::ports::mixed;
use ew_model::sizes::SizeClass;
use ew_model::workload::Workload;
use ew_proto::message::Role;
use ew_sys::clock::monotonic_ns;
use std::collections::BTreeMap;
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Of a thread, for one send or receive.
const BUFFER_BYTES: usize = 256 * 1024;
/// Sends of one message before other streams of the thread go on.
const SENDS_IN_A_ROW: usize = 4;
/// One at a time: from an answer to the next message, so that it starts from a timer and on a quiet
/// network, as at a low load.
const PAUSE_NS: u64 = 200_000;
/// One at a time: a size is sent so often in a row that it has these bytes, within the bounds.
const BYTES_IN_A_ROW: u64 = 256 * 1024;
const MOST_IN_A_ROW: u64 = 16;
/// What an answer is.
const ANSWER: [u8; 1] = [0];

pub(super) struct Messages {
    classes: Arc<[SizeClass]>,
    is_at_a_load: bool,
    streams: u32,
    /// Of flows that this host sends, by their index in the round, each shared by its streams.
    arrivals: Mutex<BTreeMap<usize, Arc<Arrivals>>>,
}

/// A flow's messages at a load: when each arrives, and its class. A pure function of the seed,
/// without a lock: streams take messages from it in turn.
#[derive(Debug)]
struct Arrivals {
    /// The time of the next message that no stream has taken, from the start.
    next_ns: AtomicU64,
    seed: u64,
    mean_gap_ns: f64,
    /// For each class the share of messages up to it.
    shares_up_to: Vec<f64>,
}

/// Which message is next when they go one at a time.
#[derive(Clone, Copy, Debug, Default)]
struct Turns {
    class: usize,
    sent_in_a_row: u64,
}

enum Source {
    Arrivals(Arc<Arrivals>),
    /// With the payload rate that they are not to exceed on average.
    Turns(Turns, Option<f64>),
}

#[derive(Clone, Copy, Debug)]
struct Message {
    class: usize,
    due_ns: u64,
    begun_ns: Option<u64>,
    unsent_bytes: u64,
}

struct Sender {
    socket: Arc<TcpStream>,
    classes: Arc<[SizeClass]>,
    source: Source,
    message: Option<Message>,
    /// No message before this.
    rests_until_ns: u64,
}

/// What comes on one connection.
#[derive(Debug, Default)]
struct Incoming {
    /// Of the message that has begun.
    left_bytes: u64,
}

struct Receiver {
    socket: Arc<TcpStream>,
    classes: Arc<[SizeClass]>,
    incoming: Incoming,
    owed_answers: usize,
}

impl Messages {
    pub(super) fn new(workload: &Workload) -> Self {
        Self {
            classes: workload.distribution.classes().into(),
            is_at_a_load: workload.pace.line_share.is_some(),
            streams: workload.streams,
            arrivals: Mutex::default(),
        }
    }

    fn source(&self, slot: &Slot<'_>) -> Result<Source, StreamError> {
        let of_flow = |of_stream: f64| of_stream * f64::from(self.streams);
        let bits_per_sec = slot.stream.bits_per_sec.map(of_flow);
        if !self.is_at_a_load {
            return Ok(Source::Turns(Turns::default(), bits_per_sec));
        }
        let rate = bits_per_sec.filter(|rate| rate.is_finite() && *rate > 0.0);
        let rate = rate.ok_or(StreamError::NoLoad)?;
        let mut arrivals = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        let of_flow = arrivals
            .entry(slot.stream.flow)
            .or_insert_with(|| Arc::new(Arrivals::new(seed(slot), rate, &self.classes)));
        Ok(Source::Arrivals(Arc::clone(of_flow)))
    }
}

/// From the run's seed, where the source ports have one, and of each flow of each round another.
fn seed(slot: &Slot<'_>) -> u64 {
    let key = slot.stream.key;
    let of_run = slot.stream.chosen_ports.map_or(0, |ports| ports.seed);
    let round = mixed(u64::from(key.stage.0) << 32 | u64::from(key.round.0));
    mixed(of_run ^ mixed(round ^ u64::from(key.flow.0)))
}

impl Prepared for Messages {
    fn machine(
        &self,
        slot: &Slot<'_>,
        connection: Arc<TcpStream>,
    ) -> Result<Box<dyn Machine>, StreamError> {
        let classes = Arc::clone(&self.classes);
        Ok(match slot.stream.role {
            Role::Send => Box::new(Sender {
                socket: connection,
                classes,
                source: self.source(slot)?,
                message: None,
                rests_until_ns: 0,
            }),
            Role::Receive => Box::new(Receiver {
                socket: connection,
                classes,
                incoming: Incoming::default(),
                owed_answers: 0,
            }),
        })
    }

    fn buffer_bytes(&self, _role: Role) -> usize {
        BUFFER_BYTES
    }

    /// A stream waits for a time or for its socket.
    fn may_block(&self) -> bool {
        false
    }

    /// At a low load a flow may have no message in the window.
    fn counts(&self, _role: Role) -> bool {
        !self.is_at_a_load
    }
}

impl Machine for Sender {
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn start(&mut self, io: &mut Io<'_>) -> Result<(), Broken> {
        io.tally.times.allocate();
        io.tally.allocate_sizes(self.classes.len());
        if matches!(self.source, Source::Arrivals(_)) {
            io.tally.uncorrected.allocate();
        }
        io.note_start();
        Ok(())
    }

    fn step(&mut self, io: &mut Io<'_>) -> Result<Wait, Broken> {
        let now_ns = monotonic_ns();
        let mut message = match self.message.take() {
            Some(message) => message,
            None => self.next_message(io.shared.start_ns, now_ns),
        };
        if message.begun_ns.is_none() && message.due_ns > now_ns {
            self.message = Some(message);
            return Ok(Wait::Until(message.due_ns));
        }
        message.begun_ns.get_or_insert(now_ns);
        let wait = match message.unsent_bytes {
            0 => self.take_answer(io, &message)?,
            _ => Some(self.send(io, &mut message)?),
        };
        self.message = wait.is_some().then_some(message);
        Ok(wait.unwrap_or(Wait::Again))
    }
}

impl Sender {
    fn next_message(&mut self, start_ns: u64, now_ns: u64) -> Message {
        let (class, due_ns) = match &mut self.source {
            Source::Arrivals(arrivals) => {
                let (class, at_ns) = arrivals.take();
                (class, start_ns + at_ns)
            }
            Source::Turns(turns, _) => {
                let due_ns = self.rests_until_ns.max(now_ns + PAUSE_NS);
                (turns.take(&self.classes), due_ns)
            }
        };
        Message {
            class,
            due_ns,
            begun_ns: None,
            unsent_bytes: self.classes[class].bytes,
        }
    }

    fn send(&self, io: &mut Io<'_>, message: &mut Message) -> Result<Wait, Broken> {
        for _ in 0..SENDS_IN_A_ROW {
            let count = (message.unsent_bytes as usize).min(io.buffer.len());
            if message.unsent_bytes == self.classes[message.class].bytes {
                io.buffer[0] = message.class as u8;
            }
            let sent = send(&self.socket, &io.buffer[..count])?;
            io.counters.add_sent(sent as u64);
            message.unsent_bytes -= sent as u64;
            if sent < count || message.unsent_bytes == 0 {
                return Ok(Wait::Socket);
            }
        }
        Ok(Wait::Again)
    }

    /// `None` once the message is completed.
    fn take_answer(&mut self, io: &mut Io<'_>, message: &Message) -> Result<Option<Wait>, Broken> {
        if receive(&self.socket, &mut io.buffer[..ANSWER.len()])? == 0 {
            return Ok(Some(Wait::Socket));
        }
        let now_ns = monotonic_ns();
        io.counters.add_received(ANSWER.len() as u64);
        let begun_ns = message.begun_ns.unwrap_or(message.due_ns);
        match &self.source {
            Source::Arrivals(_) => record(io, Some(message.due_ns), begun_ns, now_ns),
            // What a timer is late by counts here as it does at a load.
            Source::Turns(_, rate) => {
                record(io, None, message.due_ns, now_ns);
                let bits = 8.0 * self.classes[message.class].bytes as f64;
                let least_ns = rate.map_or(0.0, |rate| 1e9 * bits / rate);
                self.rests_until_ns = begun_ns + least_ns as u64;
            }
        }
        if io.in_window(now_ns) {
            io.tally.sizes[message.class].record(now_ns.saturating_sub(message.due_ns));
        }
        Ok(None)
    }
}

impl Arrivals {
    /// At a payload rate.
    fn new(seed: u64, bits_per_sec: f64, classes: &[SizeClass]) -> Self {
        let mean_bits: f64 = classes.iter().map(|c| 8.0 * c.share * c.bytes as f64).sum();
        let mut up_to = 0.0;
        let shares_up_to = classes.iter().map(|class| {
            up_to += class.share;
            up_to
        });
        let mut arrivals = Self {
            next_ns: AtomicU64::new(0),
            seed,
            mean_gap_ns: 1e9 * mean_bits / bits_per_sec,
            shares_up_to: shares_up_to.collect(),
        };
        arrivals.next_ns = AtomicU64::new(arrivals.gap_ns(0));
        arrivals
    }

    /// The next message's class and time from the start.
    fn take(&self) -> (usize, u64) {
        let following = |at_ns: u64| Some(at_ns.saturating_add(self.gap_ns(at_ns)));
        let taken = (self.next_ns).fetch_update(Ordering::Relaxed, Ordering::Relaxed, following);
        // It never refuses.
        let at_ns = taken.unwrap_or_else(|at_ns| at_ns);
        let share = uniform(!self.seed, at_ns);
        let class = self.shares_up_to.partition_point(|up_to| *up_to <= share);
        (class.min(self.shares_up_to.len() - 1), at_ns)
    }

    /// From the message at a time to the next one: exponential, by inversion. At least 1, so that
    /// no two have the same time, on which all that is random hangs.
    fn gap_ns(&self, at_ns: u64) -> u64 {
        let gap_ns = -(1.0 - uniform(self.seed, at_ns)).ln() * self.mean_gap_ns;
        (gap_ns.round() as u64).max(1)
    }
}

/// From 0 up to 1.
fn uniform(seed: u64, at: u64) -> f64 {
    const RANGE: f64 = (1_u64 << 53) as f64;
    (mixed(seed ^ mixed(at)) >> 11) as f64 / RANGE
}

impl Turns {
    /// The class of the next message.
    fn take(&mut self, classes: &[SizeClass]) -> usize {
        let class = self.class;
        self.sent_in_a_row += 1;
        let in_a_row = (BYTES_IN_A_ROW / classes[class].bytes).clamp(1, MOST_IN_A_ROW);
        if self.sent_in_a_row >= in_a_row {
            *self = Self {
                class: (class + 1) % classes.len(),
                sent_in_a_row: 0,
            };
        }
        class
    }
}

impl Incoming {
    /// How many messages end in the bytes. `None` when these are of no message.
    fn take(&mut self, classes: &[SizeClass], mut bytes: &[u8]) -> Option<usize> {
        let mut ended = 0;
        while let Some((first, others)) = bytes.split_first() {
            if self.left_bytes == 0 {
                self.left_bytes = classes.get(usize::from(*first))?.bytes - 1;
                bytes = others;
            } else {
                let count = bytes.len().min(self.left_bytes as usize);
                self.left_bytes -= count as u64;
                bytes = &bytes[count..];
            }
            ended += usize::from(self.left_bytes == 0);
        }
        Some(ended)
    }
}

impl Machine for Receiver {
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn step(&mut self, io: &mut Io<'_>) -> Result<Wait, Broken> {
        if self.owed_answers == 0 {
            let received = receive(&self.socket, io.buffer)?;
            io.counters.add_received(received as u64);
            let ended = self.incoming.take(&self.classes, &io.buffer[..received]);
            self.owed_answers = ended.ok_or_else(|| Broken {
                action: "understand",
                error: io::Error::other("it sent a message of an unknown size"),
            })?;
            if self.owed_answers == 0 {
                let may_have_more = received == io.buffer.len();
                return Ok(if may_have_more {
                    Wait::Again
                } else {
                    Wait::Socket
                });
            }
        }
        let sent = send(&self.socket, &ANSWER)?;
        io.counters.add_sent(sent as u64);
        self.owed_answers -= sent;
        // A sender goes on when it has the answer.
        let may_send_more = sent > 0 && self.owed_answers > 0;
        Ok(if may_send_more {
            Wait::Again
        } else {
            Wait::Socket
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::sizes::SizeDistribution;
    use proptest::prelude::*;

    fn arrivals(seed: u64) -> Arrivals {
        // A message a microsecond.
        let classes = SizeDistribution::W3.classes();
        let rate = 8e6 * SizeDistribution::W3.mean_bytes();
        Arrivals::new(seed, rate, &classes)
    }

    fn taken(arrivals: &Arrivals, count: usize) -> Vec<(usize, u64)> {
        (0..count).map(|_| arrivals.take()).collect()
    }

    #[test]
    fn arrivals_are_a_poisson_process_at_the_rate() {
        let taken = taken(&arrivals(1), 200_000);
        let gaps = taken.windows(2).map(|two| (two[1].1 - two[0].1) as f64);
        let gaps: Vec<f64> = gaps.collect();
        let count = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / count;
        assert!((mean / 1e3 - 1.0).abs() < 0.01, "{mean}");
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count;
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02, "{variance}");
        // A gap exceeds k means with probability e^-k, and hangs on no gap before it.
        for k in [0.5, 1.0, 2.0] {
            let longer = gaps.iter().filter(|gap| **gap > k * mean).count() as f64;
            assert!((longer / count - (-k).exp()).abs() < 0.005, "{k} {longer}");
        }
        let products = gaps.windows(2).map(|two| (two[0] - mean) * (two[1] - mean));
        let correlation = products.sum::<f64>() / count / variance;
        assert!(correlation.abs() < 0.01, "{correlation}");
    }

    #[test]
    fn messages_have_the_distributions_sizes() {
        let classes = SizeDistribution::W3.classes();
        let taken = taken(&arrivals(2), 200_000);
        for (index, class) in classes.iter().enumerate() {
            let share = taken.iter().filter(|(of, _)| *of == index).count() as f64 / 2e5;
            assert!((share - class.share).abs() < 0.005, "{class:?} {share}");
        }
    }

    #[test]
    fn the_same_seed_has_the_same_messages_whoever_takes_them() {
        let alone = taken(&arrivals(3), 40_000);
        let shared = arrivals(3);
        let mut of_all: Vec<(usize, u64)> = std::thread::scope(|scope| {
            let take = || taken(&shared, 10_000);
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            let taken = threads.into_iter().map(|thread| thread.join().unwrap());
            taken.flatten().collect()
        });
        of_all.sort_by_key(|(_, at_ns)| *at_ns);
        assert_eq!(of_all, alone);
        assert_ne!(taken(&arrivals(4), 10), alone[..10]);
    }

    #[test]
    fn one_at_a_time_every_size_has_its_turn() {
        let classes = SizeDistribution::Hadoop.classes();
        let mut turns = Turns::default();
        let mut counts = vec![0; classes.len()];
        loop {
            counts[turns.take(&classes)] += 1;
            if turns.class == 0 && turns.sent_in_a_row == 0 {
                break;
            }
        }
        assert_eq!(counts.iter().max(), Some(&16), "{counts:?}");
        assert_eq!(counts.last(), Some(&1));
        assert!(counts.is_sorted_by(|a, b| a >= b));
    }

    proptest! {
        #[test]
        fn messages_end_where_they_end_however_they_come(
            sizes in prop::collection::vec(0..4_usize, 1..20),
            parts in prop::collection::vec(1..700_usize, 1..20),
        ) {
            let classes: Vec<SizeClass> = [1, 2, 300, 1000]
                .map(|bytes| SizeClass { bytes, share: 0.25 })
                .into();
            let mut wire = Vec::new();
            for class in &sizes {
                wire.push(*class as u8);
                wire.resize(wire.len() + classes[*class].bytes as usize - 1, 0xff);
            }
            let mut incoming = Incoming::default();
            let (mut ended, mut left, mut parts) = (0, wire.as_slice(), parts.iter().cycle());
            while !left.is_empty() {
                let (part, others) = left.split_at(left.len().min(*parts.next().unwrap()));
                ended += incoming.take(&classes, part).unwrap();
                left = others;
            }
            prop_assert_eq!((ended, incoming.left_bytes), (sizes.len(), 0));
            prop_assert_eq!(incoming.take(&classes, &[4]), None);
        }
    }
}
