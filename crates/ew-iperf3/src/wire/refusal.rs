//! Why a server refuses, as the number it sends after `ServerError`, and in words.

use std::fmt;
use std::io;

/// Bytes after the state `ServerError`: two numbers, most significant byte first.
pub const REFUSAL_BYTES: usize = 8;

/// A refusal: iperf3's `i_errno`, and the system's errno or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Number of the enumeration in iperf_api.h.
    pub code: i32,
    /// The system's error behind it, 0 for none.
    pub errno: i32,
}

impl Refusal {
    /// `IEDURATION`
    pub const DURATION: Self = Self::new(5);
    /// `IENUMSTREAMS`
    pub const STREAMS: Self = Self::new(6);
    /// `IEBLOCKSIZE`
    pub const BLOCK: Self = Self::new(7);
    /// `IEBUFSIZE`
    pub const WINDOW: Self = Self::new(8);
    /// `IEMSS`
    pub const MSS: Self = Self::new(10);
    /// `IEOMIT`
    pub const OMIT: Self = Self::new(12);
    /// `IEBURST`
    pub const BURST: Self = Self::new(15);
    /// `IENOSCTP`
    pub const SCTP: Self = Self::new(18);
    /// `IEUDPBLOCKSIZE`
    pub const UDP_BLOCK: Self = Self::new(20);
    /// `IEBADTOS`
    pub const TOS: Self = Self::new(21);
    /// `IETOTALRATE`
    pub const TOTAL_RATE: Self = Self::new(27);
    /// `IERECVPARAMS`
    pub const PARAMS: Self = Self::new(114);
    /// `IERECVRESULTS`
    pub const RESULTS: Self = Self::new(117);
    /// `IESETCONGESTION`
    pub const CONGESTION: Self = Self::new(134);
    /// `IEAUTHTEST`
    pub const AUTHORIZATION: Self = Self::new(142);
    /// `IENOMSG`
    pub const NO_DATA: Self = Self::new(144);
    /// `IESERVERTESTDURATIONEXPIRED`
    pub const EXPIRED: Self = Self::new(160);
    /// `IESTREAMACCEPT`
    pub const STREAM_ACCEPT: Self = Self::new(204);
    /// `IESTREAMWRITE`
    pub const STREAM_WRITE: Self = Self::new(205);
    /// `IESTREAMREAD`
    pub const STREAM_READ: Self = Self::new(206);

    const fn new(code: i32) -> Self {
        Self { code, errno: 0 }
    }

    /// The same refusal with the system's error behind it.
    #[must_use]
    pub fn because(self, error: &io::Error) -> Self {
        Self {
            errno: error.raw_os_error().unwrap_or(0),
            ..self
        }
    }

    /// What follows the state byte.
    #[must_use]
    pub fn to_wire(self) -> [u8; REFUSAL_BYTES] {
        let mut bytes = [0; REFUSAL_BYTES];
        bytes[..4].copy_from_slice(&self.code.to_be_bytes());
        bytes[4..].copy_from_slice(&self.errno.to_be_bytes());
        bytes
    }

    /// What a peer sent after the state byte.
    #[must_use]
    pub fn from_wire(bytes: [u8; REFUSAL_BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h] = bytes;
        Self {
            code: i32::from_be_bytes([a, b, c, d]),
            errno: i32::from_be_bytes([e, f, g, h]),
        }
    }

    fn words(self) -> Option<&'static str> {
        Some(match self.code {
            5 => "the test is longer than the server allows",
            6 => "more parallel streams than the server allows",
            7 => "the block size is larger than the server allows",
            8 => "the socket buffer is larger than the server allows",
            10 => "the maximum segment size is larger than the server allows",
            12 => "the omitted time is longer than the server allows",
            13 => "the server does not know an option of this test",
            15 => "the burst is larger than the server allows",
            18 => "the server does not speak SCTP",
            20 => "the server does not allow this UDP block size",
            21 => "the server does not allow this type of service",
            27 => "the requested rate is above the server's limit",
            37 => "the requested duration is above the server's limit",
            111 | 112 | 114 => "the server could not read the parameters",
            117 => "the server could not read the results",
            119 => "the client has terminated",
            120 => "the server has terminated",
            121 => "the server is busy running a test. try again later",
            124 | 141 => "the server could not set the socket buffer size",
            134 => "the server does not have this congestion control algorithm",
            142 => "test authorization failed",
            144 => "the server received no data for too long",
            160 => "the server ended the test: it lasted longer than announced",
            203 | 204 => "the server could not accept a stream",
            205 => "the server could not send on a stream",
            206 => "the server could not receive from a stream",
            _ => return None,
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.words() {
            Some(words) => f.write_str(words)?,
            None => write!(f, "the server refused with iperf3's error {}", self.code)?,
        }
        if self.errno > 0 {
            write!(f, ": {}", io::Error::from_raw_os_error(self.errno))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_survive_the_wire() {
        let refusal = Refusal::CONGESTION.because(&io::Error::from_raw_os_error(2));
        assert_eq!(refusal.to_wire(), [0, 0, 0, 134, 0, 0, 0, 2]);
        assert_eq!(Refusal::from_wire(refusal.to_wire()), refusal);
        assert!(refusal.to_string().contains("No such file"));
    }

    #[test]
    fn a_number_nobody_knows_is_shown() {
        let unknown = Refusal::from_wire([0xff; 8]);
        assert_eq!(
            unknown.to_string(),
            "the server refused with iperf3's error -1"
        );
    }
}
