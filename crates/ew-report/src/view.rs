//! The report of a run in words, made once. The terminal, Markdown and the page lay it out, each in
//! its own way and with drawings of its own, and share every name, number and sentence of it.

mod ceiling;
mod facts;
mod filled_table;
mod findings;
mod hosts;
mod missing;
mod racks;
mod rate_words;
mod stages;
mod tables;
mod tone;

pub(crate) use ceiling::payload_ceiling;
pub(crate) use findings::FindingWords;
pub(crate) use hosts::HostWords;
pub(crate) use racks::RackPairWords;
pub(crate) use rate_words::RateWords;
pub(crate) use tone::Tone;

use crate::catalogue;
use crate::compact;
use crate::figures::Figures;
use crate::host_figures;
use crate::words::{self, one_line};
use ew_model::Analysis;
use missing::MissedThreshold;

/// A report of a run in words.
pub(crate) struct View {
    /// "FAIL: fault found".
    pub(crate) status: &'static str,
    pub(crate) tone: Tone,
    pub(crate) run_id: String,
    /// The verdict.
    pub(crate) sentence: String,
    /// Over which network.
    pub(crate) network: Option<String>,
    /// Worst first.
    pub(crate) findings: Vec<FindingWords>,
    /// Thresholds that were not met, and those without a figure.
    pub(crate) missed_thresholds: Vec<MissedThreshold>,
    /// "Measured: 8 of 8 hosts, 416 of 416 flows; 7 hosts without findings."
    pub(crate) measured: String,
    pub(crate) rack_pairs: Vec<RackPairWords>,
    pub(crate) has_stages: bool,
    /// With all that its figures do not show by themselves.
    pub(crate) stages: Figures,
    /// Notes on figures wherever they are shown: bytes that no application saw, figures
    /// that did not converge.
    pub(crate) cautions: Vec<String>,
    /// Tables next to the stages'.
    pub(crate) figures: Vec<Figures>,
    /// In inventory order.
    pub(crate) hosts: Vec<HostWords>,
    /// What the table of notable hosts leaves out.
    pub(crate) other_hosts: Option<String>,
    /// Why hosts were not there to the end: `r1h02 failed: Permission denied`.
    pub(crate) absences: Vec<String>,
    /// How near hosts came to a limit of their own, and those that were.
    pub(crate) nearest: Option<String>,
    pub(crate) near_limits: Figures,
    /// Pairs without a figure, by reason.
    pub(crate) missing_pairs: Vec<String>,
    /// Name and value.
    pub(crate) facts: Vec<(&'static str, String)>,
    pub(crate) warnings: Vec<String>,
    /// Two hosts' own test has a form of its own.
    pub(crate) compact: Option<CompactWords>,
}

/// Two hosts' own test: one table, as users of netperf, iperf3 and sockperf expect.
pub(crate) struct CompactWords {
    pub(crate) tables: Vec<Figures>,
    /// What the CPUs did.
    pub(crate) cpu: Vec<String>,
    /// One line that leads to everything else.
    pub(crate) facts: String,
}

impl View {
    pub(crate) fn of(analysis: &Analysis) -> Self {
        let hosts = hosts::all(analysis);
        Self {
            status: words::status(analysis),
            tone: Tone::of_status(analysis.verdict.status),
            run_id: one_line(&analysis.run.id),
            sentence: one_line(&catalogue::sentence(analysis)),
            network: words::network(analysis),
            findings: findings::all(analysis),
            missed_thresholds: missing::thresholds(analysis),
            measured: missing::measured(analysis),
            rack_pairs: racks::all(analysis),
            has_stages: !analysis.stages.is_empty(),
            stages: stages::table(analysis),
            cautions: stages::cautions(analysis),
            figures: tables::all(analysis),
            other_hosts: hosts::alike(analysis, &hosts),
            hosts,
            absences: missing::hosts(analysis),
            nearest: host_figures::nearest_words(analysis),
            near_limits: host_figures::near_limits(analysis),
            missing_pairs: missing::pairs(analysis),
            facts: facts::all(analysis),
            warnings: analysis
                .warnings
                .iter()
                .map(|w| one_line(&catalogue::warning(w)))
                .collect(),
            compact: compact::is_compact(analysis).then(|| CompactWords {
                tables: compact::results(analysis),
                cpu: compact::cpu_notes(analysis),
                facts: compact::facts(analysis),
            }),
        }
    }

    /// Hosts that differ from the rest in a way the tables show; all of them when there are few.
    pub(crate) fn notable_hosts(&self) -> Figures {
        hosts::table(&self.hosts)
    }

    /// Racks in both directions, up to a number that can be read.
    pub(crate) fn rack_table(&self) -> Figures {
        racks::table(&self.rack_pairs)
    }
}
