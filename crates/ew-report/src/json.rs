//! The whole analysis as JSON.

use crate::ReportError;
use crate::words::networks;
use ew_model::Analysis;
use ew_model::network::MeasuredNetwork;
use serde::Serialize;

/// Version of the JSON report's layout. It grows when a field changes its meaning or goes; new
/// fields do not count.
pub const SCHEMA_VERSION: u32 = 1;

/// Numbers that are not finite become null, so that the result is always valid JSON.
pub(crate) fn render(analysis: &Analysis) -> Result<String, ReportError> {
    let document = Document {
        schema: "eastwest-analysis",
        schema_version: SCHEMA_VERSION,
        networks: networks(analysis),
        analysis,
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    schema_version: u32,
    /// What was measured, most hosts first.
    networks: Vec<MeasuredNetwork>,
    #[serde(flatten)]
    analysis: &'a Analysis,
}
