//! What happens to the fleet.

use ew_model::inventory::HostId;
use ew_proto::controller_session::ControllerEvent;

/// One thing that happened to the fleet.
#[derive(Debug)]
pub(crate) enum FleetEvent {
    /// An agent sent something, or its session found it lost.
    Agent(HostId, ControllerEvent),
    /// A host did not come up.
    LaunchFailed { host: HostId, message: String },
    /// A member's task is over; why its cleanup was not confirmed, if so.
    Ended {
        host: HostId,
        /// Which of the host's launches it served.
        launch: u32,
        unclean: Option<String>,
    },
    /// Ctrl-C, SIGTERM or SIGHUP.
    Interrupt,
    /// The caller's deadline passed.
    Deadline,
}
