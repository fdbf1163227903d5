//! Faults, put into the numbers of a lab.

use std::ops::RangeInclusive;

use ew_model::inventory::RackId;
use ew_model::topology::{BackgroundSpec, DirectionSpec, HostSpec, NicSpec, PathSpec, Topology};

use crate::error::LabError;
use crate::fault::{Background, Fault, FaultKind, Way};
use crate::problem::{Problem, unreadable};
use crate::spec::{LabSpec, check_rate};

/// Connections of background traffic, unless a lab file specifies another number: as many as spread
/// over the paths of an uplink.
pub(crate) const DEFAULT_STREAMS: u32 = 16;

/// A part of the network. Members are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Host(String),
    /// A whole uplink.
    Rack(usize),
    RackPath(usize, usize),
    Pod(usize),
    PodPath(usize, usize),
    /// The same member of every rack.
    Spine(usize),
    /// The same member of every pod.
    Core(usize),
}

impl LabSpec {
    /// The same lab with one more fault in it.
    ///
    /// # Errors
    /// [`LabError::Fault`] when the target does not exist or the value is out of range.
    pub fn with_fault(mut self, fault: &Fault) -> Result<Self, LabError> {
        self.apply(fault).map_err(|problem| LabError::Fault {
            target: fault.target.clone(),
            problem,
        })?;
        Ok(self)
    }

    pub(crate) fn apply(&mut self, fault: &Fault) -> Result<(), Problem> {
        let target = self.target(&fault.target)?;
        match (&target, &fault.kind) {
            (Target::Host(name), kind) => apply_to_host(self.host_mut(name)?, kind),
            (Target::Rack(from), FaultKind::Background(traffic)) => {
                self.set_background(*from, traffic.as_ref())
            }
            (Target::Rack(_) | Target::Pod(_), FaultKind::Uplink(way, total)) => {
                let members = self.paths_mut(&target);
                // Together the rate that was asked for, to the bit.
                let (count, mut left) = (members.len() as u64, *total);
                for (member, others) in members.into_iter().zip((0..count).rev()) {
                    let part = left / (others + 1);
                    left -= part;
                    apply_to_path(member, &FaultKind::Uplink(*way, part))?;
                }
                Ok(())
            }
            (_, kind) => {
                let members = self.paths_mut(&target);
                members
                    .into_iter()
                    .try_for_each(|path| apply_to_path(path, kind))
            }
        }
    }

    /// A part as it was `declared`.
    pub(crate) fn restore(&mut self, name: &str, declared: &Self) -> Result<(), Problem> {
        let target = self.target(name)?;
        if let Target::Host(host) = &target {
            let mut declared = declared.clone();
            *self.host_mut(host)? = declared.host_mut(host)?.clone();
            return Ok(());
        }
        let mut declared = declared.clone();
        let before = declared.paths_mut(&target);
        for (member, before) in self.paths_mut(&target).into_iter().zip(before) {
            *member = before.clone();
        }
        if let Target::Rack(rack) = target {
            let is_other = |traffic: &BackgroundSpec| traffic.from.index() != rack;
            self.topology.background.retain(is_other);
            let mut own = declared.topology.background;
            own.retain(|traffic| !is_other(traffic));
            self.topology.background.append(&mut own);
        }
        Ok(())
    }

    /// What a name means: `r1h3`, `r1`, `r1/2`, `pod1`, `pod1/2`, `spine/2`, `core/2`.
    pub(crate) fn target(&self, name: &str) -> Result<Target, Problem> {
        let topology = &self.topology;
        let Some((owner, number)) = name.split_once('/') else {
            let (rack, pod) = (find_rack(topology, name), find_pod(topology, name));
            return match (rack, pod) {
                (Some(rack), _) => Ok(Target::Rack(rack)),
                (_, Some(pod)) => Ok(Target::Pod(pod)),
                _ if self.find_host(name).is_some() => Ok(Target::Host(name.into())),
                _ => Err(self.unknown(name)),
            };
        };
        let number: usize = number
            .parse()
            .map_err(|_| unreadable(number, "path", "r1/2"))?;
        let wanted = match (owner, find_rack(topology, owner), find_pod(topology, owner)) {
            (_, Some(rack), _) => Target::RackPath(rack, number.wrapping_sub(1)),
            (_, _, Some(pod)) => Target::PodPath(pod, number.wrapping_sub(1)),
            ("spine", ..) => Target::Spine(number.wrapping_sub(1)),
            ("core", ..) => Target::Core(number.wrapping_sub(1)),
            _ => return Err(self.unknown(owner)),
        };
        if self.clone().paths_mut(&wanted).is_empty() {
            return Err(Problem::Unknown {
                what: "path",
                name: name.into(),
                known: String::new(),
            });
        }
        Ok(wanted)
    }

    fn unknown(&self, name: &str) -> Problem {
        let names = |names: Vec<&str>| names.join(", ");
        let racks = names(
            self.topology
                .racks
                .iter()
                .map(|r| r.name.as_str())
                .collect(),
        );
        let pods = names(self.topology.pods.iter().map(|p| p.name.as_str()).collect());
        let pods = match pods.as_str() {
            "" => String::new(),
            pods => format!(", the pods {pods}"),
        };
        Problem::Unknown {
            what: "host or rack",
            name: name.into(),
            known: format!(
                "; the hosts are {}, the racks {racks}{pods}; a path is written like {}/1",
                self.folded_hosts(),
                self.topology.racks[0].name
            ),
        }
    }

    pub(crate) fn host_mut(&mut self, name: &str) -> Result<&mut HostSpec, Problem> {
        let unknown = self.unknown(name);
        let mut hosts = self.topology.racks.iter_mut().flat_map(|r| &mut r.hosts);
        hosts.find(|host| host.name == name).ok_or(unknown)
    }

    /// The members of a target that is no host.
    fn paths_mut(&mut self, target: &Target) -> Vec<&mut PathSpec> {
        let racks = self.topology.racks.iter_mut().map(|rack| &mut rack.paths);
        let pods = self.topology.pods.iter_mut().map(|pod| &mut pod.paths);
        match *target {
            Target::Host(_) => Vec::new(),
            Target::Rack(rack) => racks.skip(rack).take(1).flatten().collect(),
            Target::Pod(pod) => pods.skip(pod).take(1).flatten().collect(),
            Target::RackPath(rack, path) => {
                let mut one = racks.skip(rack).take(1);
                one.next()
                    .and_then(|p| p.get_mut(path))
                    .into_iter()
                    .collect()
            }
            Target::PodPath(pod, path) => {
                let mut one = pods.skip(pod).take(1);
                one.next()
                    .and_then(|p| p.get_mut(path))
                    .into_iter()
                    .collect()
            }
            Target::Spine(path) => racks.filter_map(|paths| paths.get_mut(path)).collect(),
            Target::Core(path) => pods.filter_map(|paths| paths.get_mut(path)).collect(),
        }
    }

    fn set_background(&mut self, from: usize, traffic: Option<&Background>) -> Result<(), Problem> {
        let new = match traffic {
            None => None,
            Some(traffic) => {
                check_rate("background", traffic.bits_per_sec)?;
                let to = find_rack(&self.topology, &traffic.to)
                    .filter(|to| *to != from)
                    .ok_or_else(|| Problem::Unknown {
                        what: "other rack",
                        name: traffic.to.clone(),
                        known: String::new(),
                    })?;
                Some(BackgroundSpec {
                    from: RackId(from as u32),
                    to: RackId(to as u32),
                    rate_bits_per_sec: traffic.bits_per_sec,
                    streams: DEFAULT_STREAMS,
                    bursts: None,
                })
            }
        };
        let background = &mut self.topology.background;
        background.retain(|old| old.from.index() != from);
        background.extend(new);
        Ok(())
    }
}

pub(crate) fn find_rack(topology: &Topology, name: &str) -> Option<usize> {
    topology.racks.iter().position(|rack| rack.name == name)
}

pub(crate) fn find_pod(topology: &Topology, name: &str) -> Option<usize> {
    topology.pods.iter().position(|pod| pod.name == name)
}

fn apply_to_path(path: &mut PathSpec, kind: &FaultKind) -> Result<(), Problem> {
    match *kind {
        FaultKind::Uplink(way, rate) => {
            check_rate("a path", rate)?;
            each(path, way, |direction, _| direction.rate_bits_per_sec = rate);
        }
        FaultKind::Loss(way, share) => {
            let share = check_loss(share)?;
            each(path, way, |direction, _| direction.loss_share = share);
        }
        FaultKind::BlackHole(way) => {
            set_both(path, way, |direction, is_hit| direction.black_hole = is_hit);
        }
        FaultKind::Withdrawn(way) => {
            set_both(path, way, |direction, is_hit| direction.routed = !is_hit);
        }
        FaultKind::Weight(weight) => {
            check(weight, 1..=256, "a weight is 1 to 256")?;
            each(path, Way::Both, |direction, _| direction.weight = weight);
        }
        FaultKind::LinkDown => path.link_up = false,
        FaultKind::LinkUp => path.link_up = true,
        FaultKind::Background(_) => return Err(Problem::BelongsTo("a rack")),
        _ => return Err(Problem::BelongsTo("a host")),
    }
    Ok(())
}

/// The directions that `way` names.
fn each(path: &mut PathSpec, way: Way, change: impl Fn(&mut DirectionSpec, bool)) {
    if matches!(way, Way::Up | Way::Both) {
        change(&mut path.up, true);
    }
    if matches!(way, Way::Down | Way::Both) {
        change(&mut path.down, true);
    }
}

/// Both directions, with whether `way` names them.
fn set_both(path: &mut PathSpec, way: Way, change: impl Fn(&mut DirectionSpec, bool)) {
    change(&mut path.up, matches!(way, Way::Up | Way::Both));
    change(&mut path.down, matches!(way, Way::Down | Way::Both));
}

fn apply_to_host(host: &mut HostSpec, kind: &FaultKind) -> Result<(), Problem> {
    let nic = &mut host.nic;
    match *kind {
        FaultKind::Nic(_) | FaultKind::Tx(_) | FaultKind::Rx(_) => return apply_rate(nic, kind),
        FaultKind::Loss(Way::Both, share) => {
            (nic.tx_loss_share, nic.rx_loss_share) = (check_loss(share)?, share);
        }
        FaultKind::Mtu(bytes) => {
            nic.mtu_bytes = check(bytes, 576..=9000, "an mtu is 576 to 9000 bytes")?;
        }
        FaultKind::LinkDown => nic.link_up = false,
        FaultKind::LinkUp => nic.link_up = true,
        FaultKind::Congestion(control) => host.congestion_control = control,
        FaultKind::FlowCap(rate) => {
            rate.map_or(Ok(()), |rate| check_rate("flow-cap", rate))?;
            host.shaper.flow_bits_per_sec = rate;
        }
        FaultKind::Bucket(bucket) => {
            bucket.map_or(Ok(()), |b| check_rate("bucket", b.sustained_bits_per_sec))?;
            host.shaper.bucket = bucket;
        }
        FaultKind::CpuQuota(cores) => {
            host.cpu_quota_cores = Some(check(
                cores,
                0.01..=1024.0,
                "a cpu-quota is 1% (of one core) or more",
            )?);
        }
        FaultKind::ReceiveBuffer(bytes) => {
            host.receive_buffer_bytes = Some(check_buffer(bytes)?);
        }
        FaultKind::SendBuffer(bytes) => {
            host.send_buffer_bytes = Some(check_buffer(bytes)?);
        }
        FaultKind::Neighbour(rate) => {
            rate.map_or(Ok(()), |rate| check_rate("neighbour", rate))?;
            host.neighbour_bits_per_sec = rate;
        }
        // The rest is left to all others of the host, which could not even be ordered to end
        // without it.
        FaultKind::CpuHog(share) => {
            let taken = |share| check(share, 0.01..=0.99, "a cpu-hog takes 1% to 99% of a core");
            host.cpu_hog_share = share.map(taken).transpose()?;
        }
        FaultKind::DiskWriter(writes) => host.disk_writer = writes,
        _ => return Err(Problem::BelongsTo("a rack, a pod or a path")),
    }
    Ok(())
}

fn apply_rate(nic: &mut NicSpec, kind: &FaultKind) -> Result<(), Problem> {
    match *kind {
        FaultKind::Tx(rate) => {
            check_rate("tx", rate)?;
            nic.tx_bits_per_sec = rate;
        }
        FaultKind::Rx(rate) => {
            check_rate("rx", rate)?;
            nic.rx_bits_per_sec = rate;
        }
        FaultKind::Nic(rate) => {
            check_rate("nic", rate)?;
            (nic.tx_bits_per_sec, nic.rx_bits_per_sec) = (rate, rate);
        }
        _ => {}
    }
    Ok(())
}

fn check<T: PartialOrd>(
    value: T,
    range: RangeInclusive<T>,
    rule: &'static str,
) -> Result<T, Problem> {
    if range.contains(&value) {
        return Ok(value);
    }
    Err(Problem::Range(rule))
}

fn check_loss(share: f64) -> Result<f64, Problem> {
    check(share, 0.0..=1.0, "a loss is 0% to 100% of packets")
}

fn check_buffer(bytes: u64) -> Result<u64, Problem> {
    check(bytes, 4096..=(1 << 30), "a buffer is 4K to 1G")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> LabSpec {
        let text = "name: t\nracks: 2\nhosts-per-rack: 2\nnic: 100M\npaths: 4\n";
        LabSpec::parse(text, "t.yaml").unwrap()
    }

    fn with(faults: &[(&str, &str)]) -> LabSpec {
        faults.iter().fold(spec(), |spec, (target, fault)| {
            spec.with_fault(&Fault::parse(target, fault).unwrap())
                .unwrap()
        })
    }

    #[test]
    fn members_are_hit_one_by_one_or_all_at_once() {
        let spec = with(&[
            ("r1/2", "up=10M"),
            ("spine/3", "loss=1%"),
            ("r2", "uplink=100M"),
            ("r2/1", "black-hole=down"),
            ("r2/4", "withdrawn=up"),
        ]);
        let [r1, r2] = &spec.topology.racks[..] else {
            panic!("two racks")
        };
        assert_eq!(r1.paths[1].up.rate_bits_per_sec, 10_000_000);
        assert_eq!(r1.paths[1].down.rate_bits_per_sec, 50_000_000);
        let lossy = |path: &PathSpec| (path.up.loss_share, path.down.loss_share);
        assert_eq!(
            (lossy(&r1.paths[2]), lossy(&r2.paths[2])),
            ((0.01, 0.01), (0.01, 0.01))
        );
        assert_eq!(r2.up_bits_per_sec(), 75_000_000);
        assert!(r2.paths[0].down.black_hole && !r2.paths[0].up.black_hole);
    }

    #[test]
    fn what_was_hit_can_be_restored() {
        let mut hit = with(&[
            ("r1/2", "up=10M"),
            ("r1h1", "nic=5M"),
            ("r1", "background=r2:10M"),
        ]);
        for target in ["r1", "r1h1"] {
            hit.restore(target, &spec()).unwrap();
        }
        assert_eq!(hit, spec());
    }

    #[test]
    fn what_does_not_fit_is_refused_in_words() {
        let refused = |target: &str, fault: &str| {
            let fault = Fault::parse(target, fault).unwrap();
            spec().with_fault(&fault).unwrap_err().to_string()
        };
        assert!(refused("r3", "uplink=1M").contains("r1, r2"));
        assert!(refused("r1/5", "uplink=1M").contains("no path `r1/5`"));
        assert!(refused("r1/0", "uplink=1M").contains("no path `r1/0`"));
        assert!(refused("r1h1", "black-hole=up").contains("rack"));
        assert!(refused("r1/1", "mtu=1400").contains("host"));
        assert!(refused("r1", "background=r1:10M").contains("other rack"));
        assert!(refused("core/1", "loss=1%").contains("no path"));
    }
}
