//! What is set otherwise than by default.

use crate::common;
use ew_model::Setting;
use ew_model::analysis::StageAnalysis;
use ew_model::sizes::SizeDistribution;
use ew_report::worded_stage;
use std::collections::BTreeSet;

#[test]
fn of_every_kind() {
    let stage = StageAnalysis {
        settings: settings(),
        ..common::demo().stages.remove(1)
    };
    insta::assert_snapshot!(worded_stage(&stage).settings.join("\n"));
    let name = |setting: &Setting| match serde_json::to_value(setting).unwrap() {
        serde_json::Value::Object(named) => named.keys().next().unwrap().clone(),
        word => word.as_str().unwrap().to_owned(),
    };
    let worded: BTreeSet<String> = settings().iter().map(name).collect();
    let schema = schemars::schema_for!(Setting).to_value();
    let variants = schema["oneOf"].as_array().unwrap().iter();
    let all = variants.map(|variant| match variant["required"][0].as_str() {
        Some(named) => named.to_owned(),
        None => variant["const"].as_str().unwrap().to_owned(),
    });
    assert_eq!(worded, all.collect());
}

/// One of each.
pub(crate) fn settings() -> Vec<Setting> {
    vec![
        Setting::Sizes(SizeDistribution::WebSearch),
        Setting::Streams(16),
        Setting::Threads(3),
        Setting::MessageBytes(5000),
        Setting::RequestBytes(1),
        Setting::ResponseBytes(65_536),
        Setting::Outstanding(8),
        Setting::StreamBitsPerSec(1e8),
        Setting::FlowBitsPerSec(1e9),
        Setting::LineShare(0.3),
        Setting::RequestsPerSec(1234.5),
        Setting::LimitBytes(1 << 30),
        Setting::LimitMessages(7),
        Setting::Sendfile,
        Setting::ZerocopySend,
        Setting::DiscardingReceiver,
        Setting::MappedReceive,
        Setting::NoSegmentation,
        Setting::Nodelay(true),
        Setting::Nodelay(false),
        Setting::SendBufferBytes(262_144),
        Setting::ReceiveBufferBytes(131_072),
        Setting::Congestion("bbr".into()),
        Setting::MssBytes(1000),
        Setting::Dscp(46),
        Setting::Mptcp,
        Setting::Device("eth7".into()),
        Setting::Cpus(vec![1, 3]),
        Setting::NearNic,
        Setting::NearReceiveQueue,
    ]
}
