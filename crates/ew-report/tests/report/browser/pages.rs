//! The pages that are looked at: a recorded run of `eastwest demo`, and simulated networks.

use super::chromium::{Browser, Tab, View, browser};
use crate::common;
use ew_model::analysis::{RackAnalysis, RackPath};
use ew_model::finding::details::{BadPathByRouter, Directions, PathLocation, PathRouter};
use ew_model::finding::{Cause, Details, Subject};
use ew_model::topology::{DirectionSpec, HostSpec, NicSpec, PathSpec, RackSpec, Topology};
use ew_model::{Analysis, HostId, RackId};
use ew_report::{Format, TextStyle, render};
use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A run of the demo in a lab: r2h3 is shaped to half, the uplinks are 4:1.
pub(crate) fn demo() -> &'static Path {
    static PAGE: OnceLock<PathBuf> = OnceLock::new();
    PAGE.get_or_init(|| write("demo", &recorded()))
}

/// 40 racks of 25 hosts, 8 paths a rack, uplinks 2:1, and every pair measured; r17h18 receives at
/// half, and path 3 of rack 20 is bad. Made up: a simulated one takes minutes.
pub(crate) fn large() -> &'static Path {
    static PAGE: OnceLock<PathBuf> = OnceLock::new();
    PAGE.get_or_init(|| write("large", &generated()))
}

/// The small made-up network, whose interfaces carried nothing.
pub(crate) fn idle() -> &'static Path {
    static PAGE: OnceLock<PathBuf> = OnceLock::new();
    PAGE.get_or_init(|| {
        let mut analysis = common::demo();
        for point in analysis.hosts.iter_mut().flat_map(|host| &mut host.series) {
            (point.tx_bits_per_sec, point.rx_bits_per_sec) = (Some(0.0), Some(0.0));
        }
        write("idle", &analysis)
    })
}

/// 3 racks of 4 hosts with the same faults in small, and latency and UDP stages.
pub(crate) fn mixed() -> &'static Path {
    static PAGE: OnceLock<PathBuf> = OnceLock::new();
    PAGE.get_or_init(|| write("mixed", &simulated(&fabric(3, 4), MIXED)))
}

const MIXED: &str = "
name: mixed
defaults: {workload: tcp-stream, streams: 1, duration: 1s, warm-up: 200ms, gap: 100ms, samples: 6}
tests:
  - {name: idle rtt, pattern: mesh, workload: tcp-rr, message-size: 64, samples: 1}
  - {name: intra-rack, pattern: permutation, interleaved: true}
  - {name: cross-rack, pattern: cross-rack, interleaved: true}
  - {name: datagrams, pattern: permutation, workload: udp-stream, rate: 100M, samples: 2}
  - {name: mesh, pattern: mesh, samples: 2}
";

fn recorded() -> Analysis {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/report/browser/demo");
    let run = tempfile::tempdir().unwrap();
    std::fs::copy(kept.join("run.json"), run.path().join("run.json")).unwrap();
    let packed = std::fs::File::open(kept.join("events.jsonl.gz")).unwrap();
    let mut events = String::new();
    let mut unpacking = flate2::read::GzDecoder::new(packed);
    unpacking.read_to_string(&mut events).unwrap();
    std::fs::write(run.path().join("events.jsonl"), events).unwrap();
    ew_analyze::analyze(&ew_store::load(run.path()).unwrap())
}

fn generated() -> Analysis {
    let mut analysis = common::cluster(40, 25, 2.0, Some(HostId(417)));
    let router = |rack: u32, path: u8| IpAddr::from([198, 19, rack as u8, path]);
    let racks = (0..40).map(|rack| {
        let paths = (1..=8).map(|path| RackPath {
            router: router(rack, path),
            connections: 25,
            is_bad: (rack, path) == (19, 3),
        });
        RackAnalysis {
            paths: paths.collect(),
            ..common::rack(rack, Some(2.0))
        }
    });
    analysis.racks = racks.collect();
    let mut bad = analysis.verdict.findings[0].clone();
    bad.subject = Subject::Rack { rack: RackId(19) };
    bad.cause = Cause::BadPath;
    bad.details = Details::BadPathByRouter(BadPathByRouter {
        locations: vec![PathLocation::Rack {
            rack: RackId(19),
            directions: Directions::Tx,
        }],
        routers: vec![PathRouter {
            from: RackId(19),
            router: router(19, 3),
        }],
        bad_connections: 24,
        connections: 25,
        others_bad_share: 0.003,
        gain_nats: 80.0,
    });
    analysis.verdict.findings.push(bad);
    analysis
}

pub(crate) fn fabric(racks: u32, hosts: u32) -> Topology {
    const NIC: u64 = 10_000_000_000;
    let path = |rate: u64| PathSpec {
        up: DirectionSpec {
            rate_bits_per_sec: rate,
            ..DirectionSpec::default()
        },
        down: DirectionSpec {
            rate_bits_per_sec: rate,
            ..DirectionSpec::default()
        },
        ..PathSpec::default()
    };
    let member = NIC * u64::from(hosts) / 2 / 8;
    let (slow_host, bad_rack) = ((2, 3), 3);
    let host = |rack: u32, number: u32| {
        let rx = if (rack, number) == slow_host {
            NIC / 2
        } else {
            NIC
        };
        HostSpec {
            name: format!("r{rack}h{number}"),
            nic: NicSpec {
                tx_bits_per_sec: NIC,
                rx_bits_per_sec: rx,
                reported_bits_per_sec: Some(NIC),
                ..NicSpec::default()
            },
            ..HostSpec::default()
        }
    };
    let rack = |rack: u32| RackSpec {
        name: format!("r{rack}"),
        hosts: (1..=hosts).map(|number| host(rack, number)).collect(),
        paths: (1..=8)
            .map(|n| {
                path(if (rack, n) == (bad_rack, 3) {
                    member / 5
                } else {
                    member
                })
            })
            .collect(),
        ..RackSpec::default()
    };
    Topology {
        name: "browser".to_owned(),
        racks: (1..=racks).map(rack).collect(),
        ..Topology::default()
    }
}

fn simulated(topology: &Topology, scenario: &str) -> Analysis {
    let scenario = ew_plan::scenario::parse(scenario, "browser.yaml", &[]).unwrap();
    let inventory = ew_sim::inventory(topology);
    let plan = ew_plan::plan(&scenario, &inventory, 1).unwrap();
    let mut run = ew_sim::simulate(topology, &plan, 1, &ew_sim::Noise::default());
    run.manifest.scenario = scenario;
    ew_analyze::analyze(&run)
}

fn write(name: &str, analysis: &Analysis) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser");
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join(format!("{name}.html"));
    let page = render(analysis, Format::Html, &TextStyle::default()).unwrap();
    std::fs::write(&file, page).unwrap();
    file
}

/// An open page. `None` where there is no browser.
pub(crate) fn open(page: impl FnOnce() -> &'static Path, view: View) -> Option<Tab> {
    let browser: Arc<Browser> = browser()?;
    Some(Tab::open(&browser, page(), view))
}
