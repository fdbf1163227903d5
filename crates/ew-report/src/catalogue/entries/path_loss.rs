//! Packets are lost on a host's link, or on the way between racks.

use crate::catalogue::phrases::{directions, percent};
use crate::catalogue::why::Reasoned;
use crate::catalogue::{Entry, Headline, proof};
use crate::words::plural;
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::{CountedLoss, Directions, LossOnLink, LossyUplinks};

impl Entry for LossyUplinks {
    fn headline(&self, names: &Inventory) -> Headline {
        Headline::new(format!(
            "{}, {} of segments retransmitted (typical {})",
            where_lossy(self, names),
            percent(self.retransmitted_share),
            percent(self.typical_share),
        ))
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let name = names.rack_name(self.rack);
        vec![proof(
            format!(
                "{name}: median {} of segments retransmitted by {} that fill nothing",
                percent(self.retransmitted_share),
                plural(self.flows, "flow")
            ),
            format!(
                "flows.parquet: src_rack or dst_rack = {name}, retransmits less spurious_retransmits, against tx_bytes over send_mss_bytes"
            ),
        )]
    }

    fn next_step(&self, _: &Inventory) -> String {
        "look at error and discard counters of the uplinks' ports on both sides, member by member; then at their \
         transceivers and cables"
            .into()
    }
}

fn where_lossy(found: &LossyUplinks, names: &Inventory) -> String {
    let name = names.rack_name(found.rack);
    let Some(other) = found.or_rack.map(|rack| names.rack_name(rack)) else {
        let directions = directions(found.directions);
        return format!("{name}: random loss on its uplinks {directions}");
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
