//! fabric.js: the drawing is panned, zoomed, walked through by keys, and leads to its evidence and
//! back.

use super::chromium::{DESK, PHONE, Tab};
use super::pages::{demo, large, open};
use serde_json::json;

/// x, y, width and height of what the drawing shows, in its own units.
fn seen(tab: &Tab) -> [f64; 4] {
    let script = "(() => { const d = document.querySelector('svg.wide'), v = document.querySelector('.fabric-view'), m = new DOMMatrix(getComputedStyle(document.querySelector('.fabric-sheet')).transform); \
                  const k = m.a * v.clientWidth / d.viewBox.baseVal.width; return [-m.e / k, -m.f / k, v.clientWidth / k, v.clientHeight / k]; })()";
    let value = tab.eval(script);
    [0, 1, 2, 3].map(|index| value[index].as_f64().unwrap())
}

const FOCUSED: &str = "document.activeElement.dataset.at";

#[test]
fn the_drawing_is_panned_and_zoomed() {
    let Some(tab) = open(large, DESK) else { return };
    let whole = seen(&tab);
    tab.click("#fabric-larger");
    let larger = seen(&tab);
    assert!(
        (larger[2] * 1.5 - whole[2]).abs() < 1.0,
        "{larger:?} of {whole:?}"
    );
    let area = tab.area(".fabric-view");
    let middle = (area.x + area.width / 2.0, area.y + area.height / 2.0);
    tab.drag(middle, (middle.0 - 100.0, middle.1 - 60.0));
    let panned = seen(&tab);
    assert!(
        panned[0] > larger[0] + 30.0 && panned[1] > larger[1] + 20.0,
        "{panned:?} of {larger:?}"
    );
    assert_eq!(tab.eval("location.hash"), "", "what was a pan is no click");
    // What is under the pointer stays there.
    let under = |view: [f64; 4]| view[0] + view[2] / 4.0;
    tab.ctrl_wheel(area.x + area.width / 4.0, middle.1, -240.0);
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while seen(&tab)[2] > panned[2] - 1.0 && std::time::Instant::now() < until {}
    assert!(seen(&tab)[2] < panned[2] - 1.0, "the wheel zooms");
    assert!((under(seen(&tab)) - under(panned)).abs() < 1.0);
    tab.click("#fabric-smaller");
    tab.click("#fabric-whole");
    let all = seen(&tab);
    assert!(
        all[3] >= tab.number("document.querySelector('svg.wide').getAttribute('height') - 1"),
        "{all:?}"
    );
    tab.ctrl_wheel(middle.0, middle.1, 9000.0);
    assert_eq!(seen(&tab), all, "no smaller than whole");
}

#[test]
fn names_are_read_when_the_drawing_is_near() {
    let Some(tab) = open(large, DESK) else { return };
    let name = "getComputedStyle(document.querySelector('svg.wide .host.fine text')).display";
    assert_eq!(tab.eval(name), "none");
    for _ in 0..3 {
        tab.click("#fabric-larger");
    }
    assert_ne!(tab.eval(name), "none");
    // Faults are named at any size, and come first.
    assert!(tab.text("svg.wide .host.bad text").contains("r17h18"));
    assert_eq!(
        tab.eval("document.querySelectorAll('svg.wide .rack').length"),
        40
    );
    assert_eq!(
        tab.eval("document.querySelectorAll('svg.wide .host').length"),
        1000
    );
    let wires = "document.querySelectorAll('svg.wide [data-rack=\"19\"] .wire').length";
    assert_eq!(tab.eval(wires), 8);
    assert_eq!(
        tab.eval("document.querySelectorAll('svg.wide .wire.bad').length"),
        1
    );
}

#[test]
fn a_thousand_hosts_are_one_stop_of_the_tab_key() {
    let Some(tab) = open(large, DESK) else { return };
    let stops =
        "[...document.querySelectorAll('svg.wide a')].filter((a) => a.tabIndex === 0).length";
    assert_eq!(tab.eval(stops), 1);
    tab.eval("document.querySelector('svg.wide a').focus()");
    let first = tab.eval(FOCUSED);
    tab.key("ArrowRight");
    let second = tab.eval(FOCUSED);
    assert_ne!(first, second);
    tab.key("ArrowLeft");
    assert_eq!(tab.eval(FOCUSED), first);
    tab.key("ArrowDown");
    assert_ne!(tab.eval(FOCUSED), first);
    tab.key("End");
    let last = tab.eval(FOCUSED);
    let (link, view) = (tab.area("svg.wide a:focus"), tab.area(".fabric-view"));
    assert!(
        link.y >= view.y && link.bottom() <= view.bottom() + 1.0,
        "{last}: {link:?} in {view:?}"
    );
    assert!(tab.text("#tip").contains(" sends "), "what it is, in words");
    assert_eq!(tab.eval(stops), 1);
    tab.key("Home");
    assert_eq!(tab.eval(FOCUSED), first);
    let before = seen(&tab);
    tab.key("+");
    assert!(seen(&tab)[2] < before[2]);
    tab.key("0");
    assert!(seen(&tab)[2] >= before[2]);
    tab.key("Tab");
    assert!(
        !tab.is("document.activeElement.closest('svg')"),
        "the next stop is past the drawing"
    );
}

#[test]
fn every_part_says_what_it_is() {
    for page in [demo as fn() -> &'static std::path::Path, large] {
        let Some(tab) = open(page, DESK) else { return };
        let mute = "[...document.querySelectorAll('svg.wide a')].filter((a) => !(a.ariaLabel || '').includes(':')).length";
        assert_eq!(tab.eval(mute), 0);
        assert!(tab.is("[...document.querySelectorAll('svg.wide a')].every((a) => document.getElementById(a.getAttribute('href').slice(1)))"), "a link leads nowhere");
    }
}

#[test]
fn a_fault_leads_to_its_evidence_and_back() {
    for view in [DESK, PHONE] {
        let Some(tab) = open(demo, view) else { return };
        let shape = if view.width > 600 { "wide" } else { "narrow" };
        tab.eval("document.querySelectorAll('details').forEach((d) => { d.open = false; })");
        tab.click(&format!("svg.{shape} .host.bad"));
        tab.until("document.getElementById('finding-1').open && location.hash === '#finding-1'");
        tab.click("#finding-1 a[data-drawn]");
        assert_eq!(tab.eval(FOCUSED), "host-6");
        let host = tab.area(&format!("svg.{shape} .host.bad"));
        assert!(
            host.y > 0.0 && host.bottom() < f64::from(view.height),
            "{host:?}"
        );
        assert!(tab.is(&format!(
            "document.querySelector('svg.{shape} .host.bad.lit')"
        )));
        tab.key("Enter");
        tab.until("location.hash === '#finding-1'");
        tab.eval("document.getElementById('finding-2').open = true");
        tab.click("#finding-2 a[data-drawn]");
        assert!(tab.eval(FOCUSED).as_str().unwrap().starts_with("rack-"));
    }
}

/// At 30 frames/s a frame has 33 ms. What is asserted is the CPU time of the page's thread: the
/// clock's time shows how busy the machine is. Both are printed.
#[test]
fn a_frame_of_a_thousand_hosts_fits_thirty_a_second() {
    const FRAME_MS: f64 = 1000.0 / 30.0;
    let Some(tab) = open(large, DESK) else { return };
    tab.until("document.querySelector('#cell h3')");
    tab.eval("document.getElementById('fabric').scrollIntoView()");
    tab.call("Performance.enable", &json!({"timeDomain": "threadTicks"}));
    let thread_ms = || {
        let metrics = tab.call("Performance.getMetrics", &json!({}));
        let all = metrics["metrics"].as_array().unwrap().clone();
        let found = all.iter().find(|one| one["name"] == "ThreadTime").unwrap();
        found["value"].as_f64().unwrap() * 1e3
    };
    // Each frame pans by a pixel and zooms by a little, as a hand does.
    let script = "new Promise((done) => { const box = document.querySelector('.fabric-view'), area = box.getBoundingClientRect(); let frames = 0, first = 0; \
         const step = (now) => { if (!first) first = now; if (now - first > 2000) return done([frames, now - first]); frames++; \
         box.dispatchEvent(new WheelEvent('wheel', { deltaY: frames % 40 < 20 ? -12 : 12, ctrlKey: true, clientX: area.x + 300 + frames % 50, clientY: area.y + 200, bubbles: true, cancelable: true })); \
         requestAnimationFrame(step); }; requestAnimationFrame(step); })";
    tab.eval(script);
    let before = thread_ms();
    let value = tab.eval(script);
    let (frames, ms) = (value[0].as_f64().unwrap(), value[1].as_f64().unwrap());
    let each = (thread_ms() - before) / frames;
    println!(
        "fabric of 40 racks x 25 hosts x 8 paths, panned and zoomed: {:.0} frames/s, {each:.1} ms of CPU time a frame",
        frames / ms * 1e3
    );
    assert!(each < FRAME_MS, "{each:.1} ms of CPU time a frame");
}
