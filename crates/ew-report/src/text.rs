//! The report for the terminal: findings, the tables they rest on, and the summary last, where the
//! eye is when a run ends.

use crate::figures::Figures;
use crate::format::TextStyle;
use crate::table::{columns_that_fit, table, wrap};
use crate::view::{CompactWords, FindingWords, Tone, View};
use crate::words::{one_line, plural, shortened};

/// Up to this many findings are written out.
const FINDINGS_LISTED: usize = 25;
/// The summary has at most ten lines with the report's path below it: up to this many findings, and
/// one line less where a line shows how many more there are. Each has at most this many columns.
const SUMMARY_LISTED: usize = 6;
const SUMMARY_WIDTH: usize = 108;
/// Up to this many of the lines of findings are of missed thresholds.
const MISSED_LISTED: usize = 3;
/// The terminal shows this many columns of the stage table however narrow it is.
const MIN_STAGE_COLUMNS: usize = 5;

pub(crate) fn render(view: &View, style: &TextStyle) -> String {
    let sheet = Sheet::new(style);
    let mut out = match &view.network {
        Some(network) => sheet.wrap(network, "Network: "),
        None => String::new(),
    };
    match &view.compact {
        Some(compact) => out.push_str(&sheet.compact(view, compact)),
        None => out.push_str(&sheet.whole(view)),
    }
    out.push_str(&sheet.summary(view));
    out
}

/// What a report is laid out on.
struct Sheet {
    width: usize,
    ink: Ink,
    has_details: bool,
}

impl Sheet {
    fn new(style: &TextStyle) -> Self {
        Self {
            width: style.width.max(40),
            ink: Ink { color: style.color },
            has_details: style.details,
        }
    }

    fn whole(&self, view: &View) -> String {
        [
            self.findings(view),
            self.rack_pairs(view),
            self.stages(view),
            self.tables(&view.figures),
            self.hosts(view),
            self.missing_pairs(view),
            self.facts(view),
        ]
        .concat()
    }

    /// Two hosts' own test: findings where there are any, the result, and notes on it.
    fn compact(&self, view: &View, compact: &CompactWords) -> String {
        let mut out = String::new();
        if !view.findings.is_empty() {
            out.push_str(&self.findings(view));
        }
        out.push_str(&self.tables(&compact.tables));
        let notes = [&view.cautions[..], &compact.cpu].concat();
        self.push_notes(&mut out, &notes);
        out.push_str(&self.wrap(&compact.facts, "  "));
        out.push_str(&self.lines(&view.warnings, "  warning: "));
        out
    }

    /// At most nine lines, so that ten with the report's path: status, what is wrong, a line each,
    /// and which network was measured, and how much of it.
    fn summary(&self, view: &View) -> String {
        let status = match view.tone {
            Tone::Good => self.ink.green(view.status),
            Tone::Bad => self.ink.red(view.status),
            Tone::Part | Tone::Open => self.ink.yellow(view.status),
        };
        let mut out = format!("\n{}\n", self.ink.bold(&status));
        let shown: Vec<&FindingWords> = view.findings.iter().filter(|f| f.is_open()).collect();
        let missed = &view.missed_thresholds;
        if shown.is_empty() && missed.is_empty() {
            out.push_str(&self.wrap(&view.sentence, "  "));
        }
        for one in missed.iter().take(MISSED_LISTED) {
            out.push_str(&self.summary_line(&format!("  {}  threshold ", one.word), &one.text));
        }
        if missed.len() > MISSED_LISTED {
            let more = plural(missed.len() - MISSED_LISTED, "more threshold");
            out.push_str(&format!("  {more} missed, in the warnings above\n"));
        }
        let free_lines = SUMMARY_LISTED - missed.len().min(MISSED_LISTED + 1);
        let listed = match shown.len() > free_lines {
            true => free_lines - 1,
            false => free_lines,
        };
        for finding in shown.iter().take(listed) {
            let start = format!("  {}  ", finding.status());
            let sentence = finding.headline(self.summary_width(&start));
            out.push_str(&self.summary_line(&start, &sentence));
        }
        if shown.len() > listed {
            let more = plural(shown.len() - listed, "more finding");
            out.push_str(&format!("  {more} above\n"));
        }
        // Two hosts' report has it a few lines above.
        if let (Some(network), None) = (&view.network, &view.compact) {
            out.push_str(&self.summary_line("  Network: ", network));
        }
        out.push_str(&self.summary_line("  ", &view.measured));
        out
    }

    fn summary_line(&self, start: &str, text: &str) -> String {
        let width = self.summary_width(start);
        format!("{start}{}\n", shortened(&one_line(text), width))
    }

    fn summary_width(&self, start: &str) -> usize {
        let width = self.width.min(SUMMARY_WIDTH);
        width.saturating_sub(start.chars().count())
    }

    fn findings(&self, view: &View) -> String {
        let mut out = self.title("Findings");
        if view.findings.is_empty() {
            return out + "  none\n\n";
        }
        for (index, finding) in view.findings.iter().take(FINDINGS_LISTED).enumerate() {
            out.push_str(&self.finding(index + 1, finding));
        }
        if view.findings.len() > FINDINGS_LISTED {
            let more = view.findings.len() - FINDINGS_LISTED;
            let words = format!("{more} more; the HTML and JSON reports list all.");
            out.push_str(&self.wrap(&words, "  "));
            out.push('\n');
        }
        out
    }

    fn finding(&self, number: usize, finding: &FindingWords) -> String {
        let word = finding.word();
        let head = format!("{word}: {}", finding.sentence);
        let head = self.wrap(&head, &format!("{number:>3}. "));
        let painted = match finding.tone() {
            Tone::Bad => self.ink.red(word),
            Tone::Part => self.ink.yellow(word),
            Tone::Good | Tone::Open => word.to_owned(),
        };
        let mut out = head.replacen(word, &painted, 1);
        out.push_str(&self.wrap(&finding.figures(), "     "));
        for evidence in &finding.evidence {
            let line = format!("{} [{}]", evidence.text, evidence.source);
            out.push_str(&self.wrap(&line, "     - "));
        }
        if !finding.hint.is_empty() {
            out.push_str(&self.wrap(&finding.hint, "     hint: "));
        }
        out.push_str(&self.wrap(&finding.documentation, "     docs: "));
        out.push('\n');
        out
    }

    fn rack_pairs(&self, view: &View) -> String {
        if view.rack_pairs.is_empty() {
            return String::new();
        }
        let listed = view.rack_table();
        let more = view.rack_pairs.len() - listed.rows.len();
        let mut out = self.table(&listed);
        if more > 0 {
            out.truncate(out.trim_end().len());
            out.push_str(&format!(
                "\n{more} more pairs; the HTML and JSON reports list all.\n\n"
            ));
        }
        out
    }

    fn stages(&self, view: &View) -> String {
        let Figures { header, rows, .. } = &view.stages;
        if !view.has_stages {
            return self.title("Stages") + "  none ran\n\n";
        }
        let shown = columns_that_fit(header, rows, self.width, MIN_STAGE_COLUMNS);
        let rows: Vec<Vec<String>> = rows.iter().map(|row| row[..shown].to_vec()).collect();
        let mut out = match rows.is_empty() {
            true => String::from("\n"),
            false => self.title(view.stages.title) + &table(&header[..shown], &rows, 1, self.width),
        };
        let mut notes = match self.has_details {
            true => view.stages.notes.clone(),
            false => view.cautions.clone(),
        };
        if shown < header.len() {
            let left_out = header[shown..].join(", ");
            notes.push(format!("Hidden (terminal too narrow): {left_out}."));
        }
        self.push_notes(&mut out, &notes);
        out
    }

    fn hosts(&self, view: &View) -> String {
        let listed = view.notable_hosts();
        let mut out = match listed.rows.is_empty() {
            true => self.title(listed.title),
            false => self.table(&listed),
        };
        out.truncate(out.trim_end().len() + 1);
        out.push_str(&self.lines(&view.other_hosts, ""));
        out.push_str(&self.lines(&view.absences, "  "));
        out.push_str(&self.lines(&view.nearest, ""));
        out.push('\n');
        if !view.near_limits.rows.is_empty() {
            out.push_str(&self.tables([&view.near_limits]));
        }
        out
    }

    fn missing_pairs(&self, view: &View) -> String {
        match view.missing_pairs.is_empty() {
            true => String::new(),
            false => {
                let lines = self.lines(&view.missing_pairs, "  ");
                self.title("Pairs without a figure") + &lines + "\n"
            }
        }
    }

    /// Facts of the run: all of them on request, else what shows which run it was and what it was
    /// compared with.
    fn facts(&self, view: &View) -> String {
        const ALWAYS: [&str; 5] = ["run", "took", "hosts", "reference host", "repeat"];
        let mut out = self.title("Run");
        let is_shown = |name: &str| self.has_details || ALWAYS.contains(&name);
        for (name, value) in view.facts.iter().filter(|(name, _)| is_shown(name)) {
            out.push_str(&self.wrap(value, &format!("  {name:<18} ")));
        }
        out.push_str(&self.lines(&view.warnings, "  warning: "));
        out
    }

    fn tables<'a>(&self, tables: impl IntoIterator<Item = &'a Figures>) -> String {
        let mut out = String::new();
        for one in tables {
            out.push_str(&self.table(one));
            self.push_notes(&mut out, &one.notes);
        }
        out
    }

    fn table(&self, figures: &Figures) -> String {
        let Figures { header, rows, .. } = figures;
        self.title(figures.title) + &table(header, rows, figures.left, self.width)
    }

    fn title(&self, title: &str) -> String {
        format!("{}\n", self.ink.bold(title))
    }

    /// Lines right below a table.
    fn push_notes(&self, out: &mut String, notes: &[String]) {
        if notes.is_empty() {
            return;
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
        out.push_str(&self.lines(notes, "  "));
        out.push('\n');
    }

    fn lines<'a>(&self, lines: impl IntoIterator<Item = &'a String>, start: &str) -> String {
        lines
            .into_iter()
            .map(|line| self.wrap(line, start))
            .collect()
    }

    fn wrap(&self, text: &str, start: &str) -> String {
        wrap(text, self.width, start)
    }
}

/// Colours for what words already show.
#[derive(Clone, Copy)]
pub(crate) struct Ink {
    pub(crate) color: bool,
}

impl Ink {
    pub(crate) fn bold(self, text: &str) -> String {
        self.paint(text, "1")
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.paint(text, "1;31")
    }

    fn yellow(self, text: &str) -> String {
        self.paint(text, "1;33")
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.paint(text, "1;32")
    }

    fn paint(self, text: &str, code: &str) -> String {
        if self.color {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}
