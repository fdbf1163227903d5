//! `/proc/net/dev`, see proc(5).

use ew_model::facts::InterfaceCounters;

/// All interfaces, loopback too, in the kernel's order.
pub(crate) fn device_lines(text: &str) -> impl Iterator<Item = InterfaceCounters> {
    text.lines().filter_map(interface_line)
}

/// `eth0: bytes packets errs drop fifo frame compressed multicast`, then the same eight for
/// sending. A name may contain a colon itself, and no space need follow the last one.
fn interface_line(line: &str) -> Option<InterfaceCounters> {
    let (name, numbers) = line.rsplit_once(':')?;
    let mut counters = [0; 12];
    let mut words = numbers.split_whitespace();
    for counter in &mut counters {
        *counter = words.next()?.parse().ok()?;
    }
    Some(InterfaceCounters {
        name: name.trim().to_owned(),
        rx_bytes: counters[0],
        rx_packets: counters[1],
        rx_errors: counters[2],
        rx_drops: counters[3],
        rx_fifo_errors: Some(counters[4]),
        tx_bytes: counters[8],
        tx_packets: counters[9],
        tx_errors: counters[10],
        tx_drops: counters[11],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_of_a_line() {
        let line = "  eth0:100 2 3 4 5 6 7 8 900 10 11 12 13 14 15 16";
        let counters = interface_line(line).unwrap();
        assert_eq!(counters.name, "eth0");
        assert_eq!((counters.rx_bytes, counters.rx_drops), (100, 4));
        assert_eq!(counters.rx_fifo_errors, Some(5));
        assert_eq!((counters.tx_bytes, counters.tx_packets), (900, 10));
        assert_eq!((counters.tx_errors, counters.tx_drops), (11, 12));
    }

    #[test]
    fn headings_and_short_lines_are_no_interface() {
        for line in [
            "Inter-|   Receive                   |  Transmit",
            " face |bytes    packets errs",
            "eth0: 1 2 3",
            "",
        ] {
            assert_eq!(interface_line(line), None, "{line}");
        }
    }
}
