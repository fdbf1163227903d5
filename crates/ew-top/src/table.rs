//! A table that can be sorted and filtered, for every view.

use std::cmp::Ordering;

/// Rows of cells under headings.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    /// One word.
    pub(crate) title: &'static str,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

/// One column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) heading: &'static str,
    /// Text is aligned left and sorted by letters, figures right and by size.
    pub(crate) is_text: bool,
}

/// What is shown, and what it is sorted by.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) key: f64,
}

impl Cell {
    /// Words of other programs: control characters never reach a terminal.
    pub(crate) fn text(text: impl AsRef<str>) -> Self {
        let clean = |c: char| if c.is_control() { '?' } else { c };
        Self {
            text: text.as_ref().chars().map(clean).collect(),
            key: 0.0,
        }
    }

    /// A figure, "-" when it is missing.
    pub(crate) fn figure(value: Option<f64>, show: impl Fn(f64) -> String) -> Self {
        Self {
            text: value.map_or_else(|| "-".to_owned(), show),
            key: value.unwrap_or(f64::NEG_INFINITY),
        }
    }
}

impl Table {
    /// Sorts by a column; a column that does not exist sorts nothing. The order among equals is
    /// kept.
    pub(crate) fn sort(&mut self, column: usize, descending: bool) {
        let Some(is_text) = self.columns.get(column).map(|c| c.is_text) else {
            return;
        };
        self.rows.sort_by(|a, b| {
            let order = match (a.get(column), b.get(column)) {
                (Some(a), Some(b)) if is_text => a.text.cmp(&b.text),
                (Some(a), Some(b)) => a.key.total_cmp(&b.key),
                _ => Ordering::Equal,
            };
            if descending { order.reverse() } else { order }
        });
    }

    /// Keeps rows in which any cell contains the words, whatever their case.
    pub(crate) fn filter(&mut self, words: &str) {
        let words = words.to_lowercase();
        self.rows.retain(|row| {
            row.iter()
                .any(|cell| cell.text.to_lowercase().contains(&words))
        });
    }

    /// Width of each column in characters, headings included.
    pub(crate) fn widths(&self) -> Vec<usize> {
        let columns = self.columns.iter().enumerate();
        columns
            .map(|(index, column)| {
                let cells = self.rows.iter().filter_map(|row| row.get(index));
                let widest = cells.map(|cell| cell.text.chars().count()).max();
                widest.unwrap_or(0).max(column.heading.chars().count())
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let row =
            |name: &str, value| vec![Cell::text(name), Cell::figure(value, |v| v.to_string())];
        Table {
            title: "things",
            columns: vec![
                Column {
                    heading: "NAME",
                    is_text: true,
                },
                Column {
                    heading: "SIZE",
                    is_text: false,
                },
            ],
            rows: vec![
                row("b", Some(9.0)),
                row("A\u{1b}[2J", None),
                row("c", Some(10.0)),
            ],
        }
    }

    fn names(table: &Table) -> Vec<&str> {
        table.rows.iter().map(|row| row[0].text.as_str()).collect()
    }

    #[test]
    fn figures_sort_by_size_and_missing_ones_last() {
        let mut table = table();
        table.sort(1, true);
        assert_eq!(names(&table), ["c", "b", "A?[2J"]);
        table.sort(0, false);
        assert_eq!(names(&table), ["A?[2J", "b", "c"]);
        table.sort(7, false);
        assert_eq!(table.widths(), [5, 4]);
    }

    #[test]
    fn a_filter_minds_no_case() {
        let mut table = table();
        table.filter("a?");
        assert_eq!(names(&table), ["A?[2J"]);
    }
}
