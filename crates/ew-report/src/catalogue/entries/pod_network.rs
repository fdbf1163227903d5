//! Pods get less than their nodes.

use crate::catalogue::pods;
use crate::catalogue::{Entry, Headline};
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::PodNetwork;

impl Entry for PodNetwork {
    fn headline(&self, names: &Inventory) -> Headline {
        pods::headline(&self.comparison, names)
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        pods::evidence(&self.comparison, names)
    }

    fn next_step(&self, _: &Inventory) -> String {
        pods::next_step(&self.comparison)
    }
}
