//! The full-screen view: state, keys and drawing. No clock and no terminal of its own: views and
//! keys come in, frames go out.

use crate::table::Table;
use crate::tables::tables;
use crate::text::summary;
use crate::view::{HostLimit, View};
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Clear, Paragraph, Row, Table as Grid, Wrap};

const HELP: &str = "\
1 to 9   processes, remote hosts, flows, ports, interfaces, cpus, disks,
         queues that hold or drop packets, interrupts
Tab      the next of them (Shift: the one before)
< >      sort by the column to the left or right
r        sort the other way round
/        filter rows by a word; Enter keeps it, Esc drops it
↑ ↓      scroll
space    pause and go on
? h      this help
q        quit

Rates of processes, hosts and flows are TCP payload; of UDP sockets the
kernel counts no bytes. Rates of interfaces are whole frames. \"-\" is what
the kernel hides. LIMITED BY is what kept a sender from being faster:
its program, the receiver, its send buffer, the path.";

/// What a key asks of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Go on.
    Stay,
    /// End.
    Quit,
}

/// What is on the screen.
#[derive(Debug, Default)]
pub struct Screen {
    view: Option<View>,
    headline: Option<String>,
    paused: bool,
    help: bool,
    shown: usize,
    /// Column and whether descending, for each table; `None` keeps the view's own order.
    order: [Option<(usize, bool)>; TABLES],
    scrolled: usize,
    filter: String,
    typing: bool,
}

const TABLES: usize = 9;

impl Screen {
    /// An empty screen.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a line above everything else.
    pub fn set_headline(&mut self, headline: String) {
        self.headline = Some(headline);
    }

    /// Takes a newer view, unless it is paused.
    pub fn update(&mut self, view: View) {
        if !self.paused || self.view.is_none() {
            self.view = Some(view);
        }
    }

    /// Takes a key.
    pub fn press(&mut self, key: KeyEvent) -> Wish {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            let is_interrupt = key.code == KeyCode::Char('c');
            return if is_interrupt { Wish::Quit } else { Wish::Stay };
        }
        if self.typing {
            self.type_filter(key.code);
            return Wish::Stay;
        }
        match key.code {
            KeyCode::Char('q') => return Wish::Quit,
            KeyCode::Esc if self.help => self.help = false,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('?' | 'h') => self.help = !self.help,
            KeyCode::Char(' ' | 'p') => self.paused = !self.paused,
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Char('r') => self.turn_order(),
            KeyCode::Char('>') | KeyCode::Right => self.move_order(1),
            KeyCode::Char('<') | KeyCode::Left => self.move_order(-1),
            KeyCode::Char(digit @ '1'..='9') => self.show(digit as usize - '1' as usize),
            KeyCode::Tab => self.show((self.shown + 1) % TABLES),
            KeyCode::BackTab => self.show((self.shown + TABLES - 1) % TABLES),
            KeyCode::Down => self.scrolled = self.scrolled.saturating_add(1),
            KeyCode::Up => self.scrolled = self.scrolled.saturating_sub(1),
            _ => {}
        }
        Wish::Stay
    }

    /// Draws everything.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let headline_height = u16::from(self.headline.is_some());
        let [top, area] =
            Layout::vertical([Constraint::Length(headline_height), Constraint::Min(0)])
                .areas(frame.area());
        frame.render_widget(
            Line::from(self.headline.as_deref().unwrap_or_default()),
            top,
        );
        let Some(view) = &self.view else {
            frame.render_widget("reading ...", area);
            return;
        };
        let mut table = tables(view).swap_remove(self.shown);
        if let Some((column, descending)) = self.order[self.shown] {
            table.sort(column, descending);
        }
        table.filter(&self.filter);
        self.scrolled = self.scrolled.min(table.rows.len().saturating_sub(1));
        let facts = facts(view, area.width.into());
        let [top, middle, bottom] = Layout::vertical([
            Constraint::Length(u16::try_from(facts.len()).unwrap_or(u16::MAX)),
            Constraint::Min(3),
            Constraint::Length(1),
        ])
        .areas(area);
        frame.render_widget(Paragraph::new(Text::from(facts)), top);
        self.draw_table(frame, &table, middle);
        frame.render_widget(Line::from(self.bottom_line()), bottom);
        if self.help {
            draw_help(frame);
        }
    }

    fn draw_table(&self, frame: &mut Frame<'_>, table: &Table, area: Rect) {
        let headings = self.headings(table);
        let widths = table.widths().into_iter().zip(&headings);
        let widths = widths.map(|(width, heading)| {
            let width = width.max(heading.chars().count());
            // A column wider than this would push the others off the screen.
            Constraint::Length(u16::try_from(width.min(45)).unwrap_or(45))
        });
        let widths: Vec<Constraint> = widths.collect();
        let align = |index: usize, text: String| {
            let is_text = table.columns[index].is_text;
            Text::from(text).alignment(if is_text {
                Alignment::Left
            } else {
                Alignment::Right
            })
        };
        let headings = headings.into_iter().enumerate();
        let headings = headings.map(|(index, heading)| align(index, heading));
        let rows = table.rows.iter().skip(self.scrolled).map(|row| {
            let cells = row.iter().enumerate();
            Row::new(
                cells
                    .map(|(index, cell)| align(index, cell.text.clone()))
                    .collect::<Vec<_>>(),
            )
        });
        let title = format!(
            " {} {} ({}) ",
            self.shown + 1,
            table.title,
            table.rows.len()
        );
        let grid = Grid::new(rows, widths)
            .header(Row::new(headings.collect::<Vec<_>>()).style(Modifier::BOLD))
            .column_spacing(2)
            .block(Block::bordered().title(title));
        frame.render_widget(grid, area);
    }

    /// The sorted column's has a mark.
    fn headings(&self, table: &Table) -> Vec<String> {
        let columns = table.columns.iter().enumerate();
        let headings = columns.map(|(index, column)| {
            let mark = match self.order[self.shown] {
                Some((sorted, true)) if sorted == index => "▼",
                Some((sorted, false)) if sorted == index => "▲",
                _ => "",
            };
            format!("{}{mark}", column.heading)
        });
        headings.collect()
    }

    fn bottom_line(&self) -> String {
        if self.typing {
            return format!("filter: {}_", self.filter);
        }
        let paused = if self.paused { "PAUSED  " } else { "" };
        let filter = match self.filter.as_str() {
            "" => String::new(),
            words => format!("filter: {words}  "),
        };
        format!(
            "{paused}{filter}1-9 tables  < > sort  r reverse  / filter  space pause  ? help  q quit"
        )
    }

    fn show(&mut self, table: usize) {
        self.shown = table;
        self.scrolled = 0;
    }

    fn type_filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(letter) => self.filter.push(letter),
            _ => {}
        }
    }

    fn turn_order(&mut self) {
        let (column, descending) = self.order[self.shown].unwrap_or((0, false));
        self.order[self.shown] = Some((column, !descending));
    }

    fn move_order(&mut self, step: isize) {
        let Some(view) = &self.view else { return };
        let columns = tables(view)[self.shown].columns.len();
        let next = match self.order[self.shown] {
            Some((column, _)) => (column + columns).wrapping_add_signed(step) % columns,
            None => 0,
        };
        self.order[self.shown] = Some((next, true));
    }
}

/// The lines above the table: verdict, evidence, and what no table shows.
fn facts(view: &View, width: usize) -> Vec<Line<'static>> {
    let color = match view.verdict.limit {
        HostLimit::None => Color::Green,
        _ => Color::Yellow,
    };
    let verdict = Style::new().fg(color).add_modifier(Modifier::BOLD);
    let sentence = wrapped(&view.verdict.sentence, width).into_iter();
    let mut lines: Vec<Line<'_>> = sentence.map(|line| Line::styled(line, verdict)).collect();
    let because = view
        .verdict
        .evidence
        .iter()
        .chain(&view.verdict.also)
        .take(4);
    let because = because.flat_map(|line| wrapped(line, width.saturating_sub(2)));
    lines.extend(because.map(|line| Line::from(format!("  {line}"))));
    lines.extend(bars(view));
    lines.extend(summary(view).into_iter().take(6).map(Line::from));
    let unseen = view.unseen.first();
    lines.extend(unseen.map(|what| Line::from(format!("not seen: {what}"))));
    lines
}

/// Words in lines of so many characters; a word that is longer has a line of its own.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let has_space =
            |line: &&mut String| line.chars().count() + 1 + word.chars().count() <= width;
        match lines.last_mut().filter(has_space) {
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// One line for every link, the CPUs and the busiest disk.
fn bars(view: &View) -> Vec<Line<'static>> {
    let mut lines = vec![bar("cpus", view.cpu.busy)];
    lines.extend(
        view.busiest_core()
            .map(|core| bar(&format!("cpu{}", core.cpu), core.busy)),
    );
    lines.extend(
        view.links()
            .take(4)
            .filter_map(|i| Some(bar(&i.name, i.utilisation?))),
    );
    lines.extend(
        view.disks
            .first()
            .map(|disk| bar(&disk.name, disk.utilisation)),
    );
    lines
}

fn bar(name: &str, share: f64) -> Line<'static> {
    const CELLS: usize = 40;
    let full = ((share * CELLS as f64).round() as usize).min(CELLS);
    let (full, empty) = ("█".repeat(full), "·".repeat(CELLS - full));
    Line::from(format!("{name:>12} {full}{empty} {:>3.0}%", share * 100.0))
}

fn draw_help(frame: &mut Frame<'_>) {
    let area = frame.area();
    let width = area.width.min(80);
    let height = area.height.min(HELP.lines().count() as u16 + 2);
    let [row] = Layout::vertical([Constraint::Length(height)])
        .flex(ratatui::layout::Flex::Center)
        .areas(area);
    let [middle] = Layout::horizontal([Constraint::Length(width)])
        .flex(ratatui::layout::Flex::Center)
        .areas(row);
    frame.render_widget(Clear, middle);
    let help = Paragraph::new(HELP)
        .wrap(Wrap { trim: false })
        .block(Block::bordered().title(" keys "));
    frame.render_widget(help, middle);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{HostVerdict, ProcessView};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn view(sentence: &str) -> View {
        let process = |pid: u32, name: &str, rx: f64| ProcessView {
            pid: Some(pid),
            name: name.into(),
            rx_bits_per_sec: rx,
            ..ProcessView::default()
        };
        View {
            verdict: HostVerdict {
                sentence: sentence.into(),
                ..HostVerdict::default()
            },
            processes: vec![process(7, "big", 2e6), process(8, "small", 1e6)],
            ..View::default()
        }
    }

    fn drawn(screen: &mut Screen, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let lines = buffer.content().chunks(usize::from(width));
        lines
            .map(|line| line.iter().map(|cell| cell.symbol()).collect::<String>() + "\n")
            .collect()
    }

    fn press(screen: &mut Screen, keys: &str) {
        for key in keys.chars() {
            let code = match key {
                '\n' => KeyCode::Enter,
                '\u{1b}' => KeyCode::Esc,
                letter => KeyCode::Char(letter),
            };
            assert_eq!(screen.press(KeyEvent::from(code)), Wish::Stay);
        }
    }

    fn before(text: &str, first: &str, second: &str) -> bool {
        text.find(first).unwrap() < text.find(second).unwrap()
    }

    #[test]
    fn the_verdict_is_on_top_and_rows_sort_both_ways() {
        let mut screen = Screen::new();
        assert!(drawn(&mut screen, 100, 30).contains("reading"));
        screen.update(view("nothing is the limit"));
        let text = drawn(&mut screen, 100, 30);
        assert!(text.starts_with("nothing is the limit"), "{text}");
        assert!(before(&text, "big", "small") && text.contains("2.00 Mb/s"));
        press(&mut screen, ">>>r");
        let text = drawn(&mut screen, 100, 30);
        assert!(
            before(&text, "small", "big") && text.contains("RECEIVES▲"),
            "{text}"
        );
    }

    #[test]
    fn the_verdict_and_sorted_headings_are_whole_on_a_narrow_screen() {
        let mut screen = Screen::new();
        let verdict = "network-bound: eth0 sends at 96% of its 1.00 Gb/s; most by a-process (pid 7123456, 90%, with 192.0.2.9)";
        let evidence =
            "eth0 fq_codel: 123 KiB waiting, 1234 drops and 12345 overlimits per second, and so on";
        let mut view = view(verdict);
        view.verdict.evidence = vec![evidence.into()];
        screen.update(view);
        press(&mut screen, ">>>>>");
        let text = drawn(&mut screen, 80, 24);
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(
            words
                .join(" ")
                .starts_with(&format!("{verdict} {evidence} cpus")),
            "{text}"
        );
        assert!(text.contains(" CONNS▼"), "{text}");
        assert!(before(&text, "RECEIVES", "big"), "{text}");
    }

    #[test]
    fn a_filter_is_typed_kept_and_dropped() {
        let mut screen = Screen::new();
        screen.update(view("x"));
        press(&mut screen, "/SMqll");
        assert!(drawn(&mut screen, 100, 30).contains("filter: SMqll_"));
        screen.press(KeyEvent::from(KeyCode::Backspace));
        press(&mut screen, "\u{1b}/sma\n");
        let text = drawn(&mut screen, 100, 30);
        assert!(text.contains("small") && !text.contains("big "), "{text}");
        press(&mut screen, "\u{1b}");
        assert!(drawn(&mut screen, 100, 30).contains("big "));
    }

    #[test]
    fn a_pause_holds_the_picture() {
        let mut screen = Screen::new();
        screen.update(view("first"));
        press(&mut screen, " ");
        screen.update(view("second"));
        let text = drawn(&mut screen, 100, 30);
        assert!(text.contains("first") && text.contains("PAUSED"));
        press(&mut screen, " ");
        screen.update(view("third"));
        assert!(drawn(&mut screen, 100, 30).contains("third"));
    }

    #[test]
    fn every_table_and_the_help_fit_any_screen() {
        let mut screen = Screen::new();
        screen.update(view("x"));
        for (width, height) in [(100, 30), (40, 10), (1, 1), (300, 5)] {
            for key in "123456789?".chars() {
                press(&mut screen, &key.to_string());
                drawn(&mut screen, width, height);
            }
            press(&mut screen, "?");
        }
        press(&mut screen, "?");
        let help = drawn(&mut screen, 100, 30);
        assert!(help.contains("filter rows by a word"));
        assert!(help.contains("its send buffer, the path."), "{help}");
        assert_eq!(screen.press(KeyEvent::from(KeyCode::Char('q'))), Wish::Quit);
    }
}
