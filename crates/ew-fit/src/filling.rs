//! Max-min fair shares by progressive filling (Bertsekas and Gallager, Data Networks, 6.5.2),
//! weighted by connections, without an allocation once its buffers have grown: the fit asks for it
//! thousands of times. `ew_plan::expectation` gives the same shares for single connections; a test
//! compares the two.

/// No shared resource limits the flow: its pace or its pair does.
pub(super) const PRIVATE: u32 = u32::MAX;
/// Relative difference below which two levels are one.
const SAME: f64 = 1.0 + 1e-9;

/// What fills together: the connections of a flow that take the same way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strand {
    /// Number of connections.
    pub(super) weight: f64,
    /// Resources on the way; the first `hops` of them.
    pub(super) way: [u32; 6],
    pub(super) hops: u8,
    /// What its connections may carry together by themselves.
    pub(super) limit_bits_per_sec: f64,
}

impl Strand {
    fn way(&self) -> &[u32] {
        &self.way[..usize::from(self.hops)]
    }
}

/// A strand's share.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    pub(super) bits_per_sec: f64,
    /// The resource that is full, or [`PRIVATE`].
    pub(super) bottleneck: u32,
}

/// Buffers of the filling.
#[derive(Debug, Default)]
pub(super) struct Filling {
    left: Vec<f64>,
    weight: Vec<f64>,
    level: Vec<f64>,
    /// An open strand on it is limited elsewhere, at a lower level.
    beaten: Vec<bool>,
    /// By strand, the lowest level on its way.
    lowest_of: Vec<f64>,
    touched: Vec<u32>,
    open: Vec<u32>,
}

impl Filling {
    /// Fills one round: `shares` gets one entry for each strand. Capacities in bits per second by
    /// resource.
    pub(super) fn fill(&mut self, strands: &[Strand], capacities: &[f64], shares: &mut Vec<Share>) {
        self.start(strands, capacities);
        shares.clear();
        shares.resize(
            strands.len(),
            Share {
                bits_per_sec: f64::INFINITY,
                bottleneck: PRIVATE,
            },
        );
        while !self.open.is_empty() {
            self.raise(strands);
            if !self.close(strands, shares) {
                self.close_lowest(strands, shares);
            }
        }
        for resource in self.touched.drain(..) {
            self.weight[resource as usize] = 0.0;
        }
    }

    fn start(&mut self, strands: &[Strand], capacities: &[f64]) {
        if self.left.len() < capacities.len() {
            self.left.resize(capacities.len(), 0.0);
            self.weight.resize(capacities.len(), 0.0);
            self.level.resize(capacities.len(), 0.0);
            self.beaten.resize(capacities.len(), false);
        }
        self.open.clear();
        self.open.extend(0..strands.len() as u32);
        self.lowest_of.resize(strands.len(), 0.0);
        for strand in strands {
            for resource in strand.way() {
                let at = *resource as usize;
                if self.weight[at] == 0.0 {
                    self.touched.push(*resource);
                    self.left[at] = capacities[at];
                }
                self.weight[at] += strand.weight;
            }
        }
    }

    /// The level at which each resource would be full, and which of them are not the lowest on the
    /// way of every open strand.
    fn raise(&mut self, strands: &[Strand]) {
        for resource in &self.touched {
            let at = *resource as usize;
            self.level[at] = self.left[at].max(0.0) / self.weight[at].max(1e-9);
            self.beaten[at] = false;
        }
        for open in &self.open {
            let strand = &strands[*open as usize];
            let lowest = self.lowest(strand);
            self.lowest_of[*open as usize] = lowest;
            for resource in strand.way() {
                let at = *resource as usize;
                self.beaten[at] |= self.level[at] > lowest * SAME;
            }
        }
    }

    fn lowest(&self, strand: &Strand) -> f64 {
        let own = strand.limit_bits_per_sec / strand.weight;
        let levels = strand
            .way()
            .iter()
            .map(|resource| self.level[*resource as usize]);
        levels.fold(own, f64::min)
    }

    /// Closes the strands whose bottleneck is final. Whether there was one. Levels stay
    /// meanwhile.
    fn close(&mut self, strands: &[Strand], shares: &mut [Share]) -> bool {
        let before = self.open.len();
        let mut open = std::mem::take(&mut self.open);
        open.retain(|index| {
            let strand = &strands[*index as usize];
            let lowest = self.lowest_of[*index as usize];
            let is_full = |resource: &&u32| {
                let at = **resource as usize;
                !self.beaten[at] && self.level[at] <= lowest * SAME
            };
            let bottleneck = match strand.way().iter().find(is_full) {
                _ if strand.limit_bits_per_sec / strand.weight <= lowest * SAME => PRIVATE,
                Some(resource) => *resource,
                None => return true,
            };
            shares[*index as usize] = self.freeze(strand, lowest, bottleneck);
            false
        });
        self.open = open;
        self.open.len() < before
    }

    /// Rounding left no resource that all its strands agree on: the strand with the lowest level
    /// goes first.
    fn close_lowest(&mut self, strands: &[Strand], shares: &mut [Share]) {
        let level = |at: &usize| self.lowest_of[self.open[*at] as usize];
        let lowest = (0..self.open.len()).min_by(|a, b| level(a).total_cmp(&level(b)));
        let Some(at) = lowest else { return };
        let index = self.open.swap_remove(at);
        let strand = &strands[index as usize];
        let bottleneck = strand
            .way()
            .iter()
            .copied()
            .min_by(|a, b| self.level[*a as usize].total_cmp(&self.level[*b as usize]));
        let lowest = self.lowest_of[index as usize];
        shares[index as usize] = self.freeze(strand, lowest, bottleneck.unwrap_or(PRIVATE));
    }

    /// Fixes a strand at a level, and takes it from what is left of its resources.
    fn freeze(&mut self, strand: &Strand, level: f64, bottleneck: u32) -> Share {
        let bits_per_sec = level * strand.weight;
        for resource in strand.way() {
            self.left[*resource as usize] -= bits_per_sec;
            self.weight[*resource as usize] -= strand.weight;
        }
        Share {
            bits_per_sec,
            bottleneck,
        }
    }
}
