//! The one-byte words of the control connection.

/// One state byte (`iperf_api.h`). Numbers that iperf3 does not send are no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Both sides prepare: the streams are there.
    TestStart,
    /// Both sides send and receive.
    TestRunning,
    /// The client has reached its end.
    TestEnd,
    /// The server wants the client's parameters.
    ParamExchange,
    /// The server waits for the client's streams.
    CreateStreams,
    /// The server gives up.
    ServerTerminate,
    /// The client gives up.
    ClientTerminate,
    /// The server wants the client's results, and then sends its own.
    ExchangeResults,
    /// Both sides have all results.
    DisplayResults,
    /// The client is through.
    IperfDone,
    /// The server takes no client now.
    AccessDenied,
    /// The server refuses; two numbers follow (see [`super::refusal`]).
    ServerError,
}

const WIRE: [(State, i8); 12] = [
    (State::TestStart, 1),
    (State::TestRunning, 2),
    (State::TestEnd, 4),
    (State::ParamExchange, 9),
    (State::CreateStreams, 10),
    (State::ServerTerminate, 11),
    (State::ClientTerminate, 12),
    (State::ExchangeResults, 13),
    (State::DisplayResults, 14),
    (State::IperfDone, 16),
    (State::AccessDenied, -1),
    (State::ServerError, -2),
];

impl State {
    /// The state of a byte from the wire.
    #[must_use]
    pub fn from_wire(byte: u8) -> Option<Self> {
        let number = i8::from_le_bytes([byte]);
        let found = WIRE.iter().find(|(_, wire)| *wire == number);
        found.map(|(state, _)| *state)
    }

    /// The byte to send.
    #[must_use]
    pub fn to_wire(self) -> u8 {
        let found = WIRE.iter().find(|(state, _)| *state == self);
        found.map_or(0, |(_, wire)| wire.to_le_bytes()[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_a_state_or_none() {
        let known = (0..=u8::MAX).filter(|byte| State::from_wire(*byte).is_some());
        let known: Vec<u8> = known.collect();
        assert_eq!(known, [1, 2, 4, 9, 10, 11, 12, 13, 14, 16, 0xfe, 0xff]);
        for byte in known {
            assert_eq!(State::from_wire(byte).map(State::to_wire), Some(byte));
        }
    }
}
