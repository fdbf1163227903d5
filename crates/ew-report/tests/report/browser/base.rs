//! base.js: theme, tables, targets of links.

use super::chromium::{DESK, View};
use super::pages::{demo, open};

#[test]
fn the_theme_follows_the_system_until_the_button_is_used() {
    let Some(tab) = open(demo, View { dark: true, ..DESK }) else {
        return;
    };
    let paper = "getComputedStyle(document.body).backgroundColor";
    let dark = tab.eval(paper);
    assert_eq!(tab.text("#theme"), "Light");
    tab.resize(DESK);
    tab.until("document.querySelector('#theme').textContent === 'Dark'");
    let light = tab.eval(paper);
    assert_ne!(dark, light);
    tab.click("#theme");
    assert_eq!(tab.eval(paper), dark);
    tab.resize(View { dark: true, ..DESK });
    tab.click("#theme");
    assert_eq!(tab.eval(paper), light, "the button decides");
}

#[test]
fn tables_are_sorted_by_their_headings() {
    let Some(tab) = open(demo, DESK) else { return };
    let first = "document.querySelector('table.hosts tbody tr').id";
    let heading = "table.hosts thead th:nth-child(3) button";
    tab.click(heading);
    // r2h3 sends least.
    tab.until(&format!("{first} == 'host-6'"));
    assert_eq!(
        tab.eval("document.querySelector('table.hosts thead th:nth-child(3)').ariaSort"),
        "ascending"
    );
    // By keyboard, the other way round.
    tab.eval(&format!("document.querySelector('{heading}').focus()"));
    tab.key("Enter");
    tab.until(&format!("{first} != 'host-6'"));
    assert_eq!(
        tab.eval("document.querySelector('table.hosts tbody').lastElementChild.id"),
        "host-6"
    );
    // By name.
    tab.click("table.hosts thead th:nth-child(1) button");
    tab.until(&format!("{first} == 'host-0'"));
}

#[test]
fn a_link_to_a_finding_opens_it() {
    let Some(tab) = open(demo, DESK) else { return };
    tab.eval("document.querySelectorAll('details').forEach((d) => { d.open = false; })");
    tab.click(".headlines li:nth-child(2) a");
    tab.until("document.getElementById('finding-2').open");
    assert!(!tab.is("document.getElementById('finding-1').open"));
}

#[test]
fn a_table_that_goes_on_to_the_right_says_so() {
    let Some(tab) = open(demo, super::chromium::PHONE) else {
        return;
    };
    let more = "document.querySelector('#hosts .scroll').classList.contains('more')";
    tab.until(more);
    tab.eval("document.querySelector('#hosts .scroll').scrollLeft = 9999");
    tab.until(&format!("!{more}"));
}
