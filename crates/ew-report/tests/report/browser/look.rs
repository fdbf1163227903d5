//! The first screen, as a picture: what is seen without scrolling. The pictures of the
//! documentation are taken here.

use super::chromium::{Area, DESK, PHONE, Tab, View};
use super::pages::{demo, large, mixed, open};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Both faults of the demo, as the drawing marks them.
fn faults(tab: &Tab) -> [Area; 2] {
    let shape = if tab.is("innerWidth > 600") {
        "wide"
    } else {
        "narrow"
    };
    let host = format!("svg.{shape} .host.bad");
    let uplink = format!("svg.{shape} .rack-link:is(.bad, .part) .mark-word");
    assert!(tab.text(&host).contains("r2h3"));
    assert!(tab.text(&uplink).contains("oversubscribed"));
    [tab.area(&host), tab.area(&uplink)]
}

fn kept_in() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser")
}

#[test]
fn the_demos_faults_are_seen_without_scrolling() {
    for (view, name) in [(DESK, "report"), (PHONE, "report-narrow")] {
        for dark in [false, true] {
            let view = View { dark, ..view };
            let Some(tab) = open(demo, view) else { return };
            for fault in faults(&tab) {
                let is_seen = fault.y >= 0.0
                    && fault.x >= 0.0
                    && fault.right() <= f64::from(view.width)
                    && fault.bottom() <= f64::from(view.height);
                assert!(is_seen, "{fault:?} in {name}");
                assert!(fault.height >= 8.0, "too small to read: {fault:?}");
            }
            assert!(
                tab.is("document.documentElement.scrollWidth <= innerWidth"),
                "sideways"
            );
            let suffix = if dark { "-dark" } else { "" };
            keep(&tab, &format!("{name}{suffix}.png"));
        }
    }
}

/// Next to the test binaries; the ones of the documentation where they are asked for, since fonts
/// differ from machine to machine.
fn keep(tab: &Tab, name: &str) {
    let picture = tab.picture();
    std::fs::write(kept_in().join(name), &picture).unwrap();
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images");
    if std::env::var_os("EASTWEST_PICTURES").is_some() && !name.contains("dark") {
        std::fs::write(docs.join(name), &picture).unwrap();
    }
}

/// Colours as somebody sees them, from a picture of the page: mean red, green and blue of a box.
fn colour(tab: &Tab, area: Area) -> [f64; 3] {
    let picture = tab.call("Page.captureScreenshot", &json!({"format": "png"}));
    let script = format!(
        "(async () => {{ const i = new Image(); i.src = 'data:image/png;base64,{}'; await i.decode(); const c = document.createElement('canvas'); \
         c.width = i.width; c.height = i.height; const x = c.getContext('2d'); x.drawImage(i, 0, 0); \
         const d = x.getImageData({}, {}, {}, {}).data; const s = [0, 0, 0]; for (let k = 0; k < d.length; k++) if (k % 4 < 3) s[k % 4] += d[k]; \
         return s.map((v) => v / (d.length / 4)); }})()",
        picture["data"].as_str().unwrap(),
        area.x.round() + 2.0,
        area.y.round() + 2.0,
        (area.width - 4.0).max(1.0).floor(),
        4
    );
    let value = tab.eval(&script);
    [0, 1, 2].map(|index| value[index].as_f64().unwrap())
}

/// Relative luminance (WCAG 2.2).
fn luminance(colour: [f64; 3]) -> f64 {
    let linear = colour.map(|value| match value / 255.0 {
        v if v <= 0.04045 => v / 12.92,
        v => ((v + 0.055) / 1.055).powf(2.4),
    });
    0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
}

/// Contrast ratio (WCAG 2.2); 3 is what graphics need.
fn contrast(a: [f64; 3], b: [f64; 3]) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[test]
fn a_faulty_host_stands_out_whatever_colours_one_sees() {
    let Some(tab) = open(demo, DESK) else { return };
    let kinds = [
        "none",
        "protanopia",
        "deuteranopia",
        "tritanopia",
        "achromatopsia",
    ];
    for dark in [false, true] {
        tab.resize(View { dark, ..DESK });
        for kind in kinds {
            tab.call(
                "Emulation.setEmulatedVisionDeficiency",
                &json!({"type": kind}),
            );
            let bad = colour(&tab, tab.area("svg.wide .host.bad"));
            let fine = colour(&tab, tab.area("svg.wide .host.fine"));
            let ratio = contrast(bad, fine);
            assert!(ratio >= 3.0, "{kind}, dark {dark}: {ratio:.1}");
        }
    }
    // And by a sign, where there are no colours at all.
    assert!(tab.is("document.querySelector('svg.wide .host.bad .sign')"));
}

#[test]
fn the_page_prints_on_a4_with_the_runs_id() {
    for dark in [false, true] {
        let Some(tab) = open(demo, View { dark, ..DESK }) else {
            return;
        };
        tab.media("print", if dark { "dark" } else { "light" });
        assert_eq!(
            tab.eval("getComputedStyle(document.body).backgroundColor"),
            "rgb(255, 255, 255)"
        );
        let ink = tab.eval("getComputedStyle(document.querySelector('svg.wide .rack-name')).fill");
        assert_eq!(ink, "rgb(27, 32, 38)", "light ink on paper");
        let id = tab.text(".run-id");
        assert!(id.contains("20261124T074826Z-qualify-a13e96"), "{id}");
        assert!(tab.area(".run-id").height > 0.0);
        assert!(tab.is("document.querySelector('style').textContent.includes('@page { size: A4') && document.querySelector('style').textContent.includes('20261124T074826Z-qualify-a13e96')"));
        let view = tab.area(".fabric-view");
        let drawn = tab.area("svg.wide");
        assert!(
            drawn.bottom() <= view.bottom() + 1.0,
            "the drawing is cut off: {drawn:?} in {view:?}"
        );
        // As wide as A4 between the margins.
        tab.resize(View {
            width: 703,
            dark,
            ..DESK
        });
        tab.media("print", if dark { "dark" } else { "light" });
        for part in [".fabric-view", "#pair", "table.hosts", "#cells"] {
            let area = tab.area(part);
            assert!(area.right() <= 704.0, "{part} is cut off: {area:?}");
        }
        tab.media("", if dark { "dark" } else { "light" });
        let pdf = tab.pdf();
        let text = String::from_utf8_lossy(&pdf);
        let pages = text.matches("/Type /Page\n").count();
        assert!((2..=25).contains(&pages), "{pages} pages");
        // 210 x 297 mm in points of 1/72 inch.
        assert!(
            text.contains("/MediaBox [0 0 594.95996 841.91998]")
                || text.contains("/MediaBox [0 0 595 842]"),
            "not A4"
        );
        assert!(tab.is("[...document.querySelectorAll('details')].every((d) => d.open)"));
        std::fs::write(kept_in().join("demo.pdf"), pdf).unwrap();
    }
}

#[test]
fn no_part_of_a_page_is_wider_than_a_telephone() {
    for page in [demo as fn() -> &'static Path, mixed, large] {
        let Some(tab) = open(page, PHONE) else { return };
        assert!(tab.is("document.documentElement.scrollWidth <= innerWidth"));
    }
}
