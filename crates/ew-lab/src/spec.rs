//! What a lab consists of, with every rate and address spelled out.

use std::net::Ipv4Addr;

use ew_model::units;
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::fault::{Fault, FaultKind};
use crate::yaml;

/// The name of the management host, attached to the spine without a rate limit.
pub const CONTROLLER: &str = "controller";

const MAX_RACKS: usize = 250;
const MAX_HOSTS_PER_RACK: usize = 240;
pub(crate) const MIN_RATE_BITS_PER_SEC: u64 = 1_000_000;
pub(crate) const MAX_RATE_BITS_PER_SEC: u64 = 400_000_000_000;
const DEFAULT_MTU_BYTES: u32 = 1500;
pub(crate) const DEFAULT_NIC_BITS_PER_SEC: u64 = 1_000_000_000;

/// A lab, resolved: faults are already part of its numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabSpec {
    /// Unique among the running labs of this user.
    pub name: String,
    /// Whether every host runs a real sshd; needs root.
    pub sshd: bool,
    /// How switch ports queue.
    #[serde(default)]
    pub queue: Queue,
    /// The racks, in order.
    pub racks: Vec<RackSpec>,
}

/// How a switch port shares its rate among the hosts that send through it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Queue {
    /// Evenly: the truth is the max-min fair share.
    #[default]
    Fair,
    /// First in, first out: shares are what TCP makes of it.
    Fifo,
}

/// One rack: a leaf router with an uplink to the spine, and hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RackSpec {
    /// Such as `r1`.
    pub name: String,
    /// Rate of the link to the spine, each direction.
    pub uplink_bits_per_sec: u64,
    /// Share of packets lost on that link, each direction, 0 to 1.
    #[serde(default)]
    pub loss_share: f64,
    /// The hosts, in order.
    pub hosts: Vec<HostSpec>,
}

/// One host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostSpec {
    /// Rack name, `h`, number: `r1h3`.
    pub name: String,
    /// Out of 198.18.0.0/16 (RFC 2544 benchmark range).
    pub address: Ipv4Addr,
    /// What its NIC sends at most.
    pub tx_bits_per_sec: u64,
    /// What its NIC receives at most.
    pub rx_bits_per_sec: u64,
    /// MTU of its NIC.
    pub mtu_bytes: u32,
    /// Upper limit of a TCP receive buffer (`net.ipv4.tcp_rmem`); the kernel's own when absent.
    pub receive_buffer_bytes: Option<u64>,
    /// Upper limit of a TCP send buffer (`net.ipv4.tcp_wmem`); the kernel's own when absent.
    #[serde(default)]
    pub send_buffer_bytes: Option<u64>,
    /// Share of one core that all its processes together may use; all when absent.
    pub cpu_quota_cores: Option<f64>,
    /// Share of packets lost on its link, each direction, 0 to 1.
    #[serde(default)]
    pub loss_share: f64,
    /// Rate at which a process of this host sends to the controller; no such process when absent.
    #[serde(default)]
    pub neighbour_bits_per_sec: Option<u64>,
    /// Share of one CPU that a process takes first, while all others of the host run on that CPU; when absent, the host runs
    /// on all CPUs.
    #[serde(default)]
    pub cpu_hog_share: Option<f64>,
    /// Whether a process of this host writes to this machine's disk without pause.
    #[serde(default)]
    pub disk_writer: bool,
    /// Whether its cable is plugged in.
    pub link_up: bool,
}

impl LabSpec {
    /// Reads a lab file. `file_name` is used in errors only.
    ///
    /// # Errors
    /// [`LabError::Spec`] with file, line and column.
    pub fn parse(text: &str, file_name: &str) -> Result<Self, LabError> {
        yaml::parse(text, file_name)
    }

    /// The same lab under another name, so that one file can be up twice.
    ///
    /// # Errors
    /// [`LabError::Spec`] when the name cannot be one.
    pub fn renamed(self, name: &str) -> Result<Self, LabError> {
        check_name(name, "lab").map_err(|problem| LabError::Spec {
            place: "--lab".into(),
            problem,
        })?;
        Ok(Self {
            name: name.into(),
            ..self
        })
    }

    /// Racks `r1`.. of equal hosts.
    ///
    /// # Errors
    /// [`LabError::Spec`] when a count or rate is out of range.
    pub fn uniform(
        name: &str,
        racks: usize,
        hosts_per_rack: usize,
        nic_bits_per_sec: u64,
        uplink_bits_per_sec: u64,
    ) -> Result<Self, LabError> {
        let mut spec = Self {
            name: name.into(),
            sshd: false,
            queue: Queue::default(),
            racks: Vec::new(),
        };
        for rack in 1..=racks {
            let (name, nic, uplink) = (format!("r{rack}"), nic_bits_per_sec, uplink_bits_per_sec);
            spec.add_rack(&name, hosts_per_rack, nic, uplink)
                .map_err(spec_error)?;
        }
        spec.validate().map_err(spec_error)?;
        Ok(spec)
    }

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

    /// All hosts, rack by rack.
    pub fn hosts(&self) -> impl Iterator<Item = &HostSpec> {
        self.racks.iter().flat_map(|rack| &rack.hosts)
    }

    /// The management host's address.
    #[must_use]
    pub fn controller_address() -> Ipv4Addr {
        Ipv4Addr::new(198, 19, 255, 2)
    }

    pub(crate) fn add_rack(
        &mut self,
        name: &str,
        host_count: usize,
        nic_bits_per_sec: u64,
        uplink_bits_per_sec: u64,
    ) -> Result<(), String> {
        check_name(name, "rack")?;
        if host_count == 0 || host_count > MAX_HOSTS_PER_RACK {
            return Err(format!(
                "rack `{name}` has {host_count} hosts; a rack holds 1 to {MAX_HOSTS_PER_RACK}"
            ));
        }
        if self.racks.len() == MAX_RACKS {
            return Err(format!("a lab holds at most {MAX_RACKS} racks"));
        }
        if self.racks.iter().any(|rack| rack.name == name) {
            return Err(format!("rack `{name}` is named twice"));
        }
        check_rate("nic", nic_bits_per_sec)?;
        check_rate("uplink", uplink_bits_per_sec)?;
        let rack_number = self.racks.len() as u8 + 1;
        let hosts = (1..=host_count as u8)
            .map(|number| healthy_host(name, rack_number, number, nic_bits_per_sec))
            .collect();
        self.racks.push(RackSpec {
            name: name.into(),
            uplink_bits_per_sec,
            loss_share: 0.0,
            hosts,
        });
        Ok(())
    }

    pub(crate) fn validate(&self) -> Result<(), String> {
        check_name(&self.name, "lab")?;
        if self.racks.is_empty() {
            return Err("a lab needs at least one rack".into());
        }
        Ok(())
    }

    pub(crate) fn apply(&mut self, fault: &Fault) -> Result<(), String> {
        let is_rack = self.racks.iter().any(|rack| rack.name == fault.target);
        match fault.kind {
            FaultKind::Uplink(rate) => {
                check_rate("uplink", rate)?;
                self.rack_mut(&fault.target)?.uplink_bits_per_sec = rate;
                Ok(())
            }
            FaultKind::Loss(share) if is_rack => {
                self.rack_mut(&fault.target)?.loss_share = check_loss(share)?;
                Ok(())
            }
            kind => self.host_mut(&fault.target)?.apply(kind),
        }
    }

    pub(crate) fn host_mut(&mut self, name: &str) -> Result<&mut HostSpec, String> {
        let known = self.folded_hosts();
        self.racks
            .iter_mut()
            .flat_map(|rack| &mut rack.hosts)
            .find(|host| host.name == name)
            .ok_or_else(|| format!("there is no host `{name}`; the hosts are {known}"))
    }

    pub(crate) fn rack_mut(&mut self, name: &str) -> Result<&mut RackSpec, String> {
        let known: Vec<_> = self.racks.iter().map(|rack| rack.name.clone()).collect();
        let known = known.join(", ");
        self.racks
            .iter_mut()
            .find(|rack| rack.name == name)
            .ok_or_else(|| format!("there is no rack `{name}`; the racks are {known}"))
    }

    /// Rack index and host, by host name.
    pub(crate) fn find_host(&self, name: &str) -> Option<(usize, &HostSpec)> {
        self.racks.iter().enumerate().find_map(|(index, rack)| {
            let host = rack.hosts.iter().find(|host| host.name == name)?;
            Some((index, host))
        })
    }

    /// `r1h[1-4],r2h[1-4]`.
    pub(crate) fn folded_hosts(&self) -> String {
        let folded: Vec<_> = self.racks.iter().map(RackSpec::folded_hosts).collect();
        folded.join(",")
    }
}

impl RackSpec {
    /// `r1h[1-4]`, or `r1h1` for one.
    pub(crate) fn folded_hosts(&self) -> String {
        match self.hosts.len() {
            1 => format!("{}h1", self.name),
            count => format!("{}h[1-{count}]", self.name),
        }
    }
}

impl HostSpec {
    /// What is wrong with it beside its rates, in words as a lab file's: `mtu 1400`, `loss 2 %`.
    #[must_use]
    pub fn troubles(&self) -> Vec<String> {
        let bytes = units::format_bytes;
        let percent = |share: f64| format!("{} %", (share * 1e4).round() / 1e2);
        let troubles = [
            (!self.link_up).then(|| "link down".into()),
            (self.loss_share > 0.0).then(|| format!("loss {}", percent(self.loss_share))),
            (self.mtu_bytes != DEFAULT_MTU_BYTES).then(|| format!("mtu {}", self.mtu_bytes)),
            self.receive_buffer_bytes
                .map(|b| format!("receive-buffer {}", bytes(b))),
            self.send_buffer_bytes
                .map(|b| format!("send-buffer {}", bytes(b))),
            self.cpu_quota_cores
                .map(|c| format!("cpu-quota {}", percent(c))),
            self.cpu_hog_share
                .map(|s| format!("cpu-hog {}", percent(s))),
            self.neighbour_bits_per_sec
                .map(|b| format!("neighbour {}", units::format_bits_per_sec(b as f64))),
            self.disk_writer.then(|| "disk-writer".into()),
        ];
        troubles.into_iter().flatten().collect()
    }

    fn apply(&mut self, kind: FaultKind) -> Result<(), String> {
        match kind {
            FaultKind::Nic(rate) => {
                check_rate("nic", rate)?;
                (self.tx_bits_per_sec, self.rx_bits_per_sec) = (rate, rate);
            }
            FaultKind::Tx(rate) => {
                check_rate("tx", rate)?;
                self.tx_bits_per_sec = rate;
            }
            FaultKind::Rx(rate) => {
                check_rate("rx", rate)?;
                self.rx_bits_per_sec = rate;
            }
            FaultKind::CpuQuota(cores) => self.cpu_quota_cores = Some(check_quota(cores)?),
            FaultKind::Loss(share) => self.loss_share = check_loss(share)?,
            FaultKind::ReceiveBuffer(bytes) => {
                self.receive_buffer_bytes = Some(check_buffer("receive", bytes)?);
            }
            FaultKind::SendBuffer(bytes) => {
                self.send_buffer_bytes = Some(check_buffer("send", bytes)?);
            }
            FaultKind::Mtu(bytes) => self.mtu_bytes = check_mtu(bytes)?,
            FaultKind::Neighbour(rate) => {
                rate.map_or(Ok(()), |rate| check_rate("neighbour", rate))?;
                self.neighbour_bits_per_sec = rate;
            }
            FaultKind::CpuHog(share) => {
                self.cpu_hog_share = share.map(check_hog).transpose()?;
            }
            FaultKind::DiskWriter(writes) => self.disk_writer = writes,
            FaultKind::LinkDown => self.link_up = false,
            FaultKind::LinkUp => self.link_up = true,
            FaultKind::Uplink(_) => return Err("`uplink` belongs to a rack".into()),
        }
        Ok(())
    }
}

fn healthy_host(rack: &str, rack_number: u8, number: u8, nic_bits_per_sec: u64) -> HostSpec {
    HostSpec {
        name: format!("{rack}h{number}"),
        address: Ipv4Addr::new(198, 18, rack_number, number + 9),
        tx_bits_per_sec: nic_bits_per_sec,
        rx_bits_per_sec: nic_bits_per_sec,
        mtu_bytes: DEFAULT_MTU_BYTES,
        receive_buffer_bytes: None,
        send_buffer_bytes: None,
        cpu_quota_cores: None,
        loss_share: 0.0,
        neighbour_bits_per_sec: None,
        cpu_hog_share: None,
        disk_writer: false,
        link_up: true,
    }
}

fn spec_error(problem: String) -> LabError {
    LabError::Spec {
        place: "lab".into(),
        problem,
    }
}

/// Names become directories, interface peers and host names.
pub(crate) fn check_name(name: &str, what: &str) -> Result<(), String> {
    let starts_well = name.starts_with(|c: char| c.is_ascii_lowercase());
    let made_of = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if starts_well && name.len() <= 32 && name.chars().all(made_of) {
        return Ok(());
    }
    Err(format!(
        "`{name}` cannot name a {what}: use a lower-case letter, then letters, digits and `-`, at most 32"
    ))
}

fn check_rate(what: &str, bits_per_sec: u64) -> Result<(), String> {
    if (MIN_RATE_BITS_PER_SEC..=MAX_RATE_BITS_PER_SEC).contains(&bits_per_sec) {
        return Ok(());
    }
    Err(format!(
        "{what} of {bits_per_sec} b/s is out of range: the lab carries 1M to 400G"
    ))
}

fn check_quota(cores: f64) -> Result<f64, String> {
    if (0.01..=1024.0).contains(&cores) {
        return Ok(cores);
    }
    Err("a cpu-quota is 1% (of one core) or more".into())
}

fn check_buffer(which: &str, bytes: u64) -> Result<u64, String> {
    if (4096..=1 << 30).contains(&bytes) {
        return Ok(bytes);
    }
    Err(format!("a {which}-buffer is 4K to 1G"))
}

fn check_loss(share: f64) -> Result<f64, String> {
    if (0.0..=1.0).contains(&share) {
        return Ok(share);
    }
    Err("a loss is 0% to 100% of packets".into())
}

/// The rest is left to all others of the host, which could not even be told to end without it.
fn check_hog(share: f64) -> Result<f64, String> {
    if (0.01..=0.99).contains(&share) {
        return Ok(share);
    }
    Err("a cpu-hog takes 1% to 99% of a core".into())
}

fn check_mtu(bytes: u32) -> Result<u32, String> {
    if (576..=9000).contains(&bytes) {
        return Ok(bytes);
    }
    Err("an mtu is 576 to 9000 bytes".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_get_the_addresses_the_guide_promises() {
        let spec = LabSpec::uniform("t", 2, 3, 200_000_000, 150_000_000).unwrap();
        let (rack, host) = spec.find_host("r2h3").unwrap();
        assert_eq!(rack, 1);
        assert_eq!(host.address, Ipv4Addr::new(198, 18, 2, 12));
        assert_eq!(spec.folded_hosts(), "r1h[1-3],r2h[1-3]");
    }

    #[test]
    fn the_largest_lab_has_unique_addresses_in_range() {
        let spec = LabSpec::uniform("t", MAX_RACKS, MAX_HOSTS_PER_RACK, 10_000_000, 10_000_000);
        let addresses: std::collections::BTreeSet<_> =
            spec.unwrap().hosts().map(|host| host.address).collect();
        assert_eq!(addresses.len(), MAX_RACKS * MAX_HOSTS_PER_RACK);
        assert!(addresses.iter().all(|a| a.octets()[..2] == [198, 18]));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(LabSpec::uniform("Bad_Name", 1, 1, 10_000_000, 10_000_000).is_err());
        assert!(LabSpec::uniform("t", 0, 1, 10_000_000, 10_000_000).is_err());
        assert!(LabSpec::uniform("t", 1, 241, 10_000_000, 10_000_000).is_err());
        assert!(LabSpec::uniform("t", 1, 1, 10, 10_000_000).is_err());
    }
}
