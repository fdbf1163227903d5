//! What the fuzz targets run, and the tests that replay their inputs: each panics when a promise is
//! broken and returns otherwise.

use crate::process::{End, Finished};
use crate::registry::all;
use crate::testdfsio::{Line, Log, MAX_LINES, MAX_RESULT_BYTES, line_text};
use crate::tool::SECOND_NS;
use ew_model::plan::{FlowId, RoundIndex, StageIndex};
use ew_model::workload::{SendMode, Workload, WorkloadKind};
use ew_proto::message::{FlowOrder, Role};
use ew_proto::round::RoundSpec;
use std::net::{IpAddr, Ipv4Addr};

/// A tool's output: three digits for tool, workload, and role with way of sending; what it wrote to
/// its standard output; a zero byte; and what it wrote to its standard error.
pub fn tool_output(data: &[u8]) {
    let Some((choice, words)) = data.split_first_chunk() else {
        return;
    };
    let [tool, kind, flags] = choice.map(|digit: u8| digit.wrapping_sub(b'0'));
    let mut tools = all();
    let count = all().count();
    let kinds = WorkloadKind::ALL;
    let Some(tool) = tools.nth(usize::from(tool) % count) else {
        return;
    };
    let role = match flags & 1 {
        0 => Role::Send,
        _ => Role::Receive,
    };
    let spec = RoundSpec {
        stage: StageIndex(0),
        round: RoundIndex(0),
        workload: Workload {
            tool: tool.tool(),
            send_mode: match flags & 2 {
                0 => SendMode::Copy,
                _ => SendMode::Sendfile,
            },
            ..Workload::of(kinds[usize::from(kind) % kinds.len()])
        },
        connect_at_ns: 0,
        start_ns: SECOND_NS,
        window_start_ns: 2 * SECOND_NS,
        window_ns: SECOND_NS,
        interval_ns: SECOND_NS / 10,
        flows: Vec::new(),
    };
    let peer = (IpAddr::V4(Ipv4Addr::LOCALHOST), 5001);
    let order = FlowOrder::new(FlowId(1), role, true, peer.into());
    let mut parts = words.splitn(2, |byte| *byte == 0);
    let mut part = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let finished = Finished {
        stdout: part(),
        stderr: part(),
        end: End::Dismissed,
        started_ns: 0,
    };
    let _ = tool.parse(&spec, &order, &finished);
    let _ = tool.parse_server(&finished);
    let _ = tool.server_error(5001, &finished);
}

/// What a job of TestDFSIO prints, line by line: what is kept is not more than was printed.
pub fn testdfsio_log(data: &[u8]) {
    let mut log = Log::new("yarn".as_ref(), &[]);
    let mut printed_bytes = 0;
    for bytes in data.split(|byte| *byte == b'\n') {
        let text = line_text(bytes);
        printed_bytes += text.len();
        let line = Line {
            at_ns: 0,
            text,
            is_stdout: true,
        };
        log.take(line, &mut |words| assert!(words.len() <= printed_bytes));
    }
    assert!(log.last_line().len() <= printed_bytes.max("none".len()));
    assert!(log.kept.result.len() <= MAX_RESULT_BYTES);
    assert!(log.kept.lines.len().max(log.tail.len()) <= MAX_LINES);
}
