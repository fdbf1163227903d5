//! pair.js: one pair, measurement by measurement.

use super::chromium::{DESK, PHONE};
use super::pages::{demo, large, mixed, open};

#[test]
fn a_pair_shows_its_measurements_over_time_and_tcp_info() {
    for view in [DESK, PHONE] {
        let Some(tab) = open(demo, view) else { return };
        tab.until("document.querySelector('#pair-charts .chart')");
        assert!(tab.text("#pair-name").contains("r2h3"));
        let names = tab.text("#pair-charts");
        assert!(
            names.contains("Rate") && names.contains("RTT (TCP_INFO)"),
            "{names}"
        );
        let dots = tab.number(
            "document.querySelector('#pair-charts .chart').querySelectorAll('.dot').length",
        );
        assert!(dots >= 2.0, "{dots} measurements");
        let inside = "[...document.querySelectorAll('#pair-charts .dot')].every((d) => d.cx.baseVal.value >= 66 && d.cx.baseVal.value <= 400 && d.cy.baseVal.value >= 10 && d.cy.baseVal.value <= 130)";
        assert!(tab.is(inside), "a dot is outside its chart");
        let tcp = tab.text("#pair-tcp");
        for field in [
            "Smoothed RTT",
            "cwnd",
            "MSS",
            "1448 B",
            "Limited by receive window",
        ] {
            assert!(tcp.contains(field), "{field} is not in {tcp}");
        }
        let label = tab.eval("document.querySelector('#pair-charts svg').ariaLabel");
        assert!(label.as_str().unwrap().contains("median"), "{label}");
    }
}

#[test]
fn a_traced_pair_shows_its_path() {
    let Some(tab) = open(demo, DESK) else { return };
    let (src, dst) = {
        let traced = tab.eval("Object.keys(JSON.parse(document.getElementById('matrix-data').textContent).paths)[0].split(',').map(Number)");
        (traced[0].as_u64().unwrap(), traced[1].as_u64().unwrap())
    };
    tab.eval("document.getElementById('cells').focus()");
    tab.key("PageUp");
    tab.key("Home");
    (0..src).for_each(|_| tab.key("ArrowDown"));
    (0..dst).for_each(|_| tab.key("ArrowRight"));
    let path = tab.text("#pair-paths");
    assert!(
        path.contains("path of ") && path.contains("198.1"),
        "{path}"
    );
    // A host and itself are no pair.
    tab.key("Home");
    (0..src).for_each(|_| tab.key("ArrowRight"));
    assert!(tab.is("document.getElementById('pair').hidden"));
}

#[test]
fn latency_and_loss_have_charts_of_their_own() {
    let Some(tab) = open(mixed, DESK) else { return };
    tab.until("document.querySelector('#pair-charts .chart')");
    let all = "document.getElementById('pair-charts').textContent + document.getElementById('pair-note').textContent";
    let text = tab.eval(all).as_str().unwrap().to_owned();
    assert!(text.contains("Median time"), "{text}");
}

#[test]
fn a_pair_without_measurements_says_so() {
    let Some(tab) = open(large, DESK) else { return };
    tab.until("document.querySelector('#cell h3')");
    tab.until(
        "document.getElementById('pair-note').textContent.includes('No single measurements')",
    );
    assert_eq!(
        tab.eval("document.getElementById('pair-charts').children.length"),
        0
    );
}
