//! The answer of `eastwest size`, for people and for programs.

use crate::error::ReportError;
use crate::format::TextStyle;
use crate::table::{table, wrap};
use crate::words::or_missing;
use ew_analyze_storage::sizing::{
    Answer, Constraint, ConstraintNeed, Operation, Passage, Question, RateBound, Redundancy,
};
use ew_model::units::{format_bytes_per_sec, format_duration_ns};
use serde::Serialize;

/// Version of the JSON document's layout. It grows when a field changes its meaning or goes; new
/// fields do not count.
const SCHEMA_VERSION: u32 = 3;

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    schema_version: u32,
    question: &'a Question,
    answer: Option<&'a Answer>,
    unreachable: Option<&'a RateBound>,
}

/// For programs.
///
/// # Errors
/// [`ReportError::Json`], a defect.
pub fn sizing_json(question: &Question, answer: &Answer) -> Result<String, ReportError> {
    document(question, Some(answer), None)
}

/// For programs, where no number of nodes is enough.
///
/// # Errors
/// [`ReportError::Json`], a defect.
pub fn sizing_bound_json(question: &Question, bound: &RateBound) -> Result<String, ReportError> {
    document(question, None, Some(bound))
}

fn document(
    question: &Question,
    answer: Option<&Answer>,
    unreachable: Option<&RateBound>,
) -> Result<String, ReportError> {
    let document = Document {
        schema: "eastwest-size",
        schema_version: SCHEMA_VERSION,
        question,
        answer,
        unreachable,
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

/// For the terminal: the answer first, then what each constraint asks by itself.
#[must_use]
pub fn sizing_text(question: &Question, answer: &Answer, style: &TextStyle) -> String {
    let width = style.width.max(40);
    let mut lines = vec![headline(question, answer), asked(question, answer)];
    lines.extend(ratio(question, answer));
    lines.extend(untested_uplink(question, answer));
    let of_nodes = answer.needs.iter().map(|need| row(need, answer));
    let in_front = answer.passages.iter().map(passage_row);
    let rows: Vec<Vec<String>> = of_nodes.chain(in_front).collect();
    let heads = [
        "constraint",
        "bytes per byte",
        "rate of one",
        "exact",
        "needs",
        "",
    ];
    let mut out: String = lines.iter().map(|line| wrap(line, width, "")).collect();
    out.push_str(&table(&heads, &rows, 1, width));
    let [none, one, two] = answer.nodes_by_failures;
    let spares = format!(
        "Nodes for N+0, N+1, N+2 with {} headroom: {none}, {one}, {two}.",
        percent(question.headroom)
    );
    out.push_str(&wrap(&spares, width, ""));
    out
}

fn headline(question: &Question, answer: &Answer) -> String {
    let price = answer
        .price
        .map(|price| format!(", price {price:.0}"))
        .unwrap_or_default();
    format!(
        "{} storage nodes (bare {}, headroom {}, N+{}){price}. Binding constraint: {}.",
        answer.nodes,
        answer.nodes_bare,
        percent(question.headroom),
        question.failures,
        answer.binding.name()
    )
}

fn asked(question: &Question, answer: &Answer) -> String {
    let kept = match question.redundancy {
        Redundancy::Replication(copies) => format!("replication {copies}"),
        Redundancy::ErasureCoding { data, parity } => format!("EC({data},{parity})"),
    };
    let operation = match question.operation {
        Operation::Write => "written",
        Operation::Read => "read",
    };
    format!(
        "{} {operation} in {} with {kept}: {} needed, {} possible with all nodes up, deadline met with {} nodes down.",
        amount(question.data_bytes),
        format_duration_ns((question.within_s * 1e9) as u64),
        format_bytes_per_sec(answer.needed_bytes_per_sec),
        format_bytes_per_sec(answer.carried_bytes_per_sec),
        answer.failures_tolerated
    )
}

fn ratio(question: &Question, answer: &Answer) -> Option<String> {
    let (clients, fan_in) = (answer.clients?, answer.fan_in?);
    let word = match question.clients {
        Some(_) => "Clients",
        None => "Clients needed",
    };
    let each = question
        .client_bytes_per_sec
        .map_or_else(String::new, |rate| {
            format!(" at {} each", format_bytes_per_sec(rate))
        });
    Some(format!(
        "{word}: {clients}{each}. Fan-in: {clients}:{} = {fan_in:.2} clients per storage node.",
        answer.nodes
    ))
}

/// Of an uplink whose limit nobody knows.
fn untested_uplink(question: &Question, answer: &Answer) -> Option<String> {
    let [_, uplink] = &answer.passages;
    let needed = uplink.with_headroom_bytes_per_sec;
    let is_known = question.uplink_bytes_per_sec.is_some();
    let carried = question.uplink_carried_bytes_per_sec.filter(|_| !is_known);
    let carried = carried.filter(|carried| *carried < needed)?;
    Some(format!(
        "Uplink: {} needed, {} measured without being the limit; not tested above.",
        format_bytes_per_sec(needed),
        format_bytes_per_sec(carried)
    ))
}

fn row(need: &ConstraintNeed, answer: &Answer) -> Vec<String> {
    let rate = need.node_bytes_per_sec.map(format_bytes_per_sec);
    let is_binding = need.constraint == answer.binding;
    let factor = match need.constraint {
        Constraint::Placement => "-".to_owned(),
        _ => format!("{:.2}", need.factor),
    };
    vec![
        need.constraint.name().to_owned(),
        factor,
        rate.unwrap_or_else(|| "-".into()),
        format!("{:.2}", need.nodes_exact),
        format!("{} nodes", need.nodes),
        if is_binding { "binding" } else { "" }.to_owned(),
    ]
}

/// Of the clients how many, of the uplink how much, both with headroom.
fn passage_row(passage: &Passage) -> Vec<String> {
    let rate = or_missing(passage.client_bytes_per_sec, format_bytes_per_sec);
    let rate_needed = format_bytes_per_sec(passage.with_headroom_bytes_per_sec);
    let needs = match passage.clients {
        Some(clients) => format!("{clients} clients"),
        None => rate_needed,
    };
    let available = passage.possible_bytes_per_sec.map(|possible| {
        let used = passage.with_headroom_bytes_per_sec / possible;
        format!("{} of {}", percent(used), format_bytes_per_sec(possible))
    });
    vec![
        passage.constraint.name().to_owned(),
        format!("{:.2}", passage.factor),
        rate,
        or_missing(passage.clients_exact, |exact| format!("{exact:.2}")),
        needs,
        available.unwrap_or_default(),
    ]
}

fn percent(part: f64) -> String {
    format!("{:.0}%", part * 100.0)
}

/// `10.0 TB`: decimal, as asked.
fn amount(bytes: f64) -> String {
    let rate = format_bytes_per_sec(bytes);
    rate.strip_suffix("/s").unwrap_or(&rate).to_owned()
}
