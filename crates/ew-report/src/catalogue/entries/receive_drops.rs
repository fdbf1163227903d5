//! The receiving host drops packets that reached it.

use crate::catalogue::phrases::{count, next_to_peers, percent};
use crate::catalogue::proof;
use crate::catalogue::why::Reasoned;
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::{DropPlace, ReceiveDrops};

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
        match self.place {
            DropPlace::Interface | DropPlace::Ring => {
                "enlarge the receive ring (`ethtool -G IF rx N`, `ethtool -g` shows the maximum), look at `ethtool -S` (rx_missed, \
                 rx_no_buffer) and spread the queues over CPUs"
            }
            DropPlace::Backlog => {
                "raise `net.core.netdev_max_backlog` and `net.core.netdev_budget`, and spread packets over CPUs (RPS, more queues)"
            }
            DropPlace::TcpSockets | DropPlace::UdpSockets => {
                "raise `net.core.rmem_max` and `net.ipv4.tcp_rmem`, and look at why the program reads too slowly"
            }
        }
        .into()
    }
}

/// "812 packets dropped in the backlog (softnet)".
fn dropped(found: &ReceiveDrops) -> String {
    let place = match found.place {
        DropPlace::TcpSockets => "at TCP sockets",
        DropPlace::UdpSockets => "at UDP sockets",
        DropPlace::Interface => "at the interface",
        DropPlace::Backlog => "in the backlog (softnet)",
        DropPlace::Ring => "in the interface's ring",
    };
    format!(
        "{} dropped {place}",
        count(found.packets as usize, "packet")
    )
}
