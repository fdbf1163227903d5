//! How the kernel schedules the calling thread.

/// Wakes the calling thread as exactly as the kernel can: by default it may delay timers by 50 us to save power
/// (PR_SET_TIMERSLACK, prctl(2)).
pub fn use_exact_timers() {
    // SAFETY: the call takes only integers. Where it fails, timers stay less exact.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

/// Schedules the calling thread before ordinary ones when the process may ask for it (nice -10, which in Linux is a
/// thread's own, setpriority(2)). For threads that seldom run but must be on time.
pub fn prefer_scheduling() {
    // SAFETY: the call takes only integers. Without the privilege nothing changes.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -10) };
}

/// Schedules the calling thread before all ordinary ones when the process may ask for it (SCHED_FIFO, sched(7)): a
/// thread that must act at one instant, and then calls [`schedule_ordinarily`] at once.
pub fn schedule_first() {
    set_policy(libc::SCHED_FIFO, 1);
}

/// Ends [`schedule_first`].
pub fn schedule_ordinarily() {
    set_policy(libc::SCHED_OTHER, 0);
}

fn set_policy(policy: libc::c_int, priority: libc::c_int) {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: 0 is the calling thread, and the parameters outlive the call. Without the privilege nothing changes.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
}

#[cfg(test)]
mod tests {
    use super::*;

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
