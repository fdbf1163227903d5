//! Where cables end, as switches report it by LLDP (IEEE 802.1AB) to whoever listens on this host:
//! systemd-networkd, or lldpd.

use ew_model::facts::SwitchPort;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Where lldpd's clients ask it, by distribution.
const LLDPD_SOCKETS: [&str; 3] = [
    "run/lldpd.socket",
    "run/lldpd/lldpd.socket",
    "var/run/lldpd.socket",
];
const LLDPCLI: [&str; 5] = ["lldpcli", "-f", "json0", "show", "neighbors"];
/// lldpd answers at once, or not at all.
const LLDPCLI_LIMIT: Duration = Duration::from_secs(2);
/// Neighbours of hundreds of ports take less.
const MAX_ANSWER_BYTES: u64 = 4 << 20;
/// A switch has one neighbour at a port; a cable through an unmanaged one has a few.
const MAX_FRAMES: usize = 64;
const MAX_FRAME_BYTES: u64 = 9216;

/// Ethernet's two addresses and type before an LLDPDU.
const ETHERNET_BYTES: usize = 14;
const CHASSIS_ID: u8 = 1;
const PORT_ID: u8 = 2;
const PORT_DESCRIPTION: u8 = 4;
const SYSTEM_NAME: u8 = 5;
/// Subtypes of a chassis ID and of a port ID that are a MAC address.
const CHASSIS_MAC: u8 = 4;
const PORT_MAC: u8 = 3;

/// By interface. Nothing in a network namespace that the daemons do not speak of.
pub(crate) fn switch_ports(root: &Path) -> BTreeMap<String, SwitchPort> {
    if !is_the_machines_own_network(root) {
        return BTreeMap::new();
    }
    let mut found = of_networkd(root);
    if LLDPD_SOCKETS.iter().any(|path| root.join(path).exists())
        && let Some(answer) = ask_lldpd()
    {
        found.extend(of_lldpd(&answer));
    }
    found
}

/// Without permission to read the link of process 1, the namespace is assumed to be its own: labs
/// run as root.
fn is_the_machines_own_network(root: &Path) -> bool {
    let namespace =
        |process: &str| std::fs::read_link(root.join("proc").join(process).join("ns/net"));
    match (namespace("1"), namespace("self")) {
        (Ok(machines), Ok(own)) => machines == own,
        _ => true,
    }
}

/// A file an interface, named by its index: for each neighbour the frame's length, 64 bits, little
/// endian, and the frame (`link_lldp_save()` of systemd's networkd-link.c).
pub(crate) fn of_networkd(root: &Path) -> BTreeMap<String, SwitchPort> {
    let interfaces = std::fs::read_dir(root.join("sys/class/net"));
    let of_interface = |entry: std::fs::DirEntry| {
        let index = std::fs::read_to_string(entry.path().join("ifindex")).ok()?;
        let saved = root.join("run/systemd/netif/lldp").join(index.trim());
        let mut frames = Vec::new();
        let limit = MAX_FRAMES as u64 * (MAX_FRAME_BYTES + 8);
        let file = std::fs::File::open(saved).ok()?;
        file.take(limit).read_to_end(&mut frames).ok()?;
        let name = entry.file_name().into_string().ok()?;
        Some((name, saved_frames(&frames).find_map(switch_port_in)?))
    };
    let entries = interfaces.into_iter().flatten().flatten();
    entries.filter_map(of_interface).collect()
}

pub(crate) fn saved_frames(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, behind) = rest.split_first_chunk()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let (frame, behind) = behind.split_at_checked(length)?;
        rest = behind;
        Some(frame)
    })
    .take(MAX_FRAMES)
}

/// The sender of an LLDP frame.
pub(crate) fn switch_port_in(frame: &[u8]) -> Option<SwitchPort> {
    let (mut chassis, mut name) = (None, None);
    let (mut port, mut described) = (None, None);
    for (kind, value) in elements(frame.get(ETHERNET_BYTES..)?) {
        match kind {
            CHASSIS_ID => chassis = identity(value, CHASSIS_MAC),
            PORT_ID => port = identity(value, PORT_MAC).map(|id| (value[0], id)),
            PORT_DESCRIPTION => described = text(value),
            SYSTEM_NAME => name = text(value),
            _ => {}
        }
    }
    let (subtype, id) = port?;
    let port = described.filter(|_| subtype == PORT_MAC).unwrap_or(id);
    Some(SwitchPort {
        switch: name.or(chassis)?,
        port,
    })
}

/// Types and values: 7 bits of type, 9 of length. A cut one ends them.
fn elements(mut rest: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (head, behind) = rest.split_first_chunk()?;
        let head = u16::from_be_bytes(*head);
        let (value, behind) = behind.split_at_checked(usize::from(head & 0x1ff))?;
        rest = behind;
        let kind = (head >> 9) as u8;
        (kind != 0).then_some((kind, value))
    })
}

/// An ID behind its subtype.
fn identity(value: &[u8], mac: u8) -> Option<String> {
    let (subtype, id) = value.split_first()?;
    if *subtype == mac {
        let bytes: Vec<String> = id.iter().map(|byte| format!("{byte:02x}")).collect();
        return Some(bytes.join(":")).filter(|id| !id.is_empty());
    }
    text(id)
}

fn text(value: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(value);
    let text = text.trim_matches(|c: char| c == '\0' || c.is_whitespace());
    (!text.is_empty()).then(|| text.to_owned())
}

/// What lldpd knows, by its own client: its socket's protocol is its own. `None` where we may not
/// ask.
fn ask_lldpd() -> Option<Value> {
    let [program, arguments @ ..] = LLDPCLI;
    let mut client = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let output = client.stdout.take()?;
    let reader = std::thread::spawn(move || {
        let mut answer = Vec::new();
        let read = output.take(MAX_ANSWER_BYTES).read_to_end(&mut answer);
        read.map(|_| answer)
    });
    let began = Instant::now();
    while matches!(client.try_wait(), Ok(None)) {
        if began.elapsed() > LLDPCLI_LIMIT {
            let _ = client.kill();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    serde_json::from_slice(&reader.join().ok()?.ok()?).ok()
}

/// From `lldpcli -f json0`, in which everything is a list (lldpcli(8)).
pub(crate) fn of_lldpd(answer: &Value) -> BTreeMap<String, SwitchPort> {
    let all = answer["lldp"].as_array().into_iter().flatten();
    let interfaces = all.flat_map(|lldp| lldp["interface"].as_array().into_iter().flatten());
    let word = |value: &Value| text(value.as_str()?.as_bytes());
    let of_interface = |interface: &Value| {
        let (chassis, port) = (&interface["chassis"][0], &interface["port"][0]);
        let id = word(&port["id"][0]["value"]);
        let described = word(&port["descr"][0]["value"]);
        let is_mac = port["id"][0]["type"] == "mac";
        let switch = word(&chassis["name"][0]["value"]).or(word(&chassis["id"][0]["value"]))?;
        let port = if is_mac {
            described.or(id)
        } else {
            id.or(described)
        };
        Some((
            word(&interface["name"])?,
            SwitchPort {
                switch,
                port: port?,
            },
        ))
    };
    interfaces.filter_map(of_interface).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(kind: u8, value: &[u8]) -> Vec<u8> {
        let head = u16::from(kind) << 9 | value.len() as u16;
        [&head.to_be_bytes(), value].concat()
    }

    fn frame(elements: &[Vec<u8>]) -> Vec<u8> {
        [vec![0; ETHERNET_BYTES], elements.concat(), vec![0, 0]].concat()
    }

    fn leaf(more: &[Vec<u8>]) -> Vec<u8> {
        let ids = [
            element(CHASSIS_ID, &[&[CHASSIS_MAC][..], &[0xaa; 6]].concat()),
            element(PORT_ID, b"\x05Ethernet7"),
            element(3, &[0, 120]),
        ];
        frame(&[&ids[..], more].concat())
    }

    fn at(switch: &str, port: &str) -> Option<SwitchPort> {
        Some(SwitchPort {
            switch: switch.to_owned(),
            port: port.to_owned(),
        })
    }

    #[test]
    fn a_switch_is_known_by_its_name_and_port() {
        let named = leaf(&[
            element(SYSTEM_NAME, b"leaf2"),
            element(PORT_DESCRIPTION, b"to n7"),
        ]);
        assert_eq!(switch_port_in(&named), at("leaf2", "Ethernet7"));
        let nameless = leaf(&[]);
        assert_eq!(
            switch_port_in(&nameless),
            at("aa:aa:aa:aa:aa:aa", "Ethernet7")
        );
        let by_mac = frame(&[
            element(CHASSIS_ID, b"\x07leaf3"),
            element(PORT_ID, &[PORT_MAC, 1, 2, 3, 4, 5, 6]),
            element(PORT_DESCRIPTION, b"swp9"),
        ]);
        assert_eq!(switch_port_in(&by_mac), at("leaf3", "swp9"));
    }

    #[test]
    fn cut_frames_say_less_and_never_too_much() {
        let whole = leaf(&[element(SYSTEM_NAME, b"leaf2")]);
        for length in 0..whole.len() {
            let _ = switch_port_in(&whole[..length]);
        }
        assert_eq!(switch_port_in(&[0xff; 40]), None);
    }

    #[test]
    fn networkd_keeps_a_file_an_interface() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, bytes: &[u8]| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        };
        write("sys/class/net/eth0/ifindex", b"2\n");
        write("sys/class/net/eth1/ifindex", b"3\n");
        let frame = leaf(&[element(SYSTEM_NAME, b"leaf2")]);
        let saved = [&(frame.len() as u64).to_le_bytes()[..], &frame].concat();
        write("run/systemd/netif/lldp/2", &saved);
        write("run/systemd/netif/lldp/3", &u64::MAX.to_le_bytes());
        let found = switch_ports(root.path());
        assert_eq!(found.len(), 1);
        assert_eq!(found.get("eth0").cloned(), at("leaf2", "Ethernet7"));
    }

    #[test]
    fn lldpds_answer_is_read() {
        let answer = serde_json::json!({"lldp": [{"interface": [
            {"name": "eth0", "via": "LLDP",
             "chassis": [{"id": [{"type": "mac", "value": "aa:bb"}], "name": [{"value": "leaf1"}]}],
             "port": [{"id": [{"type": "ifname", "value": "swp3"}], "descr": [{"value": "swp3"}]}]},
            {"name": "eth1",
             "chassis": [{"id": [{"type": "mac", "value": "aa:cc"}]}],
             "port": [{"id": [{"type": "mac", "value": "aa:cd"}], "descr": [{"value": "swp4"}]}]},
            {"name": "eth2"}
        ]}]});
        let found = of_lldpd(&answer);
        assert_eq!(found.get("eth0").cloned(), at("leaf1", "swp3"));
        assert_eq!(found.get("eth1").cloned(), at("aa:cc", "swp4"));
        assert_eq!(found.len(), 2);
        assert!(of_lldpd(&Value::Null).is_empty());
    }
}
