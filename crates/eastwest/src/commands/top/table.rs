//! Many hosts: a line each, the worst first.

use ew_top::View;
use std::collections::BTreeMap;
use std::fmt::Write;

/// What is known of every host.
pub(super) struct Table {
    /// By host; `None` until it has shown anything.
    hosts: BTreeMap<String, Option<State>>,
    /// Hosts that were seen since the table was shown last.
    fresh: usize,
    name_width: usize,
}

enum State {
    Up(Box<View>),
    Down(String),
}

impl Table {
    pub(super) fn new(hosts: &[String]) -> Self {
        let widths = hosts.iter().map(|host| host.chars().count());
        Self {
            name_width: widths.max().unwrap_or(0),
            hosts: hosts.iter().map(|host| (host.clone(), None)).collect(),
            fresh: 0,
        }
    }

    pub(super) fn update(&mut self, host: String, view: View) {
        self.set(host, State::Up(Box::new(view)));
    }

    pub(super) fn lose(&mut self, host: String, why: String) {
        self.set(host, State::Down(why));
    }

    fn set(&mut self, host: String, state: State) {
        self.fresh += 1;
        self.hosts.insert(host, Some(state));
    }

    /// Whether every host that is up has been seen since [`Table::text`].
    pub(super) fn is_due(&self) -> bool {
        let down = |state: &&Option<State>| matches!(state, Some(State::Down(_)));
        let down = self.hosts.values().filter(down).count();
        self.fresh >= (self.hosts.len() - down).max(1)
    }

    /// Hosts that are down come first, then those with a limit, the furthest above its bar first.
    pub(super) fn text(&mut self) -> String {
        self.fresh = 0;
        let mut rows: Vec<(f64, &str, &str)> = Vec::new();
        for (host, state) in &self.hosts {
            rows.push(match state {
                None => (-1.0, host, "nothing has come yet"),
                Some(State::Down(why)) => (f64::INFINITY, host, why),
                Some(State::Up(view)) => (view.verdict.severity, host, &view.verdict.sentence),
            });
        }
        rows.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut text = String::new();
        for (severity, host, sentence) in rows {
            let down = if severity.is_infinite() { "down: " } else { "" };
            let width = self.name_width;
            // Writing to memory cannot fail.
            let _ = writeln!(text, "{host:<width$}  {down}{sentence}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(severity: f64, sentence: &str) -> View {
        let mut view = View::default();
        view.verdict.severity = severity;
        view.verdict.sentence = sentence.into();
        view
    }

    #[test]
    fn the_worst_come_first_and_all_are_waited_for() {
        let hosts = ["n1", "n10", "n2", "n3"].map(str::to_owned);
        let mut table = Table::new(&hosts);
        table.update("n1".into(), view(0.0, "nothing is the limit"));
        table.update("n2".into(), view(1.2, "network bound"));
        assert!(!table.is_due());
        table.lose("n3".into(), "no route".into());
        table.update("n10".into(), view(1.1, "CPU bound"));
        assert!(table.is_due());
        let expected =
            "n3   down: no route\nn2   network bound\nn10  CPU bound\nn1   nothing is the limit\n";
        assert_eq!(table.text(), expected);
        assert!(!table.is_due());
    }
}
