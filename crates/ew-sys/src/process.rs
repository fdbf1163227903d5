//! Processes: children that cannot outlive us, process groups, limits, own usage, self-removal.
//!
//! SIGPIPE needs no care here: Rust's runtime ignores it, so a write to a closed pipe is an error,
//! and `std::process` restores the default for children.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
#[cfg(target_os = "linux")]
use std::time::Duration;

/// The directory names that [`unlink_self`] may remove begin with this.
pub const REMOVABLE_PREFIX: &str = "eastwest.";

/// The signals we send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT: what Ctrl-C sends.
    Interrupt,
    /// SIGTERM: end orderly.
    Terminate,
    /// SIGKILL: end now.
    Kill,
}

/// What [`restore_signals`] has put aside: a signal and its action.
static PUT_ASIDE: Mutex<Vec<(libc::c_int, libc::sigaction)>> = Mutex::new(Vec::new());

/// Gives SIGINT, SIGTERM and SIGHUP their default action back, which ends the process. What has
/// taken them over, such as a runtime, hears of them no more until [`retake_signals`].
pub fn restore_signals() {
    // SAFETY: a sigaction is integers and pointers, for which all zeroes is a value: SIG_DFL with
    // no flags and an empty mask.
    let default: libc::sigaction = unsafe { std::mem::zeroed() };
    let mut put_aside = PUT_ASIDE.lock().unwrap_or_else(PoisonError::into_inner);
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let mut before = default;
        // SAFETY: both are valid sigactions, one to read from and one to write to, and no handler
        // is installed. It cannot fail for these signals.
        unsafe { libc::sigaction(signal, &raw const default, &raw mut before) };
        if before.sa_sigaction != libc::SIG_DFL {
            put_aside.push((signal, before));
        }
    }
}

/// Undoes [`restore_signals`]: a runtime sets its handlers once for the whole process.
pub fn retake_signals() {
    let mut put_aside = PUT_ASIDE.lock().unwrap_or_else(PoisonError::into_inner);
    for (signal, action) in put_aside.drain(..) {
        // SAFETY: the action was in force for this signal before, as the kernel reported it.
        unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    }
}

/// Waits until this process is asked to end (SIGINT or SIGTERM), at most this long. The signals are
/// blocked, not handled: a pod's first process gets no signal that it neither blocks nor handles.
///
/// # Errors
/// The system's.
#[cfg(target_os = "linux")]
pub fn wait_for_end_signal(limit: Duration) -> io::Result<()> {
    let limit = libc::timespec {
        tv_sec: limit.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    };
    // SAFETY: a sigset_t is integers, which sigemptyset sets; the set and the limit live through
    // the calls, and nobody asks what came with the signal.
    let signal = unsafe {
        let mut ends: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut ends);
        libc::sigaddset(&raw mut ends, libc::SIGINT);
        libc::sigaddset(&raw mut ends, libc::SIGTERM);
        let blocked = libc::pthread_sigmask(libc::SIG_BLOCK, &raw const ends, std::ptr::null_mut());
        if blocked != 0 {
            return Err(io::Error::from_raw_os_error(blocked));
        }
        libc::sigtimedwait(&raw const ends, std::ptr::null_mut(), &raw const limit)
    };
    let error = io::Error::last_os_error();
    match signal {
        -1 if error.raw_os_error() != Some(libc::EAGAIN) => Err(error),
        _ => Ok(()),
    }
}

/// The user that this process acts as (geteuid(2)).
#[must_use]
pub fn user() -> u32 {
    // SAFETY: geteuid cannot fail and takes no argument.
    unsafe { libc::geteuid() }
}

/// What this process has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Peak resident memory.
    pub peak_rss_bytes: u64,
    /// User and system CPU time of all threads.
    pub cpu_ns: u64,
}

/// Makes the kernel kill the child (SIGKILL) when the **thread** that spawns it ends, see
/// PR_SET_PDEATHSIG in prctl(2): spawn from a thread that lives as long as the child may, such as a
/// current-thread runtime's.
///
/// The kernel forgets the setting when a process changes its credentials, so call this after
/// everything else that adds a step between fork and exec (entering a user namespace, for example):
/// the steps run in the order added.
#[cfg(target_os = "linux")]
pub fn die_with_parent(command: &mut Command) -> &mut Command {
    let parent = std::process::id();
    // SAFETY: the closure runs between fork and exec and only makes async-signal-safe system calls
    // on its own values.
    unsafe { command.pre_exec(move || bind_to_parent(parent)) }
}

/// Does nothing: only Linux can. A child with a pipe from its parent ends when that closes.
#[cfg(not(target_os = "linux"))]
pub fn die_with_parent(command: &mut Command) -> &mut Command {
    command
}

/// Puts the child into a process group of its own, so that a terminal's Ctrl-C does not reach it
/// and [`kill_group`] reaches it with all its children.
pub fn new_process_group(command: &mut Command) -> &mut Command {
    command.process_group(0)
}

/// Signals every process of the group that `pid` leads.
///
/// # Errors
/// The system's: ESRCH when nothing is left of the group. A pid that could mean anything but one
/// group (0, 1, beyond the kernel's range) is refused as invalid input.
pub fn kill_group(pid: u32, signal: Signal) -> io::Result<()> {
    send_signal(-checked_pid(pid)?, signal)
}

/// Signals one process.
///
/// # Errors
/// As [`kill_group`].
pub fn kill_process(pid: u32, signal: Signal) -> io::Result<()> {
    send_signal(checked_pid(pid)?, signal)
}

/// Raises the soft limit of open files to the hard limit and returns the soft limit that then
/// holds. Never fails: where the limit cannot be raised, the old one is returned (0 when it cannot
/// even be read).
pub fn raise_open_files_limit() -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is a valid rlimit to write to.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return 0;
    }
    let raised = libc::rlimit {
        rlim_cur: limit.rlim_max,
        rlim_max: limit.rlim_max,
    };
    // SAFETY: `raised` is a valid rlimit to read from.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } == 0 {
        raised.rlim_cur
    } else {
        limit.rlim_cur
    }
}

/// Unit of `ru_maxrss`.
const MAXRSS_BYTES: u64 = if cfg!(target_os = "macos") { 1 } else { 1024 };

/// What this process has used so far, from getrusage(2), and on Linux from `VmHWM` of
/// proc_pid_status(5): `ru_maxrss` counts what the process had before it became this program, which
/// is its parent's. Zeroes if the kernel refuses, which it does not for RUSAGE_SELF.
#[must_use]
pub fn usage() -> Usage {
    // SAFETY: rusage is plain integers, for which all zeroes is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a valid rusage to write to.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    Usage {
        peak_rss_bytes: own_peak_bytes().unwrap_or(usage.ru_maxrss.max(0) as u64 * MAXRSS_BYTES),
        cpu_ns: timeval_ns(usage.ru_utime) + timeval_ns(usage.ru_stime),
    }
}

/// Gives the system back what this process has freed and its allocator keeps (malloc_trim(3)):
/// before something that takes much itself.
pub fn give_back_memory() {
    // SAFETY: malloc_trim takes a number and touches only what is free.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

fn own_peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = peak.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Bytes in a pipe that its reader has not read yet (FIONREAD, pipe(7)), from either end of it.
///
/// # Errors
/// Invalid input for what is no pipe, and the system's.
pub fn unread_bytes(pipe: BorrowedFd<'_>) -> io::Result<usize> {
    // SAFETY: a stat is plain integers, for which all zeroes is a value.
    let mut about: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `about` is a valid stat to write to.
    if unsafe { libc::fstat(pipe.as_raw_fd(), &raw mut about) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if about.st_mode & libc::S_IFMT != libc::S_IFIFO {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no pipe"));
    }
    let mut unread: libc::c_int = 0;
    // SAFETY: FIONREAD writes one int.
    if unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD as _, &raw mut unread) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(usize::try_from(unread).unwrap_or(0))
}

/// Removes this process' own executable, when its name begins with [`REMOVABLE_PREFIX`], or with
/// the directory it lies in, when that directory's name does; the process runs on. Returns what was
/// removed, or `None` when the executable lies elsewhere and was left alone.
///
/// # Errors
/// The system's, when the file or the directory cannot be removed (the directory must hold nothing
/// else).
pub fn unlink_self() -> io::Result<Option<PathBuf>> {
    unlink_private(&std::env::current_exe()?)
}

fn unlink_private(executable: &Path) -> io::Result<Option<PathBuf>> {
    let Some(directory) = executable.parent() else {
        return Ok(None);
    };
    let is_ours = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(REMOVABLE_PREFIX))
    };
    if is_ours(executable) {
        std::fs::remove_file(executable)?;
        return Ok(Some(executable.to_path_buf()));
    }
    if !is_ours(directory) {
        return Ok(None);
    }
    std::fs::remove_file(executable)?;
    std::fs::remove_dir(directory)?;
    Ok(Some(directory.to_path_buf()))
}

#[cfg(target_os = "linux")]
fn bind_to_parent(parent: u32) -> io::Result<()> {
    // SAFETY: prctl with PR_SET_PDEATHSIG takes one integer and touches no memory.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // The parent may have died between fork and prctl; then no signal will ever come.
    // SAFETY: getppid touches no memory and cannot fail.
    if unsafe { libc::getppid() } as u32 != parent {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    Ok(())
}

fn checked_pid(pid: u32) -> io::Result<libc::pid_t> {
    match libc::pid_t::try_from(pid) {
        Ok(pid) if pid > 1 => Ok(pid),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{pid} is not the pid of a child of ours"),
        )),
    }
}

fn send_signal(target: libc::pid_t, signal: Signal) -> io::Result<()> {
    let number = match signal {
        Signal::Interrupt => libc::SIGINT,
        Signal::Terminate => libc::SIGTERM,
        Signal::Kill => libc::SIGKILL,
    };
    // SAFETY: kill touches no memory.
    if unsafe { libc::kill(target, number) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn timeval_ns(time: libc::timeval) -> u64 {
    time.tv_sec.max(0) as u64 * 1_000_000_000 + time.tv_usec.max(0) as u64 * 1_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Stdio;

    #[test]
    fn a_child_dies_with_the_thread_that_spawned_it() {
        let mut child = std::thread::spawn(|| {
            let mut command = Command::new("sleep");
            die_with_parent(command.arg("600")).spawn().unwrap()
        })
        .join()
        .unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    }

    #[test]
    fn a_group_is_killed_with_its_children() {
        let mut command = Command::new("sh");
        command
            .args(["-c", "sleep 600 & echo started; wait"])
            .stdout(Stdio::piped());
        let mut child = new_process_group(&mut command).spawn().unwrap();
        let mut output = child.stdout.take().unwrap();
        let mut line = [0; 8];
        io::Read::read_exact(&mut output, &mut line).unwrap();
        kill_group(child.id(), Signal::Kill).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
        // The grandchild held the pipe: its end proves that the grandchild is gone as well.
        assert_eq!(io::Read::read(&mut output, &mut line).unwrap(), 0);
    }

    #[test]
    fn signals_are_given_back_and_retaken() {
        extern "C" fn ours(_: libc::c_int) {}
        let action = |new: *const libc::sigaction| {
            // SAFETY: all zeroes is a sigaction; the handler does nothing, and the signal is one
            // that no other test uses.
            unsafe {
                let mut before: libc::sigaction = std::mem::zeroed();
                libc::sigaction(libc::SIGHUP, new, &raw mut before);
                before.sa_sigaction
            }
        };
        // SAFETY: all zeroes is a sigaction.
        let mut handler: libc::sigaction = unsafe { std::mem::zeroed() };
        handler.sa_sigaction = ours as *const () as libc::sighandler_t;
        action(&raw const handler);
        restore_signals();
        restore_signals();
        assert_eq!(action(std::ptr::null()), libc::SIG_DFL);
        retake_signals();
        assert_eq!(action(std::ptr::null()), handler.sa_sigaction);
    }

    #[test]
    fn pids_that_mean_more_than_one_group_are_refused() {
        for pid in [0, 1, u32::MAX] {
            let error = kill_group(pid, Signal::Interrupt).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn usage_and_limits_are_read() {
        let used = usage();
        assert!(used.peak_rss_bytes > 100_000, "{used:?}");
        let limit = raise_open_files_limit();
        assert!(limit > 0);
        assert_eq!(raise_open_files_limit(), limit);
    }

    #[test]
    fn what_a_pipe_holds_is_counted() {
        let (mut reader, mut writer) = io::pipe().unwrap();
        let unread = |end: BorrowedFd<'_>| unread_bytes(end).unwrap();
        assert_eq!(unread(writer.as_fd()), 0);
        io::Write::write_all(&mut writer, b"five!").unwrap();
        assert_eq!((unread(writer.as_fd()), unread(reader.as_fd())), (5, 5));
        io::Read::read_exact(&mut reader, &mut [0; 3]).unwrap();
        assert_eq!(unread(writer.as_fd()), 2);
        let file = std::fs::File::open("/dev/null").unwrap();
        let error = unread_bytes(file.as_fd()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn only_a_private_directory_is_removed() {
        let root = std::env::temp_dir().join(format!("ew-sys-unlink-{}", std::process::id()));
        let private = root.join("eastwest.AbC123");
        std::fs::create_dir_all(&private).unwrap();
        std::fs::write(private.join("eastwest"), "x").unwrap();
        std::fs::write(root.join("eastwest"), "x").unwrap();
        assert_eq!(unlink_private(&root.join("eastwest")).unwrap(), None);
        assert_eq!(
            unlink_private(&private.join("eastwest")).unwrap(),
            Some(private.clone())
        );
        assert!(!private.exists());
        assert!(root.join("eastwest").exists());
        std::fs::remove_dir_all(&root).unwrap();
    }
}
