//! Sets of indexes written short: `1-4,7`, and sets of several dimensions as few products
//! `r[1-2]n[1-3]`.
//!
//! The results are those of ClusterShell's folding, which is greedy: which of several shortest
//! forms comes out follows from the order in which it visits the parts, so that order is kept
//! here.

use super::index::Index;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Above this many parts the pass that compares every part with every other is skipped: the set
/// stays right and is only written less short.
const MAX_PARTS_FOR_FULL_PASS: usize = 2048;

/// Consecutive numbers that can be written as one range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: Index,
    pub(super) last: Index,
}

/// One set of indexes per dimension; represents their product. Each set is sorted.
pub(super) type Product = Vec<Vec<Index>>;

/// Writes a sorted set of indexes, with brackets when it contains more than one.
pub(super) fn write_indexes(indexes: &[Index]) -> String {
    let list = runs(indexes)
        .iter()
        .map(|run| {
            if run.first == run.last {
                run.first.to_string()
            } else {
                format!("{}-{}", run.first, run.last)
            }
        })
        .collect::<Vec<_>>()
        .join(",");
    if indexes.len() > 1 {
        format!("[{list}]")
    } else {
        list
    }
}

/// Cuts a sorted set of indexes into runs.
///
/// Padded numbers join only numbers of the same width. A number that ends a longer series with a
/// gap (2, 4, 6) keeps the padding rule of the series it was in: that is what makes `[08,99,100]`
/// three parts and `[98-100]` one.
pub(super) fn runs(indexes: &[Index]) -> Vec<Run> {
    let mut runs = Vec::new();
    let Some((first, rest)) = indexes.split_first() else {
        return runs;
    };
    let mut series = Series::starting_at(*first);
    for &index in rest {
        let breaks_padding = series.breaks_padding(index);
        let distance = index.value() - series.last.value();
        let breaks_step = !breaks_padding && series.step.is_some_and(|step| step != distance);
        if breaks_padding || (breaks_step && series.is_consecutive()) {
            series.close(&mut runs);
            series = Series::starting_at(index);
        } else if breaks_step {
            series.close_but_last(&mut runs);
        }
        if !breaks_padding {
            series.step = Some(distance);
        }
        series.push(index);
    }
    series.close(&mut runs);
    runs
}

/// Numbers at equal distance that are being collected.
struct Series {
    members: Vec<Index>,
    last: Index,
    /// Width that the following numbers must have, when the series began padded.
    padded_width: Option<usize>,
    /// Distance between the last two numbers seen, also when the former belongs to another run.
    step: Option<i128>,
}

impl Series {
    fn starting_at(index: Index) -> Self {
        Self {
            members: vec![index],
            last: index,
            padded_width: index.is_padded().then(|| index.width()),
            step: None,
        }
    }

    fn breaks_padding(&self, index: Index) -> bool {
        match self.padded_width {
            Some(width) => index.width() != width,
            None => index.is_padded(),
        }
    }

    fn is_consecutive(&self) -> bool {
        self.step.is_none_or(|step| step == 1)
    }

    fn push(&mut self, index: Index) {
        if self.last != index {
            self.members.push(index);
            self.last = index;
        }
    }

    fn close(&self, runs: &mut Vec<Run>) {
        if self.is_consecutive() {
            runs.extend(self.members.first().map(|&first| Run {
                first,
                last: self.last,
            }));
        } else {
            runs.extend(self.members.iter().map(|&one| single(one)));
        }
    }

    /// Ends a series with gaps; its last number may begin the next one.
    fn close_but_last(&mut self, runs: &mut Vec<Run>) {
        let former = self.members.len() - 1;
        runs.extend(self.members.drain(..former).map(single));
    }
}

fn single(index: Index) -> Run {
    Run {
        first: index,
        last: index,
    }
}

/// Covers a sorted set of index tuples, all of one length, with few disjoint products, in
/// ClusterShell's order.
pub(super) fn products(tuples: &[Box<[Index]>]) -> Vec<Product> {
    let dimensions: Vec<Dimension> = match tuples.first() {
        Some(tuple) => (0..tuple.len())
            .map(|axis| Dimension::of(tuples, axis))
            .collect(),
        None => return Vec::new(),
    };
    let whole: usize = dimensions
        .iter()
        .fold(1, |n, d| n.saturating_mul(d.values.len()));
    if whole == tuples.len() {
        return vec![dimensions.into_iter().map(|d| d.values).collect()];
    }
    let parts = tuples
        .iter()
        .map(|tuple| unit_part(tuple, &dimensions))
        .collect();
    merge(parts, &dimensions)
        .into_iter()
        .map(|part| part_indexes(&part, &dimensions))
        .collect()
}

/// The indexes that occur at one position. Parts have positions in `values`, which compare and
/// merge faster.
struct Dimension {
    values: Vec<Index>,
    /// Rank of each value when compared as text ("10" before "9"), which is how parts are ordered.
    text_rank: Vec<u32>,
}

/// A product: for each dimension the sorted positions in [`Dimension::values`].
type Part = Vec<Vec<u32>>;

impl Dimension {
    fn of(tuples: &[Box<[Index]>], axis: usize) -> Self {
        let mut values: Vec<Index> = tuples.iter().filter_map(|t| t.get(axis).copied()).collect();
        values.sort_unstable();
        values.dedup();
        let by_text: BTreeMap<String, usize> = values
            .iter()
            .enumerate()
            .map(|(position, value)| (value.to_string(), position))
            .collect();
        let mut text_rank = vec![0; values.len()];
        for (rank, position) in by_text.into_values().enumerate() {
            text_rank[position] = rank as u32;
        }
        Self { values, text_rank }
    }
}

fn unit_part(tuple: &[Index], dimensions: &[Dimension]) -> Part {
    tuple
        .iter()
        .zip(dimensions)
        .map(|(index, dimension)| {
            let position = dimension.values.partition_point(|value| value < index);
            vec![position as u32]
        })
        .collect()
}

fn part_indexes(part: &Part, dimensions: &[Dimension]) -> Product {
    part.iter()
        .zip(dimensions)
        .map(|(positions, dimension)| {
            positions
                .iter()
                .map(|&p| dimension.values[p as usize])
                .collect()
        })
        .collect()
}

/// Merges parts that differ in one dimension only, first neighbours in sorted order, then all
/// against all.
fn merge(mut parts: Vec<Part>, dimensions: &[Dimension]) -> Vec<Part> {
    let mut full = false;
    loop {
        sort_parts(&mut parts, dimensions);
        let before = parts.len();
        parts = if full {
            merge_all(parts)
        } else {
            merge_neighbours(parts)
        };
        if parts.len() < before {
            continue;
        }
        if full || parts.len() > MAX_PARTS_FOR_FULL_PASS {
            return parts;
        }
        full = true;
    }
}

/// Larger products first; then by dimension: more indexes first, lower first index, lower last
/// index (as text).
fn sort_parts(parts: &mut [Part], dimensions: &[Dimension]) {
    parts.sort_by_cached_key(|part| {
        let size: usize = part.iter().map(Vec::len).product();
        let keys: Vec<(Reverse<usize>, u32, u32)> = part
            .iter()
            .zip(dimensions)
            .map(|(positions, dimension)| {
                let rank = |p: Option<&u32>| p.map_or(0, |&p| dimension.text_rank[p as usize]);
                let (first, last) = (rank(positions.first()), rank(positions.last()));
                (Reverse(positions.len()), first, last)
            })
            .collect();
        (Reverse(size), keys)
    });
}

fn merge_neighbours(parts: Vec<Part>) -> Vec<Part> {
    let mut merged: Vec<Part> = Vec::with_capacity(parts.len());
    for part in parts {
        match merged.last_mut() {
            Some(last) => {
                if let Err(part) = absorb(last, part) {
                    merged.push(part);
                }
            }
            None => merged.push(part),
        }
    }
    merged
}

fn merge_all(parts: Vec<Part>) -> Vec<Part> {
    let mut left: Vec<Option<Part>> = parts.into_iter().map(Some).collect();
    let mut merged = Vec::new();
    for i in 0..left.len() {
        let Some(mut part) = left[i].take() else {
            continue;
        };
        for slot in &mut left[i + 1..] {
            if let Some(other) = slot.take() {
                *slot = absorb(&mut part, other).err();
            }
        }
        merged.push(part);
    }
    merged
}

/// Adds `other` to `part` when they differ in exactly one dimension; parts are disjoint, so that is
/// all it takes. Gives `other` back when they cannot be merged.
fn absorb(part: &mut Part, other: Part) -> Result<(), Part> {
    let mut different = part
        .iter()
        .zip(&other)
        .enumerate()
        .filter(|(_, (a, b))| a != b)
        .map(|(axis, _)| axis);
    let (axis, more) = (different.next(), different.next());
    drop(different);
    let (Some(axis), None) = (axis, more) else {
        return Err(other);
    };
    let positions = &mut part[axis];
    let appends = positions.last() < other[axis].first();
    positions.extend_from_slice(&other[axis]);
    if !appends {
        positions.sort(); // two sorted stretches: the stable sort merges them in linear time
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::ranges::parse_list;
    use super::*;

    fn folded(list: &str) -> String {
        write_indexes(&parse_list(list, 0, "", "").unwrap())
    }

    #[test]
    fn runs_join_neighbours_of_like_padding() {
        assert_eq!(folded("1,2,3,5"), "[1-3,5]");
        assert_eq!(folded("9-10,08"), "[9,08,10]");
        assert_eq!(folded("98-100"), "[98-100]");
        assert_eq!(folded("08,99,100"), "[08,99,100]");
        assert_eq!(folded("2,4,6,7,8"), "[2,4,6-8]");
        assert_eq!(folded("3,8,13,14"), "[3,8,13-14]");
        assert_eq!(folded("-2-2"), "[-2-2]");
        assert_eq!(folded("7"), "7");
    }

    fn tuples(pairs: &[(&str, &str)]) -> Vec<Box<[Index]>> {
        let index = |s| Index::from_digits(s).unwrap();
        let mut all: Vec<Box<[Index]>> = pairs
            .iter()
            .map(|(a, b)| vec![index(a), index(b)].into_boxed_slice())
            .collect();
        all.sort();
        all
    }

    #[test]
    fn products_cover_the_set_disjointly() {
        let set = tuples(&[("1", "1"), ("1", "2"), ("2", "1"), ("2", "2"), ("3", "1")]);
        let written: Vec<String> = products(&set)
            .iter()
            .map(|p| p.iter().map(|d| write_indexes(d)).collect::<String>())
            .collect();
        assert_eq!(written, ["[1-2][1-2]", "31"]);
    }
}
