//! Tables for the terminal, and wrapping.

use comfy_table::{
    Cell, CellAlignment, ContentArrangement, ContentLineStyle, LineStyle, Table, TableStyle,
};

/// Columns apart by a space, one rule below the header: numbers need no cages.
const PLAIN: TableStyle = TableStyle::new()
    .header_lines(ContentLineStyle::none().junction(' '))
    .header_separator(LineStyle::none().fill('─').junction(' '))
    .content_lines(ContentLineStyle::none().junction(' '));

/// A plain table: header, rows, the first `left` columns aligned left and the others right.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>], left: usize, width: usize) -> String {
    let mut table = Table::new();
    table
        .load_style(PLAIN)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(width).unwrap_or(u16::MAX))
        .set_header(header.iter().enumerate().map(|(i, h)| cell(h, i, left)));
    for row in rows {
        table.add_row(row.iter().enumerate().map(|(i, text)| cell(text, i, left)));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    let mut text: String = table
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect();
    text.push('\n');
    text
}

/// How many of the first columns fit into `width` without a cell broken, at least `least`.
pub(crate) fn columns_that_fit(
    header: &[&str],
    rows: &[Vec<String>],
    width: usize,
    min: usize,
) -> usize {
    let column = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        let widths = cells.map(|cell| cell.chars().count());
        // A blank follows each cell, and one between columns.
        widths
            .chain([header[at].chars().count()])
            .max()
            .unwrap_or(0)
            + 2
    };
    let ends = (0..header.len()).scan(0, |end, at| {
        *end += column(at);
        Some(*end)
    });
    ends.take_while(|end| *end <= width + 1)
        .count()
        .max(min)
        .min(header.len())
}

/// Breaks text into lines of at most `width` characters, at spaces where there are any. The first
/// line begins with `first`, the others with as many spaces.
pub(crate) fn wrap(text: &str, width: usize, first: &str) -> String {
    let indent = first.chars().count();
    let free = width.saturating_sub(indent).max(10);
    let mut lines: Vec<String> = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ').filter(|w| !w.is_empty()) {
        for piece in pieces(word, free) {
            let length = piece.chars().count();
            if used > 0 && used + 1 + length > free {
                lines.push(String::new());
                used = 0;
            }
            if let Some(line) = lines.last_mut() {
                if used > 0 {
                    line.push(' ');
                    used += 1;
                }
                line.push_str(&piece);
                used += length;
            }
        }
    }
    let mut out = String::new();
    for (i, line) in lines.iter().enumerate() {
        if i == 0 {
            out.push_str(first);
        } else {
            out.push_str(&" ".repeat(indent));
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}

fn cell(text: &str, column: usize, left: usize) -> Cell {
    Cell::new(text).set_alignment(if column < left {
        CellAlignment::Left
    } else {
        CellAlignment::Right
    })
}

/// A word longer than a line is cut; others are left whole.
fn pieces(word: &str, width: usize) -> Vec<String> {
    let chars: Vec<char> = word.chars().collect();
    chars.chunks(width).map(|c| c.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn wrapped_lines_fit_and_lose_nothing(text in "[a-z ]{0,200}", width in 20_usize..100) {
            let wrapped = wrap(&text, width, "  - ");
            prop_assert!(wrapped.lines().all(|l| l.chars().count() <= width));
            let letters = |t: &str| t.chars().filter(char::is_ascii_lowercase).collect::<String>();
            prop_assert_eq!(letters(&wrapped), letters(&text));
        }
    }
}
