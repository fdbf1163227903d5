//! What streams do.
//!
//! # To add a workload
//! One file here, and one line in [`prepare`].
//!
//! [`machine`] explains what the file has to define.

mod busy_poll;
mod cookie;
mod flow_sizes;
pub(crate) mod machine;
mod pacer;
mod ping;
mod requests;
mod sequence;
mod tcp;
mod tcp_crr;
mod tcp_rr;
mod tcp_stream;
mod trace;
mod transfer;
mod udp;
mod udp_rr;
mod udp_stream;

use crate::refusal::Refusal;
use ew_model::workload::{Workload, WorkloadKind};
use machine::Prepared;
use std::sync::Arc;

/// The registration of workloads.
pub(crate) fn prepare(workload: &Workload) -> Result<Arc<dyn Prepared>, Refusal> {
    match workload.kind {
        WorkloadKind::TcpStream => Ok(Arc::new(tcp_stream::TcpStreams::new(workload)?)),
        WorkloadKind::TcpRr => Ok(Arc::new(tcp_rr::TcpRequests::new(workload))),
        WorkloadKind::UdpStream => Ok(Arc::new(udp_stream::UdpStreams::new(workload)?)),
        WorkloadKind::UdpRr => Ok(Arc::new(udp_rr::UdpRequests::new(workload)?)),
        WorkloadKind::TcpCrr => Ok(Arc::new(tcp_crr::TcpConnections::new(workload))),
        WorkloadKind::Ping => Ok(Arc::new(ping::Pings::new(workload)?)),
        WorkloadKind::Trace => Ok(Arc::new(trace::Traces)),
        WorkloadKind::FlowSizes => Ok(Arc::new(flow_sizes::Messages::new(workload))),
    }
}
