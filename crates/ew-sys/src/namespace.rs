//! Namespaces: create, enter, run in; and handles of processes that cannot be confused with a later
//! owner of their id.
//!
//! Everything here acts on the calling thread or on a child between fork and exec, never on a whole
//! process. Closures that run between fork and exec call the kernel only: no allocation, no lock.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A kind of namespace (namespaces(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceKind {
    /// Users and capabilities.
    User,
    /// Interfaces, addresses, routes, sockets.
    Network,
    /// The mount table.
    Mount,
    /// The host name.
    HostName,
}

impl NamespaceKind {
    fn flag(self) -> libc::c_int {
        match self {
            NamespaceKind::User => libc::CLONE_NEWUSER,
            NamespaceKind::Network => libc::CLONE_NEWNET,
            NamespaceKind::Mount => libc::CLONE_NEWNS,
            NamespaceKind::HostName => libc::CLONE_NEWUTS,
        }
    }

    /// The file of this kind in `/proc/PID/ns/`.
    #[must_use]
    pub fn proc_name(self) -> &'static str {
        match self {
            NamespaceKind::User => "user",
            NamespaceKind::Network => "net",
            NamespaceKind::Mount => "mnt",
            NamespaceKind::HostName => "uts",
        }
    }
}

/// Gives the calling thread new namespaces of these kinds (unshare(2)).
///
/// # Errors
/// The kernel's refusal: `EPERM` without privilege, `ENOSPC` above
/// `/proc/sys/user/max_*_namespaces`.
pub fn unshare(kinds: &[NamespaceKind]) -> io::Result<()> {
    let flags = kinds.iter().fold(0, |flags, kind| flags | kind.flag());
    // SAFETY: unshare(2) takes no pointer and changes the calling thread only.
    check(unsafe { libc::unshare(flags) })
}

/// Opens the calling thread's namespace of one kind.
///
/// # Errors
/// When /proc is not mounted.
pub fn current(kind: NamespaceKind) -> io::Result<OwnedFd> {
    let path = format!("/proc/thread-self/ns/{}", kind.proc_name());
    Ok(OwnedFd::from(std::fs::File::open(path)?))
}

/// Moves the calling thread into a namespace (setns(2)).
///
/// # Errors
/// The kernel's refusal, such as `EPERM`.
pub fn enter(namespace: &impl AsFd, kind: NamespaceKind) -> io::Result<()> {
    set_namespace(namespace.as_fd().as_raw_fd(), kind)
}

/// Sets the host name of the calling thread's UTS namespace.
///
/// # Errors
/// `EPERM` without privilege over the namespace, `EINVAL` above 64 bytes.
pub fn set_host_name(name: &str) -> io::Result<()> {
    // SAFETY: the pointer and length describe `name`, which outlives the call.
    check(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) })
}

/// Makes every mount of the calling thread's mount namespace receive changes from outside, but send
/// none.
///
/// # Errors
/// The kernel's refusal.
pub fn isolate_mounts() -> io::Result<()> {
    mount(None, Path::new("/"), None, libc::MS_SLAVE | libc::MS_REC)
}

/// Mounts a kernel file system ("sysfs", "proc") so that it shows the calling thread's namespaces.
///
/// # Errors
/// The kernel's refusal; in a user namespace, also when parts of the old mount are masked.
pub fn mount_kernel_fs(kind: &str, at: &Path) -> io::Result<()> {
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    mount(Some(Path::new(kind)), at, Some(kind), flags)
}

/// Shows `source` (with everything mounted below it) at `target` as well.
///
/// # Errors
/// The kernel's refusal, or a missing source or target.
pub fn bind_mount(source: &Path, target: &Path) -> io::Result<()> {
    mount(Some(source), target, None, libc::MS_BIND | libc::MS_REC)
}

fn mount(
    source: Option<&Path>,
    target: &Path,
    kind: Option<&str>,
    flags: libc::c_ulong,
) -> io::Result<()> {
    let c_string = |bytes: &[u8]| CString::new(bytes).map_err(io::Error::from);
    let source = source
        .map(|path| c_string(path.as_os_str().as_bytes()))
        .transpose()?;
    let target = c_string(target.as_os_str().as_bytes())?;
    let kind = kind.map(|kind| c_string(kind.as_bytes())).transpose()?;
    let pointer = |text: &Option<CString>| text.as_ref().map_or(std::ptr::null(), |t| t.as_ptr());
    // SAFETY: all strings are NUL-terminated and outlive the call; the data pointer may be null.
    check(unsafe {
        libc::mount(
            pointer(&source),
            target.as_ptr(),
            pointer(&kind),
            flags,
            std::ptr::null(),
        )
    })
}

/// The namespaces, and optionally the control group, in which a child is to start.
#[derive(Debug)]
pub struct Entrance {
    /// The user namespace that owns the others; `None` when the caller's own privilege is enough.
    pub user: Option<OwnedFd>,
    /// Its mount namespace.
    pub mount: OwnedFd,
    /// Its UTS namespace.
    pub host_name: OwnedFd,
    /// Its network namespace.
    pub network: OwnedFd,
    /// `cgroup.procs` (or a version 1 `tasks`) files, open for writing.
    pub control_groups: Vec<OwnedFd>,
}

/// Makes `command` start inside `entrance`; the working directory is kept when it exists in there.
pub fn enter_before_exec(command: &mut Command, entrance: Entrance) {
    // SAFETY: the closure makes system calls only, on descriptors that it owns.
    unsafe { command.pre_exec(move || enter_all(&entrance)) };
}

/// Makes `command`, and what it starts, run on these CPUs only, unless it asks for others
/// (sched_setaffinity(2)).
pub fn pin_before_exec(command: &mut Command, cpus: Vec<usize>) {
    // SAFETY: the closure makes one system call, on data allocated before the fork.
    unsafe { command.pre_exec(move || crate::thread::run_on_cpus(&cpus)) };
}

/// Makes `command` start with its own mounts and a /proc that shows its process-id namespace.
/// Use after [`enter_before_exec`]: the steps run in the order they were added.
pub fn own_proc_before_exec(command: &mut Command) {
    // SAFETY: unshare and mount are system calls; the strings are constants.
    unsafe {
        command.pre_exec(|| {
            check(libc::unshare(libc::CLONE_NEWNS))?;
            check(libc::mount(
                c"proc".as_ptr(),
                c"/proc".as_ptr(),
                c"proc".as_ptr(),
                libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC,
                std::ptr::null(),
            ))
        });
    }
}

/// Makes `command` start as the first process of a new process-id namespace and session: when it
/// ends, by whatever cause, the kernel kills everything that was started below it. `own_user` adds
/// a user namespace in which the caller is root.
///
/// The started process is a child of the caller, yet not the one that [`Command::spawn`] returns:
/// that one ends at once and is to be waited for. The process must pass on its own id (from
/// outside: the target of `/proc/self`).
pub fn isolate_before_exec(command: &mut Command, own_user: bool) {
    let (user, group) = (effective_user_id(), effective_group_id());
    let user_map = format!("0 {user} 1");
    let group_map = format!("0 {group} 1");
    // SAFETY: the closure makes system calls only, on data allocated before the fork.
    unsafe {
        command.pre_exec(move || {
            continue_in_isolated_child(own_user)?;
            if own_user {
                write_once(c"/proc/self/setgroups", b"deny")?;
                write_once(c"/proc/self/uid_map", user_map.as_bytes())?;
                write_once(c"/proc/self/gid_map", group_map.as_bytes())?;
            }
            check(libc::setsid())
        });
    }
}

/// Forks between fork and exec: the calling process ends, its child goes on in the new namespaces.
fn continue_in_isolated_child(own_user: bool) -> io::Result<()> {
    let user = if own_user { libc::CLONE_NEWUSER } else { 0 };
    let flags = libc::CLONE_NEWPID | libc::CLONE_PARENT | libc::SIGCHLD | user;
    // SAFETY: without CLONE_VM and with a null stack this is fork(2). Only one thread exists here,
    // and the child goes straight on to exec. The raw call is needed because fork() takes no flags.
    let pid = unsafe { libc::syscall(libc::SYS_clone, libc::c_long::from(flags), 0, 0, 0, 0) };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(()),
        // SAFETY: _exit never returns and runs no handlers.
        _ => unsafe { libc::_exit(0) },
    }
}

fn enter_all(entrance: &Entrance) -> io::Result<()> {
    for group in &entrance.control_groups {
        // SAFETY: the buffer is one valid byte; "0" means the writing process.
        if unsafe { libc::write(group.as_raw_fd(), b"0".as_ptr().cast(), 1) } != 1 {
            return Err(io::Error::last_os_error());
        }
    }
    let mut directory = [0u8; libc::PATH_MAX as usize];
    // SAFETY: the buffer is valid for its length.
    let known = unsafe { !libc::getcwd(directory.as_mut_ptr().cast(), directory.len()).is_null() };
    if let Some(user) = &entrance.user {
        set_namespace(user.as_raw_fd(), NamespaceKind::User)?;
    }
    set_namespace(entrance.host_name.as_raw_fd(), NamespaceKind::HostName)?;
    set_namespace(entrance.network.as_raw_fd(), NamespaceKind::Network)?;
    set_namespace(entrance.mount.as_raw_fd(), NamespaceKind::Mount)?;
    if known {
        // SAFETY: getcwd wrote a NUL-terminated path. A failure leaves the root directory, which
        // setns has set.
        unsafe { libc::chdir(directory.as_ptr().cast()) };
    }
    Ok(())
}

fn set_namespace(descriptor: libc::c_int, kind: NamespaceKind) -> io::Result<()> {
    // SAFETY: setns(2) takes no pointer; a wrong descriptor is an error, not a fault.
    check(unsafe { libc::setns(descriptor, kind.flag()) })
}

fn write_once(path: &std::ffi::CStr, content: &[u8]) -> io::Result<()> {
    // SAFETY: the path is NUL-terminated, the buffer valid for its length, the descriptor closed
    // once.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        check(file)?;
        let written = libc::write(file, content.as_ptr().cast(), content.len());
        let error = io::Error::last_os_error();
        libc::close(file);
        if written == content.len() as isize {
            Ok(())
        } else {
            Err(error)
        }
    }
}

/// The caller's effective user id; 0 is root.
#[must_use]
pub fn effective_user_id() -> u32 {
    // SAFETY: geteuid cannot fail and takes no argument.
    unsafe { libc::geteuid() }
}

/// The caller's effective group id.
#[must_use]
pub fn effective_group_id() -> u32 {
    // SAFETY: getegid cannot fail and takes no argument.
    unsafe { libc::getegid() }
}

/// From now on the kernel itself removes ended children of this process, adopted ones included.
pub fn reap_children_automatically() {
    // SAFETY: SIG_IGN is a valid disposition, and no handler of ours is replaced.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// In the first process of a process-id namespace: ends all others in it and waits until they are
/// gone. Anywhere else it does nothing.
pub fn end_all_others() {
    if std::process::id() != 1 {
        return;
    }
    // SAFETY: no pointers; -1 means every process that this one may signal, except itself.
    unsafe { libc::kill(-1, libc::SIGKILL) };
    // With ignored SIGCHLD, waitpid blocks until all children have ended, then fails with ECHILD.
    // SAFETY: a null status pointer is allowed.
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) } != -1
        || io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}

/// Waits for a child of this process that std does not know of; at once when it is not a child.
pub fn reap_child(pid: u32) {
    let mut status = 0;
    // SAFETY: the status pointer is valid for the call.
    while unsafe { libc::waitpid(pid as libc::pid_t, &raw mut status, 0) } == -1
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}

/// A process, held by descriptor, so that a later process with the same id is never signalled
/// (pidfd_open(2), Linux 5.3).
#[derive(Debug)]
pub struct ProcessHandle(OwnedFd);

impl ProcessHandle {
    /// Takes hold of a process.
    ///
    /// # Errors
    /// `ESRCH` when there is no such process.
    pub fn open(pid: u32) -> io::Result<Self> {
        // SAFETY: no pointers; a new descriptor or -1 is returned.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given us this descriptor, and nobody else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) }))
    }

    /// Asks the process to end (SIGTERM), or ends it (SIGKILL).
    ///
    /// # Errors
    /// `ESRCH` when it has ended already, `EPERM` when it belongs to someone else.
    pub fn end(&self, at_once: bool) -> io::Result<()> {
        let signal = if at_once {
            libc::SIGKILL
        } else {
            libc::SIGTERM
        };
        let info = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: the descriptor is a pidfd; a null siginfo is allowed.
        let result = unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.0.as_raw_fd(),
                signal,
                info,
                0,
            )
        };
        check(result as libc::c_int)
    }

    /// Whether the process has ended within `limit`.
    #[must_use]
    pub fn wait_ended(&self, limit: Duration) -> bool {
        let mut entry = libc::pollfd {
            fd: self.0.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let limit_ms = libc::c_int::try_from(limit.as_millis()).unwrap_or(libc::c_int::MAX);
        // SAFETY: one valid entry.
        unsafe { libc::poll(&raw mut entry, 1, limit_ms) == 1 }
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_handle_sees_its_process_end() {
        let mut child = Command::new("sleep").arg("30").spawn().unwrap();
        let handle = ProcessHandle::open(child.id()).unwrap();
        assert!(!handle.wait_ended(Duration::ZERO));
        handle.end(true).unwrap();
        assert!(handle.wait_ended(Duration::from_secs(10)));
        child.wait().unwrap();
        assert!(handle.end(true).is_err());
    }

    #[test]
    fn the_current_namespace_is_the_one_proc_names() {
        use std::os::unix::fs::MetadataExt;
        let ours = std::fs::File::from(current(NamespaceKind::Network).unwrap());
        let named = std::fs::metadata("/proc/self/ns/net").unwrap();
        assert_eq!(ours.metadata().unwrap().ino(), named.ino());
    }
}
