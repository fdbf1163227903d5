//! The settings of one test.

use super::error::ScenarioError;
use super::tree::Node;
use super::values::{choice, duration};
use ew_model::scenario::Direction;
use std::ops::RangeInclusive;

/// A test's own keys, with `defaults` behind them.
pub(super) struct Settings<'a> {
    pub(super) test: &'a Node,
    pub(super) defaults: Option<&'a Node>,
}

impl<'a> Settings<'a> {
    pub(super) fn find(&self, key: &str) -> Option<&'a Node> {
        self.test
            .get(key)
            .or_else(|| self.defaults.and_then(|d| d.get(key)))
    }

    pub(super) fn duration(
        &self,
        key: &str,
        bounds: RangeInclusive<u64>,
    ) -> Result<Option<u64>, ScenarioError> {
        duration(self.find(key), key, bounds)
    }

    pub(super) fn switch(&self, key: &str) -> Result<bool, ScenarioError> {
        let Some(node) = self.find(key) else {
            return Ok(false);
        };
        Ok(choice(node, &format!("value for `{key}`"), &["true", "false"])? == 0)
    }

    pub(super) fn direction(&self) -> Result<Direction, ScenarioError> {
        let Some(node) = self.find("direction") else {
            return Ok(Direction::Forward);
        };
        const ALL: [Direction; 3] = [Direction::Forward, Direction::Reverse, Direction::Both];
        Ok(ALL[choice(node, "direction", &["forward", "reverse", "both"])?])
    }
}
