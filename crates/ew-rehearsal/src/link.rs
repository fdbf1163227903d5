//! The way between the controller and an agent: two streams of bytes with a delay, cut into pieces
//! at random, and with what goes wrong on the way.

use crate::faults::Fault;
use crate::world::World;
use ew_fleet::InProcessLink;
use ew_model::inventory::HostId;
use ew_sim::Dice;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{
    AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex, split,
};
use tokio::task::yield_now;
use tokio::time::sleep;

/// What waits on either end.
const PIPE_BYTES: usize = 64 * 1024;
/// What travels at once.
const FLIGHT_BYTES: usize = 16 * 1024;

/// Into which it is cut at most: the last one is all the rest.
const PIECES: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    ToAgent,
    ToController,
}

/// Both ends of a new link: the controller's and the agent's.
pub(crate) fn connect(world: &Arc<World>, host: HostId) -> (InProcessLink, DuplexStream) {
    let (ours, near) = duplex(PIPE_BYTES);
    let (theirs, far) = duplex(PIPE_BYTES);
    let (near_reader, near_writer) = split(near);
    let (far_reader, far_writer) = split(far);
    let carry = |way, from, to| {
        let course = Course::new(world, host, way);
        tokio::spawn(course.run(from, to))
    };
    let outgoing = carry(Way::ToAgent, near_reader, far_writer);
    let incoming = carry(Way::ToController, far_reader, near_writer);
    let (reader, writer) = split(ours);
    let link = InProcessLink {
        reader: Box::new(BufReader::new(reader)),
        writer: Box::new(writer),
        incoming,
        outgoing,
    };
    (link, theirs)
}

/// One direction.
struct Course {
    world: Arc<World>,
    host: HostId,
    way: Way,
    dice: Dice,
}

impl Course {
    fn new(world: &Arc<World>, host: HostId, way: Way) -> Self {
        let part = [3, u64::from(host.0), way as u64 + 2 * world.now_ns()];
        Self {
            dice: Dice::new(world.drawn.seed, part),
            world: Arc::clone(world),
            host,
            way,
        }
    }

    async fn run(mut self, from: ReadHalf<DuplexStream>, mut to: WriteHalf<DuplexStream>) {
        let (world, host, began_ns) = (Arc::clone(&self.world), self.host, self.world.now_ns());
        tokio::select! {
            biased;
            () = until_cut(&world, host, began_ns) => {}
            () = self.carry(from, &mut to) => {}
        }
        // An end that is gone hears nothing.
        let _ = to.shutdown().await;
    }

    async fn carry(&mut self, mut from: ReadHalf<DuplexStream>, to: &mut WriteHalf<DuplexStream>) {
        let spec = &self.world.drawn.hosts[self.host.index()];
        let (delay, most) = (Duration::from_nanos(spec.delay_ns), spec.most_at_once);
        let mut flight = vec![0; FLIGHT_BYTES];
        loop {
            let read = from.read(&mut flight).await;
            let lost = self.is_lost();
            let Ok(length @ 1..) = read else {
                if lost {
                    // Nobody hears of an end that the way does not carry.
                    pending::<()>().await;
                }
                return;
            };
            if lost {
                continue;
            }
            sleep(delay).await;
            self.while_stalled().await;
            let mut rest = &flight[..length];
            for piece in 1..=PIECES {
                let own = match piece {
                    PIECES => rest.len(),
                    _ => rest.len().min(1 + self.dice.below(most)),
                };
                let (piece, later) = rest.split_at(own);
                if piece.is_empty() {
                    break;
                }
                if to.write_all(piece).await.is_err() {
                    return;
                }
                yield_now().await;
                rest = later;
            }
        }
    }

    /// Whether what travels now is lost without anybody noticing.
    fn is_lost(&self) -> bool {
        let now_ns = self.world.now_ns();
        self.world
            .faults(self.host)
            .iter()
            .any(|fault| match *fault {
                Fault::LosesPower { at_ns } => now_ns >= at_ns,
                Fault::Mutes { at_ns } => self.way == Way::ToController && now_ns >= at_ns,
                Fault::Deafens { at_ns } => self.way == Way::ToAgent && now_ns >= at_ns,
                _ => false,
            })
    }

    async fn while_stalled(&self) {
        let now_ns = self.world.now_ns();
        for fault in self.world.faults(self.host) {
            if let Fault::Stalls { at_ns, for_ns } = *fault
                && (at_ns..at_ns + for_ns).contains(&now_ns)
            {
                self.world.sleep_until(at_ns + for_ns).await;
            }
        }
    }
}

/// Until the link is cut; links that begin later are whole.
async fn until_cut(world: &World, host: HostId, began_ns: u64) {
    for fault in world.faults(host) {
        if let Fault::Cut { at_ns } = *fault
            && at_ns >= began_ns
        {
            return world.sleep_until(at_ns).await;
        }
    }
    pending::<()>().await;
}
