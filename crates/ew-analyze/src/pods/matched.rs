//! A path and its baseline.

use ew_evidence::observations::StageView;
use ew_model::pods::PodPath;

/// One path's stage next to its baseline's.
pub(super) struct Match<'o, 'a> {
    pub(super) stage: &'o StageView<'a>,
    pub(super) index: usize,
    pub(super) baseline: &'o StageView<'a>,
    pub(super) baseline_index: usize,
    pub(super) path: PodPath,
    pub(super) baseline_path: PodPath,
    pub(super) ratios: Vec<f64>,
}
