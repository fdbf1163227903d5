//! The one module that prints: data to stdout, progress and errors to stderr.

use crate::exit::Failure;
use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use ew_report::{Format, TextStyle};
use ew_sys::process::unread_bytes;
use std::borrow::Cow;
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How a result is shown, and where.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ShowArgs {
    /// Format of the result [default: text, or by the ending of --output]
    #[arg(long, value_enum)]
    format: Option<OutputFormat>,
    /// Short for --format json
    #[arg(long, hide = true, conflicts_with = "format")]
    json: bool,
    #[command(flatten)]
    pub(crate) destination: Destination,
    /// Show the details of a text report, too: facts of the run, and notes on the tables
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// When to colour
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) color: ColorChoice,
}

impl ShowArgs {
    pub(crate) fn format(&self) -> OutputFormat {
        let named = self.json.then_some(OutputFormat::Json).or(self.format);
        named
            .or_else(|| self.destination.format())
            .unwrap_or(OutputFormat::Text)
    }

    /// How text goes to where the result does.
    pub(crate) fn style(&self) -> TextStyle {
        TextStyle {
            details: self.verbose,
            ..self.destination.style(self.color)
        }
    }

    /// Whether results go to one file.
    pub(crate) fn has_file(&self) -> bool {
        self.destination.output.is_some()
    }

    /// Tries the file of `--output` before anything is started for it.
    pub(crate) fn check_file(&self) -> Result<(), Failure> {
        let path = self.destination.output.as_deref();
        path.map_or(Ok(()), check_writable)
    }

    /// Prints the result, or writes it to the file of `--output`.
    pub(crate) fn put(&self, text: &str) -> Result<(), Failure> {
        self.destination.put(text)
    }
}

/// Where a result goes.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct Destination {
    /// Write the result to this file; .json, .csv, .md, .html and .xml (JUnit) choose the format
    #[arg(short = 'O', long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Destination {
    /// By the file's ending.
    pub(crate) fn format(&self) -> Option<OutputFormat> {
        match self.output.as_ref()?.extension()?.to_str()? {
            "json" => Some(OutputFormat::Json),
            "csv" => Some(OutputFormat::Csv),
            "md" => Some(OutputFormat::Md),
            "html" | "htm" => Some(OutputFormat::Html),
            "xml" => Some(OutputFormat::Junit),
            _ => None,
        }
    }

    pub(crate) fn style(&self, color: ColorChoice) -> TextStyle {
        match self.output {
            None => text_style(color),
            Some(_) => TextStyle::default(),
        }
    }

    pub(crate) fn put(&self, text: &str) -> Result<(), Failure> {
        let Some(path) = &self.output else {
            print(text);
            return Ok(());
        };
        write_file(path, &format!("{}\n", text.trim_end_matches('\n')))
    }
}

/// A place that cannot be written to is wrong input, a disk that is full is not.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    let wrong = || format!("cannot write `{}`", path.display());
    let file = File::create(path).with_context(wrong);
    let mut file = file.map_err(Failure::usage)?;
    let written = file.write_all(text.as_bytes()).with_context(wrong);
    written.map_err(Failure::failed)
}

/// Leaves everything as it was. Opening a pipe would end what its reader waits for.
fn check_writable(path: &Path) -> Result<(), Failure> {
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return Ok(());
    }
    let is_new = std::fs::symlink_metadata(path).is_err();
    let opened = File::options().append(true).create(true).open(path);
    opened.map_err(|error| {
        Failure::usage(anyhow!(
            "cannot write `{}`: {error}; nothing was started; give --output a place that can be written to",
            path.display()
        ))
    })?;
    if is_new {
        // It is made again with the result.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// For commands whose result is text or JSON.
#[derive(Clone, Copy, Debug, Args)]
#[group(skip)]
pub(crate) struct PlainArgs {
    /// Format of the result
    #[arg(long, value_enum, default_value = "text")]
    format: PlainFormat,
    /// Short for --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

/// `--format` of [`PlainArgs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PlainFormat {
    /// For people
    Text,
    /// For programs
    Json,
}

impl PlainArgs {
    pub(crate) fn is_json(self) -> bool {
        self.json || self.format == PlainFormat::Json
    }
}

/// Prints a value as JSON.
pub(crate) fn print_json(value: &serde_json::Value) -> Result<(), Failure> {
    print(&serde_json::to_string_pretty(value).map_err(Failure::failed)?);
    Ok(())
}

/// Where run directories are.
#[derive(Debug, Args)]
pub(crate) struct RunsDirArg {
    /// Directory of the run directories
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        default_value = "runs",
        env = "EASTWEST_RUNS",
        hide_env_values = true
    )]
    pub(crate) runs_dir: PathBuf,
}

/// `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people.
    Text,
    /// The whole analysis, one valid JSON document, also on failure.
    Json,
    /// One row per ordered pair.
    Csv,
    /// What the hosts' counters report: one row per host and stage.
    CsvHosts,
    /// For a pull request or a ticket.
    Md,
    /// One self-contained page.
    Html,
    /// JUnit's XML for CI: thresholds, hosts and the network as test cases.
    Junit,
    /// k8s-netperf's result tables; runs with pods only.
    K8sNetperf,
    /// Documents with k8s-netperf's JSON field names; runs with pods only.
    K8sNetperfJson,
}

/// `--color`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl OutputFormat {
    pub(crate) fn report_format(self) -> Format {
        match self {
            Self::Text => Format::Text,
            Self::Json => Format::Json,
            Self::Csv => Format::Csv,
            Self::CsvHosts => Format::CsvHosts,
            Self::Md => Format::Markdown,
            Self::Html => Format::Html,
            Self::Junit => Format::Junit,
            Self::K8sNetperf => Format::K8sNetperf,
            Self::K8sNetperfJson => Format::K8sNetperfJson,
        }
    }
}

impl ColorChoice {
    pub(crate) fn enabled(self, is_terminal: bool) -> bool {
        match self {
            Self::Auto => {
                is_terminal && can_move_cursor() && std::env::var_os("NO_COLOR").is_none()
            }
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// Whether the terminal knows more than lines: a dumb one, as in an editor's shell, does not.
pub(crate) fn can_move_cursor() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// How text goes to this stdout.
pub(crate) fn text_style(color: ColorChoice) -> TextStyle {
    const USUAL_WIDTH: usize = 100;
    let is_terminal = std::io::stdout().is_terminal();
    let width = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    TextStyle {
        width: width.unwrap_or(USUAL_WIDTH),
        color: color.enabled(is_terminal),
        details: false,
    }
}

/// The first error of stdout, for the exit code.
static UNPRINTED: OnceLock<std::io::Error> = OnceLock::new();

/// Data. A reader that has gone away (`| head`) is not an error; others are kept for [`unprinted`].
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let written = out
        .write_all(harmless(text).as_bytes())
        .and_then(|()| out.write_all(end.as_bytes()))
        .and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => drop(UNPRINTED.set(error)),
        _ => {}
    }
}

/// Why something could not be printed, if so.
pub(crate) fn unprinted() -> Option<&'static std::io::Error> {
    UNPRINTED.get()
}

/// Waits until the readers of the standard streams, where these are pipes, have read them: what a
/// container's first process leaves in them is lost when its runtime has not read it 2 s after the
/// process' end (containerd pull request 12364).
pub(crate) fn wait_until_read() {
    const LIMIT: Duration = Duration::from_secs(60);
    const PAUSE: Duration = Duration::from_millis(5);
    let (out, err) = (std::io::stdout(), std::io::stderr());
    let until = Instant::now() + LIMIT;
    for pipe in [out.as_fd(), err.as_fd()] {
        while unread_bytes(pipe).is_ok_and(|unread| unread > 0) && Instant::now() < until {
            std::thread::sleep(PAUSE);
        }
    }
}

/// A line for the person, not for a pipe.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", harmless(text));
}

/// One line without anything that a terminal would obey: for names out of files that somebody else
/// wrote.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if is_obeyed(c) { '?' } else { c })
        .collect()
}

/// The text with what a terminal would obey taken out, but for line ends, tabs and colours. What
/// comes from hosts and files is made printable where it comes in; this is for what is forgotten
/// there.
fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| is_obeyed(c) && c != '\n') {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let kept = kept_bytes(rest);
        match kept {
            0 => shown.push('?'),
            kept => shown.push_str(&rest[..kept]),
        }
        rest = &rest[kept.max(c.len_utf8())..];
    }
    Cow::Owned(shown)
}

/// How much of the start of `text` may be shown as it is: a character, a line end, or a colour.
fn kept_bytes(text: &str) -> usize {
    if text.starts_with("\r\n") {
        return 2;
    }
    if let Some(parameters) = text.strip_prefix("\u{1b}[") {
        let is_parameter = |c: char| c.is_ascii_digit() || c == ';';
        let end = parameters.find(|c| !is_parameter(c));
        let colour = end.filter(|end| parameters[*end..].starts_with('m'));
        return colour.map_or(0, |end| end + 3);
    }
    match text.chars().next() {
        Some(c) if c == '\n' || c == '\t' || !is_obeyed(c) => c.len_utf8(),
        _ => 0,
    }
}

/// Controls, and what turns the direction of a line about.
fn is_obeyed(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_tried_and_left_as_it_was() {
        let work = tempfile::tempdir().unwrap();
        let path = |name: &str| work.path().join(name);
        std::fs::write(path("old"), "kept").unwrap();
        std::os::unix::fs::symlink(path("none"), path("link")).unwrap();
        for name in ["old", "new", "link"] {
            check_writable(&path(name)).unwrap();
        }
        assert_eq!(std::fs::read(path("old")).unwrap(), b"kept");
        assert!(!path("new").exists() && path("link").is_symlink());
        for wrong in [path("no/where"), work.path().to_owned()] {
            let failure = check_writable(&wrong).unwrap_err();
            assert_eq!(failure.code(), 2);
            assert!(failure.message().contains("nothing was started"));
        }
    }

    #[test]
    fn colours_and_line_ends_pass_and_nothing_else_does() {
        let ours = "\u{1b}[1;32mok\u{1b}[0m\tä\r\nnext\n";
        assert_eq!(harmless(ours), ours);
        let evil = "a\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}6n\rb\u{202e}c\u{1b}[";
        assert_eq!(harmless(evil), "a?]0;owned??[2J?6n?b?c?[");
        assert_eq!(plain(evil), "a?]0;owned??[2J?6n?b?c?[");
        assert_eq!(plain("\u{1b}[8mhidden"), "?[8mhidden");
    }
}
