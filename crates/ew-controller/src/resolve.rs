//! Names to addresses, before anything starts. By the system's own resolver through `getent`, because a static binary
//! has none of its own that honours nsswitch.conf; then by `ssh -G`, whose HostName may be an address.

use ew_model::inventory::{Host, Inventory};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Look-ups at once.
const FAN_OUT: usize = 32;
/// One look-up may take this long.
const LOOKUP_LIMIT: Duration = Duration::from_secs(10);

/// Which addresses flows use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressFamily {
    /// The resolver's first choice.
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

/// Names without an address.
#[derive(Debug, thiserror::Error)]
#[error("no address for {}: {} (check the spelling, DNS and /etc/hosts, or give addresses with --addresses FILE in /etc/hosts format)",
    if names.len() == 1 { "this host" } else { "these hosts" }, names.join(", "))]
pub struct ResolveError {
    /// All of them, so that one round of mending is enough.
    pub names: Vec<String>,
}

/// Gives every host without an address one: from `known`, from the name itself when it is an address, from the
/// system's resolver, or from the ssh configuration.
///
/// # Errors
/// [`ResolveError`] with every name that has none.
pub async fn resolve(
    inventory: &mut Inventory,
    known: &BTreeMap<String, IpAddr>,
    family: AddressFamily,
    ssh_config: Option<&Path>,
) -> Result<(), ResolveError> {
    let places = Arc::new(Semaphore::new(FAN_OUT));
    let mut lookups = JoinSet::new();
    for (position, host) in inventory.hosts.iter_mut().enumerate() {
        host.address = host.address.or_else(|| literal_or_known(host, known));
        if host.address.is_none() {
            let (name, places) = (host.name.clone(), Arc::clone(&places));
            let ssh_config = ssh_config.map(Path::to_path_buf);
            lookups.spawn(async move {
                let _place = places.acquire_owned().await;
                (
                    position,
                    look_up(&name, family, ssh_config.as_deref()).await,
                )
            });
        }
    }
    while let Some(Ok((position, address))) = lookups.join_next().await {
        inventory.hosts[position].address = address;
    }
    let names: Vec<String> = inventory
        .hosts
        .iter()
        .filter(|h| h.address.is_none())
        .map(|h| h.name.clone())
        .collect();
    if names.is_empty() {
        Ok(())
    } else {
        Err(ResolveError { names })
    }
}

fn literal_or_known(host: &Host, known: &BTreeMap<String, IpAddr>) -> Option<IpAddr> {
    host.name
        .parse()
        .ok()
        .or_else(|| known.get(&host.name).copied())
}

async fn look_up(name: &str, family: AddressFamily, ssh_config: Option<&Path>) -> Option<IpAddr> {
    if name.starts_with('-') {
        // Would be taken for an option by the tools below.
        return None;
    }
    if let Some(address) = getent(name, family).await {
        return Some(address);
    }
    let target = ssh_host_name(name, ssh_config).await?;
    match target.parse() {
        Ok(address) => Some(address),
        Err(_) if target != name => getent(&target, family).await,
        Err(_) => None,
    }
}

async fn getent(name: &str, family: AddressFamily) -> Option<IpAddr> {
    let database = match family {
        AddressFamily::Any => "ahosts",
        AddressFamily::V4 => "ahostsv4",
        AddressFamily::V6 => "ahostsv6",
    };
    let mut command = Command::new("getent");
    command.args([database, name]);
    let output = output(command).await?;
    output.split_whitespace().next()?.parse().ok()
}

async fn ssh_host_name(name: &str, ssh_config: Option<&Path>) -> Option<String> {
    let mut command = Command::new("ssh");
    command.arg("-G");
    if let Some(file) = ssh_config {
        command.arg("-F").arg(file);
    }
    command.args(["--", name]);
    let output = output(command).await?;
    output
        .lines()
        .find_map(|line| line.strip_prefix("hostname "))
        .map(str::to_owned)
}

async fn output(mut command: Command) -> Option<String> {
    command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let output = timeout(LOOKUP_LIMIT, command.output()).await.ok()?.ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
