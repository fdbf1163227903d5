//! What a pattern is laid out as: rounds of relations, or the reason why there are none.

use ew_model::inventory::HostId;

/// One client that opens connections to one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Relation {
    pub(crate) client: HostId,
    pub(crate) server: HostId,
    /// The server port slot the client drew (`pick: random` only).
    pub(crate) lane: Option<u16>,
    /// It is in the way of those that are measured.
    pub(crate) is_aggressor: bool,
}

/// A round before directions and flow numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Draft {
    pub(crate) sample: u32,
    pub(crate) senders_per_rack: Option<u32>,
    pub(crate) relations: Vec<Relation>,
}

/// Why a pattern does not fit an inventory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Impossible {
    TooFewHosts {
        need: usize,
        have: usize,
    },
    NeedsTwoRacks {
        have: usize,
    },
    NoRackOfTwo,
    TooManyPartners {
        asked: u32,
        others: usize,
    },
    NeedsRoles,
    TooFewOfRole {
        role: &'static str,
        need: usize,
        have: usize,
    },
}

impl Relation {
    pub(crate) fn new(client: HostId, server: HostId) -> Self {
        Self {
            client,
            server,
            lane: None,
            is_aggressor: false,
        }
    }

    pub(crate) fn aggressor(client: HostId, server: HostId) -> Self {
        Self {
            is_aggressor: true,
            ..Self::new(client, server)
        }
    }
}

impl Draft {
    pub(crate) fn new(sample: u32, relations: Vec<Relation>) -> Self {
        Self {
            sample,
            senders_per_rack: None,
            relations,
        }
    }
}
