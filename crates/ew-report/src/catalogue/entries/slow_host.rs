//! A host sends or receives slower than its peers.

use crate::catalogue::phrases::directions;
use crate::catalogue::why::Reasoned;
use crate::catalogue::{Entry, Headline, proof};
use crate::words::plural;
use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::{
    Directions, PeersRate, SideRate, SideRates, SlowDirection, SlowHost, StageRate,
};
use ew_model::units::format_bits_per_sec;

impl Entry for SlowHost {
    fn headline(&self, names: &Inventory) -> Headline {
        let sides = self.sides.iter().map(|side| of_peers(self, side));
        let sides = sides.collect::<Vec<_>>().join(", ");
        let what = format!("{}: {sides}", names.name(self.host));
        match (&self.why, self.alone_in) {
            (Some(why), _) => Headline::new(what).because(why.because(names)),
            (None, Some(rack)) => Headline::new(format!(
                "{what}. Cause not determined: the host, or the uplinks of {}, which has no other host",
                names.rack_name(rack)
            )),
            (None, None) => Headline::new(format!("{what}. Cause not determined")),
        }
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        let why = self.why.as_ref().map(|why| why.evidence(names));
        let mut found = why.unwrap_or_default();
        found.extend(side_evidence(&self.flows, names));
        found
    }

    fn next_step(&self, names: &Inventory) -> String {
        match &self.why {
            Some(why) => why.next_step(names),
            None if self.alone_in.is_some() => {
                format!("{}, and at the rack's uplinks", look_at(&self.sides))
            }
            None => look_at(&self.sides).into(),
        }
    }
}

/// "50% of peers in both directions (47.3 vs 94.6 Mb/s)".
fn of_peers(found: &SlowHost, side: &SlowDirection) -> String {
    format!(
        "{:.0}% of peers {} ({} vs {})",
        100.0 * side.bits_per_sec / found.peers_bits_per_sec,
        directions(side.directions),
        format_bits_per_sec(side.bits_per_sec),
        format_bits_per_sec(found.peers_bits_per_sec)
    )
}

/// Where to look while nothing is known.
fn look_at(sides: &[SlowDirection]) -> &'static str {
    match sides {
        [only] if only.directions == Directions::Tx => {
            "look on the host at `ethtool -S` (tx errors, pause), `tc -s qdisc` (a rate limit), and one CPU at 100%; \
             then at the receive counters of its switch port"
        }
        [only] if only.directions == Directions::Rx => {
            "look on the host at `ethtool -S` (rx_missed, rx_no_buffer), softirq on one CPU in `mpstat -P ALL`, ring \
             and receive buffer sizes; then at discards on its switch port"
        }
        _ => {
            "look at `ethtool` (speed, duplex) and `ethtool -S` on the host, the counters of its switch port, then \
             cable and transceiver"
        }
    }
}

/// The host's isolated flows, one piece per slow side, and the peers' figure.
pub(super) fn side_evidence(rates: &SideRates, names: &Inventory) -> Vec<Evidence> {
    let name = names.name(rates.host);
    let sides = rates.sides.iter().map(|side| one_side(side, name));
    let has_hosts = |peers: &&PeersRate| peers.hosts > 0;
    let of_peers = rates.peers.as_ref().filter(has_hosts).map(peers);
    sides.chain(of_peers).collect()
}

/// "isolated flows from h3: `intra-rack` median 95.0 Mb/s (6), `mesh` 95.2 Mb/s (7); 5 peers;
/// ..."
fn one_side(side: &SideRate, name: &str) -> Evidence {
    let (column, word) = match side.direction {
        Directions::Rx => ("dst", "to"),
        _ => ("src", "from"),
    };
    let rows = side.stages.iter().map(|stage| stage.flows).sum();
    proof(
        format!(
            "isolated flows {word} {name}: {}; {}; likelihood gain {:.0} nats",
            medians(side),
            plural(side.peers as usize, "peer"),
            side.gain_nats,
        ),
        format!("flows.parquet: {column} = {name}, {}", plural(rows, "row")),
    )
}

fn medians(side: &SideRate) -> String {
    let of = |(i, stage): (usize, &StageRate)| {
        let word = if i == 0 { "median " } else { "" };
        let middle = format_bits_per_sec(stage.median_bits_per_sec);
        format!("`{}` {word}{middle} ({})", stage.stage, stage.flows)
    };
    let stages = side.stages.iter().enumerate().map(of);
    stages.collect::<Vec<_>>().join(", ")
}

fn peers(peers: &PeersRate) -> Evidence {
    let stages: Vec<String> = peers
        .stages
        .iter()
        .map(|name| format!("`{name}`"))
        .collect();
    proof(
        format!(
            "peers: median {} of {}",
            format_bits_per_sec(peers.median_bits_per_sec),
            plural(peers.hosts as usize, "host")
        ),
        format!(
            "flows.parquet: isolated flows of stages {}, neither src nor dst slow",
            stages.join(", ")
        ),
    )
}
