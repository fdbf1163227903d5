//! panel.js: a host's counters over time.

use super::chromium::{DESK, PHONE};
use super::pages::{demo, idle, large, open};

const OPEN: &str = "document.getElementById('panel').open";

#[test]
fn a_hosts_panel_opens_closes_and_is_in_the_address() {
    let Some(tab) = open(demo, DESK) else { return };
    tab.click("#host-6 th a[data-host]");
    tab.until(OPEN);
    assert_eq!(tab.text("#panel-name"), "r2h3");
    assert_eq!(tab.eval("location.hash"), "#panel-6");
    assert!(tab.number("document.querySelectorAll('#panel-charts svg').length") >= 2.0);
    assert!(tab.number("document.querySelectorAll('#panel-stages tbody tr').length") >= 5.0);
    tab.key("Escape");
    tab.until(&format!("!{OPEN} && location.hash === ''"));
    tab.eval("location.hash = '#panel-2-1'");
    tab.until(OPEN);
    assert_eq!(tab.text("#panel-name"), "r1h3");
    assert_eq!(
        tab.eval("document.querySelector('#panel-stages tr.chosen .number').textContent"),
        "2"
    );
    tab.click("#panel-close");
    tab.until(&format!("!{OPEN}"));
}

#[test]
fn time_is_walked_through_by_keys() {
    let Some(tab) = open(demo, DESK) else { return };
    tab.eval("location.hash = '#panel-6'");
    tab.until(OPEN);
    tab.eval("document.getElementById('panel-charts').focus()");
    tab.key("Home");
    let first = tab.text("#panel-now");
    assert!(
        first.contains("NIC out") && first.contains("0.0 to "),
        "{first}"
    );
    tab.key("ArrowRight");
    let second = tab.text("#panel-now");
    assert_ne!(first, second);
    tab.key("ArrowLeft");
    assert_eq!(tab.text("#panel-now"), first);
    tab.key("End");
    assert_ne!(tab.text("#panel-now"), second);
    let area = tab.area("#panel-charts svg");
    tab.mouse(
        "mouseMoved",
        area.x + area.width / 2.0,
        area.y + area.height / 2.0,
    );
    assert!(
        tab.text("#panel-now").contains(" s, "),
        "{}",
        tab.text("#panel-now")
    );
}

#[test]
fn hosts_are_turned_through_and_picked() {
    let Some(tab) = open(demo, PHONE) else { return };
    tab.eval("location.hash = '#panel-0'");
    tab.until(OPEN);
    tab.click("#panel-after");
    assert_eq!(tab.text("#panel-name"), "r1h2");
    tab.click("#panel-before");
    tab.click("#panel-before");
    assert_eq!(tab.text("#panel-name"), "r2h4", "round the end");
    tab.eval("(() => { const p = document.getElementById('panel-host'); p.value = '6'; p.dispatchEvent(new Event('change')); })()");
    assert_eq!(tab.text("#panel-name"), "r2h3");
    // Its mark leads to its finding.
    tab.click("#panel-marks a");
    tab.until(&format!("location.hash === '#finding-1' && !{OPEN}"));
    let rows = tab.number("document.querySelectorAll('#panel-stages tbody tr').length");
    assert!(rows > 0.0);
}

#[test]
fn on_a_phone_every_figure_is_there_and_so_below_its_heading() {
    let Some(tab) = open(demo, PHONE) else { return };
    tab.eval("location.hash = '#panel-6'");
    tab.until(OPEN);
    assert!(tab.number("document.querySelectorAll('#panel-stages td.long').length") > 0.0);
    assert!(tab.is(
        "[...document.querySelectorAll('#panel-stages td')].every((cell) => cell.offsetWidth)"
    ));
}

#[test]
fn a_host_without_traffic_has_a_line_at_zero() {
    let Some(tab) = open(idle, DESK) else { return };
    tab.eval("location.hash = '#panel-0'");
    tab.until(OPEN);
    assert!(tab.number("document.querySelectorAll('#panel-charts svg').length") > 0.0);
    assert!(!tab.is("document.getElementById('panel-charts').innerHTML.includes('NaN')"));
}

#[test]
fn a_thousand_hosts_have_panels() {
    let Some(tab) = open(large, DESK) else { return };
    tab.eval("location.hash = '#panel-417'");
    tab.until(OPEN);
    assert_eq!(tab.text("#panel-name"), "r17h18");
    assert_eq!(
        tab.eval("document.getElementById('panel-host').options.length"),
        1000
    );
}
