//! A verdict with its sentences, as `findings.json` and the JSON report contain it.

use super::{Finding, Grounds, VerdictStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Deref;

/// All findings of a run, worst first, with one sentence on top.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct WordedVerdict {
    /// The answer in one sentence.
    pub sentence: String,
    /// What it amounts to.
    pub status: VerdictStatus,
    /// Worst first.
    pub findings: Vec<WordedFinding>,
    /// What a verdict without findings rests on.
    #[serde(default)]
    pub grounds: Grounds,
}

/// One conclusion, with what a person reads of it.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct WordedFinding {
    /// As facts.
    #[serde(flatten)]
    pub finding: Finding,
    /// In words with numbers: "rack2: oversubscribed 4.0:1 (3.9–4.1) in both directions".
    pub sentence: String,
    /// What it rests on, each with its place in the run.
    pub evidence: Vec<Evidence>,
    /// What a person can do next.
    pub hint: String,
    /// Where the documentation explains its cause.
    #[serde(default)]
    pub documentation: String,
}

impl Deref for WordedFinding {
    type Target = Finding;

    /// A finding with words is a finding.
    fn deref(&self) -> &Finding {
        &self.finding
    }
}

/// One piece of evidence.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Evidence {
    /// In words with numbers.
    pub text: String,
    /// Where to look: file and rows, for example `flows.parquet: stage 3, dst host5`.
    pub source: String,
}
