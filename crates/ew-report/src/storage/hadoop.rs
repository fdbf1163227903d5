//! A job of Hadoop's TestDFSIO: its time around the I/O.

use crate::words::{or_missing, percent, plural};
use ew_analyze_storage::job::StepAnalysis;
use ew_analyze_storage::testdfsio::{HadoopJob, Tasks};
use ew_model::storage::StorageOperation;
use ew_model::units::{format_bytes, format_bytes_per_sec};

/// Phases, tasks and the map phase's rate, for the terminal.
pub(super) fn lines(job: &HadoopJob, step: &StepAnalysis) -> Vec<String> {
    let id = job.job.as_deref().unwrap_or("no job");
    let operation = step.operation.name();
    if step.operation == StorageOperation::Clean {
        return Vec::new();
    }
    let seconds = |time: Option<f64>| or_missing(time, |time| format!("{time:.2} s"));
    let phases = &job.phases;
    let mut lines = vec![format!(
        "{operation}: {id}, client process {}: submission {}, application master {}, map phase {}, shuffle, reduce and commit {}, end {}",
        seconds(Some(job.process_s)),
        seconds(phases.submit_s),
        seconds(phases.launch_s),
        seconds(phases.map_s),
        seconds(phases.reduce_s),
        seconds(phases.end_s)
    )];
    lines.extend(io(&job.tasks));
    if let Some(rate) = job.map_phase_bytes_per_sec {
        lines.push(format!(
            "{} over the map phase: {}, task start included",
            format_bytes(step.bytes),
            format_bytes_per_sec(rate)
        ));
    }
    if job.tasks.lost_maps > 0 && step.dfsio.is_some() {
        lines.push(format!(
            "{} failed or killed and repeated: their time is in the job's, not in the rates",
            plural(job.tasks.lost_maps as usize, "map task")
        ));
    }
    lines
}

fn io(tasks: &Tasks) -> Option<String> {
    let (io_s, maps) = (tasks.io_s?, tasks.maps.filter(|maps| *maps > 0)?);
    let share = tasks.map_s.filter(|map_s| *map_s > 0.0);
    let share = share.map(|map_s| {
        let overhead = percent(Some((1.0 - io_s / map_s).clamp(0.0, 1.0)));
        format!(" of {map_s:.2} s of task time: {overhead} job overhead")
    });
    Some(format!(
        "I/O: {io_s:.2} s in {}, {:.2} s each{}",
        plural(maps as usize, "map task"),
        io_s / maps as f64,
        share.unwrap_or_default()
    ))
}
