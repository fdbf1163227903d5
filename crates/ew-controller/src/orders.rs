//! Turns a stage of the plan into one order per host. Pure.

use crate::follow::reporters;
use ew_model::inventory::HostId;
use ew_model::plan::{Flow, LimitedRound, Plan, Round, RoundIndex, Stage, StageIndex};
use ew_model::pods::PodPath;
use ew_model::scenario::Pattern;
use ew_model::tools::ServerPorts;
use ew_model::workload::WorkloadKind;
use ew_proto::message::{FlowOrder, Role, RoundOrder, ServicePorts, StageOrder};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// What the orders are made of.
pub(crate) struct Batch<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) index: StageIndex,
    pub(crate) stage: &'a Stage,
    /// Rounds of the stage's own, or repair rounds after them, with their numbers, ascending.
    pub(crate) rounds: Vec<(RoundIndex, &'a Round)>,
    /// Pause before each, for connecting.
    pub(crate) gap_ns: u64,
    /// Whether agents report flows' progress while rounds go on.
    pub(crate) follow: bool,
    /// Where clients connect instead of at the server itself.
    pub(crate) detours: &'a Detours,
}

/// Services by the path through them and the server behind.
pub type Detours = BTreeMap<(PodPath, HostId), Detour>;

/// A Service that leads to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detour {
    /// Where its data listener is reached.
    pub address: SocketAddr,
    /// The agent's ports for connections made anew; empty where nothing is translated.
    pub tcp: ServicePorts,
    /// The agent's ports for datagrams.
    pub udp: ServicePorts,
}

impl Detour {
    /// The ports that a workload's sockets besides the connection take.
    fn ports_of(&self, kind: WorkloadKind) -> Option<Box<ServicePorts>> {
        let ports = match kind {
            WorkloadKind::TcpCrr => &self.tcp,
            WorkloadKind::UdpStream | WorkloadKind::UdpRr => &self.udp,
            WorkloadKind::TcpStream
            | WorkloadKind::TcpRr
            | WorkloadKind::FlowSizes
            | WorkloadKind::Ping
            | WorkloadKind::Trace => return None,
        };
        ports.range().map(|_| Box::new(ports.clone()))
    }
}

impl Batch<'_> {
    /// The number of a round by its position in the batch.
    pub(crate) fn round_index(&self, position: usize) -> RoundIndex {
        self.rounds[position].0
    }

    /// The position of a round in the batch. `None` when it is none of it.
    pub(crate) fn position(&self, round: RoundIndex) -> Option<usize> {
        let found = self
            .rounds
            .binary_search_by_key(&round, |(index, _)| *index);
        found.ok()
    }

    /// Start of a round, from the batch's start; the gap before it is for connecting.
    pub(crate) fn offset_ns(&self, position: usize) -> u64 {
        let period_ns = self.gap_ns + self.stage.warm_up_ns + self.stage.duration_ns;
        self.gap_ns + position as u64 * period_ns
    }

    /// End of a round's window, from the batch's start.
    pub(crate) fn window_end_ns(&self, position: usize) -> u64 {
        self.offset_ns(position) + self.stage.warm_up_ns + self.stage.duration_ns
    }

    /// One order per host that takes part. A flow with an end that is down concerns nobody.
    pub(crate) fn orders(
        &self,
        listeners: &BTreeMap<HostId, SocketAddr>,
        ports: &mut ToolPorts,
    ) -> BTreeMap<HostId, StageOrder> {
        let mut orders = BTreeMap::new();
        for (position, (_, round)) in self.rounds.iter().enumerate() {
            let limited = LimitedRound::new(self.plan, round);
            let at_line_rate = LimitedRound::at_line_rate(self.plan, round);
            for flow in &round.flows {
                let (Some(&src), Some(&dst)) = (listeners.get(&flow.src), listeners.get(&flow.dst))
                else {
                    continue;
                };
                let port = match self.stage.workload_of(flow).server_ports() {
                    ServerPorts::None => 0,
                    ServerPorts::Range(count) => ports.next(flow.server(), count),
                    ServerPorts::Fixed(port) => port,
                };
                let [mut sender, mut receiver] = both_ends(flow, src, dst, port);
                let load = (at_line_rate.as_ref()).and_then(|rate| self.stage.load(flow, rate));
                let pace = load.or_else(|| self.plan.pace_of(self.stage, flow));
                let pace = self.within(limited.as_ref(), flow, round, pace);
                (sender.bits_per_sec, receiver.bits_per_sec) = (pace, pace);
                self.add(&mut orders, position, flow, flow.src, sender);
                self.add(&mut orders, position, flow, flow.dst, receiver);
            }
            if self.follow {
                self.ask_to_tell(&mut orders, position, round);
            }
        }
        orders
    }

    /// Payload of a flow, where it differs from its workload's, within the run's limit.
    fn within(
        &self,
        limited: Option<&LimitedRound<'_>>,
        flow: &Flow,
        round: &Round,
        paced: Option<f64>,
    ) -> Option<f64> {
        let Some(limited) = limited else {
            return paced;
        };
        let pace = self.stage.workload_of(flow).pace;
        let streams = f64::from(self.stage.streams_in(round));
        let of_streams = pace.stream_bits_per_sec.map(|rate| rate * streams);
        let asked = paced.or(pace.flow_bits_per_sec).or(of_streams);
        Some(limited.goodput_of(flow).min(asked.unwrap_or(f64::INFINITY)))
    }

    /// With its ports.
    fn detailed(&self, flow: &Flow, mut end: FlowOrder) -> FlowOrder {
        end.port_seed = self.plan.port_seed(self.stage, flow);
        end.first_stream = flow.first_stream();
        let Some(detour) = self.detour(flow) else {
            return end;
        };
        end.service = detour.ports_of(self.stage.workload.kind);
        match end.opens {
            true => end.through(detour.address),
            false => end,
        }
    }

    fn detour(&self, flow: &Flow) -> Option<&Detour> {
        let Pattern::Pods { path } = &self.stage.pattern else {
            return None;
        };
        self.detours.get(&(*path, flow.server()))
    }

    fn ask_to_tell(
        &self,
        orders: &mut BTreeMap<HostId, StageOrder>,
        position: usize,
        round: &Round,
    ) {
        let index = self.round_index(position);
        for (host, mut flows) in reporters(self.stage, round) {
            let rounds = orders.get_mut(&host).and_then(|o| o.rounds.last_mut());
            if let Some(ordered) = rounds.filter(|r| r.round == index) {
                // Not of those whose other end is down.
                flows.retain(|id| ordered.flows.iter().any(|f| f.flow == *id));
                ordered.followed = flows;
            }
        }
    }

    fn add(
        &self,
        orders: &mut BTreeMap<HostId, StageOrder>,
        position: usize,
        flow: &Flow,
        host: HostId,
        end: FlowOrder,
    ) {
        // One for all the host's flows: no host is victim and aggressor.
        let workload = self.stage.workload_of(flow);
        let streams = match flow.is_aggressor {
            true => workload.streams,
            false => self.stage.streams_in(self.rounds[position].1),
        };
        let end = self.detailed(flow, end);
        let order = orders.entry(host).or_insert_with(|| StageOrder {
            stage: self.index,
            workload: Box::new(workload.into_owned()),
            warm_up_ns: self.stage.warm_up_ns,
            duration_ns: self.stage.duration_ns,
            gap_ns: self.gap_ns,
            rounds: Vec::new(),
        });
        let round = self.round_index(position);
        match order.rounds.last_mut() {
            Some(last) if last.round == round => last.flows.push(end),
            _ => order.rounds.push(RoundOrder {
                round,
                offset_ns: self.offset_ns(position),
                streams,
                flows: vec![end],
                followed: Vec::new(),
            }),
        }
    }
}

fn both_ends(flow: &Flow, src: SocketAddr, dst: SocketAddr, tool_port: u16) -> [FlowOrder; 2] {
    let end = |role, opens, peer| {
        let order = FlowOrder::new(flow.id, role, opens, peer);
        match tool_port {
            0 => order,
            port => order.by_tool(port),
        }
    };
    let src_opens = flow.client() == flow.src;
    [
        end(Role::Send, src_opens, dst),
        end(Role::Receive, !src_opens, src),
    ]
}

/// A server port for every flow. Each host's go round the whole range, so that the next one is
/// blocked neither by a server that is slow to end nor by that one's connections in `TIME_WAIT`,
/// which block tools that do not set `SO_REUSEADDR`.
#[derive(Debug)]
pub(crate) struct ToolPorts {
    first: u16,
    last: u16,
    next: BTreeMap<HostId, u16>,
}

impl ToolPorts {
    /// From the first to the last one, of each host.
    pub(crate) fn new((first, last): (u16, u16)) -> Self {
        Self {
            first,
            last,
            next: BTreeMap::new(),
        }
    }

    /// The first of so many in a row.
    fn next(&mut self, server: HostId, count: u16) -> u16 {
        let next = self.next.entry(server).or_insert(self.first);
        let fits = self.last.saturating_sub(*next) >= count.saturating_sub(1);
        let port = if fits { *next } else { self.first };
        *next = port
            .checked_add(count)
            .filter(|n| *n <= self.last)
            .unwrap_or(self.first);
        port
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::plan::{End, FlowId, GOODPUT_SHARE, RateLimit};
    use ew_model::scenario::Expect;
    use ew_model::workload::{Tool, Workload};

    fn stage(tool: Tool) -> Stage {
        let flow = |id, src, dst, opened_by| Flow {
            id: FlowId(id),
            src: HostId(src),
            dst: HostId(dst),
            opened_by,
            lane: None,
            is_aggressor: false,
            traces: None,
        };
        Stage {
            name: "test".into(),
            pattern: Pattern::Pair,
            workload: Workload {
                tool,
                ..Workload::of(WorkloadKind::TcpStream)
            },
            duration_ns: 1_000,
            warm_up_ns: 100,
            gap_ns: 10,
            auto: None,
            sweep: None,
            rounds: vec![Round {
                sample: 0,
                senders_per_rack: None,
                flows: vec![
                    flow(0, 0, 1, End::Src),
                    flow(1, 1, 0, End::Dst),
                    flow(2, 0, 2, End::Src),
                ],
            }],
        }
    }

    fn plan() -> Plan {
        Plan {
            scenario: "test".into(),
            seed: 1,
            expect: Expect::default(),
            stages: Vec::new(),
            random_order: false,
            dropped_tests: Vec::new(),
            interleaved: Vec::new(),
            host_rates: Vec::new(),
            rate_limit: None,
            line_rates: Vec::new(),
        }
    }

    #[test]
    fn both_ends_know_the_ports_and_the_pace_of_the_flow() {
        let orders = orders(Tool::Engine);
        let [near, far] = [0, 1].map(|host| &orders[&HostId(host)].rounds[0]);
        assert_eq!(near.streams, 1);
        for (near, far) in near.flows.iter().zip(&far.flows) {
            assert!(near.port_seed.is_some());
            assert_eq!(near.port_seed, far.port_seed);
            assert_eq!(near.bits_per_sec, None);
        }
        assert_ne!(near.flows[0].port_seed, near.flows[1].port_seed);
    }

    #[test]
    fn a_load_is_a_share_of_the_line_rate_that_flows_divide() {
        let mut stage = stage(Tool::Engine);
        stage.workload = Workload::of(WorkloadKind::FlowSizes);
        let loaded = Plan {
            line_rates: vec![2e9, 4e9, 1e8],
            ..plan()
        };
        let loads = |stage: &Stage| -> Vec<f64> {
            let round = LimitedRound::at_line_rate(&loaded, &stage.rounds[0]).unwrap();
            let flows = stage.rounds[0].flows.iter();
            flows.filter_map(|flow| stage.load(flow, &round)).collect()
        };
        let alone = loads(&stage);
        stage.workload.pace.line_share = Some(0.8);
        for ((load, alone), wire) in loads(&stage).iter().zip(alone).zip([1e9, 2e9, 1e8]) {
            assert!(
                (load / (0.8 * GOODPUT_SHARE * wire) - 1.0).abs() < 1e-9,
                "{load}"
            );
            assert!((load / alone - 1.6).abs() < 1e-9, "{load} {alone}");
        }
        stage.workload = Workload::of(WorkloadKind::TcpStream);
        assert_eq!(loads(&stage), [0.0; 0]);
        assert!(LimitedRound::at_line_rate(&plan(), &stage.rounds[0]).is_none());
    }

    #[test]
    fn flows_share_the_limit_of_their_hosts() {
        let stage = stage(Tool::Engine);
        let plan = Plan {
            rate_limit: Some(RateLimit {
                hosts_bits_per_sec: vec![2e9, 4e9, 1e8],
                of_line_rate: None,
            }),
            ..plan()
        };
        let limited = LimitedRound::new(&plan, &stage.rounds[0]).unwrap();
        let rates: Vec<f64> = (stage.rounds[0].flows.iter())
            .map(|flow| limited.goodput_of(flow) * 1538.0 / 1448.0)
            .collect();
        // Host 0 sends twice; host 2 receives little.
        for (rate, wire) in rates.iter().zip([1e9, 2e9, 1e8]) {
            assert!((rate / wire - 1.0).abs() < 1e-9, "{rates:?}");
        }
    }

    fn listeners() -> BTreeMap<HostId, SocketAddr> {
        (0..2)
            .map(|i| {
                (
                    HostId(i),
                    SocketAddr::from(([127, 0, 0, 1 + i as u8], 5401)),
                )
            })
            .collect()
    }

    fn orders(tool: Tool) -> BTreeMap<HostId, StageOrder> {
        let stage = stage(tool);
        Batch {
            plan: &plan(),
            index: StageIndex(0),
            stage: &stage,
            rounds: (0..).map(RoundIndex).zip(&stage.rounds).collect(),
            gap_ns: stage.gap_ns,
            follow: true,
            detours: &Detours::new(),
        }
        .orders(&listeners(), &mut ToolPorts::new((5201, 5300)))
    }

    #[test]
    fn a_flow_with_a_dead_end_concerns_nobody() {
        let orders = orders(Tool::Engine);
        assert_eq!(
            orders.keys().copied().collect::<Vec<_>>(),
            [HostId(0), HostId(1)]
        );
        assert!(
            orders
                .values()
                .all(|order| order.rounds[0].flows.len() == 2)
        );
    }

    #[test]
    fn the_client_opens_whatever_the_direction_of_data() {
        let orders = orders(Tool::Engine);
        let reverse = &orders[&HostId(1)].rounds[0].flows[1];
        assert_eq!((reverse.role, reverse.opens), (Role::Send, false));
        let client = &orders[&HostId(0)].rounds[0].flows[1];
        assert_eq!((client.role, client.opens), (Role::Receive, true));
    }

    #[test]
    fn a_service_is_known_to_both_ends_and_opened_by_the_client() {
        let mut stage = stage(Tool::Engine);
        let path = PodPath::NodePort;
        stage.pattern = Pattern::Pods { path };
        let address: SocketAddr = "198.18.0.12:30401".parse().unwrap();
        let ports = |first| ServicePorts {
            first_port: 5402,
            translated: vec![first, 30_777],
        };
        let detour = Detour {
            address,
            tcp: ports(30_001),
            udp: ports(31_001),
        };
        let detours = Detours::from([((path, HostId(1)), detour)]);
        let mut ends = |kind| {
            stage.workload = Workload::of(kind);
            let orders = Batch {
                plan: &plan(),
                index: StageIndex(0),
                stage: &stage,
                rounds: (0..).map(RoundIndex).zip(&stage.rounds).collect(),
                gap_ns: stage.gap_ns,
                follow: false,
                detours: &detours,
            }
            .orders(&listeners(), &mut ToolPorts::new((5201, 5300)));
            [0, 1].map(|host| orders[&HostId(host)].rounds[0].flows[0].clone())
        };
        let [client, server] = ends(WorkloadKind::UdpStream);
        assert_eq!((client.peer, server.peer.port()), (address, 5401));
        let known = client.service.clone().unwrap();
        assert_eq!(client.service, server.service);
        assert_eq!(known.range(), Some((5402, 5403)));
        assert_eq!(
            (known.translated(5402), known.translated(5403)),
            (Some(31_001), Some(30_777))
        );
        assert_eq!(
            (known.translated(5401), known.translated(5404)),
            (None, None)
        );
        let [client, _] = ends(WorkloadKind::TcpCrr);
        assert_eq!(client.service.unwrap().translated(5402), Some(30_001));
        let [client, _] = ends(WorkloadKind::TcpStream);
        assert_eq!((client.peer, client.service), (address, None));
    }

    #[test]
    fn followed_flows_are_the_tellers_own() {
        let mut stage = stage(Tool::Engine);
        stage.duration_ns = 2_000_000_000;
        let plan = plan();
        let direct = Detours::new();
        let batch = |follow| Batch {
            plan: &plan,
            index: StageIndex(0),
            stage: &stage,
            rounds: (0..).map(RoundIndex).zip(&stage.rounds).collect(),
            gap_ns: stage.gap_ns,
            follow,
            detours: &direct,
        };
        let followed = |follow, host| {
            let orders = batch(follow).orders(&listeners(), &mut ToolPorts::new((5201, 5300)));
            orders[&HostId(host)].rounds[0].followed.clone()
        };
        // Flow 2 goes to a host that is down.
        assert_eq!(followed(true, 0), [FlowId(0)]);
        assert_eq!(followed(true, 1), [FlowId(1)]);
        assert_eq!(followed(false, 0), []);
    }

    #[test]
    fn every_flow_has_a_tool_server_of_its_own() {
        let orders = orders(Tool::Iperf3);
        let servers: Vec<u16> = orders[&HostId(1)].rounds[0]
            .flows
            .iter()
            .map(|flow| flow.server_port)
            .collect();
        assert_eq!(servers, [5201, 5202]);
        assert_eq!(orders[&HostId(0)].rounds[0].flows[1].peer.port(), 5202);
    }

    #[test]
    fn a_hosts_ports_go_round_and_rows_stay_whole() {
        let mut ports = ToolPorts::new((5001, 5005));
        let mut next = |host, count| ports.next(HostId(host), count);
        assert_eq!([next(0, 2), next(0, 2), next(0, 2)], [5001, 5003, 5001]);
        assert_eq!([next(1, 1), next(0, 3), next(0, 1)], [5001, 5003, 5001]);
        assert_eq!(ToolPorts::new((65_535, 65_535)).next(HostId(0), 1), 65_535);
    }
}
