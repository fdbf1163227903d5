//! The report for a pull request or a ticket: verdict, findings, rack table, stages.

use crate::figures::{self, Figures};
use crate::host_figures;
use crate::text::{
    absences, alike, fact_list, host_table, missing_by_reason, notable, rack_table, stage_notes,
    stage_table,
};
use crate::words::{code_spans, finding_figures, network, one_line, severity, status};
use ew_model::Analysis;
use ew_model::finding::Finding;

/// Up to this many findings are written out; a comment has a size limit.
const FINDINGS_LISTED: usize = 25;

pub(crate) fn render(analysis: &Analysis) -> String {
    let verdict = &analysis.verdict;
    let mut out = format!(
        "## {}\n\n**{}** · run `{}`\n",
        prose(&verdict.sentence),
        status(analysis),
        one_line(&analysis.run.id).replace('`', "'"),
    );
    if let Some(network) = network(analysis) {
        out.push_str(&format!("\nNetwork: {}\n", escaped(&network)));
    }
    out.push_str(&findings(&verdict.findings));
    let (header, rows) = rack_table(analysis);
    section(&mut out, "Rack to rack", &header, &rows, 2);
    let (header, rows) = stage_table(analysis);
    section(&mut out, "Stages", &header, &rows, 1);
    notes(&mut out, &stage_notes(analysis));
    for table in figures::tables(analysis) {
        figure_table(&mut out, &table);
    }
    let listed = notable(analysis);
    let (header, rows, words) = host_table(analysis, &listed);
    section(&mut out, "Hosts", &header, &rows, words);
    if let Some(line) = alike(analysis, listed.len()) {
        out.push_str(&format!("\n{line}\n"));
    }
    if let Some(line) = host_figures::nearest_words(analysis) {
        out.push_str(&format!("\n{}\n", escaped(&line)));
    }
    figure_table(&mut out, &host_figures::near_limits(analysis));
    list(&mut out, "Hosts not there to the end", &absences(analysis));
    list(
        &mut out,
        "Pairs without a figure",
        &missing_by_reason(analysis),
    );
    out.push_str("\n<details><summary>Run</summary>\n\n");
    for (name, value) in fact_list(analysis) {
        let value = match name {
            "command" | "repeat" if !value.contains('`') => format!("`{value}`"),
            _ => escaped(&value),
        };
        out.push_str(&format!("- {name}: {value}\n"));
    }
    for warning in &analysis.warnings {
        out.push_str(&format!("- warning: {}\n", prose(warning)));
    }
    out.push_str("\n</details>\n");
    out
}

fn findings(findings: &[Finding]) -> String {
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

fn one_finding(number: usize, finding: &Finding) -> String {
    let mut out = format!(
        "{number}. **{}**: {}\n",
        severity(finding.severity),
        prose(&finding.sentence)
    );
    out.push_str(&format!("   - {}\n", finding_figures(finding)));
    for evidence in &finding.evidence {
        out.push_str(&format!(
            "   - {} ({})\n",
            prose(&evidence.text),
            prose(&evidence.source)
        ));
    }
    if !finding.hint.is_empty() {
        out.push_str(&format!("   - hint: {}\n", prose(&finding.hint)));
    }
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
