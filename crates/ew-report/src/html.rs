//! The report as one HTML file: template, style and script are part of it, and it loads nothing.
//!
//! The template escapes every value. What goes in as it is (`|safe`) is escaped where it is made:
//! drawings ([`chart`], [`fabric`]), sentences ([`rich_text`]), and the script's data ([`pack`]).

mod accused;
mod anchors;
mod chart;
mod evidence_links;
mod fabric;
mod findings;
mod hosts;
mod lines;
mod matrix;
mod pack;
mod page;
mod panels;
mod rich_text;
mod run_line;
mod spectrum;
pub(crate) mod storage;
mod sweep_chart;

use crate::error::ReportError;
use ew_model::Analysis;
use minijinja::Environment;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use serde::Serialize;

/// The head of every page: title, style, and what may run.
const HEAD: &str = include_str!("html/head.html");

pub(crate) fn render(analysis: &Analysis) -> Result<String, ReportError> {
    let page = page::page(analysis)?;
    render_page("report.html", include_str!("html/report.html"), &page)
}

/// A page from its template, which escapes every value.
pub(crate) fn render_page(
    name: &str,
    template: &str,
    page: &impl Serialize,
) -> Result<String, ReportError> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()?;
    environment.set_syntax(syntax);
    let whole = format!("{HEAD}{template}");
    Ok(environment.render_named_str(name, &whole, Serde(page))?)
}
