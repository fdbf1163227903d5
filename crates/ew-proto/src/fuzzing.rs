//! What the fuzz targets run, and the tests that replay their corpus: one function per target, each
//! panics when a promise is broken and returns otherwise. Always compiled, so that `cargo test` and
//! the fuzzer run the same code.
//!
//! An input for a session is `[scene][piece][bytes the peer sends...]`: the scene determines how
//! far a well-behaved peer had got before, the piece how many bytes come at a time (0: all at
//! once).

pub mod seeds;

use crate::agent_session::{AgentEvent, AgentSession};
use crate::clock_line::Timeline;
use crate::controller_session::{ControllerEvent, ControllerSession};
use crate::frame::{FrameDecoder, FrameError, encode};
use crate::limits::Message;
use crate::message::{ToAgent, ToController};
use crate::preamble::{MAX_BANNER_BYTES, PreambleScanner, preamble};
use ew_model::facts::HostFacts;
use ew_model::inventory::HostId;
use seeds::{AGENT_SCENES, BUILD, CONTROLLER_SCENES};

const NOW_NS: u64 = 1_000_000_000;

/// The decoder: never panics, gives the same messages however the bytes are cut, and what it read
/// can be written again.
pub fn frame_decoder(data: &[u8]) {
    check_decoder::<ToAgent>(data);
    check_decoder::<ToController>(data);
}

/// The scanner: keeps to its limits, and gives the same answer however the bytes are cut.
pub fn preamble_scanner(data: &[u8]) {
    let mut whole = PreambleScanner::new(BUILD);
    let expected = whole.push(data);
    let mut cut = PreambleScanner::new(BUILD);
    for (index, byte) in data.iter().enumerate() {
        match cut.push(std::slice::from_ref(byte)) {
            Ok(None) => {}
            Ok(Some(rest)) => {
                assert!(rest.is_empty(), "bytes that had not come");
                assert_eq!(
                    expected,
                    Ok(Some(data[index + 1..].to_vec())),
                    "cut differs"
                );
                return;
            }
            Err(_) => {
                assert!(expected.is_err(), "cut differs");
                return;
            }
        }
    }
    // A banner may be over its limit and, in one piece, hold the line far behind it: refused either
    // way.
    assert!(
        expected == Ok(None) || data.len() > MAX_BANNER_BYTES,
        "cut differs"
    );
}

/// The controller's session under whatever an agent may send.
pub fn controller_session(data: &[u8]) {
    let Some((scene, piece, bytes)) = split_input(data) else {
        return;
    };
    let mut session = controller_in_scene(scene);
    let mut now_ns = NOW_NS;
    for bytes in pieces(bytes, piece) {
        now_ns += 1_000_000;
        session.handle_bytes(bytes, now_ns);
    }
    for _ in 0..3 {
        if let Some(at_ns) = session.poll_timeout() {
            session.handle_timeout(at_ns.max(now_ns));
        }
    }
    session.handle_eof(u64::MAX);
    assert!(session.is_closed() && session.poll_timeout().is_none() && session.stage().is_none());
    assert!(session.goodbye().is_err() && session.abort().is_err());
    let events: Vec<_> = std::iter::from_fn(|| session.poll_event()).collect();
    let last_words =
        |e: &ControllerEvent| matches!(e, ControllerEvent::Lost { .. } | ControllerEvent::Farewell);
    assert_eq!(
        events.iter().filter(|e| last_words(e)).count(),
        1,
        "one end"
    );
    assert!(events.last().is_some_and(last_words), "the end comes last");
    check_transmitted::<ToAgent>(std::iter::from_fn(|| session.poll_transmit()));
}

/// The agent's session under whatever a controller may send.
pub fn agent_session(data: &[u8]) {
    let Some((scene, piece, bytes)) = split_input(data) else {
        return;
    };
    let mut session = agent_in_scene(scene);
    let mut now_ns = NOW_NS;
    for bytes in pieces(bytes, piece) {
        now_ns += 1_000_000;
        session.handle_bytes(bytes, now_ns);
    }
    for _ in 0..3 {
        if let Some(at_ns) = session.poll_timeout() {
            session.handle_timeout(at_ns.max(now_ns));
        }
    }
    session.handle_eof(u64::MAX);
    assert!(session.is_closed() && session.poll_timeout().is_none() && session.stage().is_none());
    assert!(session.farewell().is_err() && session.fault("late").is_err());
    let events: Vec<_> = std::iter::from_fn(|| session.poll_event()).collect();
    let lost = |e: &AgentEvent| matches!(e, AgentEvent::ControllerLost { .. });
    assert_eq!(events.iter().filter(|e| lost(e)).count(), 1, "one end");
    assert!(events.last().is_some_and(lost), "the end comes last");
    check_transmitted::<ToController>(std::iter::from_fn(|| session.poll_transmit()));
}

fn split_input(data: &[u8]) -> Option<(u8, usize, &[u8])> {
    match data {
        [scene, piece, bytes @ ..] => Some((*scene, usize::from(*piece), bytes)),
        _ => None,
    }
}

fn pieces(bytes: &[u8], piece: usize) -> std::slice::Chunks<'_, u8> {
    let piece = if piece == 0 { bytes.len() } else { piece };
    bytes.chunks(piece.max(1))
}

fn check_decoder<T: Message>(data: &[u8]) {
    let mut whole = FrameDecoder::new();
    whole.push(data);
    let expected = drain::<T>(&mut whole);
    let mut cut = FrameDecoder::new();
    let mut got = Vec::new();
    for byte in data {
        cut.push(std::slice::from_ref(byte));
        got.extend(drain::<T>(&mut cut));
    }
    got.dedup_by(|later, first| later.is_err() && later == first);
    assert_eq!(got, expected, "cut differs");
}

/// The messages, written again, and the error that ended them. Compared in written form, as floats
/// may be NaN.
fn drain<T: Message>(decoder: &mut FrameDecoder) -> Vec<Result<Vec<u8>, FrameError>> {
    let mut results = Vec::new();
    loop {
        match decoder.next::<T>() {
            Ok(None) => return results,
            Ok(Some(message)) => results.push(encode(&message)),
            Err(error) => {
                results.push(Err(error));
                return results;
            }
        }
    }
}

fn check_transmitted<T: Message>(frames: impl Iterator<Item = Vec<u8>>) {
    let mut decoder = FrameDecoder::new();
    for frame in frames {
        decoder.push(&frame);
        assert!(
            matches!(decoder.next::<T>(), Ok(Some(_))),
            "an unreadable frame was sent"
        );
    }
    assert!(!decoder.is_inside_frame(), "half a frame was sent");
}

fn controller_in_scene(scene: u8) -> ControllerSession {
    let mut session = ControllerSession::new(BUILD, HostId(0), 0);
    let scene = scene % CONTROLLER_SCENES;
    if scene >= 1 {
        session.handle_bytes(&preamble(BUILD), 1);
    }
    if scene >= 2 {
        let _ = session.welcome(seeds::welcome());
        session.handle_timeout(2);
    }
    let order = seeds::stage_order(0, 2, 2);
    let stage = order.stage;
    let agent_says = |session: &mut ControllerSession, message: &ToController| {
        session.handle_bytes(&encode(message).unwrap_or_default(), 3);
    };
    if scene >= 3 {
        let facts = HostFacts::default();
        agent_says(
            &mut session,
            &ToController::Ready {
                facts,
                data_port: 4000,
            },
        );
        let _ = session.sync(3);
    }
    if scene == 8 {
        let _ = session.send_storage(seeds::storage_order(0, 2));
        return session;
    }
    if scene >= 4 {
        let _ = session.send_stage(order.clone());
    }
    if scene >= 5 {
        agent_says(&mut session, &ToController::StageAccepted { stage });
        let _ = session.go(stage, NOW_NS);
    }
    if scene >= 6 {
        let _ = session.abort();
        let _ = session.send_stage(order);
    }
    if scene >= 7 {
        let _ = session.goodbye();
    }
    session
}

fn agent_in_scene(scene: u8) -> AgentSession {
    let mut session = AgentSession::new(BUILD, 0);
    session.poll_transmit();
    let scene = scene % AGENT_SCENES;
    let controller_says = |session: &mut AgentSession, message: &ToAgent| {
        session.handle_bytes(&encode(message).unwrap_or_default(), 1);
    };
    if scene >= 1 {
        controller_says(&mut session, &ToAgent::Welcome(seeds::welcome()));
    }
    if scene >= 2 {
        let _ = session.ready(HostFacts::default(), 4000);
    }
    if scene == 6 {
        let order = seeds::storage_order(0, 2);
        controller_says(&mut session, &ToAgent::Storage(order));
        return session;
    }
    let order = seeds::stage_order(0, 2, 2);
    let stage = order.stage;
    if scene >= 3 {
        controller_says(&mut session, &ToAgent::Stage(order));
    }
    if scene >= 4 {
        let _ = session.accept(stage);
    }
    if scene >= 5 {
        controller_says(
            &mut session,
            &ToAgent::Go {
                stage,
                timeline: Timeline::from_start(NOW_NS),
            },
        );
    }
    session
}
