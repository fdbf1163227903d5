//! Edge colouring of bipartite multigraphs in as many colours as the largest degree (König, 1916),
//! by alternating paths.

use std::collections::BTreeMap;

const NONE: usize = usize::MAX;

/// A colour for each edge (left, right), so that edges which share an end differ. Uses exactly
/// `max degree` colours, numbered from 0. Time: edges x longest alternating path.
pub(crate) fn color_edges(edges: &[(u32, u32)]) -> Vec<usize> {
    let mut coloring = Coloring::new(edges);
    for edge in 0..edges.len() {
        coloring.add(edge);
    }
    coloring.color_of
}

/// Vertices are numbered densely, left ones first. `edge_at[vertex][color]` is the edge of that
/// colour there.
struct Coloring {
    ends: Vec<(usize, usize)>,
    edge_at: Vec<Vec<usize>>,
    color_of: Vec<usize>,
}

impl Coloring {
    fn new(edges: &[(u32, u32)]) -> Self {
        let mut dense = BTreeMap::new();
        let mut number = |key: (bool, u32)| {
            let next = dense.len();
            *dense.entry(key).or_insert(next)
        };
        let ends: Vec<_> = edges
            .iter()
            .map(|(left, right)| (number((false, *left)), number((true, *right))))
            .collect();
        let mut degree = vec![0; dense.len()];
        for (left, right) in &ends {
            degree[*left] += 1;
            degree[*right] += 1;
        }
        let colors = degree.iter().copied().max().unwrap_or(0);
        Self {
            edge_at: vec![vec![NONE; colors]; dense.len()],
            color_of: vec![NONE; ends.len()],
            ends,
        }
    }

    /// Colours one more edge. If no colour is free at both ends, the path that alternates between
    /// the colours free at one end and at the other is flipped; in a bipartite graph it cannot come
    /// back to the edge's other end.
    fn add(&mut self, edge: usize) {
        let (left, right) = self.ends[edge];
        let free_left = self.free_color(left);
        let free_right = self.free_color(right);
        if self.edge_at[right][free_left] != NONE {
            self.flip_path(right, free_left, free_right);
        }
        self.paint(edge, free_left);
    }

    fn free_color(&self, vertex: usize) -> usize {
        // There is one: fewer edges than the largest degree are coloured at the vertex.
        self.edge_at[vertex]
            .iter()
            .position(|edge| *edge == NONE)
            .unwrap_or(0)
    }

    fn flip_path(&mut self, start: usize, first: usize, second: usize) {
        let mut path = Vec::new();
        let (mut vertex, mut color) = (start, first);
        while self.edge_at[vertex][color] != NONE {
            let edge = self.edge_at[vertex][color];
            path.push(edge);
            let (left, right) = self.ends[edge];
            vertex = if vertex == left { right } else { left };
            color = first + second - color;
        }
        for edge in &path {
            let (left, right) = self.ends[*edge];
            let color = self.color_of[*edge];
            self.edge_at[left][color] = NONE;
            self.edge_at[right][color] = NONE;
        }
        for edge in path {
            let color = self.color_of[edge];
            self.paint(edge, first + second - color);
        }
    }

    fn paint(&mut self, edge: usize, color: usize) {
        let (left, right) = self.ends[edge];
        self.color_of[edge] = color;
        self.edge_at[left][color] = edge;
        self.edge_at[right][color] = edge;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn max_degree(edges: &[(u32, u32)]) -> usize {
        let mut degree: BTreeMap<(bool, u32), usize> = BTreeMap::new();
        for (left, right) in edges {
            *degree.entry((false, *left)).or_default() += 1;
            *degree.entry((true, *right)).or_default() += 1;
        }
        degree.values().copied().max().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn colours_are_proper_and_as_few_as_the_largest_degree(
            edges in proptest::collection::vec((0u32..12, 0u32..12), 0..150)
        ) {
            let colors = color_edges(&edges);
            let mut seen = BTreeSet::new();
            for (edge, color) in edges.iter().zip(&colors) {
                prop_assert!(seen.insert((false, edge.0, *color)));
                prop_assert!(seen.insert((true, edge.1, *color)));
            }
            let used: BTreeSet<_> = colors.iter().collect();
            prop_assert_eq!(used.len(), max_degree(&edges));
        }
    }
}
