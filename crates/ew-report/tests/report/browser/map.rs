//! map.js: the map of all pairs, its stages and metrics.

use super::chromium::{DESK, Tab, View};
use super::pages::{demo, large, mixed, open};

fn chosen(tab: &Tab) -> String {
    tab.text("#cell")
}

/// A hash of the map's pixels.
fn painted(tab: &Tab) -> f64 {
    tab.number("(() => { const c = document.getElementById('cells'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let h = 0; for (let k = 0; k < d.length; k++) h = (h * 31 + d[k]) % 1000000007; return h; })()")
}

#[test]
fn the_worst_pair_is_chosen_first() {
    let Some(tab) = open(demo, DESK) else { return };
    tab.until("document.querySelector('#cell h3')");
    let text = chosen(&tab);
    assert!(
        text.contains("r2h3") && text.contains("worst pair"),
        "{text}"
    );
    assert!(
        tab.text("#map-note")
            .starts_with("All 56 ordered pairs, stage mesh."),
        "{}",
        tab.text("#map-note")
    );
}

#[test]
fn every_metric_has_a_map_and_a_scale() {
    let Some(tab) = open(mixed, DESK) else { return };
    tab.until("document.querySelector('#cell h3')");
    let mut maps = vec![painted(&tab)];
    for (metric, scale, tick) in [
        ("rate", "Rate", "b/s"),
        ("rtt", "Round-trip time", "s"),
        ("retransmits", "Retransmitted segments", ""),
    ] {
        tab.click(&format!("#metrics input[value={metric}]"));
        assert_eq!(tab.text("#scale-name"), scale);
        assert!(tab.text("#ticks").contains(tick), "{}", tab.text("#ticks"));
        assert!(!tab.is("document.getElementById('limit-note').getClientRects().length"));
        maps.push(painted(&tab));
    }
    maps.sort_by(f64::total_cmp);
    maps.dedup();
    assert_eq!(maps.len(), 4, "two metrics look the same");
    assert!(
        tab.is("document.querySelector('#metrics input[value=loss]').disabled"),
        "TCP has no loss"
    );
}

#[test]
fn stages_are_chosen_and_bring_their_metrics() {
    let Some(tab) = open(mixed, DESK) else { return };
    tab.until("document.querySelector('#cell h3')");
    let choose = |name: &str| {
        let script = format!(
            "(() => {{ const s = document.getElementById('map-stage'), o = [...s.options].find((o) => o.text === '{name}'); s.value = o.value; s.dispatchEvent(new Event('change', {{ bubbles: true }})); }})()"
        );
        tab.eval(&script);
    };
    let before = painted(&tab);
    choose("datagrams");
    assert_ne!(painted(&tab), before);
    assert!(
        tab.text("#map-note").starts_with("A sample: "),
        "{}",
        tab.text("#map-note")
    );
    tab.click("#metrics input[value=loss]");
    assert!(
        chosen(&tab).contains("Loss") || chosen(&tab).contains("not planned"),
        "{}",
        chosen(&tab)
    );
    choose("idle rtt");
    assert!(tab.is("document.querySelector('#metrics input[value=relative]').disabled"));
    assert_eq!(
        tab.eval("document.querySelector('#metrics input:checked').value"),
        "rtt"
    );
    assert!(chosen(&tab).contains("Median time"), "{}", chosen(&tab));
    // By keyboard.
    tab.eval("document.getElementById('map-stage').focus()");
    tab.key("Home");
    tab.until("document.getElementById('map-stage').value === '0'");
}

#[test]
fn the_map_is_walked_through_by_keys() {
    let Some(tab) = open(demo, DESK) else { return };
    tab.until("document.querySelector('#cell h3')");
    tab.eval("document.getElementById('cells').focus()");
    tab.key("Home");
    tab.key("PageUp");
    assert!(
        chosen(&tab).contains("r1h1 \u{2192} r1h1"),
        "{}",
        chosen(&tab)
    );
    tab.key("ArrowRight");
    assert!(chosen(&tab).contains("r1h1 \u{2192} r1h2"));
    tab.key("ArrowDown");
    tab.key("End");
    assert!(chosen(&tab).contains("r1h2 \u{2192} r2h4"));
    tab.key("ArrowLeft");
    tab.key("ArrowUp");
    assert!(chosen(&tab).contains("r1h1 \u{2192} r2h3"));
    tab.key("Enter");
    assert!(tab.text("#pair-name").contains("r1h1 \u{2192} r2h3"));
}

#[test]
fn a_click_keeps_a_pair_while_the_pointer_moves_on() {
    let Some(tab) = open(demo, DESK) else { return };
    tab.until("document.querySelector('#cell h3')");
    tab.eval("document.getElementById('cells').scrollIntoView({ block: 'center' })");
    let area = tab.area("#cells");
    let at = |x: f64, y: f64| (area.x + area.width * x, area.y + area.height * y);
    let (from, to) = (at(0.4, 0.5), at(0.9, 0.8));
    tab.mouse("mouseMoved", from.0, from.1);
    let first = chosen(&tab);
    assert!(tab.area("#tip").height > 0.0, "a tip next to the pointer");
    tab.mouse("mouseMoved", to.0, to.1);
    assert_ne!(chosen(&tab), first);
    tab.click_at(from.0, from.1);
    let kept = chosen(&tab);
    tab.mouse("mouseMoved", to.0, to.1);
    assert_eq!(chosen(&tab), kept);
    tab.click_at(from.0, from.1);
    tab.mouse("mouseMoved", to.0, to.1);
    assert_ne!(chosen(&tab), kept, "a second click lets it go");
}

#[test]
fn orders_zoom_and_theme_keep_the_chosen_pair() {
    let Some(tab) = open(demo, DESK) else { return };
    tab.until("document.querySelector('#cell h3')");
    tab.until("document.getElementById('theme').textContent === 'Dark'");
    let before = (chosen(&tab), painted(&tab));
    for order in ["tx", "rx", "name", "rack"] {
        tab.eval(&format!("(() => {{ const o = document.getElementById('order'); o.value = '{order}'; o.dispatchEvent(new Event('change')); }})()"));
        assert_eq!(chosen(&tab), before.0, "{order}");
        assert_eq!(painted(&tab) == before.1, order == "rack", "{order}");
    }
    let width = tab.area("#cells").width;
    tab.click("#smaller");
    assert!(tab.area("#cells").width < width);
    tab.click("#larger");
    tab.resize(View { dark: true, ..DESK });
    tab.until("document.getElementById('theme').textContent === 'Light'");
    assert_ne!(painted(&tab), before.1, "dark colours");
    assert_eq!(chosen(&tab), before.0);
}

#[test]
fn a_thousand_hosts_have_a_map() {
    let Some(tab) = open(large, DESK) else { return };
    tab.until("document.querySelector('#cell h3')");
    assert!(chosen(&tab).contains("r17h18"), "{}", chosen(&tab));
    assert!(
        tab.text("#map-note").contains("999000 ordered pairs"),
        "{}",
        tab.text("#map-note")
    );
    let value = tab.text("#cell dd:nth-of-type(2)");
    assert!(value.contains("Mb/s"), "{value}");
}
