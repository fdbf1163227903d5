//! Bulk UDP that loses datagrams.

use crate::catalogue::{Entry, Headline, proof};
use crate::words::plural;
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::{DatagramLoss, DatagramLossOfPair, Fragments};

impl Entry for DatagramLoss {
    fn headline(&self, _: &Inventory) -> Headline {
        let why = match self.is_paced {
            true => "",
            false => ", sent as fast as the senders could",
        };
        Headline::new(format!(
            "`{}`: {:.1}% of datagrams lost{why}",
            self.stage,
            100.0 * self.lost_share
        ))
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let source = format!("flows.parquet: stage `{}`, datagrams_lost", self.stage);
        let all = format!(
            "{} of {} never came",
            self.lost_datagrams,
            plural(self.sent_datagrams as usize, "datagram")
        );
        let worst = self.worst_pair.as_ref();
        let worst = worst.map(|pair| most(pair, self.pairs, names));
        let counted = std::iter::once(all).chain(worst);
        let counted = counted.map(|text| proof(text, source.as_str()));
        let fragments = self.fragments.as_ref().map(in_fragments);
        counted.chain(fragments).collect()
    }

    fn next_step(&self, _: &Inventory) -> String {
        let pace = match self.is_paced {
            true => {
                "look at `nstat -az UdpRcvbufErrors` (the receiver was too slow) and at discards of the NIC and of the switch ports; \
                 a lower rate shows whether the path is full or faulty"
            }
            false => {
                "set a rate below the path's: what is lost then is the network's doing, not surplus"
            }
        };
        let whole = self.fragments.map_or(String::new(), |fragments| {
            let bytes = fragments.whole_bytes;
            format!("; datagrams of at most {bytes} bytes need no fragments (`--set message-size={bytes}`)")
        });
        format!("{pace}{whole}")
    }
}

fn most(worst: &DatagramLossOfPair, pairs: usize, names: &Inventory) -> String {
    format!(
        "most of {} from {} to {}: {:.1}%",
        plural(pairs, "pair"),
        names.name(worst.src),
        names.name(worst.dst),
        100.0 * worst.lost_share,
    )
}

fn in_fragments(of: &Fragments) -> Evidence {
    proof(
        format!(
            "a datagram of {} bytes leaves in {} fragments of MTU {}, and is lost with any of them",
            of.message_bytes, of.fragments, of.mtu_bytes,
        ),
        "run.json: message size; events.jsonl: host-up, interfaces",
    )
}
