//! TCP request and response: the sending end asks, one request outstanding; the receiving end echoes.

use super::{Broken, Driver, Link, Prepared};
use crate::buffer::PageBuffer;
use ew_model::workload::Workload;
use ew_proto::message::Role;
use ew_sys::clock::monotonic_ns;
use hdrhistogram::Histogram;
use std::sync::Arc;

/// The longest round trip told apart; longer ones count as this.
const LONGEST_NS: u64 = 60_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

pub(super) struct TcpRequests {
    content: Arc<PageBuffer>,
}

struct Requester {
    content: Arc<PageBuffer>,
    response: PageBuffer,
    latency: Option<Histogram<u64>>,
}

struct Responder {
    request: PageBuffer,
}

impl TcpRequests {
    pub(super) fn new(workload: &Workload) -> Self {
        Self {
            content: Arc::new(PageBuffer::incompressible(workload.message_bytes as usize)),
        }
    }
}

impl Prepared for TcpRequests {
    fn driver(&self, role: Role) -> Result<Box<dyn Driver>, String> {
        let length = self.content.as_slice().len();
        Ok(match role {
            Role::Send => Box::new(Requester {
                content: Arc::clone(&self.content),
                response: PageBuffer::faulted_in(length),
                latency: Some(empty_histogram()?),
            }),
            Role::Receive => Box::new(Responder {
                request: PageBuffer::faulted_in(length),
            }),
        })
    }
}

impl Driver for Requester {
    fn run(&mut self, link: &mut Link<'_>) -> Result<(), Broken> {
        link.start();
        link.settle();
        while self.transact(link)? {}
        Ok(())
    }

    fn take_latency(&mut self) -> Option<Histogram<u64>> {
        self.latency.take()
    }
}

impl Requester {
    /// False when the link stops.
    fn transact(&mut self, link: &mut Link<'_>) -> Result<bool, Broken> {
        let begun_ns = monotonic_ns();
        if link.stops() || !link.send_all(self.content.as_slice())? {
            return Ok(false);
        }
        link.lane.add_sent(self.content.as_slice().len() as u64);
        if !link.receive_all(self.response.as_mut_slice())? {
            return Ok(false);
        }
        let ended_ns = monotonic_ns();
        link.lane
            .add_received(self.response.as_slice().len() as u64);
        if begun_ns >= link.window_ns.start && ended_ns <= link.window_ns.end {
            self.record(ended_ns - begun_ns);
        }
        Ok(true)
    }

    fn record(&mut self, round_trip_ns: u64) {
        if let Some(latency) = &mut self.latency {
            latency.saturating_record(round_trip_ns);
        }
    }
}

fn empty_histogram() -> Result<Histogram<u64>, String> {
    Histogram::new_with_bounds(1, LONGEST_NS, SIGNIFICANT_DIGITS)
        .map_err(|error| format!("histogram of round-trip times: {error}"))
}

impl Driver for Responder {
    fn run(&mut self, link: &mut Link<'_>) -> Result<(), Broken> {
        while !link.stops() && link.receive_all(self.request.as_mut_slice())? {
            let length = self.request.as_slice().len() as u64;
            link.lane.add_received(length);
            if link.send_all(self.request.as_slice())? {
                link.lane.add_sent(length);
            }
        }
        Ok(())
    }
}
