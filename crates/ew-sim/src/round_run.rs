//! One round at its time: what all parts of its simulation know.

use crate::dice::Dice;
use crate::hosts::{Clocks, Waits};
use crate::network::Network;
use crate::noise::Noise;
use crate::paths::FiveTuple;
use ew_model::plan::{End, Flow, LimitedRound, Plan, Stage};
use ew_model::ports::source_port;
use ew_model::{RoundIndex, StageIndex};

/// Port on which every agent takes data.
const DATA_PORT: u16 = 5201;
/// Linux' range of ports for connections that ask for none; `connect` takes even ones.
const EPHEMERAL_PORTS: (u16, u16) = (32_768, 60_998);

/// One round of a plan, at its time.
#[derive(Debug)]
pub(crate) struct RoundRun<'a> {
    pub(crate) network: &'a Network<'a>,
    pub(crate) noise: &'a Noise,
    pub(crate) plan: &'a Plan,
    pub(crate) stage: &'a Stage,
    pub(crate) at: (StageIndex, RoundIndex),
    /// When the window begins, controller's clock.
    pub(crate) window_start_ns: u64,
    /// Common level of this moment, 0 to 1.
    pub(crate) level: f64,
    /// What each resource carries in this round, frames.
    pub(crate) capacities: &'a [f64],
    pub(crate) waits: &'a Waits,
    pub(crate) clocks: &'a Clocks,
    /// What the run may load of its hosts' links.
    pub(crate) limited: Option<LimitedRound<'a>>,
}

impl RoundRun<'_> {
    /// Parallel connections of every flow.
    pub(crate) fn streams(&self) -> u32 {
        let round = self.stage.rounds.get(self.at.1.0 as usize);
        let streams = round.map_or(1, |round| self.stage.streams_in(round));
        streams.max(1)
    }

    /// In the direction of the data.
    pub(crate) fn tuple(&self, flow: &Flow, stream: u32, dice: &mut Dice) -> FiveTuple {
        let (low, high) = EPHEMERAL_PORTS;
        let chosen = match self.plan.port_seed(self.stage, flow) {
            Some(seed) => source_port(seed, u32::from(flow.first_stream()) + stream, 0),
            None => low + 2 * dice.below(usize::from(high - low) / 2) as u16,
        };
        let (src_port, dst_port) = match flow.opened_by {
            End::Src => (chosen, DATA_PORT),
            End::Dst => (DATA_PORT, chosen),
        };
        FiveTuple {
            src: self.network.host(flow.src).address,
            dst: self.network.host(flow.dst).address,
            src_port,
            dst_port,
        }
    }
}
