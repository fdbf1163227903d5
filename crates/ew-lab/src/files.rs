//! The files that make a lab usable with ordinary tools: names, groups, ssh.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::addresses::address;
use crate::batch::tool_path;
use crate::error::{LabError, write_file};
use crate::spec::{CONTROLLER, LabSpec, folded_hosts};

/// Writes hosts, ClusterShell groups, and for real sshd the keys and configurations.
pub(crate) fn write_all(dir: &Path, spec: &LabSpec) -> Result<(), LabError> {
    write_file(&dir.join("hosts"), &hosts(spec))?;
    write_file(&dir.join("groups"), &groups(spec))?;
    write_file(&dir.join("groups.conf"), GROUPS_CONF)?;
    write_file(&dir.join("ssh_config"), &ssh_config(dir, spec))?;
    let clush = format!("[Main]\nssh_options: -F {}/ssh_config\n", dir.display());
    write_file(&dir.join("clush.conf"), &clush)?;
    if spec.sshd {
        write_sshd_files(dir, spec)?;
    }
    Ok(())
}

/// One host's sshd configuration.
pub(crate) fn sshd_config_path(dir: &Path, host: &str) -> PathBuf {
    dir.join("sshd").join(format!("{host}.conf"))
}

/// Where a host's sshd writes its process id, which it does once it listens.
pub(crate) fn sshd_pid_path(dir: &Path, host: &str) -> PathBuf {
    dir.join("sshd").join(format!("{host}.pid"))
}

/// Where a host's sshd writes its log.
pub(crate) fn sshd_log_path(dir: &Path, host: &str) -> PathBuf {
    dir.join("sshd").join(format!("{host}.log"))
}

/// What the lab's hosts see in place of the machine's own files: its names, and who logs in. sshd
/// refuses a root whose password is locked, keys or not.
pub(crate) fn views(dir: &Path, spec: &LabSpec) -> Vec<(PathBuf, &'static Path)> {
    let names: &[&str] = match spec.sshd {
        true => &["/etc/hosts", "/etc/passwd", "/etc/shadow"],
        false => &["/etc/hosts"],
    };
    let view = |name: &&'static str| {
        let target = Path::new(*name);
        Some((dir.join(target.file_name()?), target))
    };
    names.iter().filter_map(view).collect()
}

/// hosts(5).
fn hosts(spec: &LabSpec) -> String {
    let mut text = format!(
        "127.0.0.1 localhost\n::1 localhost\n{} {CONTROLLER}\n",
        spec.controller_address()
    );
    for host in spec.hosts() {
        let _ = writeln!(text, "{} {}", address(host), host.name);
    }
    text
}

/// ClusterShell's flat group file: `name: nodeset`.
fn groups(spec: &LabSpec) -> String {
    let mut text = format!("all: {}\n", spec.folded_hosts());
    for rack in &spec.topology.racks {
        let _ = writeln!(text, "{}: {}", rack.name, folded_hosts(rack));
    }
    text
}

/// Makes ClusterShell's own tools read that file when `CLUSTERSHELL_CFGDIR` names the lab's
/// directory.
const GROUPS_CONF: &str = "\
[Main]
default: lab

[lab]
map: sed -n 's/^$GROUP: *//p' $CFGDIR/groups
all: sed -n 's/^all: *//p' $CFGDIR/groups
list: sed -n 's/^\\([^:]*\\):.*/\\1/p' $CFGDIR/groups
";

/// ssh_config(5): works from inside the lab, where the addresses exist.
fn ssh_config(dir: &Path, spec: &LabSpec) -> String {
    let dir = dir.display();
    let mut text = String::new();
    for host in spec.hosts() {
        let _ = writeln!(text, "Host {}\n  HostName {}", host.name, address(host));
    }
    let _ = write!(
        text,
        "Host *\n  Port 22\n  User root\n  IdentityFile {dir}/id_ed25519\n  IdentitiesOnly yes\n  IdentityAgent none\n  \
         StrictHostKeyChecking yes\n  UserKnownHostsFile {dir}/known_hosts\n  GlobalKnownHostsFile /dev/null\n  \
         ControlMaster no\n  ControlPath none\n  ConnectTimeout 5\n"
    );
    text
}

fn write_sshd_files(dir: &Path, spec: &LabSpec) -> Result<(), LabError> {
    let sshd = dir.join("sshd");
    fs::create_dir(&sshd).map_err(LabError::io("create", &sshd))?;
    generate_key(&dir.join("id_ed25519"), "eastwest-lab")?;
    let public = read(&dir.join("id_ed25519.pub"))?;
    write_file(&dir.join("authorized_keys"), &public)?;
    write_file(
        &dir.join("passwd"),
        &passwd(&read(Path::new("/etc/passwd"))?),
    )?;
    let shadow = dir.join("shadow");
    write_file(&shadow, "root:*:19000:0:99999:7:::\nsshd:!:19000::::::\n")?;
    fs::set_permissions(&shadow, fs::Permissions::from_mode(0o600))
        .map_err(LabError::io("protect", &shadow))?;
    let mut known_hosts = String::new();
    for host in spec.hosts() {
        let key = sshd.join(format!("{}.key", host.name));
        generate_key(&key, &host.name)?;
        let public = read(&key.with_extension("key.pub"))?;
        let _ = write!(known_hosts, "{},{} {public}", host.name, address(host));
        let config = sshd_config(dir, &host.name, &key);
        write_file(&sshd_config_path(dir, &host.name), &config)?;
    }
    write_file(&dir.join("known_hosts"), &known_hosts)
}

/// passwd(5) with a root whose shell reads no start-up files at a login: what those of this machine
/// do (a version manager, say, that waits for its own lock) is no part of an emulated host.
fn passwd(machine: &str) -> String {
    let (root, others): (Vec<&str>, Vec<&str>) =
        machine.lines().partition(|line| line.starts_with("root:"));
    let home = root.first().and_then(|root| root.split(':').nth(5));
    let root = format!("root:x:0:0:root:{}:/bin/sh\n", home.unwrap_or("/root"));
    others
        .into_iter()
        .fold(root, |text, line| text + line + "\n")
}

/// sshd_config(5): keys only, nothing of the machine's own configuration. What an agent's
/// environment must have (credentials of a store) is in `~/.ssh/environment`.
fn sshd_config(dir: &Path, host: &str, key: &Path) -> String {
    format!(
        "Port 22\nHostKey {}\nPidFile {}\nAuthorizedKeysFile {}/authorized_keys\nStrictModes no\nUsePAM no\n\
         PermitRootLogin prohibit-password\nPermitUserEnvironment yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nUseDNS no\n\
         PrintMotd no\nPrintLastLog no\nMaxStartups 100\nMaxSessions 100\nX11Forwarding no\n\
         Subsystem sftp internal-sftp\nLogLevel INFO\n",
        key.display(),
        sshd_pid_path(dir, host).display(),
        dir.display()
    )
}

fn generate_key(path: &Path, comment: &str) -> Result<(), LabError> {
    let output = Command::new("ssh-keygen")
        .env_clear()
        .env("PATH", tool_path())
        .args(["-q", "-t", "ed25519", "-N", "", "-C", comment, "-f"])
        .arg(path)
        .stdin(Stdio::null())
        .output();
    let output = output.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => LabError::Unsupported {
            problem: "`ssh-keygen` is not installed; install openssh-client and openssh-server, or leave out `sshd: true`"
                .into(),
        },
        _ => LabError::io_named("start", "ssh-keygen")(error),
    })?;
    if output.status.success() {
        return Ok(());
    }
    Err(LabError::Command {
        command: "ssh-keygen".into(),
        output: String::from_utf8_lossy(&output.stderr).trim().into(),
    })
}

fn read(path: &Path) -> Result<String, LabError> {
    fs::read_to_string(path).map_err(LabError::io("read", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_hosts_name_every_host() {
        let spec = LabSpec::uniform("t", 2, 2, 200_000_000, 100_000_000).unwrap();
        assert_eq!(
            groups(&spec),
            "all: r1h[1-2],r2h[1-2]\nr1: r1h[1-2]\nr2: r2h[1-2]\n"
        );
        assert!(hosts(&spec).contains("198.18.2.11 r2h2\n"));
        assert!(ssh_config(Path::new("/d"), &spec).contains("Host r1h1\n  HostName 198.18.1.10\n"));
    }

    #[test]
    fn root_has_its_home_and_a_shell_that_reads_nothing() {
        let machine = "root:x:0:0:r:/home/root:/bin/bash\nops:x:7:7::/home/ops:/bin/bash\n";
        let own = "root:x:0:0:root:/home/root:/bin/sh\nops:x:7:7::/home/ops:/bin/bash\n";
        assert_eq!(passwd(machine), own);
        assert_eq!(passwd(""), "root:x:0:0:root:/root:/bin/sh\n");
    }
}
