//! The keeper: builds a lab and holds its namespaces until it is ended.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ew_model::topology::{AddressFamily, HostSpec};
use ew_sys::namespace::{self, Entrance, NamespaceKind};

use crate::addresses::Addresses;
use crate::batch;
use crate::control_group;
use crate::error::{LabError, write_file};
use crate::fabric::{Fabric, Router};
use crate::files;
use crate::intruder;
use crate::shaping;
use crate::spec::{CONTROLLER, LabSpec};
use crate::state::{self, Descriptors, Request, State};
use crate::wiring;

const VARIABLE: &str = "EASTWEST_LAB_KEEPER";
/// Distinguishes the keeper's answer from whatever a test harness prints.
const ANSWER: &str = "eastwest-lab-keeper:";
const DETACH: u8 = b'd';
const SSHD_READY_LIMIT: Duration = Duration::from_secs(15);

/// How to start the keeper: a program whose `main` begins with [`keeper_main_if_requested`].
#[derive(Clone, Debug)]
pub struct KeeperCommand {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl KeeperCommand {
    /// A command that starts it.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command
    }

    /// The running program itself.
    #[must_use]
    pub fn current_exe() -> Self {
        Self {
            program: "/proc/self/exe".into(),
            arguments: Vec::new(),
        }
    }

    /// The running test program, by way of a test that only calls [`keeper_main_if_requested`].
    #[must_use]
    pub fn current_test(test_name: &str) -> Self {
        let arguments = [test_name, "--exact", "--nocapture", "--test-threads=1"];
        Self {
            program: "/proc/self/exe".into(),
            arguments: arguments.map(OsString::from).to_vec(),
        }
    }

    /// Another program, such as the eastwest binary in tests of other crates.
    #[must_use]
    pub fn program(program: PathBuf) -> Self {
        Self {
            program,
            arguments: Vec::new(),
        }
    }
}

/// Becomes a lab's keeper, or a process that a fault puts onto a host, and never returns, when this
/// process was started as one; otherwise does nothing. Call it first thing in `main`.
pub fn keeper_main_if_requested() {
    intruder::main_if_requested();
    if let Some(dir) = std::env::var_os(VARIABLE) {
        std::process::exit(keep(Path::new(&dir)));
    }
}

/// The builder's end of a keeper: closing it ends the lab, unless it was let go.
#[derive(Debug)]
pub(crate) struct KeeperLine(std::process::ChildStdin);

impl KeeperLine {
    /// The keeper goes on without its builder.
    pub(crate) fn let_go(mut self) -> io::Result<()> {
        self.0.write_all(&[DETACH])
    }
}

/// Starts a keeper for the lab in `dir` and waits until the lab is up.
pub(crate) fn start(
    keeper: &KeeperCommand,
    dir: &Path,
    rootless: bool,
) -> Result<KeeperLine, LabError> {
    let log_path = dir.join("keeper.log");
    let log = fs::File::create(&log_path).map_err(LabError::io("create", &log_path))?;
    let mut command = keeper.command();
    command
        .env(VARIABLE, dir)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log);
    namespace::isolate_before_exec(&mut command, rootless);
    let mut child = command
        .spawn()
        .map_err(|error| cannot_isolate(error, rootless))?;
    let (input, output) = (child.stdin.take(), child.stdout.take());
    child
        .wait()
        .map_err(LabError::io_named("wait for", "the keeper"))?;
    let (Some(input), Some(output)) = (input, output) else {
        return Err(build_error("the keeper has no pipes"));
    };
    match read_answer(output).as_deref() {
        Some("ready") => Ok(KeeperLine(input)),
        Some(problem) => Err(build_error(
            problem.strip_prefix("error ").unwrap_or(problem),
        )),
        None => {
            let said = fs::read_to_string(&log_path).unwrap_or_default();
            let said = said.trim();
            Err(build_error(&format!(
                "the keeper ended without a word {said}"
            )))
        }
    }
}

fn cannot_isolate(error: io::Error, rootless: bool) -> LabError {
    if !rootless {
        return LabError::io_named("start", "the keeper")(error);
    }
    LabError::Unsupported {
        problem: format!(
            "user namespaces are refused ({error}); run as root, or let the administrator set \
             kernel.unprivileged_userns_clone=1 (Debian), kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu) \
             or user.max_user_namespaces above 0"
        ),
    }
}

fn read_answer(mut output: impl Read) -> Option<String> {
    let mut text = Vec::new();
    let mut block = [0; 4096];
    loop {
        let count = match output.read(&mut block) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) | Ok(0) => return None,
            Ok(count) => count,
        };
        text.extend_from_slice(&block[..count]);
        let seen = String::from_utf8_lossy(&text);
        if let Some((_, answer)) = seen.split_once(ANSWER)
            && let Some((line, _)) = answer.split_once('\n')
        {
            return Some(line.trim().to_owned());
        }
    }
}

fn build_error(problem: &str) -> LabError {
    LabError::Build {
        problem: problem.into(),
    }
}

/// The keeper's life; returns its exit status.
fn keep(dir: &Path) -> i32 {
    let _ = fs::write("/proc/self/comm", "eastwest-lab");
    let built = match build(dir) {
        Ok(built) => built,
        Err(error) => {
            answer(&format!("error {error}"));
            return 1;
        }
    };
    namespace::reap_children_automatically();
    answer("ready");
    let mut word = [0];
    loop {
        match io::stdin().read(&mut word) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(1) if word[0] == DETACH => loop {
                std::thread::park();
            },
            // The builder is gone; its lab goes too.
            _ => break,
        }
    }
    drop(built);
    // Ends every server first, so that the control groups are empty: this process is their init.
    namespace::end_all_others();
    state::remove(dir, &dir.file_name().unwrap_or_default().to_string_lossy());
    0
}

fn answer(words: &str) {
    let words = words.replace('\n', " ");
    let mut output = io::stdout().lock();
    // A builder that is gone reads nothing; the end of its line ends the keeper next.
    let _ = writeln!(output, "\n{ANSWER} {words}");
    let _ = output.flush();
}

struct Keeper {
    /// Where the keeper itself lives.
    home: Namespaces,
    nodes: BTreeMap<String, Namespaces>,
    pid: u32,
    notes: Vec<String>,
}

struct Namespaces {
    network: OwnedFd,
    mount: OwnedFd,
    host_name: OwnedFd,
}

fn build(dir: &Path) -> Result<Keeper, LabError> {
    let request = Request::load(dir)?;
    let spec = &request.spec;
    let mut keeper = Keeper::new()?;
    files::write_all(dir, spec)?;
    keeper.create_nodes(dir, spec)?;
    keeper.wire(spec, &Fabric::of(spec))?;
    for host in spec.hosts() {
        if let Some(cores) = host.cpu_quota_cores {
            control_group::set_quota(spec.name(), &host.name, cores)?;
        }
    }
    if spec.sshd {
        keeper.start_all_sshd(dir, spec)?;
    }
    keeper.state(request)?.save(dir)?;
    Ok(keeper)
}

impl Keeper {
    fn new() -> Result<Self, LabError> {
        let own = fs::read_link("/proc/self").map_err(LabError::io_named("read", "/proc/self"))?;
        let pid = own.to_string_lossy().parse().map_err(io::Error::other);
        let home = new_namespaces().map_err(refused)?;
        namespace::isolate_mounts().map_err(refused)?;
        Ok(Self {
            home,
            nodes: BTreeMap::new(),
            pid: pid.map_err(LabError::io_named("read", "/proc/self"))?,
            notes: Vec::new(),
        })
    }

    fn create_nodes(&mut self, dir: &Path, spec: &LabSpec) -> Result<(), LabError> {
        let fabric = Fabric::of(spec);
        for router in &fabric.routers {
            self.create_router(&fabric, *router)?;
        }
        self.create_host(dir, CONTROLLER, spec, None)?;
        for host in spec.hosts() {
            self.create_host(dir, &host.name, spec, Some(host))?;
        }
        Ok(())
    }

    fn create_router(&mut self, fabric: &Fabric, router: Router) -> Result<(), LabError> {
        let node = fabric.node(router);
        let (addresses, seed) = (fabric.addresses, fabric.hash_seed(router));
        self.create(&node, |_| {
            let _ = namespace::set_host_name(&node.replace(':', "-"));
            set_family(addresses)?;
            set_kernel("net/ipv4/ip_forward", "1", true)?;
            set_kernel("net/ipv6/conf/all/forwarding", "1", false)?;
            // As switches do: a few hundred answers a second to packets whose time to live has
            // ended.
            set_kernel("net/ipv4/icmp_ratelimit", "5", false)?;
            set_kernel("net/ipv6/icmp/ratelimit", "5", false)?;
            // With the address at which the packet came in; Linux would take that of the answer's
            // way back, which says nothing about the packet's.
            set_kernel("net/ipv4/icmp_errors_use_inbound_ifaddr", "1", false)?;
            hash_like_a_switch(seed)
        })
    }

    fn create_host(
        &mut self,
        dir: &Path,
        name: &str,
        spec: &LabSpec,
        host: Option<&HostSpec>,
    ) -> Result<(), LabError> {
        let views = files::views(dir, spec);
        self.create(name, |notes| {
            let _ = namespace::set_host_name(name);
            set_family(spec.addresses())?;
            hash_like_a_switch(0)?;
            // What one run learnt about a path must not change the next.
            set_kernel("net/ipv4/tcp_no_metrics_save", "1", false)?;
            if let Some(bytes) = host.and_then(|host| host.receive_buffer_bytes) {
                set_kernel(RECEIVE_BUFFER, &buffer_triple(bytes), true)?;
            }
            if let Some(bytes) = host.and_then(|host| host.send_buffer_bytes) {
                set_kernel(SEND_BUFFER, &buffer_triple(bytes), true)?;
            }
            show_own_view(&views, notes);
            Ok(())
        })
    }

    /// Makes a node, runs `furnish` in it, and comes home.
    fn create(
        &mut self,
        node: &str,
        furnish: impl FnOnce(&mut Vec<String>) -> Result<(), LabError>,
    ) -> Result<(), LabError> {
        let namespaces = new_namespaces().map_err(refused)?;
        let result = furnish(&mut self.notes);
        self.nodes.insert(node.into(), namespaces);
        self.go_home()?;
        result
    }

    fn go_home(&self) -> Result<(), LabError> {
        namespace::enter(&self.home.network, NamespaceKind::Network)
            .and_then(|()| namespace::enter(&self.home.host_name, NamespaceKind::HostName))
            .and_then(|()| namespace::enter(&self.home.mount, NamespaceKind::Mount))
            .map_err(LabError::io_named("leave", "a namespace"))
    }

    fn wire(&self, spec: &LabSpec, fabric: &Fabric) -> Result<(), LabError> {
        let path_of = |router| self.network_path(&fabric.node(router));
        for router in &fabric.routers {
            let links = wiring::links_up(fabric, *router, path_of);
            self.batch(&fabric.node(*router), "ip", &links)?;
        }
        for (number, top) in fabric.tops().enumerate() {
            let cable = wiring::management(fabric, number, &self.network_path(CONTROLLER));
            self.batch(&fabric.node(top), "ip", &cable)?;
        }
        for router in &fabric.routers {
            let node = fabric.node(*router);
            self.batch(&node, "ip", &wiring::router(fabric, *router))?;
            let rates = shaping::router_ports(spec, fabric, *router);
            self.batch(&node, "tc", &rates).map_err(loss_refused)?;
        }
        self.batch(CONTROLLER, "ip", &wiring::controller(fabric))?;
        for rack in 0..spec.topology.racks.len() {
            self.wire_hosts(spec, fabric, rack)?;
        }
        Ok(())
    }

    fn wire_hosts(&self, spec: &LabSpec, fabric: &Fabric, rack: usize) -> Result<(), LabError> {
        let (leaf, addresses) = (fabric.node(Router::Leaf(rack)), fabric.addresses);
        let hosts = &spec.topology.racks[rack].hosts;
        let cables: String = hosts
            .iter()
            .map(|host| {
                let path = self.network_path(&host.name);
                wiring::host_cables(addresses, rack, host, &path)
            })
            .collect();
        self.batch(&leaf, "ip", &cables)?;
        self.batch(&leaf, "tc", &shaping::host_ports(spec, rack))
            .map_err(loss_refused)?;
        for host in hosts {
            let links = wiring::host_links(addresses, rack, host);
            self.batch(&host.name, "ip", &links)?;
            self.batch(&host.name, "tc", &shaping::send_rate(host, false))?;
        }
        Ok(())
    }

    fn batch(&self, node: &str, tool: &'static str, text: &str) -> Result<(), LabError> {
        let namespaces = self.node(node)?;
        namespace::enter(&namespaces.network, NamespaceKind::Network)
            .map_err(LabError::io_named("enter", node))?;
        let result = batch::run_batch(tool, text, |_| Ok(()));
        self.go_home()?;
        result
    }

    fn node(&self, name: &str) -> Result<&Namespaces, LabError> {
        let missing = || build_error(&format!("no namespace for `{name}`"));
        self.nodes.get(name).ok_or_else(missing)
    }

    fn network_path(&self, node: &str) -> String {
        let fd = self.nodes.get(node).map_or(-1, |p| p.network.as_raw_fd());
        format!("/proc/{}/fd/{fd}", self.pid)
    }

    fn start_all_sshd(&self, dir: &Path, spec: &LabSpec) -> Result<(), LabError> {
        // Debian's sshd insists on this directory; the machine's own sshd would make it too.
        fs::create_dir_all("/run/sshd").map_err(LabError::io_named("create", "/run/sshd"))?;
        let mut children = Vec::new();
        for host in spec.hosts() {
            children.push((host.name.as_str(), self.start_sshd(dir, spec, host)?));
        }
        let deadline = Instant::now() + SSHD_READY_LIMIT;
        for (host, mut child) in children {
            await_sshd(dir, host, &mut child, deadline)?;
        }
        Ok(())
    }

    fn start_sshd(&self, dir: &Path, spec: &LabSpec, host: &HostSpec) -> Result<Child, LabError> {
        let node = self.node(&host.name)?;
        let copy = |fd: &OwnedFd| fd.try_clone().map_err(LabError::io_named("copy", "a file"));
        let entrance = Entrance {
            user: None,
            mount: copy(&node.mount)?,
            host_name: copy(&node.host_name)?,
            network: copy(&node.network)?,
            control_groups: control_group::entry(spec.name(), &host.name)?,
        };
        let mut command = Command::new("/usr/sbin/sshd");
        command
            .env_clear()
            .env(
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            )
            .arg("-D")
            .arg("-f")
            .arg(files::sshd_config_path(dir, &host.name))
            .arg("-E")
            .arg(files::sshd_log_path(dir, &host.name))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit());
        namespace::enter_before_exec(&mut command, entrance);
        if let Some(cpus) = intruder::cpus_of(spec, host) {
            namespace::pin_before_exec(&mut command, cpus);
        }
        namespace::own_proc_before_exec(&mut command);
        command.spawn().map_err(|error| LabError::Unsupported {
            problem: format!(
                "/usr/sbin/sshd does not start ({error}); install openssh-server, or leave out `sshd: true`"
            ),
        })
    }

    fn state(&self, request: Request) -> Result<State, LabError> {
        let start = state::start_ticks(self.pid);
        let namespaces = self.nodes.iter().map(|(name, node)| {
            let descriptors = Descriptors {
                network: node.network.as_raw_fd(),
                mount: node.mount.as_raw_fd(),
                host_name: node.host_name.as_raw_fd(),
            };
            (name.clone(), descriptors)
        });
        Ok(State {
            declared: request.spec.clone(),
            current: request.spec,
            rootless: request.rootless,
            keeper_pid: self.pid,
            keeper_start_ticks: start
                .ok_or_else(|| build_error("/proc does not show the keeper; mount /proc"))?,
            namespaces: namespaces.collect(),
            notes: self.notes.clone(),
        })
    }
}

/// Limits of TCP buffers in one network namespace, below /proc/sys.
pub(crate) const RECEIVE_BUFFER: &str = "net/ipv4/tcp_rmem";
pub(crate) const SEND_BUFFER: &str = "net/ipv4/tcp_wmem";

/// Min, first and largest size of a TCP buffer.
pub(crate) fn buffer_triple(bytes: u64) -> String {
    format!("{} {} {bytes}", bytes.min(4096), bytes.min(131_072))
}

/// iproute2's message alone does not name what is missing.
pub(crate) fn loss_refused(error: LabError) -> LabError {
    match error {
        LabError::Command { output, .. } => LabError::Unsupported {
            problem: format!(
                "a loss needs the kernel's sch_ingress and cls_bpf (on Red Hat in kernel-modules-extra): {output}"
            ),
        },
        other => other,
    }
}

fn new_namespaces() -> io::Result<Namespaces> {
    namespace::unshare(&[
        NamespaceKind::Network,
        NamespaceKind::Mount,
        NamespaceKind::HostName,
    ])?;
    Ok(Namespaces {
        network: namespace::current(NamespaceKind::Network)?,
        mount: namespace::current(NamespaceKind::Mount)?,
        host_name: namespace::current(NamespaceKind::HostName)?,
    })
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err wants"
)]
fn refused(error: io::Error) -> LabError {
    let remedy = match error.raw_os_error() {
        Some(28) => "raise user.max_net_namespaces and user.max_mnt_namespaces",
        _ => {
            "run as root, or allow namespaces to this user (on Ubuntu: kernel.apparmor_restrict_unprivileged_userns=0)"
        }
    };
    LabError::Unsupported {
        problem: format!("the kernel refuses a namespace ({error}); {remedy}"),
    }
}

fn set_kernel(name: &str, value: &str, needed: bool) -> Result<(), LabError> {
    let path = Path::new("/proc/sys").join(name);
    match write_file(&path, value) {
        Err(error) if needed => Err(error),
        _ => Ok(()),
    }
}

/// One family of addresses, each given by the lab and by nobody else, and packets taken from
/// whichever way they come.
fn set_family(addresses: Addresses) -> Result<(), LabError> {
    let without_ipv6 = match addresses.0 {
        AddressFamily::Ipv4 => "1",
        AddressFamily::Ipv6 => "0",
    };
    for which in ["all", "default"] {
        set_kernel(&format!("net/ipv4/conf/{which}/rp_filter"), "0", false)?;
        let ipv6 = format!("net/ipv6/conf/{which}");
        let is_needed = addresses.0 == AddressFamily::Ipv6;
        set_kernel(&format!("{ipv6}/disable_ipv6"), without_ipv6, is_needed)?;
        for (setting, value) in [
            ("addr_gen_mode", "1"),
            ("accept_ra", "0"),
            ("accept_dad", "0"),
        ] {
            set_kernel(&format!("{ipv6}/{setting}"), value, false)?;
        }
    }
    Ok(())
}

/// Which of several ways a connection takes depends on its addresses and ports alone (hash policy 3
/// of these fields). Policy 1, "layer 4", would use what the sending socket drew for itself, if
/// that was on this machine, as in a lab: another way for each connection of the same ports, and
/// the same choice in all tiers.
fn hash_like_a_switch(seed: u32) -> Result<(), LabError> {
    // Source and destination address, protocol, source and destination port (ip-sysctl.rst).
    const FIELDS: &str = "55";
    for family in ["ipv4", "ipv6"] {
        set_kernel(
            &format!("net/{family}/fib_multipath_hash_policy"),
            "3",
            false,
        )?;
        set_kernel(
            &format!("net/{family}/fib_multipath_hash_fields"),
            FIELDS,
            false,
        )?;
    }
    // Since Linux 6.11; earlier kernels choose alike in all tiers.
    set_kernel("net/ipv4/fib_multipath_hash_seed", &seed.to_string(), false)
}

/// The host's own interfaces in /sys, and the lab's names and logins in /etc.
fn show_own_view(views: &[(PathBuf, &Path)], notes: &mut Vec<String>) {
    let mut note = |what: &str, error: io::Error| {
        let text = format!("{what}: {error}");
        if !notes.contains(&text) {
            notes.push(text);
        }
    };
    if let Err(error) = own_sysfs() {
        note("/sys in a lab host shows the machine's interfaces", error);
    }
    for (file, target) in views {
        if let Err(error) = namespace::bind_mount(file, target) {
            let what = format!("{} in a lab host is the machine's", target.display());
            note(&what, error);
        }
    }
}

/// A new /sys, with the control groups of the old one.
fn own_sysfs() -> io::Result<()> {
    let groups = Path::new("/sys/fs/cgroup");
    let old_groups = fs::File::open(groups).ok();
    namespace::mount_kernel_fs("sysfs", Path::new("/sys"))?;
    if let Some(old) = old_groups {
        let source = format!("/proc/thread-self/fd/{}", old.as_raw_fd());
        // A lab host without control groups in view still works.
        let _ = namespace::bind_mount(Path::new(&source), groups);
    }
    Ok(())
}

fn await_sshd(
    dir: &Path,
    host: &str,
    child: &mut Child,
    deadline: Instant,
) -> Result<(), LabError> {
    while !files::sshd_pid_path(dir, host).exists() {
        let ended = child
            .try_wait()
            .map_err(LabError::io_named("wait for", "sshd"))?
            .is_some();
        if ended || Instant::now() > deadline {
            let said = fs::read_to_string(files::sshd_log_path(dir, host)).unwrap_or_default();
            return Err(LabError::Command {
                command: format!("sshd on {host}"),
                output: said.trim().into(),
            });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_found_between_other_output() {
        let text = "\nrunning 1 test\n\neastwest-lab-keeper: error no luck\nmore";
        assert_eq!(read_answer(text.as_bytes()).unwrap(), "error no luck");
        assert_eq!(read_answer("running 1 test\n".as_bytes()), None);
    }
}
