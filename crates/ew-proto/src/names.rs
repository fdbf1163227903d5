//! Messages by name, for reasons people read.

use crate::message::{ToAgent, ToController};

impl ToAgent {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Welcome(_) => "a welcome",
            Self::ClockProbe { .. } => "a clock probe",
            Self::Stage(_) => "a stage",
            Self::Go { .. } => "a start",
            Self::Abort => "an abort",
            Self::Heartbeat => "a heartbeat",
            Self::CheckPorts(_) => "a port check",
            Self::Goodbye => "a goodbye",
            Self::Storage(_) => "a storage step",
            Self::Retime { .. } => "a timeline",
        }
    }
}

impl ToController {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Ready { .. } => "its facts",
            Self::ClockReply { .. } => "a clock reply",
            Self::StageAccepted { .. } => "a stage's acceptance",
            Self::StageRefused { .. } => "a stage's refusal",
            Self::RoundReport(_) => "a round's report",
            Self::StageDone { .. } => "a stage's end",
            Self::Alive { .. } => "an answer to a heartbeat",
            Self::Sample(_) => "a sample",
            Self::PortsChecked { .. } => "a port check's answer",
            Self::Fault { .. } => "a fault",
            Self::Farewell => "a farewell",
            Self::FlowProgress(_) => "how a flow goes",
            Self::Reading(_) => "a reading",
            Self::StorageReport(_) => "a storage step's report",
            Self::StorageProgress { .. } => "how a storage step goes",
        }
    }
}
