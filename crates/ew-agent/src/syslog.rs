//! A line in the host's own log when load begins and ends, so that its owner finds who it was.

use std::os::unix::net::UnixDatagram;

/// Facility daemon, severity notice (RFC 5424, section 6.2.1).
const PRIORITY: u32 = 3 * 8 + 5;
/// Where syslog(3) writes.
const SOCKET: &str = "/dev/log";

/// Writes a line, where the host has a log. Never waits.
pub(crate) fn write(text: &str) {
    let line = text.replace(char::is_control, " ");
    let line = format!("<{PRIORITY}>eastwest[{}]: {line}", std::process::id());
    let written = UnixDatagram::unbound().and_then(|socket| {
        socket.set_nonblocking(true)?;
        socket.send_to(line.as_bytes(), SOCKET)
    });
    // A host without a log loses nothing.
    drop(written);
}
