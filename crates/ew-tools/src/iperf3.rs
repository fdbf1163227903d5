//! The stock iperf3, 3.9 and later (<https://software.es.net/iperf/>).

mod output;

use crate::flow_error::FlowError;
use crate::process::{End, Finished};
use crate::tool::{
    BothEnds, ExternalTool, SECOND_NS, ServerLife, Site, warm_up_seconds, window_seconds,
};
use ew_model::workload::{Limit, Pace, SendMode, SocketSettings, Tool, Workload, WorkloadKind};
use ew_proto::message::{FlowOrder, Role};
use ew_proto::round::RoundSpec;
use output::Output;
use std::process::Command;

const CONNECT_TIMEOUT_MS: &str = "2000";

pub(crate) struct Iperf3;

impl ExternalTool for Iperf3 {
    fn tool(&self) -> Tool {
        Tool::Iperf3
    }

    fn version_argument(&self) -> Option<&'static str> {
        Some("--version")
    }

    fn server(&self, site: &Site<'_>, port: u16) -> Command {
        let mut command = Command::new(site.program);
        command.args(["-s", "-1", "--forceflush"]);
        command.args(["-p", &port.to_string(), "-B", &site.address.to_string()]);
        command
    }

    fn server_life(&self) -> ServerLife {
        ServerLife::OneClient
    }

    fn client(&self, site: &Site<'_>, order: &FlowOrder) -> Command {
        let spec = site.spec;
        let mut command = Command::new(site.program);
        command.args(["-J", "--connect-timeout", CONNECT_TIMEOUT_MS]);
        command.args(["-c", &order.peer.ip().to_string()]);
        command.args(["-p", &order.peer.port().to_string()]);
        command.args(["-B", &site.address.to_string()]);
        command.args(length_arguments(spec));
        command.args(traffic_arguments(&spec.workload));
        command.args(socket_arguments(&spec.workload));
        if order.role == Role::Receive {
            command.arg("-R");
        }
        command
    }

    /// It leaves the warm-up out itself (-O).
    fn client_start_ns(&self, spec: &RoundSpec) -> u64 {
        spec.start_ns
    }

    fn client_runtime_ns(&self, spec: &RoundSpec) -> u64 {
        (window_seconds(spec) + warm_up_seconds(spec)) * SECOND_NS
    }

    fn server_error(&self, port: u16, finished: &Finished) -> Option<FlowError> {
        let tool = self.tool().name();
        match finished.end {
            End::Exited(status) if status.success() => None,
            End::Exited(status) => Some(FlowError::ServerEnded {
                tool,
                port,
                words: match last_line(&finished.stderr) {
                    "" => status.to_string(),
                    said => said.to_owned(),
                },
            }),
            _ if finished.stdout.contains("Accepted connection") => {
                Some(FlowError::ClientStayed { tool, port })
            }
            _ => Some(FlowError::NoClient { tool, port }),
        }
    }

    fn parse(
        &self,
        _spec: &RoundSpec,
        order: &FlowOrder,
        finished: &Finished,
    ) -> Result<BothEnds, FlowError> {
        let output = serde_json::from_str::<Output>(&finished.stdout);
        let output = output.map_err(|source| FlowError::NoJson {
            source,
            end: finished.end,
            words: last_line(&finished.stderr).to_owned(),
        })?;
        if let Some(words) = output.error {
            let program = "iperf3".to_owned();
            return Err(FlowError::NoFigures { program, words });
        }
        output.into_ends(order)
    }
}

/// It ends by time or by an amount. Its amounts are those of all streams, and without warm-up: what
/// it omits could be all.
fn length_arguments(spec: &RoundSpec) -> Vec<String> {
    let streams = u64::from(spec.workload.streams);
    let of_all = |amount: u64| amount.saturating_mul(streams).to_string();
    match spec.workload.limit {
        Some(Limit::Bytes(bytes)) => vec!["-n".into(), of_all(bytes)],
        Some(Limit::Messages(messages)) => vec!["-k".into(), of_all(messages)],
        None => vec![
            "-t".into(),
            window_seconds(spec).to_string(),
            "-O".into(),
            warm_up_seconds(spec).to_string(),
        ],
    }
}

fn traffic_arguments(workload: &Workload) -> Vec<String> {
    let mut arguments = vec![
        "-P".into(),
        workload.streams.to_string(),
        "-l".into(),
        workload.message_bytes.to_string(),
    ];
    let rate = stream_bits_per_sec(&workload.pace, workload.streams);
    if workload.kind == WorkloadKind::UdpStream {
        arguments.push("-u".into());
    }
    if workload.kind == WorkloadKind::UdpStream || rate.is_some() {
        // 0 is as fast as it goes; left to itself iperf3 sends UDP at 1 Mb/s.
        let rate = rate.map_or(0, |rate| rate.round() as u64);
        arguments.extend(["-b".into(), rate.to_string()]);
    }
    if workload.send_mode == SendMode::Sendfile {
        arguments.push("-Z".into());
    }
    arguments
}

/// It has rates per stream only.
fn stream_bits_per_sec(pace: &Pace, streams: u32) -> Option<f64> {
    let share = pace.flow_bits_per_sec.map(|rate| rate / f64::from(streams));
    let rates = [pace.stream_bits_per_sec, share].into_iter().flatten();
    rates.min_by(f64::total_cmp)
}

fn socket_arguments(workload: &Workload) -> Vec<String> {
    let SocketSettings {
        nodelay,
        send_buffer_bytes,
        congestion,
        mss_bytes,
        ..
    } = &workload.socket;
    let traffic_class = workload.socket.traffic_class();
    let options = [
        ("-w", send_buffer_bytes.map(|bytes| bytes.to_string())),
        ("-C", congestion.clone()),
        ("-M", mss_bytes.map(|bytes| bytes.to_string())),
        ("-S", traffic_class.map(|class| class.to_string())),
    ];
    let given = options
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    let mut arguments: Vec<String> = given
        .flat_map(|(name, value)| [name.into(), value])
        .collect();
    if *nodelay && workload.kind == WorkloadKind::TcpStream {
        arguments.push("-N".into());
    }
    arguments
}

fn last_line(text: &str) -> &str {
    let mut lines = text.lines().rev().map(str::trim);
    // Its last words show nothing.
    lines
        .find(|line| !line.is_empty() && *line != "iperf3: exiting")
        .unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::plan::{FlowId, RoundIndex, StageIndex};
    use std::net::IpAddr;
    use std::os::unix::process::ExitStatusExt;
    use std::path::Path;
    use std::process::ExitStatus;

    const FORWARD: &str = include_str!("../tests/data/iperf3-forward.json");
    const REFUSED: &str = include_str!("../tests/data/iperf3-refused.json");

    #[test]
    fn errors_are_its_own_words() {
        let error = |json| parse(Role::Send, json).unwrap_err().to_string();
        let refused = error(REFUSED);
        assert_eq!(
            refused,
            "iperf3: unable to connect to server: Connection refused"
        );
        let cut_short = error(&FORWARD[..FORWARD.len() / 2]);
        assert!(
            cut_short.starts_with("iperf3: no JSON result"),
            "{cut_short}"
        );
        assert!(error("{}").contains("no totals"));
    }

    #[test]
    fn durations_are_rounded_up_to_seconds() {
        let mut spec = spec();
        assert_eq!((window_seconds(&spec), warm_up_seconds(&spec)), (2, 1));
        spec.window_ns = 1;
        spec.window_start_ns = spec.start_ns;
        assert_eq!((window_seconds(&spec), warm_up_seconds(&spec)), (1, 0));
        assert_eq!(Iperf3.client_runtime_ns(&spec), SECOND_NS);
    }

    #[test]
    fn the_client_is_called_as_the_flow_says() {
        assert_eq!(
            called(|_| ()),
            "-J --connect-timeout 2000 -c 198.18.0.2 -p 5001 -B 198.18.0.1 -t 2 -O 1 -P 4 -l 131072 -R"
        );
    }

    #[test]
    fn knobs_are_passed_on() {
        let bulk = called(|w| {
            w.limit = Some(Limit::Bytes(1000));
            w.pace.flow_bits_per_sec = Some(2e9);
            w.pace.stream_bits_per_sec = Some(1e9);
            w.send_mode = SendMode::Sendfile;
            w.socket = SocketSettings {
                nodelay: true,
                send_buffer_bytes: Some(4096),
                receive_buffer_bytes: Some(4096),
                congestion: Some("bbr".into()),
                mss_bytes: Some(1400),
                dscp: Some(46),
                ..SocketSettings::default()
            };
        });
        let expected = "-n 4000 -P 4 -l 131072 -b 500000000 -Z -w 4096 -C bbr -M 1400 -S 184 -N -R";
        assert!(bulk.ends_with(expected), "{bulk}");
        let udp = called(|w| {
            w.kind = WorkloadKind::UdpStream;
            w.message_bytes = 1448;
            w.limit = Some(Limit::Messages(10));
        });
        assert!(udp.ends_with("-k 40 -P 4 -l 1448 -u -b 0 -R"), "{udp}");
    }

    fn called(change: fn(&mut Workload)) -> String {
        let mut spec = spec();
        change(&mut spec.workload);
        let address = IpAddr::from([198, 18, 0, 1]);
        let site = Site {
            program: Path::new("iperf3"),
            address,
            spec: &spec,
        };
        let command = Iperf3.client(&site, &order(Role::Receive));
        let arguments: Vec<_> = command.get_args().map(|a| a.to_string_lossy()).collect();
        arguments.join(" ")
    }

    #[test]
    fn a_server_says_why_it_did_not_serve() {
        let error = |ended: &Finished| Some(Iperf3.server_error(5001, ended)?.to_string());
        let mut ended = finished("");
        assert_eq!(error(&ended), None);
        ended.end = End::TimedOut;
        assert!(error(&ended).unwrap().contains("no client came"));
        ended.end = End::Exited(ExitStatus::from_raw(256));
        ended.stderr = "iperf3: error - unable to start listener\niperf3: exiting\n".to_owned();
        let expected = "iperf3 server on port 5001: iperf3: error - unable to start listener";
        assert_eq!(error(&ended).unwrap(), expected);
    }

    fn parse(role: Role, json: &str) -> Result<BothEnds, FlowError> {
        Iperf3.parse(&spec(), &order(role), &finished(json))
    }

    fn finished(stdout: &str) -> Finished {
        Finished {
            stdout: stdout.to_owned(),
            stderr: String::new(),
            end: End::Exited(ExitStatus::default()),
            started_ns: 0,
        }
    }

    fn order(role: Role) -> FlowOrder {
        FlowOrder::new(FlowId(1), role, true, "198.18.0.2:5001".parse().unwrap())
    }

    fn spec() -> RoundSpec {
        RoundSpec {
            stage: StageIndex(0),
            round: RoundIndex(0),
            workload: Workload {
                streams: 4,
                message_bytes: 128 * 1024,
                tool: Tool::Iperf3,
                socket: SocketSettings {
                    nodelay: false,
                    ..SocketSettings::default()
                },
                ..Workload::of(WorkloadKind::TcpStream)
            },
            connect_at_ns: 0,
            start_ns: 100,
            window_start_ns: 100 + SECOND_NS / 2,
            window_ns: 3 * SECOND_NS / 2,
            interval_ns: SECOND_NS / 10,
            flows: Vec::new(),
        }
    }
}
