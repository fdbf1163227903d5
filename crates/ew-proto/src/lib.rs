//! Controller-agent messages, framing, both session state machines and the estimate of an agent's
//! clock: sans-IO.
//!
//! Nothing here reads a clock, a socket or a file. A session is fed bytes and times and hands back
//! bytes to write, events and the time of its next deadline; who moves the bytes is the caller's
//! affair. Both sessions are driven alike:
//!
//! 1. bytes arrived: `handle_bytes(bytes, now_ns)`; the link ended: `handle_eof(now_ns)`;
//! 2. `poll_event()` until `None`; `poll_transmit()` until `None`, writing each piece out;
//! 3. sleep until bytes arrive or `poll_timeout()` is reached, then `handle_timeout(now_ns)`; again
//!    from 2.
//!
//! All `now_ns` are nanoseconds of the side's own monotonic clock and never run backwards.

pub mod agent_session;
mod budget;
pub mod clock;
pub mod clock_line;
mod contradiction;
pub mod controller_session;
pub mod frame;
pub mod fuzzing;
mod limits;
mod liveness;
pub mod message;
mod names;
mod outbox;
pub mod preamble;
pub mod round;
pub mod sealed;
pub mod stage;
mod text;
mod unasked;

pub use agent_session::{AgentEvent, AgentSession};
pub use clock::{ClockEstimate, ClockEstimator, Exchange};
pub use clock_line::{ClockLine, Timeline};
pub use contradiction::Contradiction;
pub use controller_session::{ControllerEvent, ControllerSession};
pub use frame::{FrameDecoder, FrameError, encode};
pub use limits::{MAX_FRAME_BYTES, Message};
pub use outbox::CommandError;
pub use stage::StagePhase;
