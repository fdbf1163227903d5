//! How the kernel schedules the calling thread.

use std::cell::Cell;
use std::io;
use std::mem::size_of;

/// Wakes the calling thread as exactly as the kernel can: by default it may delay timers by 50 us
/// to save power (PR_SET_TIMERSLACK, prctl(2)).
pub fn use_exact_timers() {
    // SAFETY: the call takes only integers. Where it fails, timers stay less exact.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

/// Schedules the calling thread before ordinary ones when the process may ask for it (nice -10,
/// which in Linux is a thread's own, setpriority(2)). For threads that seldom run but must be on
/// time.
pub fn prefer_scheduling() {
    // SAFETY: the call takes only integers. Without the privilege nothing changes.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -10) };
}

thread_local! {
    /// The calling thread's policy before [`schedule_first`]; `None` when it holds.
    static ORDINARY_POLICY: Cell<Option<libc::c_int>> = const { Cell::new(None) };
}

/// Schedules the calling thread before all ordinary ones when the process may ask for it
/// (SCHED_FIFO, sched(7)): a thread that must act at one instant, and then calls
/// [`schedule_ordinarily`] at once.
pub fn schedule_first() {
    // SAFETY: the call takes only an integer; 0 is the calling thread.
    let policy = unsafe { libc::sched_getscheduler(0) };
    if policy >= 0 && policy != libc::SCHED_FIFO {
        ORDINARY_POLICY.set(Some(policy));
        set_policy(libc::SCHED_FIFO, 1);
    }
}

/// Ends [`schedule_first`]: the thread is scheduled as it was before, which may be as a batch or
/// idle one.
pub fn schedule_ordinarily() {
    if let Some(policy) = ORDINARY_POLICY.take() {
        set_policy(policy, 0);
    }
}

/// Lets all other threads run before the calling one (SCHED_IDLE, sched(7)).
pub fn give_way() {
    set_policy(libc::SCHED_IDLE, 0);
}

fn set_policy(policy: libc::c_int, priority: libc::c_int) {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: 0 is the calling thread, and the parameters outlive the call. Without the privilege
    // nothing changes.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
}

/// Lets the calling thread, and threads it starts later, run on one CPU only.
///
/// # Errors
/// As [`run_on_cpus`].
pub fn run_on_cpu(cpu: usize) -> io::Result<()> {
    run_on_cpus(&[cpu])
}

/// Lets the calling thread, and threads it starts later, run on some CPUs only
/// (sched_setaffinity(2)).
///
/// # Errors
/// The system's, for example when there are no such CPUs or the process may not use them.
pub fn run_on_cpus(cpus: &[usize]) -> io::Result<()> {
    // SAFETY: cpu_set_t is plain integers: all zeroes are the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for cpu in cpus {
        if *cpu >= libc::CPU_SETSIZE as usize {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: `cpu` is within the set, as checked.
        unsafe { libc::CPU_SET(*cpu, &mut set) };
    }
    // SAFETY: 0 is the calling thread; the set outlives the call and the length is its own.
    let status =
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// CPU time a thread has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// In user mode, ns.
    pub user_ns: u64,
    /// In the kernel on behalf of the thread, ns. Softirq work is not in it.
    pub system_ns: u64,
}

/// CPU time of the calling thread so far (RUSAGE_THREAD, getrusage(2)).
#[must_use]
pub fn cpu_times() -> CpuTimes {
    // SAFETY: rusage is plain integers: all zeroes are a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a valid rusage to write to, and RUSAGE_THREAD exists since Linux 2.6.26.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    CpuTimes {
        user_ns: timeval_ns(usage.ru_utime),
        system_ns: timeval_ns(usage.ru_stime),
    }
}

/// The calling thread, for [`cpu_ns_of`].
#[must_use]
pub fn current_id() -> i32 {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::gettid() }
}

/// User and system time that a thread of this process has used so far, ns. `None` when it has
/// ended. The clock's number is made as the kernel does it (`MAKE_THREAD_CPUCLOCK` of
/// include/linux/posix-timers_types.h with `CPUCLOCK_SCHED`), so that any thread can ask about any
/// other.
#[must_use]
pub fn cpu_ns_of(thread: i32) -> Option<u64> {
    const SCHEDULER: libc::clockid_t = 2;
    const OF_ONE_THREAD: libc::clockid_t = 4;
    let clock = (!thread << 3) | SCHEDULER | OF_ONE_THREAD;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid timespec to write to; the kernel refuses clocks of threads that are
    // not this process's.
    let status = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (status == 0).then_some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

fn timeval_ns(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_grows_with_work() {
        let before = cpu_times();
        let mut sum = 0_u64;
        while cpu_times() == before {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
    }

    #[test]
    fn another_threads_cpu_time_can_be_read_while_it_lives() {
        let (report, reported) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            while cpu_ns_of(current_id()).unwrap() < 1_000_000 {}
            report.send(current_id()).unwrap();
            ended.recv().unwrap_err();
        });
        let id = reported.recv().unwrap();
        assert!(cpu_ns_of(id).unwrap() >= 1_000_000);
        drop(end);
        thread.join().unwrap();
        // Its number may be another thread's of this process by now, but hardly one with as much
        // time.
        assert!(cpu_ns_of(id).is_none_or(|ns| ns < 1_000_000_000));
        assert_eq!(cpu_ns_of(i32::MAX >> 4), None);
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_refused() {
        assert!(run_on_cpu(1_000_000).is_err());
        std::thread::spawn(|| assert!(run_on_cpu(1023).is_err()))
            .join()
            .unwrap();
    }

    #[test]
    fn a_thread_is_scheduled_again_as_it_was() {
        // SAFETY: the call takes only an integer; 0 is the calling thread.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        std::thread::spawn(move || {
            set_policy(libc::SCHED_BATCH, 0);
            schedule_ordinarily();
            assert_eq!(policy(), libc::SCHED_BATCH);
            schedule_first();
            schedule_first();
            schedule_ordinarily();
            assert_eq!(policy(), libc::SCHED_BATCH);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn timers_become_exact() {
        std::thread::spawn(|| {
            use_exact_timers();
            prefer_scheduling();
            // SAFETY: the call takes only an integer.
            assert_eq!(unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) }, 1);
        })
        .join()
        .unwrap();
    }
}
