//! `eastwest line-rate`: the known figures, and what is taken from an interface.

use crate::common::{can_run_labs, eastwest, text};
use serde_json::Value;
use std::process::Command;

fn limit(args: &[&str]) -> Value {
    let out = eastwest()
        .args(["limit", "--json"])
        .args(args)
        .output()
        .unwrap();
    assert!(out.status.success(), "{args:?}: {}", text(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

fn fraction(args: &[&str]) -> (u64, u64) {
    let packet = &limit(args)["packet"];
    let number = |key: &str| packet[key].as_u64().unwrap();
    (number("payload_bytes"), number("counted_bytes"))
}

#[test]
fn the_figures_that_everybody_knows() {
    let on_the_wire = |args: &[&str]| fraction(&[&["--link", "100M"], args].concat());
    assert_eq!(on_the_wire(&[]), (1448, 1538));
    assert_eq!(on_the_wire(&["--no-timestamps"]), (1460, 1538));
    assert_eq!(on_the_wire(&["--shaped"]), (1448, 1514));
    assert_eq!(on_the_wire(&["--ipv6", "--qinq"]), (1428, 1546));
    assert_eq!(on_the_wire(&["--mtu", "9000", "--udp"]), (8972, 9038));
    assert_eq!(on_the_wire(&["--vxlan"]), (1398, 1538));
    assert_eq!(on_the_wire(&["--vxlan", "--wireguard"]), (1338, 1538));
    assert_eq!(
        on_the_wire(&["--wireguard", "--inner-mtu", "1420"]),
        (1368, 1518)
    );
    let classic = |args: &[&str]| {
        let limit = limit(&[&["--link", "100M"], args].concat());
        format!(
            "{:.1}",
            limit["payload_bits_per_sec"].as_f64().unwrap() / 1e6
        )
    };
    assert_eq!(classic(&[]), "94.1");
    assert_eq!(classic(&["--no-timestamps"]), "94.9");
    assert_eq!(classic(&["--ipv6", "--vlan"]), "92.6");
    let ten = limit(&["--link", "10G", "--rtt", "1ms"]);
    assert_eq!(
        ten["least_frames_per_sec"].as_f64().unwrap() as u64,
        14_880_952
    );
    assert_eq!(ten["window"]["bytes"], 1_250_000);
}

/// Each by hand from the headers: 8 preamble, 14 Ethernet, 4 check, 12 gap (IEEE 802.3), 20 IPv4,
/// 40 IPv6, 20 TCP, 12 timestamps, 8 UDP.
#[test]
fn every_flag_counts_what_its_standard_says() {
    let cases: [(&[&str], (u64, u64)); 16] = [
        (&["--timestamps"], (1448, 1538)),
        (&["--ipv6"], (1428, 1538)),
        (&["--ipv6", "--no-timestamps"], (1440, 1538)),
        (&["--ipv6", "--udp"], (1452, 1538)),
        (&["--vlan"], (1448, 1542)),
        (&["--vlan", "--vlan"], (1448, 1546)),
        // Linux' shapers see 14 bytes of Ethernet, and no tag: the NIC adds it.
        (&["--shaped", "--udp"], (1472, 1514)),
        // RFC 8926 and RFC 7348: 20 IPv4 + 8 UDP + 8 + 14 of the inner frame.
        (&["--geneve"], (1398, 1538)),
        (&["--vxlan", "--outer-ipv6"], (1378, 1538)),
        // RFC 2784: 20 IPv4 + 4; as a link of its own 14 more.
        (&["--gre"], (1424, 1538)),
        (&["--tunnel", "gretap"], (1410, 1538)),
        // RFC 2003: 20 IPv4.
        (&["--tunnel", "ipip"], (1428, 1538)),
        // 20 IPv4 + 8 UDP + 16 header + 16 tag around 1440, a multiple of 16; 20 more over IPv6
        // leave 1420, which is not padded.
        (&["--wireguard"], (1388, 1538)),
        (&["--wireguard", "--outer-ipv6"], (1368, 1538)),
        // RFC 4303, RFC 4106: 20 IPv4 + 8 + 8 vector, 1446 and 2 of trailer a multiple of 4, 16
        // check.
        (&["--ipsec"], (1394, 1538)),
        (&["--tunnel-bytes", "30"], (1418, 1538)),
    ];
    for (args, expected) in cases {
        let got = fraction(&[&["--link", "1G"], args].concat());
        assert_eq!(got, expected, "{args:?}");
    }
    let message = &limit(&["--link", "1G", "--message", "64"])["message"]["cost"];
    assert_eq!(message["counted_bytes"], 64 + 90);
    // 1 byte by UDP is 43 with its headers and 4 check, which is padded to 64.
    let message = &limit(&["--link", "1G", "--udp", "--message", "1"])["message"]["cost"];
    assert_eq!(message["counted_bytes"], 64 + 20);
}

#[test]
fn wrong_input_is_code_2_with_the_remedy() {
    let cases: [(&[&str], &str); 4] = [
        (&[], "--link"),
        (&["--link", "fast"], "10G"),
        (&["--interface", "no-such-link"], "it has lo"),
        (
            &["--link", "1G", "--mtu", "100", "--ipsec"],
            "greater --mtu",
        ),
    ];
    for (args, expected) in cases {
        let out = eastwest().arg("limit").args(args).output().unwrap();
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(expected), "{args:?}: {said}");
    }
}

/// A veth to hang links on.
const BELOW: &str = "ip link add v0 mtu 1600 type veth peer name v1 && ip addr add 198.18.0.1/24 dev v0 && \
     ip link set v0 up && ip link set v1 up";
/// What those links carry.
const ADDRESS: &str = "198.18.9.1/24";

/// Kind of the only tunnel, MTU inside, payload and counted bytes of a full packet.
type Found<'j> = (&'j str, u64, u64, u64);

/// What `eastwest line-rate` prints in a network namespace that `setup` furnished, which ends with
/// the command. `None`, with the reason printed, where it cannot be made.
fn limit_in_namespace(setup: &str, args: &str) -> Option<Value> {
    if !can_run_labs() {
        return None;
    }
    let script = format!("{{ {setup}; }} || exit 77; exec \"$0\" limit --json {args}");
    in_namespace(&script)
}

/// Exit code 77: this kernel lacks what the script needs.
fn in_namespace(script: &str) -> Option<Value> {
    let out = Command::new("unshare")
        .args(["-n", "sh", "-c", script, env!("CARGO_BIN_EXE_eastwest")])
        .output()
        .unwrap();
    let said = text(&out.stderr);
    if out.status.code() == Some(77) {
        println!("skipped: this kernel cannot make it: {}", said.trim());
        return None;
    }
    assert!(out.status.success(), "{script}: {said}");
    Some(serde_json::from_slice(&out.stdout).unwrap())
}

fn found(json: &Value) -> Found<'_> {
    let kind = json["framing"]["tunnels"][0]["kind"].as_str();
    let number = |value: &Value| value.as_u64().unwrap();
    (
        kind.unwrap_or("none"),
        number(&json["framing"]["mtu_bytes"]),
        number(&json["packet"]["payload_bytes"]),
        number(&json["packet"]["counted_bytes"]),
    )
}

fn notes(json: &Value) -> String {
    let notes = json["notes"].as_array().unwrap().iter();
    notes
        .map(crate::common::word)
        .collect::<Vec<_>>()
        .join("\n")
}

/// What is found from an interface that `made` puts above `v0`, and the words in the notes.
fn check_above(interface: &str, made: &str, address: &str, expected: Found<'_>, words: &str) {
    let setup = format!("{BELOW} && {made} && ip addr add {address} dev {interface}");
    let args = format!("--interface {interface} --link 1G --timestamps");
    let Some(json) = limit_in_namespace(&setup, &args) else {
        return;
    };
    assert_eq!(found(&json), expected);
    assert!(notes(&json).contains(words), "{}", notes(&json));
}

#[test]
fn a_vxlan_is_found_from_its_interface() {
    let made = "ip link add x0 type vxlan id 5 dstport 4789 local 198.18.0.1 dev v0";
    let expected = ("vxlan", 1550, 1498, 1550 + 50 + 38);
    let way = "x0 (vxlan, MTU 1550) over v0 (veth, MTU 1600)";
    check_above("x0", made, ADDRESS, expected, way);
}

#[test]
fn a_vxlan_over_ipv6_has_the_longer_header() {
    let made = "ip link add x0 mtu 1430 type vxlan id 5 dstport 4789 local 2001:2::1 dev v0";
    let expected = ("vxlan", 1430, 1378, 1430 + 70 + 38);
    let way = "x0 (vxlan, MTU 1430) over v0 (veth, MTU 1600)";
    check_above("x0", made, ADDRESS, expected, way);
}

#[test]
fn a_geneve_is_found_from_its_interface() {
    let made = "ip link add g0 type geneve id 7 remote 198.18.0.2 && ip link set g0 mtu 1450";
    let expected = ("geneve", 1450, 1398, 1538);
    check_above("g0", made, ADDRESS, expected, "may add options");
}

#[test]
fn a_wireguard_is_found_from_its_interface() {
    let made = "ip link add w0 type wireguard && ip link set w0 mtu 1420";
    let expected = ("wireguard", 1420, 1368, 1420 + 60 + 38);
    check_above("w0", made, ADDRESS, expected, "over IPv6");
}

#[test]
fn tags_are_found_from_the_interface_and_what_is_below() {
    let made = "ip link add link v0 name v0.7 type vlan id 7 && ip link set v0.7 mtu 1500";
    let way = "v0.7 (vlan, MTU 1500) over v0 (veth, MTU 1600)";
    check_above("v0.7", made, ADDRESS, ("none", 1500, 1448, 1542), way);
}

#[test]
fn a_macvlan_adds_nothing_and_ipv6_is_seen() {
    let made = "ip link add link v0 name m0 mtu 1500 type macvlan mode bridge";
    let way = "m0 (macvlan, MTU 1500) over v0 (veth, MTU 1600)";
    check_above("m0", made, "2001:2::9/64", ("none", 1500, 1428, 1538), way);
}

/// A pod as most networks of Kubernetes make it: `eth0` is one end of a veth, whose other end is a
/// port of the node's bridge next to a vxlan. The second namespace lives as long as its `sleep`.
fn limit_in_pod(args: &str) -> Option<Value> {
    const NODE: &str = "{ ip link add br0 type bridge && ip link add x0 mtu 1450 type vxlan id 5 dstport 4789 local 198.18.0.1 dev v0 && \
         ip link set x0 master br0 && ip link set br0 up; } || exit 77; \
         unshare -n sleep 120 & pod=$!; \
         until [ \"$(readlink /proc/$pod/ns/net)\" != \"$(readlink /proc/self/ns/net)\" ]; do sleep 0.05; done; \
         ip link add p0 mtu 1450 type veth peer name eth0 mtu 1450 netns $pod && ip link set p0 master br0 up && \
         nsenter -t $pod -n ip addr add 198.18.9.2/24 dev eth0";
    if !can_run_labs() {
        return None;
    }
    let script = format!("{BELOW} && {NODE} && {args}; code=$?; kill $pod; exit $code");
    in_namespace(&script)
}

#[test]
fn a_pod_says_that_it_cannot_see_the_node_and_takes_its_word() {
    let in_pod = |more: &str| {
        limit_in_pod(&format!(
            "nsenter -t $pod -n \"$0\" limit --json --interface eth0 --link 1G --timestamps {more}"
        ))
    };
    let Some(json) = in_pod("") else { return };
    assert_eq!(found(&json), ("none", 1450, 1398, 1488));
    let said = notes(&json);
    assert!(said.contains("eth0 (veth, MTU 1450"), "{said}");
    assert!(said.contains("An MTU of 1450 speaks of vxlan"), "{said}");
    let reported = in_pod("--tunnel vxlan").unwrap();
    assert_eq!(found(&reported), ("vxlan", 1450, 1398, 1538));
}

#[test]
fn a_bridge_names_its_ports_as_the_place_to_look() {
    let on_node = "\"$0\" limit --json --interface br0 --link 1G --timestamps";
    let Some(json) = limit_in_pod(on_node) else {
        return;
    };
    assert_eq!(found(&json).0, "none");
    assert!(notes(&json).contains("its ports"), "{}", notes(&json));
}
