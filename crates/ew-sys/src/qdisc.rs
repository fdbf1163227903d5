//! Queueing disciplines and their counters, by `RTM_GETQDISC` (include/uapi/linux/rtnetlink.h,
//! gen_stats.h).

use crate::netlink::{Netlink, attributes, u32_at, u64_at};
use ew_model::telemetry::QdiscCounters;
use std::ffi::CStr;
use std::io;

const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
const TC_H_ROOT: u32 = u32::MAX;
/// `struct tcmsg`.
const MESSAGE_BYTES: usize = 20;

const ATTRIBUTE_KIND: u16 = 1;
const ATTRIBUTE_OPTIONS: u16 = 2;
const ATTRIBUTE_STATS2: u16 = 7;
const STATS_BASIC: u16 = 1;
const STATS_QUEUE: u16 = 3;
/// Set since Linux 5.5, where the packets may not fit the 32 bits of `STATS_BASIC`.
const STATS_PACKETS64: u16 = 8;
const TBF_PARAMETERS: u16 = 1;
/// Set when the rate does not fit 32 bits.
const TBF_RATE64: u16 = 4;

/// Lists queueing disciplines.
#[derive(Debug)]
pub struct QdiscLister {
    netlink: Netlink,
}

impl QdiscLister {
    /// For the network namespace of the calling thread.
    ///
    /// # Errors
    /// The system's.
    pub fn open() -> io::Result<Self> {
        Ok(Self {
            netlink: Netlink::open(libc::NETLINK_ROUTE)?,
        })
    }

    /// Those that queue: `noqueue` has nothing to count.
    ///
    /// # Errors
    /// The system's.
    pub fn list(&mut self) -> io::Result<Vec<QdiscCounters>> {
        let mut found = Vec::new();
        self.netlink
            .dump(RTM_GETQDISC, &[0; MESSAGE_BYTES], &mut |kind, body| {
                if kind == RTM_NEWQDISC {
                    found.extend(qdisc(body, interface_name));
                }
            })?;
        Ok(found)
    }
}

/// What left an interface through its outermost queueing discipline. A train of segments (GSO)
/// counts as the packets it becomes on the wire, each with its headers, which the interface's own
/// counters do not do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EgressCounters {
    /// The interface.
    pub interface: String,
    /// Frames with their Ethernet headers.
    pub bytes: u64,
    /// Frames.
    pub packets: u64,
    /// Frames that the queue had no space for.
    pub drops: u32,
    /// Bytes waiting now.
    pub backlog_bytes: u32,
}

impl QdiscLister {
    /// What left each interface that has a queue.
    ///
    /// # Errors
    /// The system's.
    pub fn egress(&mut self) -> io::Result<Vec<EgressCounters>> {
        let mut found = Vec::new();
        self.netlink
            .dump(RTM_GETQDISC, &[0; MESSAGE_BYTES], &mut |kind, body| {
                if kind == RTM_NEWQDISC && u32_at(body, 12) == Some(TC_H_ROOT) {
                    found.extend(egress(body, interface_name));
                }
            })?;
        Ok(found)
    }
}

pub(crate) fn egress(
    body: &[u8],
    name_of: impl Fn(u32) -> Option<String>,
) -> Option<EgressCounters> {
    let counted = qdisc(body, name_of)?;
    let mut packets = 0;
    for (kind, value) in attributes(body.get(MESSAGE_BYTES..)?) {
        if kind == ATTRIBUTE_STATS2 {
            let of_kind = |wanted| attributes(value).find(|(kind, _)| *kind == wanted);
            packets = match of_kind(STATS_PACKETS64) {
                Some((_, value)) => u64_at(value, 0)?,
                None => u32_at(of_kind(STATS_BASIC)?.1, 8)?.into(),
            };
        }
    }
    Some(EgressCounters {
        interface: counted.interface,
        bytes: counted.bytes,
        packets,
        drops: counted.drops,
        backlog_bytes: counted.backlog_bytes,
    })
}

pub(crate) fn qdisc(body: &[u8], name_of: impl Fn(u32) -> Option<String>) -> Option<QdiscCounters> {
    let mut qdisc = QdiscCounters {
        handle: u32_at(body, 8)?,
        root: u32_at(body, 12)? == TC_H_ROOT,
        ..QdiscCounters::default()
    };
    for (kind, value) in attributes(body.get(MESSAGE_BYTES..)?) {
        match kind {
            ATTRIBUTE_KIND => {
                let text = CStr::from_bytes_until_nul(value).ok()?;
                qdisc.kind = text.to_string_lossy().into_owned();
            }
            ATTRIBUTE_OPTIONS if qdisc.kind == "tbf" => qdisc.rate_bytes_per_sec = tbf_rate(value),
            ATTRIBUTE_STATS2 => add_counters(&mut qdisc, value)?,
            _ => {}
        }
    }
    if qdisc.kind == "noqueue" {
        return None;
    }
    qdisc.interface = name_of(u32_at(body, 4)?)?;
    Some(qdisc)
}

/// `struct tc_tbf_qopt` begins with a `struct tc_ratespec`, whose last field is the rate.
fn tbf_rate(nested: &[u8]) -> Option<u64> {
    let find = |wanted| attributes(nested).find(|(kind, _)| *kind == wanted);
    match find(TBF_RATE64) {
        Some((_, value)) => u64_at(value, 0),
        None => u32_at(find(TBF_PARAMETERS)?.1, 8).map(u64::from),
    }
}

/// `struct gnet_stats_basic` and `struct gnet_stats_queue`.
fn add_counters(qdisc: &mut QdiscCounters, nested: &[u8]) -> Option<()> {
    for (kind, value) in attributes(nested) {
        match kind {
            STATS_BASIC => qdisc.bytes = u64_at(value, 0)?,
            STATS_QUEUE => {
                qdisc.backlog_packets = u32_at(value, 0)?;
                qdisc.backlog_bytes = u32_at(value, 4)?;
                qdisc.drops = u32_at(value, 8)?;
                qdisc.overlimits = u32_at(value, 16)?;
            }
            _ => {}
        }
    }
    Some(())
}

fn interface_name(index: u32) -> Option<String> {
    let mut name = [0 as libc::c_char; libc::IF_NAMESIZE];
    // SAFETY: `name` has the space that if_indextoname(3) asks for.
    let found = unsafe { libc::if_indextoname(index, name.as_mut_ptr()) };
    if found.is_null() {
        return None;
    }
    // SAFETY: on success the name is terminated within its buffer.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) };
    Some(name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = ((value.len() + 4) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn message(kind: &str) -> Vec<u8> {
        let mut queue = Vec::new();
        for number in [3_u32, 4542, 9, 0, 77] {
            queue.extend(number.to_ne_bytes());
        }
        let mut basic = 123_456_u64.to_ne_bytes().to_vec();
        basic.extend(99_u32.to_ne_bytes());
        let stats = [
            attribute(STATS_BASIC, &basic),
            attribute(STATS_QUEUE, &queue),
        ]
        .concat();
        let mut body = vec![0; MESSAGE_BYTES];
        body[4..8].copy_from_slice(&2_u32.to_ne_bytes());
        body[12..16].copy_from_slice(&TC_H_ROOT.to_ne_bytes());
        body.extend(attribute(ATTRIBUTE_KIND, format!("{kind}\0").as_bytes()));
        let mut parameters = [0; 36];
        parameters[8..12].copy_from_slice(&12_500_000_u32.to_ne_bytes());
        let options = attribute(TBF_PARAMETERS, &parameters);
        body.extend(attribute(ATTRIBUTE_OPTIONS, &options));
        body.extend(attribute(ATTRIBUTE_STATS2, &stats));
        body
    }

    #[test]
    fn counters_of_a_shaper() {
        let name = |index| (index == 2).then(|| "eth0".to_owned());
        let qdisc = qdisc(&message("tbf"), name).unwrap();
        assert_eq!(
            (qdisc.interface.as_str(), qdisc.kind.as_str()),
            ("eth0", "tbf")
        );
        assert!(qdisc.root);
        assert_eq!(qdisc.rate_bytes_per_sec, Some(12_500_000));
        assert_eq!(
            (qdisc.bytes, qdisc.drops, qdisc.overlimits),
            (123_456, 9, 77)
        );
        assert_eq!((qdisc.backlog_packets, qdisc.backlog_bytes), (3, 4542));
    }

    #[test]
    fn what_left_an_interface() {
        let name = |index| (index == 2).then(|| "up1".to_owned());
        let expected = EgressCounters {
            interface: "up1".into(),
            bytes: 123_456,
            packets: 99,
            drops: 9,
            backlog_bytes: 4542,
        };
        assert_eq!(egress(&message("htb"), name), Some(expected));
        assert_eq!(egress(&message("noqueue"), name), None);
    }

    #[test]
    fn a_great_rate_takes_its_own_attribute() {
        let small = attribute(TBF_PARAMETERS, &[0xff; 36]);
        let great = attribute(TBF_RATE64, &12_500_000_000_u64.to_ne_bytes());
        assert_eq!(tbf_rate(&[small, great].concat()), Some(12_500_000_000));
        assert_eq!(tbf_rate(&[]), None);
    }

    #[test]
    fn what_cannot_queue_or_is_cut_is_left_out() {
        let name = |_| Some("eth0".to_owned());
        assert_eq!(qdisc(&message("noqueue"), name), None);
        assert_eq!(qdisc(&message("tbf")[..10], name), None);
        assert_eq!(qdisc(&message("tbf"), |_| None), None);
    }

    #[test]
    fn the_kernel_answers() {
        QdiscLister::open().unwrap().list().unwrap();
        assert_eq!(interface_name(1).as_deref(), Some("lo"));
        assert_eq!(interface_name(u32::MAX), None);
    }
}
