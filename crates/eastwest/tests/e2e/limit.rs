//! `eastwest limit`: the known figures, and what is taken from an interface.

use crate::common::{eastwest, text};
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
    let ten = limit(&["--link", "10G", "--rtt", "1ms"]);
    assert_eq!(
        ten["least_frames_per_sec"].as_f64().unwrap() as u64,
        14_880_952
    );
    assert_eq!(ten["window"]["bytes"], 1_250_000);
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

/// A vxlan in a network namespace of its own, which ends with the command.
#[test]
fn a_tunnel_is_found_from_its_interface() {
    let script = "ip link add v0 mtu 1600 type veth peer name v1 && ip addr add 198.18.0.1/24 dev v0 && \
         ip link add x0 type vxlan id 5 dstport 4789 local 198.18.0.1 dev v0 && \
         ip addr add 198.18.9.1/24 dev x0 || exit 77; \
         exec \"$0\" limit --interface x0 --link 1G --timestamps --json";
    let out = Command::new("unshare")
        .args(["-n", "sh", "-c", script, env!("CARGO_BIN_EXE_eastwest")])
        .output();
    let Ok(out) = out else {
        println!("skipped: no unshare here");
        return;
    };
    if !out.status.success() && out.stdout.is_empty() {
        println!("skipped: no vxlan here: {}", text(&out.stderr));
        return;
    }
    let json: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(json["framing"]["tunnels"][0]["kind"], "vxlan");
    assert_eq!(json["framing"]["mtu_bytes"], 1550);
    assert_eq!(json["packet"]["payload_bytes"], 1498);
    assert_eq!(json["packet"]["counted_bytes"], 1638);
    let found = json["notes"][0].as_str().unwrap();
    assert!(
        found.contains("x0 (vxlan, MTU 1550) over v0 (veth, MTU 1600)"),
        "{found}"
    );
}
