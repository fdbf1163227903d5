//! The fewest storage nodes that move an amount of data by a deadline, and what each constraint
//! asks by itself.
//!
//! With B = data / deadline and w, w_rx, w_tx the bytes on disk, into and out of storage NICs per
//! byte of data: disk S >= w B / d, RX S >= w_rx B / n, TX S >= w_tx B / n, and S = ceil(max x (1 +
//! headroom)) + failures. Uplink and clients bound B itself, with the same headroom; no number of
//! storage nodes helps there.

use serde::Serialize;
use thiserror::Error;

/// More nodes than any cluster has: an answer above is none.
pub const MAX_NODES: f64 = 1e6;
/// What sums of floating-point numbers may be off.
const ARITHMETIC: f64 = 1e-9;

/// How data is kept more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Redundancy {
    /// So many whole copies, written through a pipeline of storage nodes.
    Replication(u32),
    /// `data` cells and `parity` cells per stripe, written by the client.
    ErasureCoding {
        /// k.
        data: u32,
        /// m.
        parity: u32,
    },
}

/// What must be done by the deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// All copies reach disks.
    Write,
    /// One copy is read.
    Read,
}

/// The question. All rates are lower bounds of what was measured, or what was configured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Question {
    /// Bytes of data, one copy.
    pub data_bytes: f64,
    /// The deadline.
    pub within_s: f64,
    /// How data is kept.
    pub redundancy: Redundancy,
    /// Write or read.
    pub operation: Operation,
    /// The writers run on storage nodes, so that the first copy does not enter a NIC.
    pub clients_on_storage: bool,
    /// Of one storage node.
    pub node: NodeRates,
    /// Of all clients together. `None`: unbounded.
    pub clients_bytes_per_sec: Option<f64>,
    /// Of one client. `None`: unknown, and no ratio to clients is given.
    pub client_bytes_per_sec: Option<f64>,
    /// Clients. `None`: as many as are needed.
    pub clients: Option<u32>,
    /// Between clients and storage. `None`: unbounded.
    pub uplink_bytes_per_sec: Option<f64>,
    /// What the network carried without being the limit: it may carry more. `None`: not measured.
    pub uplink_carried_bytes_per_sec: Option<f64>,
    /// Part on top of what is needed: 0.2 is 20%.
    pub headroom: f64,
    /// Storage nodes that may fail while the deadline is still met.
    pub failures: u32,
    /// Of one storage node, in any currency.
    pub price_per_node: Option<f64>,
}

/// What one storage node does, bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct NodeRates {
    /// Its disks together.
    pub disk_bytes_per_sec: Option<f64>,
    /// Into its NIC, after what protocols take.
    pub nic_rx_bytes_per_sec: Option<f64>,
    /// Out of its NIC, as above.
    pub nic_tx_bytes_per_sec: Option<f64>,
    /// Data that it serves to clients, all copies accounted for: measured as a whole (a run's s).
    pub served_bytes_per_sec: Option<f64>,
}

/// What asks for nodes, or bounds the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Constraint {
    /// Storage nodes' disks.
    Disk,
    /// Into storage nodes' NICs.
    NicRx,
    /// Out of storage nodes' NICs: the replication pipeline, or reads.
    NicTx,
    /// A storage node as measured, whatever limits it.
    Node,
    /// Copies and cells need nodes of their own.
    Placement,
    /// All clients together.
    Clients,
    /// Between clients and storage.
    Uplink,
}

impl Constraint {
    /// In reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::NicRx => "NIC RX",
            Self::NicTx => "NIC TX",
            Self::Node => "storage node",
            Self::Placement => "placement",
            Self::Clients => "clients",
            Self::Uplink => "uplink",
        }
    }
}

/// One constraint's own answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConstraintNeed {
    /// Which.
    pub constraint: Constraint,
    /// Bytes per byte of data.
    pub factor: f64,
    /// Of one node, bytes per second. `None` for placement.
    pub node_bytes_per_sec: Option<f64>,
    /// Exact, before rounding, headroom and failures.
    pub nodes_exact: f64,
    /// Rounded up.
    pub nodes: u32,
}

/// What must pass in front of the storage nodes: the own answer of clients and uplink.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Passage {
    /// Clients or uplink.
    pub constraint: Constraint,
    /// Bytes per byte of data.
    pub factor: f64,
    /// Bytes per second that must pass, before headroom.
    pub needed_bytes_per_sec: f64,
    /// The same with headroom.
    pub with_headroom_bytes_per_sec: f64,
    /// Bytes per second that all clients, or the uplink, carry. `None`: not known.
    pub possible_bytes_per_sec: Option<f64>,
    /// Of one client. `None`: the uplink, or not known.
    pub client_bytes_per_sec: Option<f64>,
    /// Clients needed: exact, before rounding and headroom. `None` as above.
    pub clients_exact: Option<f64>,
    /// Clients needed, with headroom, rounded up. `None` as above.
    pub clients: Option<u32>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// B, bytes of data per second.
    pub needed_bytes_per_sec: f64,
    /// Every constraint of storage nodes, in the order of [`Constraint`].
    pub needs: Vec<ConstraintNeed>,
    /// Clients and uplink.
    pub passages: [Passage; 2],
    /// The one that asks for most.
    pub binding: Constraint,
    /// Nodes with headroom and failures.
    pub nodes: u32,
    /// Nodes without headroom and failures.
    pub nodes_bare: u32,
    /// Nodes for (failures tolerated) 0, 1, 2 at the given headroom.
    pub nodes_by_failures: [u32; 3],
    /// Bytes of data per second that the nodes carry, all up.
    pub carried_bytes_per_sec: f64,
    /// `carried / needed - 1`, all up.
    pub headroom: f64,
    /// Storage nodes that may fail while the deadline is met: N+x.
    pub failures_tolerated: u32,
    /// Clients: as given, or as many as carry B with headroom. `None` without a client's rate.
    pub clients: Option<u32>,
    /// Clients per storage node.
    pub fan_in: Option<f64>,
    /// All nodes' price.
    pub price: Option<f64>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SizingError {
    /// A number makes no sense.
    #[error("{what} is {value}; give {expected}")]
    Value {
        /// Which.
        what: &'static str,
        /// As given.
        value: String,
        /// What fits.
        expected: &'static str,
    },
    /// Nothing is known of a storage node.
    #[error(
        "nothing is known of a storage node; give --run RUN, or --disk and --nic (for example --disk 1.2GB/s --nic 25G)"
    )]
    NoRates,
    /// No number of storage nodes meets the deadline.
    #[error("no number of storage nodes meets the deadline: {}", .0.words())]
    Unreachable(RateBound),
}

/// What bounds the rate whatever the number of storage nodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RateBound {
    /// What binds.
    pub constraint: Constraint,
    /// Bytes of data per second that the deadline needs.
    pub needed_bytes_per_sec: f64,
    /// Bytes of data per second that the constraint lets pass, with headroom to spare.
    pub possible_bytes_per_sec: f64,
    /// The shortest time that it allows.
    #[serde(rename = "least_s")]
    pub min_s: f64,
    /// As asked for: 0.2 is 20%.
    pub headroom: f64,
}

impl RateBound {
    fn words(&self) -> String {
        use ew_model::units::{format_bytes_per_sec, format_duration_ns};
        let headroom = match self.headroom {
            0.0 => String::new(),
            part => format!(" with {:.0}% headroom", part * 100.0),
        };
        format!(
            "{} carry {}{headroom}, {} needed (binding constraint: {}); allow at least {}, or raise it",
            match self.constraint {
                Constraint::Clients => "the clients",
                Constraint::Uplink => "the uplinks",
                _ => "the nodes",
            },
            format_bytes_per_sec(self.possible_bytes_per_sec),
            format_bytes_per_sec(self.needed_bytes_per_sec),
            self.constraint.name(),
            format_duration_ns((self.min_s * 1e9) as u64),
        )
    }
}

/// Bytes on disk, into storage NICs, out of storage NICs and out of (into) clients per byte of
/// data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Factors {
    /// Disk.
    pub disk: f64,
    /// Into storage NICs.
    pub nic_rx: f64,
    /// Out of storage NICs.
    pub nic_tx: f64,
    /// Through clients' NICs and the uplink.
    pub client: f64,
}

impl Redundancy {
    /// Bytes moved per byte of data. A replicated write is forwarded by all but the last node of
    /// its pipeline; a client writes all cells of an erasure-coded stripe itself.
    #[must_use]
    pub fn factors(self, operation: Operation, clients_on_storage: bool) -> Factors {
        if operation == Operation::Read {
            return Factors {
                disk: 1.0,
                nic_rx: 0.0,
                nic_tx: 1.0,
                client: 1.0,
            };
        }
        match self {
            Self::Replication(copies) => {
                let copies = f64::from(copies);
                let local = if clients_on_storage { 1.0 } else { 0.0 };
                Factors {
                    disk: copies,
                    nic_rx: copies - local,
                    nic_tx: copies - 1.0,
                    client: 1.0 - local,
                }
            }
            Self::ErasureCoding { data, parity } => {
                let stretch = f64::from(data + parity) / f64::from(data);
                Factors {
                    disk: stretch,
                    nic_rx: stretch,
                    nic_tx: 0.0,
                    client: stretch,
                }
            }
        }
    }

    /// Nodes that copies or cells need at least, one each.
    #[must_use]
    pub fn min_nodes(self) -> u32 {
        match self {
            Self::Replication(copies) => copies,
            Self::ErasureCoding { data, parity } => data + parity,
        }
    }
}

/// Answers.
///
/// # Errors
/// [`SizingError`] for numbers without sense, without any rate of a node, and where no number of
/// nodes is enough.
pub fn size(question: &Question) -> Result<Answer, SizingError> {
    check(question)?;
    let needed = question.data_bytes / question.within_s;
    let factors = question
        .redundancy
        .factors(question.operation, question.clients_on_storage);
    check_reachable(question, needed, &factors)?;
    let needs = needs(question, needed, &factors);
    let binding = needs
        .iter()
        .max_by(|a, b| a.nodes_exact.total_cmp(&b.nodes_exact))
        .ok_or(SizingError::NoRates)?;
    if binding.nodes_exact * (1.0 + question.headroom) > MAX_NODES {
        return Err(SizingError::Unreachable(bound(binding, needed, question)));
    }
    let by_failures = |failures: u32| nodes(&needs, question.headroom) + failures;
    let total = by_failures(question.failures);
    let bare = nodes(&needs, 0.0);
    let carried = carried(&needs, needed, total);
    let passages = passages(question, needed, &factors);
    let clients = question.clients.or(passages[0].clients);
    Ok(Answer {
        needed_bytes_per_sec: needed,
        binding: binding.constraint,
        nodes: total,
        nodes_bare: bare,
        nodes_by_failures: [by_failures(0), by_failures(1), by_failures(2)],
        carried_bytes_per_sec: carried,
        headroom: carried / needed - 1.0,
        failures_tolerated: total - bare,
        passages,
        clients,
        fan_in: clients.map(|clients| f64::from(clients) / f64::from(total)),
        price: question
            .price_per_node
            .map(|price| price * f64::from(total)),
        needs,
    })
}

fn check(question: &Question) -> Result<(), SizingError> {
    let bad = |what, value: f64, expected| {
        Err(SizingError::Value {
            what,
            value: value.to_string(),
            expected,
        })
    };
    let is_positive = |value: f64| value.is_finite() && value > 0.0;
    if !is_positive(question.data_bytes) {
        return bad("--data", question.data_bytes, "more than 0 bytes");
    }
    if !is_positive(question.within_s) {
        return bad("--within", question.within_s, "more than 0 s");
    }
    if !(0.0..=10.0).contains(&question.headroom) {
        return bad("--headroom", question.headroom, "0 to 1000%");
    }
    let of_node = [
        question.node.disk_bytes_per_sec,
        question.node.nic_rx_bytes_per_sec,
        question.node.nic_tx_bytes_per_sec,
        question.node.served_bytes_per_sec,
        question.clients_bytes_per_sec,
        question.client_bytes_per_sec,
        question.uplink_bytes_per_sec,
        question.uplink_carried_bytes_per_sec,
    ];
    if let Some(rate) = of_node
        .into_iter()
        .flatten()
        .find(|rate| !is_positive(*rate))
    {
        return bad("a rate", rate, "more than 0 bytes per second");
    }
    match question.redundancy {
        Redundancy::Replication(0) => bad("--replication", 0.0, "1 or more copies"),
        Redundancy::ErasureCoding { data: 0, .. } => bad("--ec", 0.0, "1 or more data cells"),
        _ => Ok(()),
    }
}

/// The network between both sets and the clients bound the rate, whatever is behind them.
fn check_reachable(question: &Question, needed: f64, factors: &Factors) -> Result<(), SizingError> {
    for passage in passages(question, needed, factors) {
        let Some(rate) = passage.possible_bytes_per_sec else {
            continue;
        };
        if passage.with_headroom_bytes_per_sec > rate * (1.0 + ARITHMETIC) {
            let possible = rate / factors.client / (1.0 + question.headroom);
            return Err(SizingError::Unreachable(RateBound {
                constraint: passage.constraint,
                needed_bytes_per_sec: needed,
                possible_bytes_per_sec: possible,
                min_s: question.data_bytes / possible,
                headroom: question.headroom,
            }));
        }
    }
    Ok(())
}

/// Clients, then the uplink.
fn passages(question: &Question, needed: f64, factors: &Factors) -> [Passage; 2] {
    let of_client = question.client_bytes_per_sec;
    let of_clients = question.clients_bytes_per_sec.or_else(|| {
        let count = f64::from(question.clients?);
        Some(count * of_client?)
    });
    let must_pass = needed * factors.client;
    let with_headroom = must_pass * (1.0 + question.headroom);
    let passage = |constraint, possible, client: Option<f64>| Passage {
        constraint,
        factor: factors.client,
        needed_bytes_per_sec: must_pass,
        with_headroom_bytes_per_sec: with_headroom,
        possible_bytes_per_sec: possible,
        client_bytes_per_sec: client,
        clients_exact: client.map(|rate| must_pass / rate),
        clients: client.map(|rate| rounded_up(with_headroom / rate).max(1)),
    };
    [
        passage(Constraint::Clients, of_clients, of_client),
        passage(Constraint::Uplink, question.uplink_bytes_per_sec, None),
    ]
}

fn needs(question: &Question, needed: f64, factors: &Factors) -> Vec<ConstraintNeed> {
    let node = &question.node;
    let rates = [
        (Constraint::Disk, factors.disk, node.disk_bytes_per_sec),
        (Constraint::NicRx, factors.nic_rx, node.nic_rx_bytes_per_sec),
        (Constraint::NicTx, factors.nic_tx, node.nic_tx_bytes_per_sec),
        (Constraint::Node, 1.0, node.served_bytes_per_sec),
    ];
    let mut needs: Vec<ConstraintNeed> = rates
        .into_iter()
        .filter_map(|(constraint, factor, rate)| {
            let rate = rate?;
            let nodes_exact = factor * needed / rate;
            Some(ConstraintNeed {
                constraint,
                factor,
                node_bytes_per_sec: Some(rate),
                nodes_exact,
                nodes: rounded_up(nodes_exact),
            })
        })
        .collect();
    if needs.is_empty() {
        return needs;
    }
    let min = question.redundancy.min_nodes();
    needs.push(ConstraintNeed {
        constraint: Constraint::Placement,
        factor: f64::from(min),
        node_bytes_per_sec: None,
        nodes_exact: f64::from(min),
        nodes: min,
    });
    needs
}

/// Placement asks for whole nodes, and is served by headroom.
fn nodes(needs: &[ConstraintNeed], headroom: f64) -> u32 {
    let of = |need: &ConstraintNeed| match need.constraint {
        Constraint::Placement => need.nodes,
        _ => rounded_up(need.nodes_exact * (1.0 + headroom)),
    };
    needs.iter().map(of).max().unwrap_or(0).max(1)
}

/// A part of a billionth above a whole number is arithmetic, not a node.
fn rounded_up(nodes_exact: f64) -> u32 {
    (nodes_exact - ARITHMETIC)
        .ceil()
        .clamp(0.0, f64::from(u32::MAX)) as u32
}

fn carried(needs: &[ConstraintNeed], needed: f64, nodes: u32) -> f64 {
    let of_rates = needs
        .iter()
        .filter(|need| need.constraint != Constraint::Placement && need.nodes_exact > 0.0);
    of_rates
        .map(|need| needed * f64::from(nodes) / need.nodes_exact)
        .fold(f64::INFINITY, f64::min)
}

fn bound(binding: &ConstraintNeed, needed: f64, question: &Question) -> RateBound {
    let possible = needed * MAX_NODES / (binding.nodes_exact * (1.0 + question.headroom));
    RateBound {
        constraint: binding.constraint,
        needed_bytes_per_sec: needed,
        possible_bytes_per_sec: possible,
        min_s: question.data_bytes / possible,
        headroom: question.headroom,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 TB in 30 min; disks of 1.2 GB/s, NICs of 25 Gb/s at 90%.
    fn worked() -> Question {
        Question {
            data_bytes: 10e12,
            within_s: 1800.0,
            redundancy: Redundancy::Replication(3),
            operation: Operation::Write,
            clients_on_storage: false,
            node: NodeRates {
                disk_bytes_per_sec: Some(1.2e9),
                nic_rx_bytes_per_sec: Some(25e9 / 8.0 * 0.9),
                nic_tx_bytes_per_sec: Some(25e9 / 8.0 * 0.9),
                served_bytes_per_sec: None,
            },
            clients_bytes_per_sec: None,
            client_bytes_per_sec: None,
            clients: None,
            uplink_bytes_per_sec: None,
            uplink_carried_bytes_per_sec: None,
            headroom: 0.0,
            failures: 0,
            price_per_node: None,
        }
    }

    fn exact(answer: &Answer, constraint: Constraint) -> f64 {
        let need = answer.needs.iter().find(|n| n.constraint == constraint);
        need.map_or(f64::NAN, |need| (need.nodes_exact * 10.0).round() / 10.0)
    }

    #[test]
    fn three_copies() {
        let answer = size(&worked()).unwrap();
        assert_eq!((answer.nodes, answer.binding), (14, Constraint::Disk));
        assert_eq!(exact(&answer, Constraint::Disk), 13.9);
        assert_eq!(exact(&answer, Constraint::NicRx), 5.9);
        assert_eq!(exact(&answer, Constraint::NicTx), 4.0);
        assert_eq!(answer.failures_tolerated, 0);
    }

    #[test]
    fn headroom_and_a_spare() {
        let question = Question {
            headroom: 0.2,
            failures: 1,
            price_per_node: Some(1000.0),
            ..worked()
        };
        let answer = size(&question).unwrap();
        assert_eq!(answer.nodes, 18);
        assert_eq!(answer.nodes_by_failures, [17, 18, 19]);
        assert_eq!(answer.failures_tolerated, 4, "headroom is spare nodes, too");
        assert_eq!(answer.price, Some(18_000.0));
    }

    #[test]
    fn erasure_coding() {
        let ec = Question {
            redundancy: Redundancy::ErasureCoding { data: 6, parity: 3 },
            headroom: 0.2,
            failures: 1,
            ..worked()
        };
        let answer = size(&ec).unwrap();
        assert_eq!(answer.nodes, 10);
        assert_eq!(exact(&answer, Constraint::Disk), 6.9);
        let bare = size(&Question {
            headroom: 0.0,
            failures: 0,
            ..ec
        });
        let bare = bare.unwrap();
        assert_eq!((bare.nodes, bare.binding), (9, Constraint::Placement));
    }

    #[test]
    fn writers_on_storage_nodes_save_a_copy_on_the_wire() {
        let local = Question {
            clients_on_storage: true,
            ..worked()
        };
        let answer = size(&local).unwrap();
        assert_eq!(exact(&answer, Constraint::NicRx), 4.0);
        assert_eq!(answer.nodes, 14);
    }

    #[test]
    fn reads_need_one_copy() {
        let read = Question {
            operation: Operation::Read,
            ..worked()
        };
        let answer = size(&read).unwrap();
        assert_eq!(exact(&answer, Constraint::Disk), 4.6);
        assert_eq!(exact(&answer, Constraint::NicTx), 2.0);
        assert_eq!(exact(&answer, Constraint::NicRx), 0.0);
        assert_eq!(answer.nodes, 5);
    }

    #[test]
    fn clients_give_the_ratio() {
        let question = Question {
            client_bytes_per_sec: Some(0.5e9),
            ..worked()
        };
        let answer = size(&question).unwrap();
        assert_eq!(answer.clients, Some(12));
        assert_eq!(answer.fan_in, Some(12.0 / 14.0));
    }

    /// 10 TB in 30 min are 5.56 GB/s, with 20% headroom 6.67 GB/s.
    #[test]
    fn clients_and_uplink_have_headroom_and_an_answer_of_their_own() {
        let question = Question {
            client_bytes_per_sec: Some(0.5e9),
            uplink_bytes_per_sec: Some(6.7e9),
            headroom: 0.2,
            ..worked()
        };
        let answer = size(&question).unwrap();
        assert_eq!((answer.nodes, answer.clients), (17, Some(14)));
        let [clients, uplink] = &answer.passages;
        let tenths = |rate: f64| (rate / 1e8).round();
        assert_eq!(
            clients.clients_exact.map(|n| (n * 10.0).round()),
            Some(111.0)
        );
        assert_eq!(clients.constraint, Constraint::Clients);
        assert_eq!(tenths(uplink.needed_bytes_per_sec), 56.0);
        assert_eq!(tenths(uplink.with_headroom_bytes_per_sec), 67.0);
        assert_eq!(uplink.possible_bytes_per_sec, Some(6.7e9));
        // Enough without headroom, and too little with it.
        for tight in [
            Question {
                uplink_bytes_per_sec: Some(6e9),
                ..question.clone()
            },
            Question {
                clients: Some(12),
                ..question
            },
        ] {
            let error = size(&tight).unwrap_err().to_string();
            assert!(
                error.contains("carry 5.00 GB/s with 20% headroom, 5.56 GB/s"),
                "{error}"
            );
            let bare = Question {
                headroom: 0.0,
                ..tight
            };
            assert!(size(&bare).is_ok());
        }
        let local = Question {
            clients_on_storage: true,
            redundancy: Redundancy::Replication(1),
            ..question
        };
        let [_, uplink] = size(&local).unwrap().passages;
        assert_eq!(uplink.with_headroom_bytes_per_sec, 0.0, "nothing passes");
    }

    #[test]
    fn what_no_node_can_help_is_named() {
        let few_clients = Question {
            clients: Some(4),
            client_bytes_per_sec: Some(1e9),
            ..worked()
        };
        let Err(SizingError::Unreachable(bound)) = size(&few_clients) else {
            panic!("4 GB/s are not 5.56 GB/s");
        };
        assert_eq!(bound.constraint, Constraint::Clients);
        assert_eq!(bound.min_s, 2500.0);
        let narrow = Question {
            uplink_bytes_per_sec: Some(5e9),
            ..worked()
        };
        let error = size(&narrow).unwrap_err().to_string();
        assert!(error.contains("binding constraint: uplink"), "{error}");
        let hopeless = Question {
            within_s: 1e-3,
            ..worked()
        };
        let error = size(&hopeless).unwrap_err().to_string();
        assert!(error.contains("binding constraint: disk"), "{error}");
    }

    #[test]
    fn nonsense_is_refused() {
        let none = Question {
            node: NodeRates::default(),
            ..worked()
        };
        assert_eq!(size(&none), Err(SizingError::NoRates));
        for bad in [
            Question {
                data_bytes: 0.0,
                ..worked()
            },
            Question {
                within_s: f64::NAN,
                ..worked()
            },
            Question {
                redundancy: Redundancy::Replication(0),
                ..worked()
            },
            Question {
                headroom: -0.1,
                ..worked()
            },
        ] {
            assert!(matches!(size(&bad), Err(SizingError::Value { .. })));
        }
    }
}
