//! A link came up slower than its peers' or than configured, at half duplex, or is shaped to less.

use super::slow_host::side_evidence;
use crate::catalogue::why::Reasoned;
use crate::catalogue::{Entry, Headline, proof};
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::{HalfDuplex, LowLinkSpeed, Shaper};
use ew_model::units::format_bits_per_sec;

impl Entry for LowLinkSpeed {
    fn headline(&self, names: &Inventory) -> Headline {
        let whose = match self.is_configured {
            true => "expected",
            false => "typical",
        };
        Headline::new(format!(
            "{}: link speed {} ({whose} {}){}",
            names.name(self.host),
            format_bits_per_sec(self.bits_per_sec),
            format_bits_per_sec(self.expected_bits_per_sec),
            consequence(self),
        ))
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let reported = proof(
            format!(
                "{} reports {}, {} duplex",
                self.interface,
                format_bits_per_sec(self.bits_per_sec),
                self.duplex.as_deref().unwrap_or("unknown"),
            ),
            interfaces_of(names.name(self.host)),
        );
        let flows = side_evidence(&self.flows, names);
        std::iter::once(reported).chain(flows).collect()
    }

    fn next_step(&self, names: &Inventory) -> String {
        format!(
            "look at `ethtool {}` on {} (advertised and partner's modes), then cable, transceiver and the switch \
             port's configured speed",
            self.interface,
            names.name(self.host)
        )
    }
}

/// What the low speed did to the host's rates, where it did.
fn consequence(found: &LowLinkSpeed) -> String {
    let tx = found.tx_bits_per_sec.map(format_bits_per_sec);
    let rx = found.rx_bits_per_sec.map(format_bits_per_sec);
    match (tx, rx) {
        (Some(tx), Some(rx)) if tx == rx => format!(", TX and RX {tx}"),
        (Some(tx), Some(rx)) => format!(", TX {tx}, RX {rx}"),
        (Some(tx), None) => format!(", TX {tx}"),
        (None, Some(rx)) => format!(", RX {rx}"),
        (None, None) => String::new(),
    }
}

impl Reasoned for HalfDuplex {
    fn because(&self, _: &Inventory) -> String {
        "link at half duplex".into()
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        vec![proof(
            format!("{} reports half duplex", self.interface),
            interfaces_of(names.name(self.host)),
        )]
    }

    fn next_step(&self, _: &Inventory) -> String {
        format!(
            "set both ends to negotiate (`ethtool -s {} autoneg on`, and the switch port): half duplex is what one end \
             falls back to when the other is fixed",
            self.interface
        )
    }
}

impl Reasoned for Shaper {
    fn because(&self, _: &Inventory) -> String {
        format!(
            "tc {} shaper on {}, {} (peers {})",
            self.discipline,
            self.interface,
            format_bits_per_sec(self.bits_per_sec),
            format_bits_per_sec(self.peers_bits_per_sec)
        )
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let name = names.name(self.host);
        vec![proof(
            format!(
                "{name}: root qdisc {} of {} has the rate {}",
                self.discipline,
                self.interface,
                format_bits_per_sec(self.bits_per_sec)
            ),
            format!("counters.parquet: host = {name}, source = qdisc, rate_bytes_per_sec"),
        )]
    }

    fn next_step(&self, names: &Inventory) -> String {
        format!(
            "`tc -s qdisc show dev {}` on {} shows the shaper; remove it or set its rate to the link's if \
             nobody wants it",
            self.interface,
            names.name(self.host)
        )
    }
}

fn interfaces_of(name: &str) -> String {
    format!("events.jsonl: host-up of {name}, interfaces")
}
