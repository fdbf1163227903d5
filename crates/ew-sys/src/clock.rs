//! The kernel's clocks.

/// CLOCK_MONOTONIC in nanoseconds: the one time base of an agent.
#[must_use]
pub fn monotonic_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME in nanoseconds since 1970.
#[must_use]
pub fn realtime_ns() -> u64 {
    read_ns(libc::CLOCK_REALTIME)
}

/// Sleeps until CLOCK_MONOTONIC reaches `deadline_ns`; returns at once when it has passed.
#[cfg(target_os = "linux")]
pub fn sleep_until_ns(deadline_ns: u64) {
    let deadline = libc::timespec {
        tv_sec: (deadline_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (deadline_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: both pointers are valid for the call; the remaining-time pointer may be null.
    while unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const deadline,
            std::ptr::null_mut(),
        )
    } == libc::EINTR
    {}
}

/// As on Linux, by a sleep of its own length: macOS has no absolute one.
#[cfg(not(target_os = "linux"))]
pub fn sleep_until_ns(deadline_ns: u64) {
    let left_ns = deadline_ns.saturating_sub(monotonic_ns());
    std::thread::sleep(std::time::Duration::from_nanos(left_ns));
}

/// Whether the kernel reports that something (NTP, PTP) disciplines the clock: adjtimex(2) without
/// `STA_UNSYNC`. `None` where it may not be asked.
#[cfg(target_os = "linux")]
#[must_use]
pub fn synchronised() -> Option<bool> {
    // SAFETY: timex is plain integers: all zeroes are a valid value, and mean "read only".
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `state` is a valid timex; with no modes set the call only reads.
    let result = unsafe { libc::adjtimex(&raw mut state) };
    (result >= 0).then_some(result != libc::TIME_ERROR && state.status & libc::STA_UNSYNC == 0)
}

fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid timespec to write to; both clocks exist on every Unix.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
