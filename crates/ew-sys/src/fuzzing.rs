//! What the fuzz target runs, and the test that replays its inputs: it panics when a promise is
//! broken and returns otherwise.

use crate::{error_queue, link, netlink, qdisc, sock_diag};

/// What the kernel sends: no message is believed beyond its end, and no parser finds more in it
/// than one thing.
pub fn netlink(data: &[u8]) {
    let mut links = Vec::new();
    for message in netlink::messages(data) {
        let _ = netlink::error_of(message.body);
        links.extend(link::raw_link(message.body));
        let name = |index: u32| Some(format!("eth{index}"));
        let qdisc = qdisc::qdisc(message.body, name);
        let egress = qdisc::egress(message.body, name);
        assert!(egress.is_none() || qdisc.is_some());
        let _ = sock_diag::tcp_socket(message.body);
        let _ = sock_diag::udp_socket(message.body);
        let _ = error_queue::address(message.body);
    }
    let count = links.len();
    assert!(link::joined(links).len() <= count);
}
