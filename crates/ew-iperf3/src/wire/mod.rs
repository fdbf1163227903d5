//! What travels between two iperf3 programs. Pure: bytes and text in, values out, and back.

pub mod cookie;
pub mod datagram;
pub mod frame;
mod lenient;
pub mod params;
pub mod refusal;
pub mod results;
pub mod state;
