//! What is measured, and what is expected: short options for the scenario's own keys.

use crate::exit::Failure;
use anyhow::Context;
use clap::Args;
use clap::builder::PossibleValuesParser;
use ew_model::pods::PodPath;
use ew_model::scenario::{Direction, Scenario};
use ew_model::threshold::{Metric, Threshold};
use ew_model::units::{parse_bits_per_sec, parse_bytes};
use ew_model::{Tool, WorkloadKind};
use std::path::PathBuf;

/// The change that a run without flows takes, too: background traffic is compared with it.
const EXPECTED_NIC: &str = "expect.nic=";

#[derive(Debug, Args)]
#[command(next_help_heading = "Test")]
pub(crate) struct PlanArgs {
    /// Length of each measurement, short for --set duration=TIME
    #[arg(short = 't', long, value_name = "TIME")]
    duration: Option<String>,
    /// Repetitions of each measurement, short for --set samples=N; six have a 95% interval
    #[arg(short = 'n', long, value_name = "N")]
    samples: Option<String>,
    /// Parallel connections per flow, short for --set streams=N
    #[arg(short = 'P', long, value_name = "N")]
    streams: Option<String>,
    /// The second host of a pair sends, the first receives
    #[arg(short = 'R', long)]
    reverse: bool,
    /// Both directions at the same time
    #[arg(long, conflicts_with = "reverse")]
    bidir: bool,
    /// UDP instead of TCP, short for --workload udp-stream
    #[arg(short, long, conflicts_with = "workload")]
    udp: bool,
    /// Most that a stream sends, short for --set rate=RATE
    #[arg(short = 'b', long, value_name = "RATE")]
    rate: Option<String>,
    /// Socket buffers, short for --set send-buffer=SIZE --set receive-buffer=SIZE
    #[arg(long, value_name = "SIZE")]
    window: Option<String>,
    /// Bytes of each message, short for --set message-size=SIZE
    #[arg(long, value_name = "SIZE")]
    length: Option<String>,
    /// What flows carry, short for --set workload=WORKLOAD
    #[arg(long, value_name = "WORKLOAD", value_parser = PossibleValuesParser::new(WorkloadKind::ALL.map(WorkloadKind::name)))]
    workload: Option<String>,
    /// What moves the bytes: eastwest's own engine, or a tool installed on the hosts
    #[arg(long, value_parser = PossibleValuesParser::new(Tool::ALL.map(Tool::name)))]
    tool: Option<String>,
    /// Expected rate of each NIC, short for --set expect.nic=RATE; a host below it ends with 1
    #[arg(long, value_name = "RATE")]
    expect_nic: Option<String>,
    /// Highest expected oversubscription, short for --set expect.oversubscription=RATIO
    #[arg(long, value_name = "RATIO")]
    expect_oversubscription: Option<String>,
    /// Longest expected round trip, short for --set expect.rtt=TIME
    #[arg(long, value_name = "TIME")]
    expect_rtt: Option<String>,
    /// End with 1 when TCP goodput of pods on different nodes is significantly below hostNetwork by
    /// more than this, short for --set expect.pod-loss=PERCENT
    #[arg(long, value_name = "PERCENT")]
    tcp_tolerance: Option<String>,
    /// Threshold on a metric: `rtt.p99<300us`, `pair.min>0.9*nic`, `loss<0.01%`; a missed one ends
    /// with 1; repeatable
    #[arg(long, value_name = "METRIC<BOUND", value_parser = parse_threshold)]
    expect: Vec<String>,
    /// Time for all tests: windows get shorter, then optional tests are skipped
    #[arg(long, value_name = "TIME")]
    time_budget: Option<String>,
    /// Change the scenario: `key=value` for all tests, `TEST.key=value` for one; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Seed of all random choices; the same seed gives the same plan [default: random, and shown]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_seed)]
    pub(crate) seed: Option<u64>,
    /// Tests of a k8s-netperf configuration, in its old or current form, instead of a scenario
    #[arg(long, value_name = "FILE", conflicts_with = "scenario")]
    pub(crate) k8s_netperf: Option<PathBuf>,
    /// Paths that the tests of --k8s-netperf take
    #[arg(long, value_name = "PATH,...", value_delimiter = ',', default_value = "host-network,same-node,other-node", value_parser = parse_path)]
    pub(crate) paths: Vec<PodPath>,
}

impl PlanArgs {
    /// All changes in the scenario's own keys: the workload first, because what else is set depends
    /// on it, and `--set` last, because it is the more exact.
    pub(crate) fn all_overrides(&self) -> Vec<String> {
        let udp = self.udp.then(|| WorkloadKind::UdpStream.name().to_owned());
        let short = [
            ("expect.pod-loss", &self.tcp_tolerance),
            ("workload", &udp),
            ("workload", &self.workload),
            ("streams", &self.streams),
            ("duration", &self.duration),
            ("samples", &self.samples),
            ("rate", &self.rate),
            ("send-buffer", &self.window),
            ("receive-buffer", &self.window),
            ("message-size", &self.length),
            ("tool", &self.tool),
            ("expect.nic", &self.expect_nic),
            ("expect.oversubscription", &self.expect_oversubscription),
            ("expect.rtt", &self.expect_rtt),
            ("time-budget", &self.time_budget),
        ];
        let given = short
            .into_iter()
            .filter_map(|(key, value)| Some(format!("{key}={}", value.as_ref()?)));
        let thresholds = self.expect.iter().cloned();
        given
            .chain(thresholds)
            .chain(self.overrides.iter().cloned())
            .collect()
    }

    /// Changes that a run without flows cannot take.
    pub(crate) fn overrides_of_flows(&self) -> Vec<String> {
        let mut changes = self.all_overrides();
        changes.retain(|change| !change.starts_with(EXPECTED_NIC));
        changes
    }

    /// Where there is no scenario of flows to contain it, bits per second.
    pub(crate) fn expected_nic_bits_per_sec(&self) -> Result<Option<f64>, Failure> {
        let changes = self.all_overrides();
        let mut rates = changes.iter().filter_map(|c| c.strip_prefix(EXPECTED_NIC));
        let rate = rates.next_back().map(parse_bits_per_sec).transpose();
        rate.context("--expect-nic").map_err(Failure::usage)
    }

    /// `-R` and `--bidir` as iperf3 has them: a scenario with a test for each direction keeps one.
    pub(crate) fn turn(&self, scenario: &mut Scenario) {
        let wanted = match (self.reverse, self.bidir) {
            (true, _) => Direction::Reverse,
            (_, true) => Direction::Both,
            _ => return,
        };
        let has_both_ways = [Direction::Forward, Direction::Reverse]
            .iter()
            .all(|way| scenario.tests.iter().any(|test| test.direction == *way));
        if has_both_ways {
            scenario
                .tests
                .retain(|test| test.direction == Direction::Forward);
        }
        for test in &mut scenario.tests {
            test.direction = wanted;
            if test.name == "forward" {
                test.name = if self.bidir { "both" } else { "reverse" }.into();
            }
        }
    }

    /// What `--length` has where it is no size: in `eastwest pair`, `-l` was a user's name.
    pub(crate) fn user_in_length(&mut self) -> Option<String> {
        self.length.take_if(|text| parse_bytes(text).is_err())
    }
}

/// As `--set` has it: `expect.rtt.p99=<300us`.
fn parse_threshold(text: &str) -> anyhow::Result<String> {
    let at = text.find(['<', '>']);
    let at = at.with_context(|| format!("`{text}` has neither < nor >; write rtt.p99<300us"))?;
    let (key, bound) = text.split_at(at);
    let key = key.trim();
    let (stage, metric) = Threshold::key(key).with_context(|| {
        let known = Metric::ALL.map(Metric::name).join(", ");
        format!("`{key}` is no metric; there are {known}, each also as STAGE/METRIC")
    })?;
    Threshold::parse(stage, metric, bound)?;
    Ok(format!("expect.{key}={bound}"))
}

fn parse_path(text: &str) -> anyhow::Result<PodPath> {
    let found = PodPath::ALL.into_iter().find(|path| path.name() == text);
    let known = PodPath::ALL.map(PodPath::name).join(", ");
    found.with_context(|| format!("`{text}` is no path; there are {known}"))
}

fn parse_seed(text: &str) -> anyhow::Result<u64> {
    let seed = text.parse().ok();
    seed.with_context(|| format!("`{text}` is no seed; give a whole number, 0 or more"))
}

/// Short enough to be typed again.
pub(crate) fn draw_seed() -> Result<u64, Failure> {
    getrandom::u32()
        .map(u64::from)
        .map_err(|error| Failure::failed(anyhow::anyhow!("no random seed: {error}")))
}
