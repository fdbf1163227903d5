//! What flows are paced to.

use ew_model::Workload;

/// What a flow is paced to, payload; nothing more can be expected of it. `None` where it is not
/// paced, and where it is done before the window ends.
pub fn flow_pace(workload: &Workload) -> Option<f64> {
    if !workload.kind.is_bulk() || workload.limit.is_some() {
        return None;
    }
    let streams = f64::from(workload.streams.max(1));
    let of_streams = workload.pace.stream_bits_per_sec.map(|pace| pace * streams);
    [of_streams, workload.pace.flow_bits_per_sec]
        .into_iter()
        .flatten()
        .reduce(f64::min)
}
