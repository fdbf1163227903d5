//! What connection tracking refused.

use ew_model::analysis::ConntrackRefusals;

/// Why, as far as the table's size shows it.
pub(crate) fn reason(refused: &ConntrackRefusals) -> String {
    match refused.max_entries {
        Some(max) if refused.is_full() => {
            format!("table full: {} of {max} entries", refused.entries)
        }
        _ => "table not full: translated addresses and ports used up".into(),
    }
}

/// What ended a run whose pods did not reach one another: the node, and what to change.
#[must_use]
pub fn conntrack_words(node: &str, refused: &ConntrackRefusals) -> String {
    format!(
        "unreachable pods: conntrack of {node} dropped {} packets of new connections ({}): raise net.netfilter.nf_conntrack_max, or give address \
         translation more addresses or ports",
        refused.packets,
        reason(refused)
    )
}
