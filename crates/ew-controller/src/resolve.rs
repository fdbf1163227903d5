//! Names to addresses, before anything starts. By the system's own resolver through `getent`,
//! because a static binary has none of its own that honours nsswitch.conf; then by `ssh -G`, whose
//! HostName may be an address.

use ew_model::inventory::{Host, Inventory, Login};
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
pub enum AddressChoice {
    /// The resolver's first choice.
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

/// Names without an address.
#[derive(Debug, thiserror::Error)]
#[error("no address for {}: {} (check the spelling, DNS and /etc/hosts, give addresses with --addresses FILE in /etc/hosts format, or let hosts find their own with --network CIDR or --interface NAME)",
    if names.len() == 1 { "this host" } else { "these hosts" }, names.join(", "))]
pub struct ResolveError {
    /// All of them, so that one round of fixing is enough.
    pub names: Vec<String>,
}

/// Gives every host without an address one: from `known` (by names in lower case), from the name
/// itself when it is an address, from the system's resolver, or from the ssh configuration. Where a
/// login has a target, that is looked up in place of the name. A name that is an address is what
/// ssh connects to: `known` may have another address for data.
///
/// # Errors
/// [`ResolveError`] with every name that has none.
pub async fn resolve(
    inventory: &mut Inventory,
    known: &BTreeMap<String, IpAddr>,
    logins: &BTreeMap<String, Login>,
    family: AddressChoice,
    ssh_config: Option<&Path>,
) -> Result<(), ResolveError> {
    let slots = Arc::new(Semaphore::new(FAN_OUT));
    let mut lookups = JoinSet::new();
    for (position, host) in inventory.hosts.iter_mut().enumerate() {
        host.address = known_address(host, known);
        if host.address.is_none() {
            let target = logins
                .get(&host.name)
                .and_then(|login| login.target.clone());
            let name = target.unwrap_or_else(|| host.name.clone());
            let slots = Arc::clone(&slots);
            let ssh_config = ssh_config.map(Path::to_path_buf);
            lookups.spawn(async move {
                let _slot = slots.acquire_owned().await;
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

fn known_address(host: &Host, known: &BTreeMap<String, IpAddr>) -> Option<IpAddr> {
    let literal = host.name.parse().ok();
    let listed = host.address.filter(|address| Some(*address) != literal);
    let by_name = || known.get(&host.name.to_ascii_lowercase()).copied();
    listed.or_else(by_name).or(literal)
}

async fn look_up(name: &str, family: AddressChoice, ssh_config: Option<&Path>) -> Option<IpAddr> {
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

async fn getent(name: &str, family: AddressChoice) -> Option<IpAddr> {
    let database = match family {
        AddressChoice::Any => "ahosts",
        AddressChoice::V4 => "ahostsv4",
        AddressChoice::V6 => "ahostsv6",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_addresses_go_before_names_that_are_addresses() {
        let host = |name: &str, address: Option<&str>| Host {
            name: name.into(),
            address: address.map(|text| text.parse().unwrap()),
            rack: None,
        };
        let known = BTreeMap::from([
            ("nodea".to_owned(), "10.1.0.1".parse().unwrap()),
            ("10.0.0.2".to_owned(), "10.1.0.2".parse().unwrap()),
        ]);
        let found = |host: &Host| known_address(host, &known).map(|address| address.to_string());
        assert_eq!(found(&host("NodeA", None)).as_deref(), Some("10.1.0.1"));
        let literal = host("10.0.0.2", Some("10.0.0.2"));
        assert_eq!(found(&literal).as_deref(), Some("10.1.0.2"));
        let listed = host("10.0.0.2", Some("10.2.0.2"));
        assert_eq!(found(&listed).as_deref(), Some("10.2.0.2"));
        assert_eq!(found(&host("10.0.0.3", None)).as_deref(), Some("10.0.0.3"));
        assert_eq!(found(&host("x", None)), None);
    }
}
