//! Hosts that never came up, or were lost: for good, or until they came back.

use crate::catalogue::phrases::host_list;
use crate::catalogue::{Entry, Headline, proof};
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::{Absence, AbsenceReason, HostsMissing};

impl Entry for HostsMissing {
    fn headline(&self, names: &Inventory) -> Headline {
        let hosts = host_list(names, self.hosts.iter().copied());
        Headline::new(format!(
            "{hosts} {}{}{}",
            what(self),
            reason_of_one(self),
            missing_flows(self)
        ))
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let reason = |reason: &AbsenceReason| {
            let name = names.name(reason.host);
            proof(
                format!("{name}: {}", reason.message),
                format!("events.jsonl: host {name}"),
            )
        };
        let ends = self.pod_ends.iter();
        let ends = ends.map(|words| proof(words.clone(), "run.json: barriers"));
        self.reasons.iter().map(reason).chain(ends).collect()
    }

    fn next_step(&self, _: &Inventory) -> String {
        match self.absence {
            Absence::NeverCameUp | Absence::Lost => {
                "bring the host back (power, link, sshd; `eastwest doctor` says what stops it) and run again; the figures of the \
                 other hosts are valid"
            }
            Absence::CameBack => {
                "find out why the connection to its agent broke (the host's log, the network between it and the controller); what \
                 it missed was tried again"
            }
        }
        .into()
    }
}

fn what(found: &HostsMissing) -> &'static str {
    match (found.absence, is_one(found)) {
        (Absence::NeverCameUp, _) => "never came up",
        (Absence::Lost, true) => "was lost during the run",
        (Absence::Lost, false) => "were lost during the run",
        (Absence::CameBack, true) => "was lost during the run and came back",
        (Absence::CameBack, false) => "were lost during the run and came back",
    }
}

/// Of several hosts the reasons are evidence.
fn reason_of_one(found: &HostsMissing) -> String {
    match found.reasons.as_slice() {
        [only] if is_one(found) => format!(": {}", only.message),
        _ => String::new(),
    }
}

fn missing_flows(found: &HostsMissing) -> String {
    let whose = if is_one(found) { "it" } else { "them" };
    match found.missing_flows {
        0 => String::new(),
        1 => format!("; 1 flow with {whose} is missing"),
        flows => format!("; {flows} flows with {whose} are missing"),
    }
}

fn is_one(found: &HostsMissing) -> bool {
    found.hosts.len() == 1
}
