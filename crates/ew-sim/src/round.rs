//! One round: every flow's streams, their ways, what they share, and what hosts and TCP make of it.

use crate::acks::{Acknowledged, FullPort};
use crate::dice::Dice;
use crate::ends::{self, FlowResult, LimitedBy, StreamResult};
use crate::network::{Kind, Route};
use crate::paths::FiveTuple;
use crate::round_run::RoundRun;
use crate::sharing::{Demand, Grant, Way, share};
use crate::tcp;
use ew_model::plan::Flow;
use ew_model::record::{FlowOutcome, FlowRecord};
use ew_model::topology::{CongestionControl, Queue};
use ew_model::{HostId, WorkloadKind};
use std::fmt;
use std::net::IpAddr;

/// Default upper limits of `net.ipv4.tcp_rmem` and `tcp_wmem`.
const RECEIVE_BUFFER_BYTES: u64 = 6 << 20;
const SEND_BUFFER_BYTES: u64 = 4 << 20;
const CUBIC_FILLS: (f64, f64) = (0.5, 1.0);
const BBR_FILLS: (f64, f64) = (0.1, 0.3);
/// What a host's own queue lets wait.
const OWN_QUEUE_BYTES: f64 = 256.0 * 1024.0;
const MAX_QUEUE_SEC: f64 = 0.5;
/// What random loss does to a rate from window to window (log-scale).
const LOSSY_SPREAD: f64 = 0.25;

/// A flow with its streams before they share.
struct Draft<'a> {
    flow: &'a Flow,
    segment_bytes: f64,
    /// Payload over frames.
    efficiency: f64,
    streams: Vec<Stream>,
    /// Why it cannot be measured.
    failure: Option<String>,
}

struct Stream {
    tuple: FiveTuple,
    route: Route,
    way_back: Way,
    base_round_trip_ns: u64,
    limit: f64,
    limited_by: LimitedBy,
}

/// Why a stream has no connection, as Linux reports it (errno(3)).
#[derive(Clone, Copy, Debug)]
enum Unconnected {
    TimedOut(IpAddr),
    NoRoute(IpAddr),
}

impl fmt::Display for Unconnected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut(peer) => {
                write!(f, "connect to {peer}: Connection timed out (os error 110)")
            }
            Self::NoRoute(peer) => write!(f, "connect to {peer}: No route to host (os error 113)"),
        }
    }
}

/// Records of a round, and what every resource carried, frames in bits per second.
pub(crate) struct RoundResult {
    pub(crate) records: Vec<FlowRecord>,
    pub(crate) carried: Vec<f64>,
}

impl<'a> RoundRun<'a> {
    pub(crate) fn run(&self, dice: &mut Dice) -> RoundResult {
        let round = &self.stage.rounds[self.at.1.0 as usize];
        let drafts: Vec<Draft<'_>> = round
            .flows
            .iter()
            .map(|flow| self.draft(flow, dice))
            .collect();
        let demands = self.demands(&drafts, dice);
        let mut carried = self.acknowledgements(&drafts, &share(&demands, self.capacities));
        let left: Vec<f64> = self
            .capacities
            .iter()
            .zip(&carried)
            .map(|(all, acks)| all - acks)
            .collect();
        let grants = share(&demands, &left);
        for (demand, grant) in demands.iter().zip(&grants) {
            for resource in demand.way.resources() {
                carried[*resource as usize] += grant.rate;
            }
        }
        let common =
            self.level * (1.0 - self.spread(self.noise.round_spread) * dice.normal().abs());
        let mut next = grants.iter();
        let results: Vec<FlowResult> = drafts
            .iter()
            .map(|draft| self.result(draft, &mut next, common, dice))
            .collect();
        let hosts = ends::HostTotals::new(self, round, &results);
        let pairs = round.flows.iter().zip(&results).zip(&drafts);
        let records = pairs
            .map(|((flow, result), draft)| self.record(flow, result, draft, &hosts, dice))
            .collect();
        RoundResult { records, carried }
    }

    fn spread(&self, spread: f64) -> f64 {
        spread * self.noise.level
    }

    fn draft<'f>(&self, flow: &'f Flow, dice: &mut Dice) -> Draft<'f> {
        let (src, dst) = (self.network.host(flow.src), self.network.host(flow.dst));
        let mtu = src.spec.nic.mtu_bytes.min(dst.spec.nic.mtu_bytes);
        let headers = if src.address.is_ipv4() { 52 } else { 72 };
        let segment_bytes = f64::from(mtu.saturating_sub(headers).max(1));
        let mut draft = Draft {
            flow,
            segment_bytes,
            efficiency: segment_bytes / (f64::from(mtu) + self.frame_bytes()),
            streams: Vec::new(),
            failure: None,
        };
        for number in 0..self.streams() {
            let tuple = self.tuple(flow, number, dice);
            match self.connect(flow, tuple) {
                Ok((route, way_back)) => {
                    let stream = self.stream(&draft, tuple, route, way_back);
                    draft.streams.push(stream);
                }
                // A path that is dead is traced all the same.
                Err(_) if self.stage.workload.kind == WorkloadKind::Trace => {}
                Err(reason) => draft.failure = Some(reason.to_string()),
            }
        }
        draft
    }

    /// Around an IP packet: a real link has preamble, checksum and gap too.
    fn frame_bytes(&self) -> f64 {
        let mut nics = self.network.hosts.iter().map(|site| &site.spec.nic);
        match nics.any(|nic| nic.reported_bits_per_sec.is_some()) {
            true => 38.0,
            false => 14.0,
        }
    }

    /// The way there, and that of what comes back.
    fn connect(&self, flow: &Flow, tuple: FiveTuple) -> Result<(Route, Way), Unconnected> {
        let there = self.network.route(flow.src, flow.dst, tuple);
        let back = self.network.route(flow.dst, flow.src, tuple.reversed());
        let peer = self.network.host(flow.server()).address;
        match (there, back) {
            (Some(there), Some(back)) if !there.is_dead && !back.is_dead => Ok((there, back.way)),
            (Some(_), Some(_)) => Err(Unconnected::TimedOut(peer)),
            _ => Err(Unconnected::NoRoute(peer)),
        }
    }

    fn stream(&self, draft: &Draft<'_>, tuple: FiveTuple, route: Route, way_back: Way) -> Stream {
        let base_round_trip_ns = self.network.round_trip_ns(&route, self.noise.stack_ns);
        let round_trip_sec = base_round_trip_ns as f64 / 1e9;
        let (src, dst) = (
            self.network.host(draft.flow.src).spec,
            self.network.host(draft.flow.dst).spec,
        );
        let workload = &self.stage.workload;
        let paced = [
            workload.pace.stream_bits_per_sec,
            workload
                .pace
                .flow_bits_per_sec
                .map(|rate| rate / f64::from(self.streams())),
            self.plan
                .pace_of(self.stage, draft.flow)
                .map(|rate| rate / f64::from(self.streams())),
            self.limited
                .as_ref()
                .map(|limited| limited.goodput_of(draft.flow) / f64::from(self.streams())),
        ];
        let pace = paced.into_iter().flatten().fold(f64::INFINITY, f64::min);
        // Half of a buffer is the kernel's own bookkeeping.
        let window = |bytes: u64| bytes as f64 / 2.0 * 8.0 / round_trip_sec;
        let asked = |bytes: Option<u32>| bytes.map(|bytes| 2 * u64::from(bytes));
        let receive = asked(workload.socket.receive_buffer_bytes)
            .or(dst.receive_buffer_bytes)
            .unwrap_or(RECEIVE_BUFFER_BYTES);
        let send = asked(workload.socket.send_buffer_bytes)
            .or(src.send_buffer_bytes)
            .unwrap_or(SEND_BUFFER_BYTES);
        let lossy = tcp::loss_limit(
            self.control(draft.flow),
            route.loss_share,
            round_trip_sec,
            draft.segment_bytes,
        );
        let cap = src
            .shaper
            .flow_bits_per_sec
            .map_or(f64::INFINITY, |rate| rate as f64);
        let payload_limits = [
            (pace, LimitedBy::Pace),
            (window(receive), LimitedBy::ReceiveWindow),
            (window(send), LimitedBy::SendBuffer),
            (
                if workload.kind.is_tcp() {
                    lossy
                } else {
                    f64::INFINITY
                },
                LimitedBy::Loss,
            ),
            (8e9 / self.noise.cpu_ns_per_byte, LimitedBy::Core),
            (cap * draft.efficiency, LimitedBy::FlowCap),
        ];
        let min = payload_limits
            .into_iter()
            .min_by(|a, b| a.0.total_cmp(&b.0));
        let (limit, limited_by) = min.unwrap_or((f64::INFINITY, LimitedBy::Nothing));
        Stream {
            tuple,
            route,
            way_back,
            base_round_trip_ns,
            limit: limit / draft.efficiency,
            limited_by,
        }
    }

    fn control(&self, flow: &Flow) -> CongestionControl {
        match self.stage.workload.socket.congestion.as_deref() {
            Some("bbr") => CongestionControl::Bbr,
            Some(_) => CongestionControl::Cubic,
            None => self.network.host(flow.src).spec.congestion_control,
        }
    }

    /// The streams of flows that could connect, then everybody else's.
    fn demands(&self, drafts: &[Draft<'_>], dice: &mut Dice) -> Vec<Demand> {
        let mut demands = Vec::new();
        for draft in drafts.iter().filter(|draft| draft.failure.is_none()) {
            for stream in &draft.streams {
                demands.push(Demand {
                    way: stream.route.way,
                    weight: self.weight(draft.streams.len(), dice),
                    limit: self.taken(stream.limit),
                });
            }
        }
        self.add_background(&mut demands, dice);
        demands
    }

    /// What the acknowledgements of shares take of every resource, frames in bits per second.
    /// Nothing in the fluid network itself.
    fn acknowledgements(&self, drafts: &[Draft<'_>], grants: &[Grant]) -> Vec<f64> {
        let mut taken = vec![0.0; self.capacities.len()];
        if self.noise.level == 0.0 || !self.stage.workload.kind.is_tcp() {
            return taken;
        }
        let connected = drafts.iter().filter(|draft| draft.failure.is_none());
        let streams = connected.flat_map(|draft| draft.streams.iter().map(move |one| (draft, one)));
        for ((draft, stream), grant) in streams.zip(grants) {
            let ack_rate = self.acknowledged(draft, stream, *grant).ack_rate();
            for resource in stream.way_back.resources() {
                if self.network.kind(*resource) != Kind::Cpu {
                    taken[*resource as usize] += ack_rate;
                }
            }
        }
        taken
    }

    fn acknowledged(&self, draft: &Draft<'_>, stream: &Stream, grant: Grant) -> Acknowledged {
        let control = self.control(draft.flow);
        let frame_bytes = draft.segment_bytes / draft.efficiency;
        let (_, most_filled) = fills(control);
        let full_port = grant
            .bottleneck
            .filter(|at| self.network.kind(*at) == Kind::Port);
        Acknowledged {
            rate: grant.rate,
            segment_bytes: draft.segment_bytes,
            frame_bytes,
            ack_frame_bytes: frame_bytes - draft.segment_bytes,
            full_port: full_port.map(|at| FullPort {
                control,
                round_trip_sec: stream.base_round_trip_ns as f64 / 1e9
                    + self.queued_sec(at, self.noise.port_buffer_bytes as f64 * most_filled),
            }),
        }
    }

    /// Requests and answers hardly load a link.
    fn taken(&self, limit: f64) -> f64 {
        match self.stage.workload.kind.is_bulk() {
            true => limit,
            false => 0.0,
        }
    }

    fn weight(&self, streams: usize, dice: &mut Dice) -> f64 {
        let level = self.noise.level;
        if level == 0.0 {
            return 1.0;
        }
        match self.network.topology.queue {
            Queue::Fair => dice.factor(self.noise.fair_spread * level) / streams as f64,
            Queue::Fifo => {
                let tails = dice.student4().clamp(-8.0, 8.0);
                let weight = (tails * self.noise.fifo_spread * level.sqrt()).exp();
                match dice.chance(self.noise.timeout_share * level) {
                    true => weight / 4.0,
                    false => weight,
                }
            }
        }
    }

    /// Production traffic of this moment, its ports the same in all rounds, and the hosts' own
    /// neighbours.
    fn add_background(&self, demands: &mut Vec<Demand>, dice: &mut Dice) {
        let now_ns = self.window_start_ns;
        for (number, traffic) in (0..).zip(&self.network.topology.background) {
            let is_on = traffic.bursts.is_none_or(|bursts| {
                let period_ns = (bursts.on_ns + bursts.off_ns).max(1);
                now_ns % period_ns < bursts.on_ns
            });
            let streams = u64::from(traffic.streams.max(1));
            for stream in (0..streams).filter(|_| is_on) {
                let mut own = Dice::new(0xBAC6, [number, stream, 0]);
                let tuple = FiveTuple {
                    src: self.network.hosts[0].address,
                    dst: self.network.hosts[0].address,
                    src_port: 1024 + own.below(60_000) as u16,
                    dst_port: 443,
                };
                let route = self
                    .network
                    .route_between(traffic.from.0, traffic.to.0, tuple);
                demands.extend(route.map(|route| Demand {
                    way: route.way,
                    weight: self.weight(1, dice),
                    limit: traffic.rate_bits_per_sec as f64 / streams as f64,
                }));
            }
        }
        for (host, site) in (0..).zip(&self.network.hosts) {
            let Some(rate) = site.spec.neighbour_bits_per_sec else {
                continue;
            };
            let tuple = FiveTuple {
                src: site.address,
                dst: site.address,
                src_port: 40_000,
                dst_port: 443,
            };
            let route = self.network.route_out(HostId(host), tuple);
            demands.extend(route.map(|route| Demand {
                way: route.way,
                weight: self.weight(1, dice),
                limit: rate as f64,
            }));
        }
    }

    fn result<'g>(
        &self,
        draft: &Draft<'_>,
        grants: &mut impl Iterator<Item = &'g Grant>,
        common: f64,
        dice: &mut Dice,
    ) -> FlowResult {
        if let Some(reason) = &draft.failure {
            return FlowResult::missing(reason);
        }
        let wait = self
            .waits
            .of(draft.flow.src)
            .max(self.waits.of(draft.flow.dst));
        let mut level = common * (-self.spread(self.noise.flow_spread) * dice.normal().abs()).exp();
        if dice.chance(self.spread(self.noise.hiccup_share)) {
            level *= dice.between(0.3, 0.9);
        }
        level *= self.waits.left(wait, &self.noise.starvation, dice);
        let control = self.control(draft.flow);
        let streams: Vec<StreamResult> = draft
            .streams
            .iter()
            .zip(grants)
            .map(|(stream, grant)| self.stream_result(draft, stream, *grant, level, control, dice))
            .collect();
        // After its streams, so that their grants are taken.
        let missing = self.noise.missing_share + self.noise.starvation.missing_share * wait;
        if self.waits.is_starved() && dice.chance(missing) || dice.chance(self.noise.missing_share)
        {
            return FlowResult::missing("no report within 3.0 s");
        }
        FlowResult {
            streams,
            control,
            segment_bytes: draft.segment_bytes,
            wait,
            missing: None,
        }
    }

    fn stream_result(
        &self,
        draft: &Draft<'_>,
        stream: &Stream,
        grant: Grant,
        level: f64,
        control: CongestionControl,
        dice: &mut Dice,
    ) -> StreamResult {
        let mut rate = grant.rate * draft.efficiency * level;
        let loss = stream.route.loss_share;
        if loss > 0.0 {
            let segments_per_sec = rate / 8.0 / draft.segment_bytes;
            let left = tcp::left_by_timeouts(control, loss, segments_per_sec);
            let swing = dice.factor(LOSSY_SPREAD * self.noise.level.min(1.0));
            rate *= (left * swing).min(1.0);
        }
        let queue_sec = self.queue_sec(grant.bottleneck, control, dice);
        let round_trip_ns = stream.base_round_trip_ns + (queue_sec * 1e9) as u64;
        let window_segments = rate * round_trip_ns as f64 / 8e9 / draft.segment_bytes;
        let is_port = grant
            .bottleneck
            .is_some_and(|at| self.network.kind(at) == Kind::Port);
        let queue_loss = match is_port {
            true => {
                tcp::queue_loss(control, window_segments)
                    * dice.factor(0.8 * self.noise.level.min(1.0))
            }
            false => 0.0,
        };
        StreamResult {
            tuple: stream.tuple,
            payload_bits_per_sec: rate,
            base_round_trip_ns: stream.base_round_trip_ns,
            round_trip_ns,
            window_segments,
            loss_share: loss + queue_loss,
            is_lossy: loss > 0.0,
            limited_by: match grant.bottleneck {
                Some(_) => LimitedBy::Nothing,
                None => stream.limited_by,
            },
        }
    }

    /// How long packets wait at the bottleneck.
    fn queue_sec(
        &self,
        bottleneck: Option<u32>,
        control: CongestionControl,
        dice: &mut Dice,
    ) -> f64 {
        let Some(at) = bottleneck else {
            return 0.0;
        };
        let (low, high) = fills(control);
        let bytes = match self.network.kind(at) {
            Kind::Port => self.noise.port_buffer_bytes as f64 * dice.between(low, high),
            Kind::Tx | Kind::Cpu => OWN_QUEUE_BYTES,
        };
        self.queued_sec(at, bytes)
    }

    /// How long so many bytes wait in front of a resource.
    fn queued_sec(&self, at: u32, bytes: f64) -> f64 {
        (bytes * 8.0 / self.capacities[at as usize].max(1.0)).min(MAX_QUEUE_SEC)
    }

    fn record(
        &self,
        flow: &Flow,
        result: &FlowResult,
        draft: &Draft<'_>,
        hosts: &ends::HostTotals,
        dice: &mut Dice,
    ) -> FlowRecord {
        let (stage, round) = self.at;
        let mut record = FlowRecord {
            is_aggressor: flow.is_aggressor,
            stage,
            round,
            flow: flow.id,
            sample: self.stage.rounds[round.0 as usize].sample,
            src: flow.src,
            dst: flow.dst,
            outcome: FlowOutcome::Measured,
            sender: None,
            receiver: None,
        };
        if let Some(reason) = &result.missing {
            record.outcome = FlowOutcome::Missing {
                reason: reason.clone(),
            };
            return record;
        }
        let (sender, receiver) = match self.stage.workload.kind {
            WorkloadKind::TcpStream => ends::stream_ends(self, flow, result, hosts, dice),
            WorkloadKind::UdpStream => {
                ends::datagram_ends(self, flow, result, draft.efficiency, hosts, dice)
            }
            WorkloadKind::Trace => ends::traced_ends(self, flow, result, hosts, dice),
            _ => ends::request_ends(self, flow, result, hosts, dice),
        };
        record.sender = Some(sender);
        record.receiver = Some(receiver);
        record
    }
}

/// Parts of a port's queue that are full on average, at least and at most.
fn fills(control: CongestionControl) -> (f64, f64) {
    match control {
        CongestionControl::Cubic => CUBIC_FILLS,
        CongestionControl::Bbr => BBR_FILLS,
    }
}
