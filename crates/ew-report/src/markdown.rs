//! The report for a pull request or a ticket: verdict, findings, rack table, stages.

use crate::figures::Figures;
use crate::view::{FindingWords, View};
use crate::words::{code_spans, one_line};

/// Up to this many findings are written out; a comment has a size limit.
const FINDINGS_LISTED: usize = 25;

pub(crate) fn render(view: &View) -> String {
    let mut out = format!(
        "## {}\n\n**{}** · run `{}`\n",
        prose(&view.sentence),
        view.status,
        view.run_id.replace('`', "'"),
    );
    if let Some(network) = &view.network {
        out.push_str(&format!("\nNetwork: {}\n", escaped(network)));
    }
    out.push_str(&findings(&view.findings));
    figure_table(&mut out, &view.rack_table());
    figure_table(&mut out, &view.stages);
    for table in &view.figures {
        figure_table(&mut out, table);
    }
    figure_table(&mut out, &view.notable_hosts());
    for line in view.other_hosts.iter().chain(&view.nearest) {
        out.push_str(&format!("\n{}\n", escaped(line)));
    }
    figure_table(&mut out, &view.near_limits);
    list(&mut out, "Hosts not there to the end", &view.absences);
    list(&mut out, "Pairs without a figure", &view.missing_pairs);
    out.push_str(&facts(view));
    out
}

fn facts(view: &View) -> String {
    let mut out = String::from("\n<details><summary>Run</summary>\n\n");
    for (name, value) in &view.facts {
        let value = match *name {
            "command" | "repeat" if !value.contains('`') => format!("`{value}`"),
            _ => escaped(value),
        };
        out.push_str(&format!("- {name}: {value}\n"));
    }
    for warning in &view.warnings {
        out.push_str(&format!("- warning: {}\n", prose(warning)));
    }
    out.push_str("\n</details>\n");
    out
}

fn findings(findings: &[FindingWords]) -> String {
    let mut out = String::from("\n### Findings\n\n");
    if findings.is_empty() {
        out.push_str("None.\n");
    }
    for (i, finding) in findings.iter().take(FINDINGS_LISTED).enumerate() {
        out.push_str(&one_finding(i + 1, finding));
    }
    if findings.len() > FINDINGS_LISTED {
        out.push_str(&format!(
            "\n{} more are in the full report.\n",
            findings.len() - FINDINGS_LISTED
        ));
    }
    out
}

fn one_finding(number: usize, finding: &FindingWords) -> String {
    let mut out = format!(
        "{number}. **{}**: {}\n",
        finding.word(),
        prose(&finding.sentence)
    );
    out.push_str(&format!("   - {}\n", finding.figures()));
    for evidence in &finding.evidence {
        let (text, source) = (prose(&evidence.text), prose(&evidence.source));
        out.push_str(&format!("   - {text} ({source})\n"));
    }
    if !finding.hint.is_empty() {
        out.push_str(&format!("   - hint: {}\n", prose(&finding.hint)));
    }
    out.push_str(&format!("   - docs: `{}`\n", finding.documentation));
    out
}

pub(crate) fn section(
    out: &mut String,
    title: &str,
    header: &[&str],
    rows: &[Vec<String>],
    left: usize,
) {
    if rows.is_empty() {
        return;
    }
    let rule: Vec<&str> = (0..header.len())
        .map(|i| if i < left { "---" } else { "---:" })
        .collect();
    out.push_str(&format!(
        "\n### {title}\n\n| {} |\n| {} |\n",
        header.join(" | "),
        rule.join(" | ")
    ));
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| escaped(cell)).collect();
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
}

fn figure_table(out: &mut String, table: &Figures) {
    section(out, table.title, &table.header, &table.rows, table.left);
    notes(out, &table.notes);
}

fn notes(out: &mut String, notes: &[String]) {
    if !notes.is_empty() {
        out.push('\n');
    }
    for note in notes {
        out.push_str(&format!("- {}\n", escaped(note)));
    }
}

fn list(out: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    out.push_str(&format!("\n### {title}\n\n"));
    for line in lines {
        out.push_str(&format!("- {}\n", escaped(line)));
    }
}

/// One line in which nothing is markup but code between backquotes.
pub(crate) fn prose(text: &str) -> String {
    code_spans(&one_line(text))
        .into_iter()
        .map(|(is_code, piece)| match is_code {
            true => format!("`{piece}`"),
            false => escaped_line(piece),
        })
        .collect()
}

/// One line in which nothing is markup: CommonMark's backslash escapes, and entities for what
/// begins HTML.
pub(crate) fn escaped(text: &str) -> String {
    escaped_line(&one_line(text))
}

fn escaped_line(line: &str) -> String {
    let mut out = String::new();
    for c in line.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_markup() {
        assert_eq!(
            escaped("a|b <i>*c*</i>\nd"),
            "a\\|b &lt;i&gt;\\*c\\*&lt;/i&gt; d"
        );
        assert_eq!(
            prose("`tc -s` *a* <b> ` c"),
            "`tc -s` \\*a\\* &lt;b&gt; \\` c"
        );
    }
}
