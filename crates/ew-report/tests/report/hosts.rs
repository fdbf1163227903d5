//! What the hosts' counters show: near limits, per stage, in panels, and where evidence leads.

use crate::common;
use ew_model::Analysis;
use ew_model::finding::details::{
    CpuTaker, FullCpu, LowLinkSpeed, OwnAndPeers, PairRate, SlowPair, Why,
};
use ew_model::finding::{Cable, Details, Finding, Subject};
use ew_model::inventory::{HostId, RackId};
use ew_report::{Format, TextStyle, render};

fn report(analysis: &Analysis, format: Format) -> String {
    render(analysis, format, &TextStyle::default()).unwrap()
}

/// Hosts of their own: one with a full CPU, one with a full disk, one that a quota throttles.
fn strained() -> Analysis {
    let mut analysis = common::demo();
    analysis.run.fleet = "ssh".into();
    let cpu = analysis.hosts[1].stages[2].busiest_cpu.as_mut().unwrap();
    (cpu.busy_share, cpu.softirq_share, cpu.system_share) = (0.97, 0.81, 0.14);
    let disk = analysis.hosts[2].stages[0].disk.as_mut().unwrap();
    (disk.busy_share, disk.written_bytes_per_sec) = (0.99, 88.0 * 1024.0 * 1024.0);
    analysis.hosts[3].stages[1].throttled_share = Some(0.25);
    analysis.hosts[3].stages[1].receive_drops = Some(7);
    analysis
}

#[test]
fn hosts_near_a_limit_are_listed_with_the_stage() {
    let text = report(&strained(), Format::Text);
    let at = text.find("Hosts near a limit").expect("the table");
    let table: String = text[at..]
        .lines()
        .take(7)
        .map(|l| format!("{l}\n"))
        .collect();
    insta::assert_snapshot!(table);
    assert!(report(&strained(), Format::Markdown).contains("### Hosts near a limit of their own"));
}

#[test]
fn a_lab_accuses_no_host_of_the_machine_that_all_share() {
    let mut analysis = strained();
    analysis.run.fleet = "lab".into();
    let text = report(&analysis, Format::Text);
    let at = text
        .find("Hosts near a limit")
        .expect("the quota is the host's own");
    let table: Vec<&str> = text[at..].lines().take(5).collect();
    assert!(table[3].starts_with("r1h04"), "{table:?}");
    assert!(table[4].is_empty(), "{table:?}");
    assert!(text.contains("CPU 97% (this machine's, mesh)"), "{text}");
}

#[test]
fn without_counters_nothing_is_said() {
    let mut analysis = strained();
    for host in &mut analysis.hosts {
        host.stages.clear();
        host.series.clear();
    }
    let text = report(&analysis, Format::Text);
    assert!(!text.contains("Busiest over a stage") && !text.contains("near a limit"));
    let page = report(&analysis, Format::Html);
    assert!(!page.contains("id=\"panel\"") && !page.contains("data-host="));
    assert_eq!(report(&analysis, Format::CsvHosts).lines().count(), 1);
}

#[test]
fn csv_has_a_row_per_host_and_stage() {
    let mut analysis = common::cluster(1, 2, 1.0, None);
    analysis.hosts[1].stages.truncate(1);
    analysis.hosts[1].stages[0].busiest_cpu = None;
    analysis.hosts[1].stages[0].disk = None;
    insta::assert_snapshot!(report(&analysis, Format::CsvHosts));
}

#[test]
fn a_host_without_counters_has_no_panel() {
    let page = report(&common::missing(), Format::Html);
    assert!(page.contains("data-host=\"0\""));
    assert!(!page.contains("data-host=\"1\""), "r1h02 never came up");
}

#[test]
fn evidence_leads_to_what_it_names() {
    let mut analysis = common::demo();
    let slow = analysis.verdict.findings[2].clone();
    let about_run = |details: Details| Finding {
        subject: Subject::Run,
        details,
        ..slow.clone()
    };
    let mut starved = common::slow_host(HostId(6));
    starved.why = Some(Why::FullCpu(FullCpu {
        host: HostId(6),
        cpu: analysis.hosts[1].stages[2].busiest_cpu.unwrap(),
        taker: CpuTaker::Softirq,
        busy_share: OwnAndPeers {
            own: 0.97,
            peers: Some(0.4),
        },
        stage: "mesh".into(),
    }));
    let pair = PairRate {
        src: HostId(0),
        dst: HostId(6),
        bits_per_sec: 40e6,
        rounds: 3,
    };
    let link = LowLinkSpeed {
        host: HostId(1),
        interface: "eth0".into(),
        bits_per_sec: 1e9,
        duplex: None,
        expected_bits_per_sec: 10e9,
        is_configured: false,
        tx_bits_per_sec: None,
        rx_bits_per_sec: None,
        flows: common::slow_host(HostId(1)).flows,
    };
    let cable = Cable {
        host: HostId(6),
        link: "eth0".into(),
        switch: "leaf2".into(),
        port: "Ethernet7".into(),
    };
    analysis.verdict.findings.extend([
        about_run(Details::SlowHost(starved)),
        about_run(Details::SlowPair(SlowPair {
            pair,
            expected_bits_per_sec: 95e6,
            is_distinguished: true,
        })),
        Finding {
            cables: vec![cable],
            ..about_run(Details::LowLinkSpeed(link))
        },
    ]);
    let page = report(&analysis, Format::Html);
    for link in [
        "<a href=\"#host-6\" data-host=\"6\" data-stage=\"3\">r2h03 over time</a>",
        "<a href=\"#stage-3\">stage mesh</a>",
        "<a href=\"#pairs\" data-pair=\"0,6\">r1h01 to r2h03 in the map</a>",
        "<a href=\"#rack-0-1\">rack1 to rack2</a>",
        "<a href=\"#host-1\" data-host=\"1\">r1h02 over time</a>",
    ] {
        assert!(page.contains(link), "no {link}");
    }
    assert!(
        page.contains("HostFacts: LLDP</code></li>"),
        "no link to nowhere"
    );
    assert!(page.contains("id=\"stage-3\"") && page.contains("id=\"rack-0-1\""));
}

#[test]
fn evidence_of_a_host_leads_to_its_panel_even_unnamed() {
    let mut analysis = common::demo();
    analysis.verdict.findings[0].subject = Subject::Host { host: HostId(4) };
    analysis.verdict.findings[1].subject = Subject::RackPair {
        from: RackId(7),
        to: RackId(9),
    };
    let page = report(&analysis, Format::Html);
    assert!(page.contains("data-host=\"4\" data-stage=\"2\">r2h01 over time</a>"));
}
