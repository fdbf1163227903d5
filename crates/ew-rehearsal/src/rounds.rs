//! The network under the flows: who takes part in a round, and what each flow then carries, by the
//! fluid model of [`ew_sim`].

use crate::taken::{Ends, Taken};
use crate::world::World;
use ew_model::inventory::HostId;
use ew_model::plan::{End, Flow, FlowId, Plan, Round, Stage, TracedStream};
use ew_model::record::{EndRecord, FlowOutcome, FlowRecord};
use ew_model::scenario::Pattern;
use ew_model::workload::{StreamCount, Workload, WorkloadKind};
use ew_proto::message::{FlowOrder, FlowReport, Role, RoundOrder, RoundReport, StageOrder};
use ew_sim::{Noise, simulate_round};
use std::collections::BTreeMap;

impl World {
    /// A host connects the flows of a round, whose common start is at this time.
    pub(crate) fn take_part(
        &self,
        host: HostId,
        order: &StageOrder,
        round: &RoundOrder,
        start_ns: u64,
    ) {
        let key = (order.stage, round.round);
        self.seen()
            .begins
            .entry(key)
            .or_default()
            .insert(host, start_ns);
        let mut rounds = self.rounds();
        let taken = rounds.0.entry(key).or_default();
        let workload = taken
            .workload
            .get_or_insert_with(|| (*order.workload).clone());
        if workload.kind.is_bulk() {
            workload.clone_from(&order.workload);
        }
        for flow in &round.flows {
            let ends = taken.flows.entry(flow.flow).or_default();
            ends.kind = Some(order.workload.kind);
            let own = Some((host, flow.clone()));
            match flow.role {
                Role::Send => ends.sender = own,
                Role::Receive => ends.receiver = own,
            }
        }
    }

    /// What a host reports of a round whose window is over.
    pub(crate) fn report(
        &self,
        host: HostId,
        order: &StageOrder,
        round: &RoundOrder,
    ) -> RoundReport {
        let key = (order.stage, round.round);
        let mut rounds = self.rounds();
        let taken = rounds.0.entry(key).or_default();
        if taken.records.is_none() {
            taken.records = Some(self.carried(taken, order, round));
        }
        let records = taken.records.iter().flatten();
        let records: BTreeMap<FlowId, &FlowRecord> = records.map(|(id, row)| (*id, row)).collect();
        let mut seen = self.seen();
        let flows = round.flows.iter().map(|flow| {
            let report = self.of_flow(host, order, flow, records.get(&flow.flow).copied());
            if report.error.is_none() {
                seen.reported
                    .insert((host, order.stage, round.round, flow.flow));
            }
            report
        });
        RoundReport {
            stage: order.stage,
            round: round.round,
            flows: flows.collect(),
        }
    }

    /// What the flows carry whose ends are both there.
    fn carried(
        &self,
        taken: &Taken,
        order: &StageOrder,
        round: &RoundOrder,
    ) -> BTreeMap<FlowId, FlowRecord> {
        let workload = taken.workload.as_ref().unwrap_or(&order.workload);
        let flows: Vec<Flow> = (taken.flows.iter())
            .filter_map(|(id, ends)| self.connected(*id, ends, workload.kind))
            .collect();
        if flows.is_empty() {
            return BTreeMap::new();
        }
        let plan = plan_of(flows, workload.clone(), order, round);
        let seed = self.drawn.seed ^ u64::from(order.stage.0) << 32 ^ u64::from(round.round.0);
        let now_ns = self.now_ns();
        let rows = simulate_round(&self.drawn.topology, &plan, now_ns, seed, &Noise::default());
        rows.into_iter().map(|row| (row.flow, row)).collect()
    }

    /// `None` where an end is missing, or nobody reaches the one that accepts.
    fn connected(&self, id: FlowId, ends: &Ends, measured: WorkloadKind) -> Option<Flow> {
        let ((src, sends), (dst, _)) = (ends.sender.as_ref()?, ends.receiver.as_ref()?);
        let (client, server, opened_by) = match sends.opens {
            true => (*src, *dst, End::Src),
            false => (*dst, *src, End::Dst),
        };
        let is_there = self.seen().alive.contains(&client) && self.is_reachable(server);
        is_there.then(|| Flow {
            id,
            src: *src,
            dst: *dst,
            opened_by,
            lane: None,
            is_aggressor: ends.kind.is_some_and(|kind| kind != measured),
            traces: sends.port_seed.map(|port_seed| TracedStream {
                port_seed,
                stream: sends.first_stream,
            }),
        })
    }

    /// The host's own end of a flow.
    fn of_flow(
        &self,
        host: HostId,
        order: &StageOrder,
        flow: &FlowOrder,
        record: Option<&FlowRecord>,
    ) -> FlowReport {
        let mut report = FlowReport {
            flow: flow.flow,
            sender: None,
            receiver: None,
            standing: None,
            error: None,
        };
        let Some(record) = record else {
            report.error = Some(format!(
                "connect to {}: Connection refused (os error 111)",
                flow.peer
            ));
            return report;
        };
        if let FlowOutcome::Missing { reason } = &record.outcome {
            report.error = Some(reason.clone());
            return report;
        }
        let own = |end: &EndRecord| {
            let ago_ns = order.duration_ns;
            Box::new(EndRecord {
                window_start_ns: Some(self.agent_ns(host).saturating_sub(ago_ns)),
                ..end.clone()
            })
        };
        match flow.role {
            Role::Send => report.sender = record.sender.as_ref().map(own),
            Role::Receive => report.receiver = record.receiver.as_ref().map(own),
        }
        report
    }
}

/// The round as a plan of its own.
fn plan_of(
    flows: Vec<Flow>,
    mut workload: Workload,
    order: &StageOrder,
    round: &RoundOrder,
) -> Plan {
    workload.streams = round.streams;
    workload.stream_count = StreamCount::Fixed;
    let paces = round.flows.iter().filter_map(|flow| flow.bits_per_sec);
    workload.pace.flow_bits_per_sec = paces.reduce(f64::min).or(workload.pace.flow_bits_per_sec);
    workload.pace.measured_share = None;
    let stage = Stage {
        name: String::new(),
        pattern: Pattern::Pair,
        workload,
        duration_ns: order.duration_ns,
        warm_up_ns: order.warm_up_ns,
        gap_ns: order.gap_ns,
        rounds: vec![Round {
            sample: 0,
            senders_per_rack: None,
            flows,
        }],
        auto: None,
        sweep: None,
    };
    Plan {
        stages: vec![stage],
        ..Plan::default()
    }
}
