//! Of whom it is asked why it is slow.

use ew_model::HostId;

/// A host that is slow on a side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suspect {
    pub(super) host: HostId,
    /// Its sending side is slow.
    pub(super) tx: bool,
    /// Its receiving side is slow.
    pub(super) rx: bool,
}

impl Suspect {
    /// A host that may be slow on either side.
    pub(super) fn both(host: HostId) -> Self {
        Self {
            host,
            tx: true,
            rx: true,
        }
    }
}
