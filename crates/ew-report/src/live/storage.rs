//! Steps of a storage job in one line each.

use crate::words::plural;
use ew_model::RunEvent;
use ew_model::storage::{StorageOperation, StorageStep};
use ew_model::units::{format_bytes, format_duration_ns};

/// `write begins: 8 files, 1.00 GiB, 2 hosts`. `None` for other events.
pub(super) fn began(event: &RunEvent) -> Option<String> {
    let RunEvent::StorageStepStarted {
        operation,
        storage_nodes,
        hosts,
        files,
        bytes,
    } = event
    else {
        return None;
    };
    let (files, hosts) = (
        plural(*files as usize, "file"),
        plural(*hosts as usize, "host"),
    );
    let bytes = match bytes {
        0 => String::new(),
        bytes => format!(", {}", format_bytes(*bytes)),
    };
    let nodes = storage_nodes.map_or_else(String::new, |nodes| {
        format!(", {}", plural(nodes as usize, "storage node"))
    });
    Some(format!(
        "{} begins: {files}{bytes}, {hosts}{nodes}",
        operation.name()
    ))
}

/// `write: map 25% reduce 0%`.
pub(super) fn goes(operation: StorageOperation, words: &str) -> String {
    format!("{}: {words}", operation.name())
}

/// `write ended: 7 of 8 files whole, 3.20 s`.
pub(super) fn ended(step: &StorageStep) -> String {
    let verb = match step.operation {
        StorageOperation::Clean => "removed",
        _ => "whole",
    };
    format!(
        "{} ended: {} of {} {verb}, {}",
        step.operation.name(),
        step.whole_files().len(),
        plural(step.files as usize, "file"),
        format_duration_ns(step.exec_ns)
    )
}
