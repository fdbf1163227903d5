//! What a workload sets otherwise than by default.

use ew_model::Setting;
use ew_model::analysis::StageAnalysis;
use ew_model::units::{format_bits_per_sec, format_bytes};
use schemars::JsonSchema;
use serde::Serialize;

/// A stage, as the JSON report holds it.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
#[schemars(rename = "StageAnalysis")]
pub struct WordedStageAnalysis<'a> {
    /// As figures.
    #[serde(flatten)]
    pub stage: &'a StageAnalysis,
    /// What was set otherwise than by default: "16 streams", "sendfile", "at most 1.00 Gb/s a
    /// flow".
    pub settings: Vec<String>,
}

/// The stage with its words.
#[must_use]
pub fn worded_stage(stage: &StageAnalysis) -> WordedStageAnalysis<'_> {
    WordedStageAnalysis {
        stage,
        settings: settings(&stage.settings),
    }
}

/// "16 streams", "sendfile", "at most 1.00 Gb/s a flow".
pub(crate) fn setting(setting: &Setting) -> String {
    let at_most = |rate: f64, whose| format!("at most {} a {whose}", format_bits_per_sec(rate));
    let sized = |bytes: u64, what| format!("{} {what}", format_bytes(bytes));
    match setting {
        Setting::Sizes(distribution) => format!("sizes of {}", distribution.name()),
        Setting::Streams(count) => format!("{count} streams"),
        Setting::Threads(count) => format!("{count} threads"),
        Setting::MessageBytes(bytes) => sized(*bytes, "messages"),
        Setting::RequestBytes(bytes) => sized(*bytes, "requests"),
        Setting::ResponseBytes(bytes) => sized(*bytes, "responses"),
        Setting::Outstanding(count) => format!("{count} requests in flight"),
        Setting::StreamBitsPerSec(rate) => at_most(*rate, "stream"),
        Setting::FlowBitsPerSec(rate) => at_most(*rate, "flow"),
        Setting::LineShare(share) => format!("at {:.0}% of line rate", 100.0 * share),
        Setting::RequestsPerSec(rate) => format!("open loop at {rate:.0} requests/s a flow"),
        Setting::LimitBytes(bytes) => format!("until {} a stream", format_bytes(*bytes)),
        Setting::LimitMessages(count) => format!("until {count} messages a stream"),
        Setting::Sendfile => "sendfile".into(),
        Setting::ZerocopySend => "zero-copy sending".into(),
        Setting::DiscardingReceiver => "discarding receiver".into(),
        Setting::MappedReceive => "mapped receiving".into(),
        Setting::NoSegmentation => "no GSO or GRO".into(),
        Setting::Nodelay(true) => "Nagle's algorithm off".into(),
        Setting::Nodelay(false) => "Nagle's algorithm on".into(),
        Setting::SendBufferBytes(bytes) => sized((*bytes).into(), "send buffer"),
        Setting::ReceiveBufferBytes(bytes) => sized((*bytes).into(), "receive buffer"),
        Setting::Congestion(name) => name.clone(),
        Setting::MssBytes(bytes) => format!("MSS {bytes}"),
        Setting::Dscp(code_point) => format!("DSCP {code_point}"),
        Setting::Mptcp => "MPTCP".into(),
        Setting::Device(name) => format!("over {name}"),
        Setting::Cpus(cpus) => {
            let names: Vec<String> = cpus.iter().map(u32::to_string).collect();
            format!("on CPU {}", names.join(", "))
        }
        Setting::NearNic => "near the NIC".into(),
        Setting::NearReceiveQueue => "near the receive queue".into(),
    }
}

/// Each in words.
pub(crate) fn settings(settings: &[Setting]) -> Vec<String> {
    settings.iter().map(setting).collect()
}
