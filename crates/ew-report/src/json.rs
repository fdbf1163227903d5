//! The whole analysis as JSON, with the names of hosts and racks next to their numbers.

use crate::catalogue::{
    WordedBasis, WordedCompletion, WordedImpact, WordedPodComparison, WordedRackPair,
    WordedStageAnalysis, WordedSweep, WordedToolComparison, in_words, warning, worded_basis,
    worded_completion, worded_impact, worded_pods, worded_rack_pair, worded_stage, worded_sweep,
    worded_tools,
};
use crate::error::ReportError;
use crate::words::networks;
use ew_model::finding::WordedVerdict;
use ew_model::network::MeasuredNetwork;
use ew_model::{Analysis, Inventory};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter};
use serde_json::{Serializer, Value, json};
use std::io::{self, Write};

/// Version of the JSON report's layout. It grows when a field changes its meaning or goes; new
/// fields do not count.
pub const SCHEMA_VERSION: u32 = 1;

/// Keys whose number is a host's, and those whose number is a rack's.
const HOSTS: [&str; 3] = ["host", "src", "dst"];
const RACKS: [&str; 3] = ["rack", "from", "to"];
/// Keys of lists of them, and the key of the list of names that follows each.
const LISTS: [(&str, &str); 2] = [("hosts", "host_names"), ("racks", "rack_names")];

/// Numbers that are not finite become null, so that the result is always valid JSON. Next to
/// `"src": 3` is `"src_name": "r1h4"`, for every number of a host or rack, and next to
/// `"hosts": [3]` is `"host_names": ["r1h4"]`.
pub(crate) fn render(analysis: &Analysis) -> Result<String, ReportError> {
    let names = analysis.inventory();
    let pods = analysis.pods.iter();
    let tools = analysis.tools.iter();
    let document = Document {
        schema: "eastwest-analysis",
        schema_version: SCHEMA_VERSION,
        networks: networks(analysis),
        verdict: in_words(analysis),
        analysis,
        basis: worded_basis(&analysis.basis),
        stages: analysis.stages.iter().map(worded_stage).collect(),
        rack_pairs: analysis.rack_pairs.iter().map(worded_rack_pair).collect(),
        warnings: analysis.warnings.iter().map(warning).collect(),
        sweeps: analysis.sweeps.iter().map(worded_sweep).collect(),
        tools: tools
            .map(|compared| worded_tools(compared, names))
            .collect(),
        pods: pods.map(|compared| worded_pods(compared, names)).collect(),
        congestion: analysis.congestion.iter().map(worded_impact).collect(),
        flow_completion: (analysis.flow_completion.iter())
            .map(worded_completion)
            .collect(),
    };
    Ok(with_names(&document, analysis.inventory())?)
}

/// The verdict alone with its sentences, as `findings.json` of a run's directory contains it.
///
/// # Errors
/// Any is a defect.
pub fn findings_json(analysis: &Analysis) -> serde_json::Result<String> {
    with_names(&in_words(analysis), analysis.inventory())
}

fn with_names(document: &impl Serialize, names: &Inventory) -> serde_json::Result<String> {
    let mut text = Vec::new();
    let formatter = Named::of(names);
    document.serialize(&mut Serializer::with_formatter(&mut text, formatter))?;
    text.push(b'\n');
    // The serializer writes UTF-8 only.
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The layout of that document as a JSON Schema (draft 2020-12), with what each field means.
#[must_use]
pub fn schema() -> String {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let schema = settings
        .into_generator()
        .into_root_schema_for::<Document<'static>>();
    let mut schema = schema.to_value();
    add_names(&mut schema);
    format!("{schema:#}\n")
}

/// Adds the names that [`render`] writes after the numbers of hosts and racks.
fn add_names(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::Object(fields)) = members.get_mut("properties") {
                for (key, list) in LISTS {
                    let is_numbers = fields.get(key).is_some_and(is_list_of_numbers);
                    if is_numbers {
                        let names = json!({"type": "array", "items": {"type": "string"}, "description": format!("Names of the {key} whose numbers are before them.")});
                        fields.insert(list.into(), names);
                    }
                }
                for (key, what) in HOSTS
                    .map(|key| (key, "host"))
                    .into_iter()
                    .chain(RACKS.map(|key| (key, "rack")))
                {
                    if fields.contains_key(key) {
                        let name = json!({"type": "string", "description": format!("Name of the {what} whose number is before it.")});
                        fields.insert(format!("{key}_name"), name);
                    }
                }
            }
            members.values_mut().for_each(add_names);
        }
        Value::Array(items) => items.iter_mut().for_each(add_names),
        _ => {}
    }
}

/// Of hosts or racks by their numbers, and not of descriptions of them.
fn is_list_of_numbers(field: &Value) -> bool {
    let item = field["items"]["$ref"].as_str().unwrap_or_default();
    matches!(item, "#/$defs/HostId" | "#/$defs/RackId")
}

/// A report of `eastwest report --format json`.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "eastwest-analysis")]
struct Document<'a> {
    /// `eastwest-analysis`
    schema: &'static str,
    /// Grows when a field changes its meaning or goes; new fields do not count.
    schema_version: u32,
    /// What was measured, most hosts first.
    networks: Vec<MeasuredNetwork>,
    /// The answer.
    verdict: WordedVerdict,
    #[serde(flatten)]
    analysis: &'a Analysis,
    /// How the expectation was made: declared or discovered capacities, MTU, efficiency.
    basis: WordedBasis,
    /// Per stage, in order.
    stages: Vec<WordedStageAnalysis<'a>>,
    /// Ordered rack pairs.
    rack_pairs: Vec<WordedRackPair<'a>>,
    /// What the user should know of the run itself, in order of time.
    warnings: Vec<String>,
    /// Sweeps over message sizes, in the plan's order.
    sweeps: Vec<WordedSweep>,
    /// External tools side by side with the engine, per kind of workload; empty in a run of the
    /// engine alone.
    tools: Vec<WordedToolComparison>,
    /// Pods against their nodes; empty but for `run pods`.
    pods: Vec<WordedPodComparison>,
    /// Victims under load; empty but for `run congestion`.
    congestion: Vec<WordedImpact>,
    /// Messages at a load, against the same alone; empty but for `run flow-completion`.
    flow_completion: Vec<WordedCompletion>,
}

/// Writes a name after each number of a host or rack, while the document streams by: a mesh has
/// too many host pairs for a second copy.
struct Named<'a> {
    pretty: PrettyFormatter<'static>,
    inventory: &'a Inventory,
    /// The last key that was written.
    key: String,
    is_in_key: bool,
    /// Of the value that was just written.
    name: Option<&'a str>,
    /// Of the numbers in the list that is being written, or was just written.
    list: Vec<&'a str>,
    is_in_list: bool,
}

impl<'a> Named<'a> {
    fn of(inventory: &'a Inventory) -> Self {
        Self {
            pretty: PrettyFormatter::new(),
            inventory,
            key: String::new(),
            is_in_key: false,
            name: None,
            list: Vec::new(),
            is_in_list: false,
        }
    }

    /// In a list of hosts or racks, and else nothing.
    fn name_in_list(&self, number: u32) -> Option<&'a str> {
        let at = number as usize;
        match self.key.as_str() {
            _ if !self.is_in_list => None,
            "hosts" => Some(self.inventory.hosts.get(at)?.name.as_str()),
            "racks" => Some(self.inventory.racks.get(at)?.name.as_str()),
            _ => None,
        }
    }

    fn write_member<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        key: &str,
        value: &str,
    ) -> io::Result<()> {
        self.pretty.end_object_value(out)?;
        self.pretty.begin_object_key(out, false)?;
        write!(out, "\"{key}\"")?;
        self.pretty.end_object_key(out)?;
        self.pretty.begin_object_value(out)?;
        out.write_all(value.as_bytes())
    }

    fn name_of(&self, number: u32) -> Option<&'a str> {
        let key = self.key.as_str();
        let at = number as usize;
        let host = HOSTS.contains(&key).then(|| self.inventory.hosts.get(at));
        let rack = RACKS.contains(&key).then(|| self.inventory.racks.get(at));
        let host = host.flatten().map(|host| host.name.as_str());
        host.or(rack.flatten().map(|rack| rack.name.as_str()))
    }
}

impl Formatter for Named<'_> {
    fn write_u32<W: ?Sized + Write>(&mut self, out: &mut W, value: u32) -> io::Result<()> {
        self.name = self.name_of(value);
        self.list.extend(self.name_in_list(value));
        self.pretty.write_u32(out, value)
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        if self.is_in_key {
            self.key.push_str(fragment);
        }
        self.pretty.write_string_fragment(out, fragment)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.key.clear();
        self.is_in_key = true;
        self.pretty.begin_object_key(out, first)
    }

    fn end_object_key<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.is_in_key = false;
        self.pretty.end_object_key(out)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.name = None;
        self.pretty.begin_object_value(out)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        if let Some(name) = self.name.take() {
            let key = format!("{}_name", self.key);
            self.write_member(out, &key, &serde_json::to_string(name)?)?;
        }
        if !self.list.is_empty() {
            let names = serde_json::to_string(&std::mem::take(&mut self.list))?;
            let key = LISTS.iter().find(|(key, _)| *key == self.key);
            self.write_member(out, key.map_or("names", |(_, names)| names), &names)?;
        }
        self.pretty.end_object_value(out)
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.list.clear();
        self.is_in_list = true;
        self.pretty.begin_array(out)
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.is_in_list = false;
        self.pretty.end_array(out)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.pretty.begin_array_value(out, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        // A number in a list is none of a key's.
        self.name = None;
        self.pretty.end_array_value(out)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.is_in_list = false;
        self.pretty.begin_object(out)
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.name = None;
        self.pretty.end_object(out)
    }
}
