//! Capacities between racks, as measured, and the max-min expectation that rests on them.

use crate::capacity::{HostFit, Side};
use ew_model::{Inventory, RackId};
use ew_plan::expectation::Capacities;
use std::collections::BTreeMap;

/// Payload capacities between racks, bits per second. What is absent does not limit or is not known.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Paths {
    /// Ordered rack pairs that were tested, with the greatest number of flows out of the sending rack at which the
    /// capacities below tell the truth.
    pub(crate) known: BTreeMap<(RackId, RackId), u32>,
    /// One direction between two racks.
    pub(crate) pair: BTreeMap<(RackId, RackId), f64>,
    /// All that leaves a rack.
    pub(crate) up: BTreeMap<RackId, f64>,
    /// All that enters a rack.
    pub(crate) down: BTreeMap<RackId, f64>,
}

impl Paths {
    /// Capacities with every host at `goodput_bits_per_sec`: what a healthy cluster with these paths would do.
    pub(crate) fn with_equal_hosts(
        &self,
        inventory: &Inventory,
        goodput_bits_per_sec: f64,
    ) -> Capacities {
        let hosts = inventory.hosts.len();
        self.capacities(
            inventory,
            vec![goodput_bits_per_sec; hosts],
            vec![goodput_bits_per_sec; hosts],
        )
    }

    /// Capacities with every host as measured, slow sides included. `None` when no host was measured.
    pub(crate) fn with_measured_hosts(
        &self,
        inventory: &Inventory,
        fit: &HostFit,
    ) -> Option<Capacities> {
        let tx = inventory
            .host_ids()
            .map(|host| fit.capacity(Side::Tx(host)));
        let rx = inventory
            .host_ids()
            .map(|host| fit.capacity(Side::Rx(host)));
        Some(self.capacities(
            inventory,
            tx.collect::<Option<Vec<_>>>()?,
            rx.collect::<Option<Vec<_>>>()?,
        ))
    }

    fn capacities(&self, inventory: &Inventory, tx: Vec<f64>, rx: Vec<f64>) -> Capacities {
        let per_rack = |known: &BTreeMap<RackId, f64>| {
            inventory
                .rack_ids()
                .map(|rack| known.get(&rack).copied())
                .collect()
        };
        Capacities {
            tx_bits_per_sec: tx,
            rx_bits_per_sec: rx,
            up_bits_per_sec: per_rack(&self.up),
            down_bits_per_sec: per_rack(&self.down),
            path_bits_per_sec: self.pair.clone(),
        }
    }
}
