//! The JSON Schema of reports, compared with reports.

use crate::{catalogue, common, flow_completion, sweeps, workloads};
use ew_model::Analysis;
use ew_model::analysis::Undetermined;
use ew_report::{Format, TextStyle, json_schema, render};
use serde_json::{Value, json};

/// Why a value is not as its schema describes it: the parts of JSON Schema that ours use. Stricter
/// than a validator in one thing: a field that the schema does not have is one too many.
fn mismatch(root: &Value, schema: &Value, value: &Value, path: &str) -> Option<String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.strip_prefix("#/$defs/").unwrap();
        let mut named = root["$defs"][name].clone();
        // A tag next to the fields of what it tags.
        for (key, field) in schema["properties"].as_object().into_iter().flatten() {
            named["properties"][key] = field.clone();
        }
        return mismatch(root, &named, value, path);
    }
    for choice in ["anyOf", "oneOf"] {
        if let Some(branches) = schema[choice].as_array() {
            let all = branches
                .iter()
                .map(|branch| mismatch(root, branch, value, path));
            let all: Vec<String> = all.collect::<Option<_>>()?;
            return Some(all.join("; "));
        }
    }
    if let Some(words) = schema["enum"].as_array() {
        return (!words.contains(value)).then(|| format!("{path}: {value} is none of {words:?}"));
    }
    if let Some(word) = schema.get("const") {
        return (word != value).then(|| format!("{path}: {value} is not {word}"));
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.clone(),
        kind => vec![kind.clone()],
    };
    let is_number = kind == "integer" && kinds.contains(&json!("number"));
    // What is not finite is null.
    let is_infinite = kind == "null" && kinds.contains(&json!("number"));
    if schema.get("type").is_some() && !kinds.contains(&json!(kind)) && !is_number && !is_infinite {
        return Some(format!("{path}: {kind} where {kinds:?} is allowed"));
    }
    match value {
        Value::Array(items) => {
            let fixed = schema["prefixItems"].as_array();
            items.iter().enumerate().find_map(|(at, item)| {
                let schema = fixed
                    .and_then(|fixed| fixed.get(at))
                    .unwrap_or(&schema["items"]);
                mismatch(root, schema, item, &format!("{path}[{at}]"))
            })
        }
        Value::Object(members) => members.iter().find_map(|(key, member)| {
            let path = format!("{path}.{key}");
            match (
                schema["properties"].get(key),
                schema.get("additionalProperties"),
            ) {
                (Some(schema), _) | (None, Some(schema)) => mismatch(root, schema, member, &path),
                (None, None) => Some(format!("{path} is not in the schema")),
            }
        }),
        _ => None,
    }
}

#[test]
fn every_report_is_as_the_schema_describes_it() {
    let schema: Value = serde_json::from_str(&json_schema()).unwrap();
    let analyses: [Analysis; 12] = [
        common::demo(),
        common::failed(),
        common::missing(),
        workloads::rr_of_two(),
        workloads::streams_of_two(),
        workloads::mixed(),
        of_pods(),
        under_load(),
        flow_completion::loaded(),
        with_breaks(),
        with_every_finding(),
        with_every_note(),
    ];
    for analysis in analyses {
        let document = document(&analysis);
        assert_eq!(mismatch(&schema, &schema, &document, ""), None);
    }
}

fn document(analysis: &Analysis) -> Value {
    let text = render(analysis, Format::Json, &TextStyle::default()).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Pods against their nodes, with every cause.
fn of_pods() -> Analysis {
    let mut analysis = common::demo();
    analysis.pods = catalogue::comparisons();
    analysis
}

fn under_load() -> Analysis {
    let mut analysis = common::demo();
    analysis.congestion = catalogue::impacts();
    analysis
}

/// A curve with every break.
fn with_breaks() -> Analysis {
    let mut analysis = sweeps::swept();
    analysis.sweeps[0].steps = catalogue::steps();
    analysis.sweeps[0].notes = catalogue::notes();
    analysis
}

/// Tools side by side, settings, warnings, and a path that was not tested.
fn with_every_note() -> Analysis {
    let mut analysis = common::demo();
    analysis.tools = vec![catalogue::tools()];
    analysis.stages[1].settings = catalogue::settings();
    analysis.warnings = catalogue::warnings();
    analysis.rack_pairs[0].details = Some(Undetermined::TestedUpTo { share: 0.75 });
    analysis
}

fn with_every_finding() -> Analysis {
    let mut analysis = common::demo();
    analysis.verdict.findings = catalogue::findings();
    analysis
}

/// What pods, victims and sweeps show has its sentences next to the facts.
#[test]
fn figures_have_their_sentences() {
    let pods = document(&of_pods());
    for compared in items(&pods["pods"]) {
        assert!(!compared["sentence"].as_str().unwrap().is_empty());
        for cause in compared["causes"].as_array().unwrap() {
            assert!(cause["words"].is_string() && cause["evidence"].is_array());
            assert!(cause["kind"].is_string() && cause["facts"]["kind"].is_string());
        }
    }
    for impact in items(&document(&under_load())["congestion"]) {
        assert!(impact["sentence"].as_str().unwrap().contains(": mean x"));
    }
    let noted = document(&with_every_note());
    assert_eq!(noted["basis"]["nic_source"], "configured");
    assert_eq!(
        noted["rack_pairs"][0]["reason"],
        "tested up to 75% of line rate"
    );
    assert_eq!(noted["stages"][1]["settings"][1], "16 streams");
    let different = &noted["tools"][0]["figures"][3]["standing"];
    assert_eq!(
        items(&different["reasons"]).len(),
        items(&different["details"]).len()
    );
    assert_eq!(different["details"][2]["host_name"], "r1h02");
    for completion in items(&document(&flow_completion::loaded())["flow_completion"]) {
        assert!(completion["sentence"].as_str().unwrap().contains(" at p50"));
    }
    for step in items(&document(&with_breaks())["sweeps"][0]["steps"]) {
        assert!(step["sentence"].is_string() && step["facts"]["by"].is_string());
        assert!(step["evidence"][0]["text"].is_string());
    }
}

fn items(list: &Value) -> &[Value] {
    let items = list.as_array().unwrap();
    assert!(!items.is_empty());
    items
}

/// The sentences are for readers only.
#[test]
fn facts_read_back_as_the_same() {
    let read =
        |analysis: &Analysis| -> Analysis { serde_json::from_value(document(analysis)).unwrap() };
    assert_eq!(read(&of_pods()).pods, of_pods().pods);
    assert_eq!(read(&under_load()).congestion, under_load().congestion);
    let (noted, found) = (with_every_note(), read(&with_every_note()));
    assert_eq!(found.tools, noted.tools);
    assert_eq!(found.stages[1].settings, noted.stages[1].settings);
    assert_eq!(found.warnings, noted.warnings);
    assert_eq!(found.rack_pairs, noted.rack_pairs);
    assert_eq!(found.basis, noted.basis);
    let loaded = flow_completion::loaded();
    assert_eq!(read(&loaded).flow_completion, loaded.flow_completion);
    assert_eq!(read(&with_breaks()).sweeps, with_breaks().sweeps);
    let findings = |analysis: Analysis| analysis.verdict.findings;
    assert_eq!(
        findings(read(&with_every_finding())),
        findings(with_every_finding())
    );
}

#[test]
fn a_report_that_is_otherwise_is_found() {
    let schema: Value = serde_json::from_str(&json_schema()).unwrap();
    let text = render(&common::demo(), Format::Json, &TextStyle::default()).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let changes: [(&str, Value); 4] = [
        ("/verdict/status", json!("fine")),
        ("/hosts/0/host", json!("r1h1")),
        ("/cells", json!({})),
        ("/basis", json!({"unknown": 1})),
    ];
    for (pointer, wrong) in changes {
        let mut changed = document.clone();
        *changed.pointer_mut(pointer).unwrap() = wrong;
        let found = mismatch(&schema, &schema, &changed, "");
        assert!(found.is_some(), "{pointer}");
    }
}

/// The columns of all CSV reports are on the reference page, and nothing else.
#[test]
fn the_reference_page_has_every_column() {
    let page = include_str!("../../../../docs/reference/json-and-csv.md");
    let (_, page) = page.split_once("## CSV: pairs").unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let first = rows.map(|line| line.split(" | ").next().unwrap());
    let described: Vec<&str> = first
        .flat_map(|names| names.split('`').skip(1).step_by(2))
        .collect();
    let header = |analysis: &Analysis, format| {
        let text = render(analysis, format, &TextStyle::default()).unwrap();
        text.lines().next().unwrap().to_owned()
    };
    let headers = [
        header(&common::demo(), Format::Csv),
        header(&crate::sweeps::swept(), Format::Csv),
        header(&common::demo(), Format::CsvHosts),
    ];
    let written: Vec<&str> = headers
        .iter()
        .flat_map(|header| header.split(','))
        .collect();
    assert_eq!(described, written);
}

/// Whoever writes a query finds what a field means.
#[test]
fn every_field_is_described() {
    let schema: Value = serde_json::from_str(&json_schema()).unwrap();
    let mut missing = Vec::new();
    find_undescribed(&schema, "", &mut missing);
    assert!(missing.is_empty(), "{missing:#?}");
}

fn find_undescribed(schema: &Value, path: &str, missing: &mut Vec<String>) {
    let members = schema.as_object().into_iter().flatten();
    // The description of an enum's variant is next to its only field.
    let is_variant = schema.get("description").is_some() && path.contains("/oneOf");
    for (key, member) in members {
        if key == "properties" && !is_variant {
            for (name, field) in member.as_object().into_iter().flatten() {
                let is_described = ["description", "$ref", "const"]
                    .iter()
                    .any(|has| field.get(has).is_some());
                if !is_described {
                    missing.push(format!("{path}.{name}"));
                }
            }
        }
        find_undescribed(member, &format!("{path}/{key}"), missing);
    }
    for member in schema.as_array().into_iter().flatten() {
        find_undescribed(member, path, missing);
    }
}
