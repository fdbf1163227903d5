//! `--hosts`, `--racks` and their companions: from the command line to an inventory with addresses.

use crate::exit::Failure;
use crate::fleet::{FleetArgs, FleetKind};
use crate::input_file::read_bounded;
use anyhow::{Context, anyhow};
use clap::Args;
use ew_controller::AddressChoice;
use ew_lab::Lab;
use ew_model::inventory::{Host, Inventory, Rack, RackId};
use ew_model::network::{NetworkChoice, Subnet};
use ew_model::scenario::Roles;
use ew_plan::inventory::{
    self, GroupEnvironment, GroupSources, InventoryRequest, NamedText, Roster,
};
use ew_plan::scenario::RoleSets;
use std::collections::BTreeMap;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

/// More is no list of hosts: a million Kubernetes nodes in JSON would be, but nobody has them.
const LARGEST_FILE_BYTES: u64 = 64 << 20;

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Hosts")]
pub(crate) struct HostArgs {
    /// Hosts in ClusterShell's grammar, for example 'node[01-40]!node13', '@compute' or
    /// 'ops@n[1-4]:2222'; repeatable
    #[arg(short = 'w', long, value_name = "SET")]
    hosts: Vec<String>,
    /// Group of hosts, as in `clush -g`: short for --hosts @GROUP; repeatable
    #[arg(short, long, value_name = "GROUP")]
    group: Vec<String>,
    /// Racks: groups as in '@mc_rack[1-3]', or written out as in 'r1=n[1-4],r2=n[5-8]'; alone, they
    /// are also the hosts
    #[arg(long, value_name = "SET")]
    racks: Option<String>,
    /// Saved cluster: options under this name in ~/.config/eastwest/clusters.yaml
    #[arg(short, long, value_name = "NAME")]
    cluster: Option<String>,
    /// Hosts that open connections; with --servers, patterns run between both sets
    #[arg(long, value_name = "SET")]
    clients: Option<String>,
    /// Hosts that accept connections
    #[arg(long, value_name = "SET")]
    servers: Option<String>,
    /// Hosts, one a line, or an inventory of Ansible, MPI, Slurm, Kubernetes, /etc/hosts or JSON;
    /// `-` is stdin. Several files are several racks (nodes.rack1, nodes.rack2)
    #[arg(long, value_name = "FILE")]
    hosts_file: Vec<PathBuf>,
    /// File of host names and the addresses to test, in /etc/hosts format; overrides DNS
    #[arg(long, value_name = "FILE")]
    addresses: Option<PathBuf>,
    /// Network to measure: every host uses its own address in this subnet. Repeatable: one run
    /// after the other, and a comparison
    #[arg(long, value_name = "CIDR", conflicts_with = "addresses")]
    network: Vec<Subnet>,
    /// Interface to measure: every host uses its own address on it; repeatable, also with --network
    #[arg(long, value_name = "NAME", conflicts_with = "addresses")]
    interface: Vec<String>,
    /// IPv4 only
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    ipv4: bool,
    /// IPv6 only
    #[arg(short = '6', long)]
    ipv6: bool,
}

impl HostArgs {
    /// More hosts, named without an option.
    pub(crate) fn add(&mut self, sets: Vec<String>) {
        self.hosts.extend(sets);
    }

    /// All hosts named by `--hosts` and `--group`, as one set.
    fn named(&self) -> Option<String> {
        let group = |name: &String| match name.starts_with('@') {
            true => name.clone(),
            false => format!("@{name}"),
        };
        let sets = self.hosts.iter().cloned();
        let sets: Vec<String> = sets.chain(self.group.iter().map(group)).collect();
        (!sets.is_empty()).then(|| sets.join(","))
    }

    /// Who takes part; addresses may be missing until [`HostArgs::resolve`].
    pub(crate) fn roster(
        &self,
        fleet: &FleetArgs,
        lab: Option<&Lab>,
        scenario_racks: &[String],
        roles: Option<&Roles>,
    ) -> Result<Roster, Failure> {
        fleet.check_flags()?;
        let sources = match lab {
            Some(lab) => lab_group_sources(lab),
            None => group_sources(),
        };
        let by_role = self.hosts_by_role(roles, &sources)?;
        let named = by_role.is_some() || self.names_any(scenario_racks);
        if let (Some(lab), false) = (lab, named) {
            return Ok(Roster {
                inventory: lab_inventory(lab),
                ..Roster::default()
            });
        }
        if fleet.fleet == FleetKind::Slurm && !named {
            return fleet.slurm.roster();
        }
        if !named {
            return Err(Failure::usage(anyhow!(
                "which hosts? give --hosts SET, --racks SET, --hosts-file FILE or -c CLUSTER (or see `eastwest demo`)"
            )));
        }
        let asked = self.request(scenario_racks)?;
        let request = InventoryRequest {
            hosts: asked.hosts.clone().or(by_role),
            ..asked
        };
        let mut roster = inventory::build(&request, &sources).map_err(Failure::usage)?;
        if let Some(lab) = lab {
            take_lab_addresses(&mut roster.inventory, lab)?;
        }
        if fleet.fleet == FleetKind::Slurm {
            fleet.slurm.take_nodes(&mut roster)?;
        }
        if fleet.fleet == FleetKind::Local {
            give_loopback_addresses(&mut roster.inventory);
        }
        Ok(roster)
    }

    /// Whether any host is named.
    pub(crate) fn names_any(&self, scenario_racks: &[String]) -> bool {
        self.named().is_some()
            || self.racks.is_some()
            || !self.hosts_file.is_empty()
            || !scenario_racks.is_empty()
    }

    /// A flag that chooses hosts, if one was given.
    pub(crate) fn chosen_hosts(&self) -> Option<&'static str> {
        let flags = [
            ("--hosts", self.named().is_some()),
            ("--racks", self.racks.is_some()),
            ("--hosts-file", !self.hosts_file.is_empty()),
            ("--addresses", self.addresses.is_some()),
            ("--network", !self.network.is_empty()),
            ("--interface", !self.interface.is_empty()),
        ];
        let given = flags.into_iter().find(|(_, given)| *given);
        given.map(|(name, _)| name)
    }

    /// A flag that was given and that has no meaning for pods.
    pub(crate) fn flag_without_pods(&self) -> Option<&'static str> {
        let flags = [
            ("--addresses", self.addresses.is_some()),
            ("--ipv4", self.ipv4),
            ("--ipv6", self.ipv6),
        ];
        let given = flags.into_iter().find(|(_, given)| *given);
        given.map(|(name, _)| name)
    }

    /// Those that are named, or have a role, without addresses. `None`: nobody is named.
    pub(crate) fn named_inventory(
        &self,
        scenario_racks: &[String],
        roles: Option<&Roles>,
    ) -> Result<Option<Inventory>, Failure> {
        let by_role = self.hosts_by_role(roles, &group_sources())?;
        if by_role.is_none() && !self.names_any(scenario_racks) {
            return Ok(None);
        }
        let asked = self.request(scenario_racks)?;
        let request = InventoryRequest {
            hosts: asked.hosts.clone().or(by_role),
            ..asked
        };
        let roster = inventory::build(&request, &group_sources()).map_err(Failure::usage)?;
        Ok(Some(roster.inventory))
    }

    fn request(&self, scenario_racks: &[String]) -> Result<InventoryRequest, Failure> {
        Ok(InventoryRequest {
            hosts: self.named(),
            racks: self
                .racks
                .iter()
                .cloned()
                .chain(more_racks(self.racks.as_deref(), scenario_racks))
                .collect(),
            host_files: self
                .hosts_file
                .iter()
                .map(|path| named_text(path))
                .collect::<Result<_, _>>()?,
        })
    }

    /// Clients and servers by name: of the command line, else of the scenario file.
    pub(crate) fn roles(
        &self,
        lab: Option<&Lab>,
        of_scenario: Option<&RoleSets>,
    ) -> Result<Option<Roles>, Failure> {
        let set = |given: &Option<String>, of_file: fn(&RoleSets) -> &String| {
            given.clone().or_else(|| of_scenario.map(of_file).cloned())
        };
        let clients = set(&self.clients, |roles| &roles.clients);
        let servers = set(&self.servers, |roles| &roles.servers);
        if clients.is_none() && servers.is_none() {
            return Ok(None);
        }
        let sources = match lab {
            Some(lab) => lab_group_sources(lab),
            None => group_sources(),
        };
        let names = |set: Option<String>| match set {
            Some(set) => inventory::expand(&set, &sources).map_err(Failure::usage),
            None => Ok(Vec::new()),
        };
        let roles = Roles {
            clients: names(clients)?,
            servers: names(servers)?,
        };
        match roles
            .clients
            .iter()
            .find(|name| roles.servers.iter().any(|s| s.eq_ignore_ascii_case(name)))
        {
            Some(both) => Err(Failure::usage(anyhow!(
                "host {both} is in --clients and in --servers; a host has one role: take it out of one"
            ))),
            None => Ok(Some(roles)),
        }
    }

    /// With one more host, where the others are named by their roles alone.
    pub(crate) fn joined_by(&self, host: Option<&str>, roles: Option<&Roles>) -> Self {
        let mut all = self.clone();
        if let (Some(host), Some(roles), false) = (host, roles, self.names_any(&[])) {
            let names = roles.clients.iter().chain(&roles.servers).cloned();
            all.hosts = names.chain([host.to_owned()]).collect();
        }
        all
    }

    /// Hosts with a role, where nothing else names hosts; else all of them must be among the hosts.
    fn hosts_by_role(
        &self,
        roles: Option<&Roles>,
        sources: &GroupSources,
    ) -> Result<Option<String>, Failure> {
        let Some(roles) = roles else { return Ok(None) };
        let names: Vec<&str> = roles
            .clients
            .iter()
            .chain(&roles.servers)
            .map(String::as_str)
            .collect();
        if let Some(hosts) = self.named() {
            let hosts = inventory::expand(&hosts, sources).map_err(Failure::usage)?;
            if let Some(other) = names
                .iter()
                .find(|name| !hosts.iter().any(|h| h.eq_ignore_ascii_case(name)))
            {
                return Err(Failure::usage(anyhow!(
                    "host {other} has a role and is not in --hosts; add it there, or leave out --hosts"
                )));
            }
        }
        let nothing_else = self.racks.is_none() && self.hosts_file.is_empty();
        Ok((self.named().is_none() && nothing_else).then(|| names.join(",")))
    }

    /// Gives every host its address, and refuses two hosts with the same one.
    pub(crate) async fn resolve(
        &self,
        roster: &mut Roster,
        fleet: &FleetArgs,
    ) -> Result<(), Failure> {
        let Roster { inventory, logins } = roster;
        if !self.networks().is_empty() {
            check_network_choice(fleet)?;
            inventory
                .hosts
                .iter_mut()
                .for_each(|host| host.address = None);
            return Ok(());
        }
        let known = self.known_addresses()?;
        let family = match (self.ipv4, self.ipv6) {
            (true, _) => AddressChoice::V4,
            (_, true) => AddressChoice::V6,
            (false, false) => AddressChoice::Any,
        };
        let ssh_config = fleet.ssh_config.as_deref();
        ew_controller::resolve(inventory, &known, logins, family, ssh_config)
            .await
            .map_err(Failure::usage)?;
        if fleet.fleet != FleetKind::Local {
            refuse_loopback(inventory)?;
        }
        inventory::check_addresses(inventory).map_err(Failure::usage)
    }

    /// The networks that hosts find themselves, in the order of the flags.
    pub(crate) fn networks(&self) -> Vec<NetworkChoice> {
        let subnets = self.network.iter().copied().map(NetworkChoice::Subnet);
        let names = self.interface.iter().cloned().map(NetworkChoice::Interface);
        subnets.chain(names).collect()
    }

    /// The one of them, for commands that need one.
    pub(crate) fn network(&self) -> Result<Option<NetworkChoice>, Failure> {
        let mut networks = self.networks();
        match networks.len() {
            0 | 1 => Ok(networks.pop()),
            _ => Err(Failure::usage(anyhow!(
                "several networks are measured by `eastwest run` with flows only; give one --network or --interface"
            ))),
        }
    }

    /// What is known of the network before any host was asked.
    pub(crate) fn describe_network(&self, inventory: &Inventory) -> String {
        let networks: Vec<String> = self.networks().iter().map(ToString::to_string).collect();
        if !networks.is_empty() {
            return format!("{}, found on every host", networks.join(", then "));
        }
        let addresses: Option<Vec<IpAddr>> = inventory.hosts.iter().map(|h| h.address).collect();
        let addresses = addresses.unwrap_or_default();
        match (addresses.iter().min(), addresses.iter().max()) {
            (Some(first), Some(last)) => {
                format!("{first} to {last}; choose another with --network CIDR or --interface NAME")
            }
            _ => "that of the hosts' names; choose another with --network CIDR or --interface NAME"
                .into(),
        }
    }

    fn known_addresses(&self) -> Result<BTreeMap<String, IpAddr>, Failure> {
        let Some(path) = &self.addresses else {
            return Ok(BTreeMap::new());
        };
        let file = named_text(path)?;
        Ok(inventory::parse_hosts_file(&file.text))
    }
}

/// Agents on this machine share its interfaces.
fn check_network_choice(fleet: &FleetArgs) -> Result<(), Failure> {
    match fleet.fleet {
        FleetKind::Local => Err(Failure::usage(anyhow!(
            "--network and --interface choose among a host's own networks, and agents on this machine use loopback addresses; leave them out"
        ))),
        FleetKind::Ssh
        | FleetKind::Lab
        | FleetKind::Sim
        | FleetKind::Slurm
        | FleetKind::Kubernetes => Ok(()),
    }
}

/// Flows to a loopback address would measure no network.
fn refuse_loopback(inventory: &Inventory) -> Result<(), Failure> {
    let is_loopback = |host: &&Host| host.address.is_some_and(|address| address.is_loopback());
    let Some(host) = inventory.hosts.iter().find(is_loopback) else {
        return Ok(());
    };
    let address = host.address.map(|address| address.to_string());
    Err(Failure::usage(anyhow!(
        "host {} has the loopback address {}, over which no network is measured (Debian and Ubuntu give it to a machine's own name in \
         /etc/hosts); choose the network with --network CIDR or --interface NAME, or use --via local",
        host.name,
        address.unwrap_or_default()
    )))
}

/// A lab's hosts and racks, with addresses.
pub(crate) fn lab_inventory(lab: &Lab) -> Inventory {
    let mut inventory = Inventory::default();
    for host in lab.hosts() {
        let known = inventory
            .racks
            .iter()
            .position(|rack| rack.name == host.rack);
        let rack = known.unwrap_or_else(|| {
            inventory.racks.push(Rack {
                name: host.rack.clone(),
            });
            inventory.racks.len() - 1
        });
        inventory.hosts.push(Host {
            name: host.name,
            address: Some(host.address),
            rack: Some(RackId(rack as u32)),
        });
    }
    inventory
}

/// Groups from where ClusterShell looks for them.
pub(crate) fn group_sources() -> GroupSources {
    GroupSources::load(&GroupEnvironment::from_lookup(|name| {
        std::env::var_os(name)
    }))
}

/// Groups of a lab and nothing else.
fn lab_group_sources(lab: &Lab) -> GroupSources {
    let of_lab = |name: &str| (name == "CLUSTERSHELL_CFGDIR").then(|| lab.dir().into());
    GroupSources::load(&GroupEnvironment::from_lookup(of_lab))
}

/// The command line goes before the scenario file.
fn more_racks(given: Option<&str>, of_scenario: &[String]) -> Vec<String> {
    if given.is_some() {
        Vec::new()
    } else {
        of_scenario.to_vec()
    }
}

/// A file's text; `-` is standard input.
fn named_text(path: &Path) -> Result<NamedText, Failure> {
    let is_stdin = path == Path::new("-");
    let source: std::io::Result<Box<dyn Read>> = match is_stdin {
        true => Ok(Box::new(std::io::stdin())),
        false => std::fs::File::open(path).map(|file| Box::new(file) as Box<dyn Read>),
    };
    let text = source.and_then(|source| read_bounded(source, LARGEST_FILE_BYTES));
    let text = text.with_context(|| format!("cannot read `{}`", path.display()));
    let text = text.map_err(Failure::usage)?;
    let path = if is_stdin { Path::new("stdin") } else { path };
    Ok(NamedText {
        path: path.to_path_buf(),
        text,
    })
}

fn take_lab_addresses(inventory: &mut Inventory, lab: &Lab) -> Result<(), Failure> {
    let addresses: BTreeMap<String, IpAddr> = lab
        .hosts()
        .into_iter()
        .map(|host| (host.name, host.address))
        .collect();
    for host in &mut inventory.hosts {
        let address = addresses.get(&host.name).ok_or_else(|| {
            Failure::usage(anyhow!(
                "the lab `{}` has no host `{}`",
                lab.name(),
                host.name
            ))
        })?;
        host.address = Some(*address);
    }
    Ok(())
}

/// 127.0.0.2 and up: on Linux all of 127/8 is loopback without configuration.
fn give_loopback_addresses(inventory: &mut Inventory) {
    for (position, host) in inventory.hosts.iter_mut().enumerate() {
        let number = position as u32 + 2;
        let address = Ipv4Addr::from(u32::from(Ipv4Addr::LOCALHOST) - 1 + number);
        host.address.get_or_insert(IpAddr::V4(address));
    }
}
