//! Which path is bad, by name: where the routers on the connections' paths are known.
//!
//! All of a bad path's connections are bad, and those of the other paths are as good as ever. So
//! the connections over one router are compared with all others of their test by their shares of
//! bad ones (a likelihood ratio of binomials, by test, since one test fills links and the other
//! does not). A router has an address of its own towards each rack: what is bad on the way into a
//! rack has one name for every rack that sends to it.

use super::connections::Judged;
use super::scope::{Pods, Scope};
use super::traces::Traces;
use crate::{ANY_PART, Direction, OVERDISPERSION};
use ew_evidence::criteria::{ALIKE, EQUAL, FAULT_ODDS, LOSSY_UNLOADED, MIN_SEEN, SLOW};
use ew_stats::median;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Of the connections of a bad path that were good elsewhere, and show it, so many are bad; less is
/// what unequal hashing does, too.
const MIN_ATTRIBUTABLE: f64 = 1.0 / 3.0;

/// One bad path whose routers are known.
#[derive(Clone, Debug)]
pub struct BadMember {
    /// Whose path it is.
    pub scope: Scope,
    /// Scopes that explain as much.
    pub rivals: Vec<Scope>,
    /// The router's address, by the rack that sends to it.
    pub via: Vec<(usize, IpAddr)>,
    /// Bad connections over it, and all.
    pub bad: usize,
    /// All connections over it.
    pub connections: usize,
    /// Share of bad ones among all others of the tests that show it.
    pub others_bad_share: f64,
    /// Log-likelihood gained, less the price, nats.
    pub gain: f64,
}

/// Connections of a test.
pub(super) struct Stratum {
    /// Those whose routers are known, by the rack that sends and the router.
    routers: BTreeMap<(usize, IpAddr), Vec<Judged>>,
    /// All of them.
    traced: Count,
    /// Of those that each rack sends over its worst router.
    worst: BTreeMap<usize, Count>,
    /// By how much less log-likelihoods count, since connections that share something are bad
    /// together.
    dispersion: f64,
}

impl Stratum {
    /// The dispersion is what the routers' shares of bad connections vary by (Pearson's chi-squared
    /// over its degrees of freedom, McCullagh and Nelder 1989, section 4.5), without the worst
    /// router of each rack, which may be the bad one.
    pub(super) fn new(judged: Vec<Judged>) -> Self {
        let mut routers: BTreeMap<(usize, IpAddr), Vec<Judged>> = BTreeMap::new();
        for one in judged {
            if let Some(via) = one.via {
                routers.entry((one.racks.0, via)).or_default().push(one);
            }
        }
        let mut racks: BTreeMap<usize, Vec<Count>> = BTreeMap::new();
        for ((rack, _), own) in &routers {
            racks.entry(*rack).or_default().push(Count::of(own));
        }
        let mut worst = BTreeMap::new();
        let mut ordinary: Vec<Count> = Vec::new();
        for (rack, mut counts) in racks {
            counts.sort_by(|a, b| a.share().total_cmp(&b.share()));
            worst.extend(counts.pop().map(|count| (rack, count)));
            ordinary.extend(counts);
        }
        let sum = |figure: fn(&Count) -> f64| ordinary.iter().map(figure).sum::<f64>();
        let share = Count {
            bad: sum(|count| count.bad),
            all: sum(|count| count.all),
        }
        .share();
        let squares = ordinary.iter().map(|count| {
            let expected = count.all * share;
            (count.bad - expected).powi(2) / (expected * (1.0 - share)).max(f64::MIN_POSITIVE)
        });
        let freedom = ordinary.len().saturating_sub(1).max(1) as f64;
        Self {
            dispersion: (squares.sum::<f64>() / freedom).max(OVERDISPERSION),
            traced: Count::of(routers.values().flatten()),
            worst,
            routers,
        }
    }

    /// All connections but those of one router, from `rack`, and those over the worst of each other
    /// rack: it may be the same spine's.
    fn others(&self, rack: usize, own: Count) -> Count {
        let worst = self.worst.iter().filter(|(other, _)| **other != rack);
        worst.fold(self.traced.without(own), |left, (_, worst)| {
            left.without(*worst)
        })
    }
}

/// Counts of connections of a test.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    bad: f64,
    all: f64,
}

/// Which link of a path is meant: out of the rack that sends, or into the one that receives.
#[derive(Clone, Copy, Debug)]
enum End {
    Out = 0,
    Into = 1,
}

/// One router, from one rack to all others or to one.
#[derive(Clone, Debug)]
struct Piece {
    from: usize,
    via: IpAddr,
    /// Likelihood ratio and the prior of the router, nats.
    gain: f64,
    bad: f64,
    all: f64,
    others: Count,
}

/// The bad path that explains the bad connections best, if one does.
pub(super) fn bad_member(
    strata: &[Stratum],
    traces: &Traces,
    (racks, pods): (usize, &Pods),
) -> Option<BadMember> {
    let locations = racks + pods.of_several().count();
    let price = (3.0 * locations as f64 + 1.0).ln() + (1.0 / FAULT_ODDS).ln();
    let found = scopes(strata, traces, (racks, pods), price);
    let gain = |pieces: &[Piece]| pieces.iter().map(|piece| piece.gain).sum::<f64>() - price;
    let mut ranked: Vec<(f64, Scope, Vec<Piece>)> = found
        .into_iter()
        .filter(|(_, pieces)| pieces.iter().map(|p| p.bad).sum::<f64>() >= MIN_SEEN as f64)
        .map(|(scope, pieces)| (gain(&pieces), scope, pieces))
        .collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (gain, scope, pieces) = ranked.first().filter(|(gain, ..)| *gain > EQUAL)?.clone();
    let sum = |figure: fn(&Piece) -> f64| pieces.iter().map(figure).sum::<f64>();
    let mut via: Vec<(usize, IpAddr)> = pieces.iter().map(|p| (p.from, p.via)).collect();
    via.sort_unstable();
    via.dedup();
    Some(BadMember {
        scope,
        rivals: (ranked.iter().skip(1))
            .filter(|(other, ..)| *other > gain - EQUAL)
            .map(|(_, scope, _)| *scope)
            .collect(),
        via,
        bad: sum(|p| p.bad) as usize,
        connections: sum(|p| p.all) as usize,
        others_bad_share: sum(|p| p.others.bad) / sum(|p| p.others.all).max(1.0),
        gain,
    })
}

/// All that may be bad, with what shows it.
fn scopes(
    strata: &[Stratum],
    traces: &Traces,
    (racks, pods): (usize, &Pods),
    price: f64,
) -> Vec<(Scope, Vec<Piece>)> {
    let all = |end: End, from: Vec<usize>, is_meant: &dyn Fn(usize) -> bool| -> Vec<Vec<Piece>> {
        let of_rack = |from| candidates(strata, traces, from, (end, is_meant));
        from.into_iter().map(of_rack).collect()
    };
    let out = all(End::Out, (0..racks).collect(), &|_| true);
    let mut found: Vec<(Scope, Vec<Piece>)> = Vec::new();
    let mut add = |scope: &dyn Fn(Direction) -> Scope,
                   (out, into): (&[Vec<Piece>], &[Vec<Piece>]),
                   is_possible: &dyn Fn(&[Piece]) -> bool| {
        let mut sends = shown(of_one_router(out));
        if !is_possible(&sends) {
            sends.clear();
        }
        let receives = shown(of_one_router(into));
        // Both directions are one more thing to be at fault.
        if nats(&sends).min(nats(&receives)) > price {
            let both = of_one_router(&[out, into].concat());
            found.push((scope(Direction::Both), shown(both)));
        }
        found.push((scope(Direction::Tx), sends));
        found.push((scope(Direction::Rx), receives));
    };
    for rack in 0..racks {
        let others = (0..racks).filter(|from| *from != rack).collect();
        let into = all(End::Into, others, &|to| to == rack);
        let ends = (&out[rack..=rack], into.as_slice());
        add(&|way| Scope::Rack(rack, way), ends, &|_| true);
    }
    for pod in pods.of_several() {
        let own = pods.racks(pod);
        let is_own = |rack: usize| own.contains(&rack);
        let others = (0..racks).filter(|from| !is_own(*from)).collect();
        let out = all(End::Out, own.clone(), &|to| !is_own(to));
        let into = all(End::Into, others, &is_own);
        // What one rack alone shows is its own.
        let is_of_several = |sends: &[Piece]| sends.len() > 1;
        add(&|way| Scope::Pod(pod, way), (&out, &into), &is_of_several);
    }
    // A spine is bad for whoever sends over it, and not for one rack, which is something else.
    let spine = of_one_router(&out);
    let show_it = spine.iter().filter(|piece| piece.gain > EQUAL);
    let most = spine.iter().map(|piece| piece.gain).fold(0.0, f64::max);
    if 2 * show_it.count() > racks.max(2) && nats(&spine) - most > price {
        found.push((Scope::Everywhere, spine));
    }
    found
}

/// What those explain that explain more than they cost.
fn nats(pieces: &[Piece]) -> f64 {
    pieces.iter().map(|piece| piece.gain.max(0.0)).sum()
}

/// Those that explain more than they cost.
fn shown(mut pieces: Vec<Piece>) -> Vec<Piece> {
    pieces.retain(|piece| piece.gain > 0.0);
    pieces
}

/// Of each rack's routers, in the order of their addresses, the ones that explain most together.
/// The piece that shows most is any of its rack's. Fabrics are numbered in order, so in the others
/// the router with the same place is probably the same: half of the odds are on it, half on any.
fn of_one_router(candidates: &[Vec<Piece>]) -> Vec<Piece> {
    let leads = candidates.iter().enumerate().flat_map(|(rack, of_rack)| {
        let leads = of_rack.iter().enumerate();
        leads.map(move |(place, lead)| (rack, place, lead.at_cost_of(1.0 / of_rack.len() as f64)))
    });
    let with_others = |(rack, place, lead): (usize, usize, Piece)| {
        let others = candidates
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != rack);
        let others = others.filter_map(|(_, of_rack)| most_likely(of_rack, place));
        std::iter::once(lead).chain(others).collect::<Vec<Piece>>()
    };
    leads
        .filter(|(.., lead)| lead.gain > 0.0)
        .map(with_others)
        .max_by(|a, b| nats(a).total_cmp(&nats(b)))
        .unwrap_or_default()
}

/// The router that explains most, where the one at such a place probably does.
fn most_likely(of_rack: &[Piece], place: usize) -> Option<Piece> {
    let any = 0.5 / of_rack.len() as f64;
    let pieces = of_rack
        .iter()
        .enumerate()
        .map(|(at, piece)| piece.at_cost_of(if at == place { 0.5 + any } else { any }));
    pieces.max_by(|a, b| a.gain.total_cmp(&b.gain))
}

/// All routers that a rack's connections to the racks meant go over, in the order of their
/// addresses. None where there is one.
fn candidates(
    strata: &[Stratum],
    traces: &Traces,
    from: usize,
    meant: (End, &dyn Fn(usize) -> bool),
) -> Vec<Piece> {
    let members = traces.forks.get(&from).map(|fork| &fork.members);
    let members = members.filter(|members| members.len() > 1);
    let piece = |via: &IpAddr| {
        let mut piece = Piece {
            from,
            via: *via,
            gain: 0.0,
            bad: 0.0,
            all: 0.0,
            others: Count::default(),
        };
        for stratum in strata {
            piece.take(stratum, meant);
        }
        piece
    };
    members.into_iter().flatten().map(piece).collect()
}

impl Piece {
    /// As it counts if it was so likely before.
    fn at_cost_of(&self, prior: f64) -> Self {
        Self {
            gain: self.gain + prior.ln(),
            ..self.clone()
        }
    }

    /// Adds a test, if more of the router's connections are bad in it than of all others.
    fn take(&mut self, stratum: &Stratum, (end, is_meant): (End, &dyn Fn(usize) -> bool)) {
        let over_it = stratum.routers.get(&(self.from, self.via));
        let over_it: Vec<&Judged> = (over_it.into_iter().flatten())
            .filter(|one| is_meant(one.racks.1))
            .collect();
        let connections = that_would_show(&over_it, end);
        let own = Count::of(connections.iter().copied());
        // Those that are not traced may be over the same router.
        let others = stratum.others(self.from, Count::of(over_it));
        let all = Count {
            bad: own.bad + others.bad,
            all: own.all + others.all,
        };
        let attributable = (own.share() - others.share()) / (1.0 - others.share());
        if attributable < MIN_ATTRIBUTABLE * visible_share(&connections) {
            return;
        }
        let apart = own.likelihood(own.share()) + others.likelihood(others.share());
        let slow: Vec<f64> = (connections.iter())
            .filter(|one| one.is_bad && one.is_slow())
            .map(|one| one.of_pace.max(f64::MIN_POSITIVE).ln())
            .collect();
        let ratio = apart - all.likelihood(all.share()) + likeness(&slow);
        self.gain += ratio / stratum.dispersion - 0.5 * own.all.max(2.0).ln();
        self.bad += own.bad;
        self.all += own.all;
        self.others.bad += others.bad;
        self.others.all += others.all;
    }
}

/// Of a path's connections, those that a narrow link would slow: it is asked for more in their
/// rounds than it carries for the bad ones. All of them where most bad ones lose and are not slow.
fn that_would_show<'j>(over_it: &[&'j Judged], end: End) -> Vec<&'j Judged> {
    let asked = |one: &Judged| Some(one.asked?[end as usize]);
    let carried = |one: &&&Judged| match one.is_slow() {
        true => asked(one).map(|asked| one.of_pace * asked),
        false => Some(0.0),
    };
    let bad = over_it.iter().filter(|one| one.is_bad);
    let carried = median(&bad.filter_map(|one| carried(&one)).collect::<Vec<_>>());
    let carried = carried.unwrap_or(0.0);
    let shows = |one: &Judged| one.is_bad || asked(one).is_none_or(|asked| carried < SLOW * asked);
    over_it.iter().copied().filter(|one| shows(one)).collect()
}

/// Share of a path's connections that show what it does to them. Where it loses segments, some lose
/// none: of so many segments each, by the share that all of them lose together.
fn visible_share(connections: &[&Judged]) -> f64 {
    let sum = |figure: fn(&Judged) -> f64| connections.iter().map(|one| figure(one)).sum::<f64>();
    let lost_share = sum(|one| one.lost) / sum(|one| one.segments).max(1.0);
    if lost_share < LOSSY_UNLOADED {
        return 1.0;
    }
    let loses = |one: &&Judged| 1.0 - (1.0 - lost_share).powf(one.segments);
    connections.iter().map(loses).sum::<f64>() / connections.len() as f64
}

/// What is gained when rates (log-scale) are alike, as those of one narrow path are, nats: what is
/// slow by chance is anything from [`ew_evidence::criteria::SLOW`] down.
fn likeness(rates: &[f64]) -> f64 {
    let Some(middle) = median(rates) else {
        return 0.0;
    };
    let density = |rate: &f64| {
        let z = (rate - middle) / ALIKE.ln();
        (-0.5 * z * z).exp() / (ALIKE.ln() * std::f64::consts::TAU.sqrt())
    };
    let gains = rates
        .iter()
        .map(|rate| (0.5 + 0.5 * ANY_PART * density(rate)).ln());
    (gains.sum::<f64>() - 0.5 * (rates.len() as f64).ln()).max(0.0)
}

impl Count {
    fn of<'j>(judged: impl IntoIterator<Item = &'j Judged>) -> Self {
        judged.into_iter().fold(Self::default(), |count, one| Self {
            bad: count.bad + f64::from(u8::from(one.is_bad)),
            all: count.all + 1.0,
        })
    }

    fn without(self, some: Self) -> Self {
        Self {
            bad: self.bad - some.bad,
            all: self.all - some.all,
        }
    }

    /// Of bad ones; never 0 or 1.
    fn share(self) -> f64 {
        (self.bad + 0.5) / (self.all + 1.0)
    }

    fn likelihood(self, share: f64) -> f64 {
        self.bad * share.ln() + (self.all - self.bad) * (1.0 - share).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::HostId;

    fn connections(segments: f64, lost: &[f64]) -> Vec<Judged> {
        let one = |lost: &f64| Judged {
            src: HostId(0),
            dst: HostId(1),
            racks: (0, 1),
            via: None,
            is_bad: *lost > 0.0,
            of_pace: 1.0,
            retransmitted: 0.0,
            segments,
            lost: *lost,
            asked: None,
        };
        lost.iter().map(one).collect()
    }

    fn share(all: &[Judged]) -> f64 {
        visible_share(&all.iter().collect::<Vec<_>>())
    }

    fn piece(from: usize, via: u8, gain: f64) -> Piece {
        Piece {
            from,
            via: IpAddr::from([198, 19, 1 + from as u8, via]),
            gain,
            bad: 1.0,
            all: 1.0,
            others: Count::default(),
        }
    }

    #[test]
    fn racks_probably_number_their_routers_alike() {
        let rack = |from, gains: [f64; 4]| -> Vec<Piece> {
            (1..)
                .zip(gains)
                .map(|(via, gain)| piece(from, via, gain))
                .collect()
        };
        let routers = |racks: &[Vec<Piece>]| -> Vec<u8> {
            let last = |piece: &Piece| match piece.via {
                IpAddr::V4(via) => via.octets()[3],
                IpAddr::V6(_) => 0,
            };
            let mut pieces = of_one_router(racks);
            pieces.sort_by_key(|piece| piece.from);
            pieces.iter().map(last).collect()
        };
        let first = rack(0, [0.0, 0.0, 9.0, 0.0]);
        let same_is_likelier = [first.clone(), rack(1, [2.5, 0.0, 2.0, 0.0])];
        assert_eq!(routers(&same_is_likelier), [3, 3]);
        let other_shows_more = [first, rack(1, [7.0, 0.0, 2.0, 0.0])];
        assert_eq!(routers(&other_shows_more), [3, 1]);
        let nothing_pays_for_the_choice = [rack(0, [0.0, 1.0, 1.0, 0.0]), rack(1, [1.0; 4])];
        assert!(routers(&nothing_pays_for_the_choice).is_empty());
    }

    #[test]
    fn a_narrow_link_shows_where_it_is_asked_for_more() {
        // It carries 1; in one round it is asked for 2 on the way out, in the other for 0.9.
        let one = |asked, of_pace: f64| Judged {
            is_bad: of_pace < SLOW,
            of_pace,
            asked: Some([asked, 2.0]),
            ..connections(1.0, &[0.0]).remove(0)
        };
        let all = [one(2.0, 0.5), one(2.0, 0.5), one(0.9, 1.0), one(0.9, 1.0)];
        let all: Vec<&Judged> = all.iter().collect();
        let shown = |end| that_would_show(&all, end).len();
        assert_eq!((shown(End::Out), shown(End::Into)), (2, 4));
    }

    #[test]
    fn of_few_segments_few_connections_show_what_a_path_loses() {
        // 2 of 1,000 segments are lost: of 100 each, 1 - 0.998^100 = 18% of the connections lose
        // any.
        let few = connections(100.0, &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert!((share(&few) - 0.181).abs() < 0.001, "{}", share(&few));
        let many = connections(10_000.0, &[20.0, 18.0, 22.0]);
        assert!(share(&many) > 0.999);
        // One in 10,000 is no lossy path, and a connection that is bad must show it by its rate.
        let hardly = connections(10_000.0, &[1.0, 1.0, 1.0]);
        assert!((share(&hardly) - 1.0).abs() < f64::EPSILON);
        let unknown = connections(0.0, &[0.0, 0.0]);
        assert!((share(&unknown) - 1.0).abs() < f64::EPSILON);
    }
}
