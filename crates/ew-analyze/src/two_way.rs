//! The two-way model: log ratio = mu + sender + receiver + rest, fitted by Tukey's median polish.

use crate::stats::median;
use std::collections::BTreeMap;

/// Sweeps after which the fit is taken as it is; medians settle in a few.
const SWEEPS: usize = 10;

/// The fitted model. Effects are logarithms; `None` where a row or column has no cell.
#[derive(Clone, Debug, PartialEq)]
pub struct TwoWay {
    /// Common level.
    pub mu: f64,
    /// Per row (sender), deviation from the common level.
    pub rows: Vec<Option<f64>>,
    /// Per column (receiver).
    pub columns: Vec<Option<f64>>,
    /// What neither explains, per cell.
    pub rest: BTreeMap<(usize, usize), f64>,
}

/// Fits the model to the cells that exist; missing cells need no filling in.
#[must_use]
pub fn median_polish(size: usize, cells: &BTreeMap<(usize, usize), f64>) -> TwoWay {
    let mut fit = TwoWay {
        mu: 0.0,
        rows: marked(size, cells.keys().map(|(row, _)| *row)),
        columns: marked(size, cells.keys().map(|(_, column)| *column)),
        rest: cells.clone(),
    };
    for _ in 0..SWEEPS {
        let by_row = sweep(size, &mut fit.rest, |(row, _)| row);
        absorb(&mut fit.rows, &by_row);
        fit.mu += center(&mut fit.rows);
        let by_column = sweep(size, &mut fit.rest, |(_, column)| column);
        absorb(&mut fit.columns, &by_column);
        fit.mu += center(&mut fit.columns);
        if by_row
            .iter()
            .chain(&by_column)
            .flatten()
            .all(|shift| shift.abs() < 1e-9)
        {
            break;
        }
    }
    fit
}

fn marked(size: usize, present: impl Iterator<Item = usize>) -> Vec<Option<f64>> {
    let mut effects = vec![None; size];
    for index in present {
        if let Some(effect) = effects.get_mut(index) {
            *effect = Some(0.0);
        }
    }
    effects
}

/// Takes each line's median out of its cells and returns the medians.
fn sweep(
    size: usize,
    rest: &mut BTreeMap<(usize, usize), f64>,
    line: impl Fn((usize, usize)) -> usize,
) -> Vec<Option<f64>> {
    let mut lines: Vec<Vec<f64>> = vec![Vec::new(); size];
    for (at, value) in rest.iter() {
        lines[line(*at)].push(*value);
    }
    let medians: Vec<Option<f64>> = lines.iter().map(|values| median(values)).collect();
    for (at, value) in rest.iter_mut() {
        *value -= medians[line(*at)].unwrap_or(0.0);
    }
    medians
}

fn absorb(effects: &mut [Option<f64>], shifts: &[Option<f64>]) {
    for (effect, shift) in effects.iter_mut().zip(shifts) {
        if let (Some(effect), Some(shift)) = (effect, shift) {
            *effect += shift;
        }
    }
}

/// Moves the effects' median to the common level and returns it.
fn center(effects: &mut [Option<f64>]) -> f64 {
    let present: Vec<f64> = effects.iter().flatten().copied().collect();
    let middle = median(&present).unwrap_or(0.0);
    for effect in effects.iter_mut().flatten() {
        *effect -= middle;
    }
    middle
}

#[cfg(test)]
mod tests {
    use super::*;

    fn square(size: usize, value: impl Fn(usize, usize) -> f64) -> BTreeMap<(usize, usize), f64> {
        let mut cells = BTreeMap::new();
        for row in 0..size {
            for column in (0..size).filter(|column| *column != row) {
                cells.insert((row, column), value(row, column));
            }
        }
        cells
    }

    #[test]
    fn a_low_row_is_the_sender() {
        let fit = median_polish(6, &square(6, |row, _| if row == 2 { -0.7 } else { 0.0 }));
        assert!((fit.rows[2].unwrap() + 0.7).abs() < 1e-9);
        assert!(fit.columns.iter().flatten().all(|c| c.abs() < 1e-9));
        assert!(fit.rest.values().all(|r| r.abs() < 1e-9));
    }

    #[test]
    fn a_single_low_cell_stays_in_the_rest() {
        let fit = median_polish(
            6,
            &square(
                6,
                |row, column| if (row, column) == (1, 4) { -0.7 } else { 0.1 },
            ),
        );
        assert!((fit.mu - 0.1).abs() < 1e-9);
        assert!((fit.rest[&(1, 4)] + 0.8).abs() < 1e-9);
        assert!(fit.rows.iter().flatten().all(|r| r.abs() < 1e-9));
    }

    #[test]
    fn missing_cells_and_lines_are_none() {
        let mut cells = square(4, |_, _| 0.0);
        cells.retain(|(row, column), _| *row != 3 && *column != 0);
        let fit = median_polish(4, &cells);
        assert_eq!(fit.rows[3], None);
        assert_eq!(fit.columns[0], None);
        assert_eq!(fit.rows[0], Some(0.0));
    }
}
