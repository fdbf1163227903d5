//! A simulated host under an agent.

use crate::world::World;
use ew_agent::{HostTotals, Input, Machine, Problem};
use ew_model::facts::{HostFacts, HostSample, InterfaceCounters};
use ew_model::inventory::HostId;
use ew_model::storage::{StorageOrder, StorageReport};
use ew_proto::Timeline;
use ew_proto::message::{PortAnswer, PortCheck, RoundOrder, StageOrder, Welcome};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::AbortHandle;
use tokio::time::sleep;

/// Where every simulated host takes data.
pub(crate) const DATA_PORT: u16 = 5201;
/// What reading the host's facts takes.
const FACTS_TIME: Duration = Duration::from_millis(20);
/// What a connection to a data port takes.
const CONNECT_TIME: Duration = Duration::from_millis(2);
/// Round trip of such a connection, as its kernel has it.
const ROUND_TRIP_NS: u64 = 50_000;

/// What all of a host's tasks share.
#[derive(Clone, Debug)]
struct Shared {
    world: Arc<World>,
    host: HostId,
    inbox: UnboundedSender<Input>,
    totals: Arc<Mutex<HostTotals>>,
}

/// A host of the world. Dropped, all that runs on it ends.
#[derive(Debug)]
pub(crate) struct SimulatedMachine {
    shared: Shared,
    tasks: Vec<AbortHandle>,
    stage: Option<(AbortHandle, Arc<Mutex<Timeline>>)>,
}

impl SimulatedMachine {
    pub(crate) fn new(world: &Arc<World>, host: HostId, inbox: UnboundedSender<Input>) -> Self {
        world.seen().alive.insert(host);
        Self {
            shared: Shared {
                world: Arc::clone(world),
                host,
                inbox,
                totals: Arc::default(),
            },
            tasks: Vec::new(),
            stage: None,
        }
    }
}

impl Drop for SimulatedMachine {
    fn drop(&mut self) {
        self.end_stage();
        self.tasks.iter().for_each(AbortHandle::abort);
        self.shared.world.seen().alive.remove(&self.shared.host);
    }
}

impl Machine for SimulatedMachine {
    fn admit(&mut self, _welcome: &Welcome) -> Result<(), Problem> {
        Ok(())
    }

    fn prepare(&mut self, welcome: Welcome) -> Result<(), Problem> {
        let Shared {
            world, host, inbox, ..
        } = self.shared.clone();
        let facts = world.facts.get(&host).cloned().unwrap_or_default();
        let reading = tokio::spawn(async move {
            sleep(FACTS_TIME).await;
            // The agent may have ended meanwhile.
            let _ = inbox.send(Input::Facts(Box::new((welcome, facts))));
        });
        self.tasks.push(reading.abort_handle());
        Ok(())
    }

    fn max_bits_per_sec(
        &self,
        _facts: &HostFacts,
        _address: IpAddr,
    ) -> Result<Option<f64>, Problem> {
        Ok(None)
    }

    fn data_port(&self) -> u16 {
        DATA_PORT
    }

    fn totals(&self) -> HostTotals {
        *self.shared.totals()
    }

    fn begin_sampling(&mut self, interval_ns: u64, _watch_interval_ns: Option<u64>) {
        let sampling = tokio::spawn(self.shared.clone().sample(interval_ns.max(1)));
        self.tasks.push(sampling.abort_handle());
    }

    fn expect_peer(&mut self, _peer: SocketAddr, _server_port: u16) {}

    fn begin_stage(&mut self, order: StageOrder, timeline: Timeline) {
        self.end_stage();
        let timeline = Arc::new(Mutex::new(timeline));
        let walk = self.shared.clone().walk(order, Arc::clone(&timeline));
        self.stage = Some((tokio::spawn(walk).abort_handle(), timeline));
    }

    fn retime(&mut self, timeline: Timeline) {
        if let Some((_, current)) = &self.stage {
            *current.lock().unwrap_or_else(PoisonError::into_inner) = timeline;
        }
    }

    fn end_stage(&mut self) {
        if let Some((walk, _)) = self.stage.take() {
            walk.abort();
        }
    }

    fn begin_step(&mut self, order: StorageOrder) -> Result<(), Box<StorageReport>> {
        Err(Box::new(StorageReport {
            step: order.step,
            error: Some("storage is not simulated".into()),
            ..StorageReport::default()
        }))
    }

    fn end_step(&mut self) {}

    fn check_ports(&mut self, check: PortCheck) {
        let Shared { world, inbox, .. } = self.shared.clone();
        let checking = tokio::spawn(async move {
            sleep(CONNECT_TIME).await;
            let answer = |peer: &SocketAddr| match world.host_at(peer.ip()) {
                Some(host) if world.is_reachable(host) => PortAnswer::Reached {
                    round_trip_ns: Some(ROUND_TRIP_NS),
                },
                _ => PortAnswer::Unreached {
                    error: format!("connect to {peer}: Connection timed out (os error 110)"),
                },
            };
            let answers = check.peers.iter().map(answer).collect();
            // The agent may have ended meanwhile.
            let _ = inbox.send(Input::PortsChecked(answers));
        });
        self.tasks.push(checking.abort_handle());
    }

    fn log(&mut self, _line: &str) {}
}

impl Shared {
    fn totals(&self) -> std::sync::MutexGuard<'_, HostTotals> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn sample(self, interval_ns: u64) {
        loop {
            let totals = *self.totals();
            let interface = InterfaceCounters {
                name: self.interface(),
                tx_bytes: totals.tx_bytes,
                rx_bytes: totals.rx_bytes,
                ..InterfaceCounters::default()
            };
            let sample = HostSample {
                agent_ns: self.world.agent_ns(self.host),
                interfaces: vec![interface],
                ..HostSample::default()
            };
            if self.inbox.send(Input::Sample(sample, None)).is_err() {
                return;
            }
            sleep(Duration::from_nanos(interval_ns)).await;
        }
    }

    fn interface(&self) -> String {
        let facts = self.world.facts.get(&self.host);
        let first = facts.and_then(|facts| facts.interfaces.first());
        first
            .map(|interface| interface.name.clone())
            .unwrap_or_default()
    }

    /// Through the rounds of a stage, in their time.
    async fn walk(self, order: StageOrder, timeline: Arc<Mutex<Timeline>>) {
        for round in &order.rounds {
            let window_ns = self.begin(&order, round, &timeline).await;
            self.world.sleep_until(window_ns.1).await;
            let report = self.world.report(self.host, &order, round);
            let mut totals = *self.totals();
            for flow in &report.flows {
                totals.tx_bytes += flow.sender.as_ref().map_or(0, |end| end.bytes);
                totals.rx_bytes += flow.receiver.as_ref().map_or(0, |end| end.bytes);
            }
            *self.totals() = totals;
            if self.inbox.send(Input::RoundDone(report)).is_err() {
                return;
            }
        }
    }

    /// Waits until the round connects, and takes part from then on. The window, in the world's
    /// time.
    async fn begin(
        &self,
        order: &StageOrder,
        round: &RoundOrder,
        timeline: &Mutex<Timeline>,
    ) -> (u64, u64) {
        let timeline_now = || *timeline.lock().unwrap_or_else(PoisonError::into_inner);
        let clock = self.world.clock(self.host);
        loop {
            let start_ns = timeline_now().at(round.offset_ns);
            let connect_ns = clock.world_ns(start_ns.saturating_sub(order.gap_ns / 2));
            if self.world.now_ns() >= connect_ns {
                break;
            }
            self.world.sleep_until(connect_ns).await;
        }
        let at = |offset_ns: u64| clock.world_ns(timeline_now().at(round.offset_ns + offset_ns));
        let window_ns = (
            at(order.warm_up_ns),
            at(order.warm_up_ns + order.duration_ns),
        );
        self.world.take_part(self.host, order, round, at(0));
        window_ns
    }
}
