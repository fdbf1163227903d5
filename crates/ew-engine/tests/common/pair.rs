//! Two engines and one flow between them.

use super::common::{data_address, engine_with_ports, order, start, wait, with_flows};
use ew_engine::{Engine, RoundSpec};
use ew_model::record::EndRecord;
use ew_proto::message::{FlowReport, Role};
use std::net::IpAddr;

/// Two engines and flow 5 from the first to the second.
pub(crate) struct Pair {
    near: Engine,
    far: Engine,
    address: IpAddr,
}

impl Pair {
    pub(crate) fn new(address: IpAddr) -> Self {
        Self::with_ports(address, (0, 0))
    }

    pub(crate) fn with_ports(address: IpAddr, ports: (u16, u16)) -> Self {
        Self {
            near: engine_with_ports(address, ports),
            far: engine_with_ports(address, ports),
            address,
        }
    }

    /// What both ends measured.
    pub(crate) fn measure(&self, spec: &RoundSpec) -> (EndRecord, EndRecord) {
        let (sender, receiver) = self.run(spec);
        assert_eq!((&sender.error, &receiver.error), (&None, &None));
        (*sender.sender.unwrap(), *receiver.receiver.unwrap())
    }

    /// The sender's error.
    pub(crate) fn fail(&self, spec: &RoundSpec) -> String {
        self.run(spec).0.error.unwrap()
    }

    pub(crate) fn rejected_connections(&self) -> u64 {
        self.near.totals().rejected_connections + self.far.totals().rejected_connections
    }

    fn run(&self, spec: &RoundSpec) -> (FlowReport, FlowReport) {
        let (near_port, far_port) = (
            data_address(&self.near, self.address),
            data_address(&self.far, self.address),
        );
        let receive = vec![order(5, Role::Receive, false, near_port)];
        let send = vec![order(5, Role::Send, true, far_port)];
        let far_reports = start(&self.far, with_flows(spec, receive));
        let near_reports = start(&self.near, with_flows(spec, send));
        (wait(&near_reports).remove(0), wait(&far_reports).remove(0))
    }
}
