//! The receiving host drops packets that reached it.

use crate::catalogue::phrases::{next_to_peers, percent};
use crate::catalogue::proof;
use crate::catalogue::why::Reasoned;
use crate::words::plural;
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::{DropLocation, ReceiveDrops};

impl Reasoned for ReceiveDrops {
    fn because(&self, _: &Inventory) -> String {
        format!(
            "{}, {} of RX",
            dropped(self),
            percent(self.dropped_share.own)
        )
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let name = names.name(self.host);
        vec![proof(
            format!(
                "{name}: {} during the capacity tests; in all {} of what it received{}",
                dropped(self),
                percent(self.dropped_share.own),
                next_to_peers(&self.dropped_share, percent),
            ),
            format!(
                "hosts.parquet: host = {name}, rx_drops; counters.parquet: host = {name}, source = softnet and protocol"
            ),
        )]
    }

    fn next_step(&self, _: &Inventory) -> String {
        match self.location {
            DropLocation::Interface | DropLocation::Ring => {
                "enlarge the receive ring (`ethtool -G IF rx N`, `ethtool -g` shows the maximum), look at `ethtool -S` (rx_missed, \
                 rx_no_buffer) and spread the queues over CPUs"
            }
            DropLocation::Backlog => {
                "raise `net.core.netdev_max_backlog` and `net.core.netdev_budget`, and spread packets over CPUs (RPS, more queues)"
            }
            DropLocation::TcpSockets | DropLocation::UdpSockets => {
                "raise `net.core.rmem_max` and `net.ipv4.tcp_rmem`, and look at why the program reads too slowly"
            }
        }
        .into()
    }
}

/// "812 packets dropped in the backlog (softnet)".
fn dropped(found: &ReceiveDrops) -> String {
    let location = match found.location {
        DropLocation::TcpSockets => "at TCP sockets",
        DropLocation::UdpSockets => "at UDP sockets",
        DropLocation::Interface => "at the interface",
        DropLocation::Backlog => "in the backlog (softnet)",
        DropLocation::Ring => "in the interface's ring",
    };
    format!(
        "{} dropped {location}",
        plural(found.packets as usize, "packet")
    )
}
