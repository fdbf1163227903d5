//! Packets are lost on a host's link, or on the way between racks.

use crate::catalogue::phrases::{directions, percent, rack_list};
use crate::catalogue::why::Reasoned;
use crate::catalogue::{Entry, Headline, proof};
use crate::words::plural;
use ew_model::finding::Evidence;
use ew_model::finding::details::{CountedLoss, Directions, LossOnLink, LossyRack, LossyUplinks};
use ew_model::{Inventory, RackId};

/// Racks whose losses are listed; the JSON report has all.
const MAX_RACKS: usize = 8;

impl Entry for LossyUplinks {
    fn headline(&self, names: &Inventory) -> Headline {
        Headline::new(format!(
            "{}, {} of segments retransmitted (typical {})",
            where_lossy(self, names),
            share_of_all(self),
            percent(self.typical_share),
        ))
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let shown = self.racks.iter().take(MAX_RACKS);
        shown.map(|lossy| of_rack(lossy, names)).collect()
    }

    fn next_step(&self, _: &Inventory) -> String {
        let first = match self.racks.len() {
            1 => "",
            _ => "ask first what they share: a spine, or a pod's links; ",
        };
        format!(
            "{first}look at error and discard counters of the uplinks' ports on both sides, member by member; then at their \
             transceivers and cables"
        )
    }
}

/// "1.0%", "0.5–2.1%".
fn share_of_all(found: &LossyUplinks) -> String {
    let shares = || found.racks.iter().map(|lossy| lossy.retransmitted_share);
    let low = percent(shares().fold(f64::INFINITY, f64::min));
    let high = percent(shares().fold(0.0, f64::max));
    match low == high {
        true => high,
        false => format!("{}–{high}", low.trim_end_matches('%')),
    }
}

fn of_rack(lossy: &LossyRack, names: &Inventory) -> Evidence {
    let name = names.rack_name(lossy.rack);
    proof(
        format!(
            "{name}: median {} of segments retransmitted by {} that fill nothing",
            percent(lossy.retransmitted_share),
            plural(lossy.flows, "flow")
        ),
        format!(
            "flows.parquet: src_rack or dst_rack = {name}, retransmits less spurious_retransmits, against tx_bytes over send_mss_bytes"
        ),
    )
}

fn where_lossy(found: &LossyUplinks, names: &Inventory) -> String {
    let racks: Vec<RackId> = found.racks.iter().map(|lossy| lossy.rack).collect();
    let name = match racks.len() {
        all if all > 1 && all == names.racks.len() => format!("all {all} racks"),
        _ => rack_list(names, &racks),
    };
    let Some(other) = found.or_rack.map(|rack| names.rack_name(rack)) else {
        let whose = if racks.len() > 1 { "their" } else { "its" };
        let directions = directions(found.directions);
        return format!("{name}: random loss on {whose} uplinks {directions}");
    };
    let way = match found.directions {
        Directions::Tx => format!("from {name} to {other}"),
        Directions::Rx => format!("from {other} to {name}"),
        Directions::Both => directions(Directions::Both).into(),
    };
    format!("{name} or {other}: random loss on the uplinks between them {way}")
}

impl Reasoned for LossOnLink {
    fn because(&self, _: &Inventory) -> String {
        format!(
            "random loss on its link, {}",
            shares(self.tx_share, self.rx_share)
        )
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let name = names.name(self.host);
        let tx = self
            .tx_share
            .map(|share| of_side(self, name, ("src", "from"), share));
        let rx = self
            .rx_share
            .map(|share| of_side(self, name, ("dst", "to"), share));
        let counted = self.counted.as_ref().map(|counted| seen(counted, name));
        [tx, rx, counted].into_iter().flatten().collect()
    }

    fn next_step(&self, _: &Inventory) -> String {
        "look at `ethtool -S` (crc, symbol and fifo errors) and `tc -s qdisc` on the host and at the error counters of its \
         switch port; then change transceiver and cable"
            .into()
    }
}

/// "3.1% of TX and 2.9% of RX segments retransmitted".
fn shares(tx: Option<f64>, rx: Option<f64>) -> String {
    match (tx, rx) {
        (Some(tx), Some(rx)) => format!(
            "{} of TX and {} of RX segments retransmitted",
            percent(tx),
            percent(rx)
        ),
        (Some(tx), None) => format!("{} of TX segments retransmitted", percent(tx)),
        (None, Some(rx)) => format!("{} of RX segments retransmitted", percent(rx)),
        (None, None) => String::new(),
    }
}

fn of_side(found: &LossOnLink, name: &str, (column, word): (&str, &str), share: f64) -> Evidence {
    proof(
        format!(
            "isolated flows {word} {name}: median {} of segments retransmitted (typical {})",
            percent(share),
            percent(found.typical_share)
        ),
        format!(
            "flows.parquet: {column} = {name}, retransmits less spurious_retransmits, against tx_bytes over send_mss_bytes"
        ),
    )
}

fn seen(counted: &CountedLoss, name: &str) -> Evidence {
    proof(
        format!(
            "{name}: its own {} counted {} and {} of its queues meanwhile",
            counted.interface,
            plural(counted.errors as usize, "error"),
            plural(counted.drops as usize, "drop"),
        ),
        format!(
            "hosts.parquet: host = {name}, rx_errors and tx_errors; counters.parquet: source = qdisc, drops"
        ),
    )
}
