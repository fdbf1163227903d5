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
