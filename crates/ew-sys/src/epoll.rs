//! Waiting for thousands of sockets at once (epoll(7)).

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A set of watched sockets. A socket leaves it when it is closed.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

/// What a socket is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// Reported as long as there is something to read.
    Readable,
    /// Reported once for each change to readable or writable: whoever is notified reads or writes
    /// until the socket would block.
    Changes,
}

/// Space for the tokens of one wait.
pub struct Ready {
    entries: Vec<libc::epoll_event>,
    count: usize,
}

/// Set once the kernel turns out to have no epoll_pwait2(2), which came with Linux 5.11.
static WITHOUT_NANOSECONDS: AtomicBool = AtomicBool::new(false);

impl Epoll {
    /// An empty set.
    ///
    /// # Errors
    /// The process has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: the call takes only an integer.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just handed out this descriptor to nobody else.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Watches a socket; waits then return its token.
    ///
    /// # Errors
    /// The system's: it is watched already, or the user watches too many
    /// (`fs.epoll.max_user_watches`).
    pub fn add(&self, socket: &impl AsFd, watch: Watch, token: u64) -> io::Result<()> {
        let events = match watch {
            Watch::Readable => libc::EPOLLIN,
            Watch::Changes => libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET,
        };
        let event = libc::epoll_event {
            events: events as u32,
            u64: token,
        };
        self.control(libc::EPOLL_CTL_ADD, socket, event)
    }

    /// No longer watches a socket that lives on.
    ///
    /// # Errors
    /// The system's: it is not watched.
    pub fn remove(&self, socket: &impl AsFd) -> io::Result<()> {
        let event = libc::epoll_event { events: 0, u64: 0 };
        self.control(libc::EPOLL_CTL_DEL, socket, event)
    }

    /// Waits until a socket is ready, has failed or was closed by its peer, or the time is over;
    /// exact to the nanosecond where the kernel is (5.11), else to the millisecond above. A signal
    /// ends the wait, too.
    ///
    /// # Errors
    /// The system's, for lack of memory.
    pub fn wait(&self, ready: &mut Ready, timeout: Duration) -> io::Result<()> {
        ready.count = 0;
        let mut count = -1;
        if !WITHOUT_NANOSECONDS.load(Ordering::Relaxed) {
            count = self.wait_exactly(ready, timeout);
            let error = (count < 0).then(io::Error::last_os_error);
            // EPERM is what sandboxes answer for calls they do not know.
            match error.and_then(|error| error.raw_os_error()) {
                Some(libc::ENOSYS | libc::EPERM) => {
                    WITHOUT_NANOSECONDS.store(true, Ordering::Relaxed);
                }
                Some(libc::EINTR) => return Ok(()),
                Some(code) => return Err(io::Error::from_raw_os_error(code)),
                None => {}
            }
        }
        if count < 0 {
            count = self.wait_roughly(ready, timeout)?;
        }
        ready.count = count as usize;
        Ok(())
    }

    fn wait_exactly(&self, ready: &mut Ready, timeout: Duration) -> libc::c_long {
        let timeout = libc::timespec {
            tv_sec: timeout.as_secs().min(i32::MAX as u64) as libc::time_t,
            tv_nsec: libc::c_long::from(timeout.subsec_nanos() as i32),
        };
        // SAFETY: `entries` is a valid array of the given length, `timeout` outlives the call, and
        // no signal mask is given.
        unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.0.as_raw_fd(),
                ready.entries.as_mut_ptr(),
                ready.entries.len() as libc::c_int,
                &raw const timeout,
                std::ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        }
    }

    fn wait_roughly(&self, ready: &mut Ready, timeout: Duration) -> io::Result<libc::c_long> {
        let timeout_ms = timeout.as_micros().div_ceil(1000).min(i32::MAX as u128) as libc::c_int;
        // SAFETY: `entries` is a valid array of the given length.
        let count = unsafe {
            libc::epoll_wait(
                self.0.as_raw_fd(),
                ready.entries.as_mut_ptr(),
                ready.entries.len() as libc::c_int,
                timeout_ms,
            )
        };
        if count >= 0 {
            return Ok(count.into());
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            error => Err(error),
        }
    }

    fn control(
        &self,
        operation: libc::c_int,
        socket: &impl AsFd,
        mut event: libc::epoll_event,
    ) -> io::Result<()> {
        // SAFETY: both descriptors are borrowed for the call, and `event` is a valid one to read.
        let status = unsafe {
            libc::epoll_ctl(
                self.0.as_raw_fd(),
                operation,
                socket.as_fd().as_raw_fd(),
                &raw mut event,
            )
        };
        if status < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

impl Ready {
    /// Space for this many, at least one.
    #[must_use]
    pub fn with_capacity(count: usize) -> Self {
        Self {
            entries: vec![libc::epoll_event { events: 0, u64: 0 }; count.max(1)],
            count: 0,
        }
    }

    /// The tokens that the last wait reported.
    pub fn tokens(&self) -> impl Iterator<Item = u64> + '_ {
        self.entries[..self.count].iter().map(|entry| entry.u64)
    }
}

impl std::fmt::Debug for Ready {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.tokens()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn tokens_of_ready_sockets_are_told() {
        let (epoll, mut ready) = (Epoll::new().unwrap(), Ready::with_capacity(4));
        let (mut near, far) = UnixStream::pair().unwrap();
        let (_other, silent) = UnixStream::pair().unwrap();
        epoll.add(&far, Watch::Readable, 7).unwrap();
        epoll.add(&silent, Watch::Readable, 8).unwrap();
        epoll.wait(&mut ready, Duration::ZERO).unwrap();
        assert_eq!(ready.tokens().count(), 0);
        near.write_all(b"x").unwrap();
        for _ in 0..2 {
            epoll.wait(&mut ready, Duration::from_secs(5)).unwrap();
            assert_eq!(ready.tokens().collect::<Vec<_>>(), [7]);
        }
        epoll.remove(&far).unwrap();
        epoll.wait(&mut ready, Duration::from_millis(1)).unwrap();
        assert_eq!(ready.tokens().count(), 0);
    }

    #[test]
    fn a_change_is_told_once() {
        let (epoll, mut ready) = (Epoll::new().unwrap(), Ready::with_capacity(4));
        let (mut near, mut far) = UnixStream::pair().unwrap();
        epoll.add(&far, Watch::Changes, 1).unwrap();
        let mut reported = |timeout_ms| {
            epoll
                .wait(&mut ready, Duration::from_millis(timeout_ms))
                .unwrap();
            ready.tokens().count()
        };
        assert_eq!((reported(5000), reported(0)), (1, 0));
        near.write_all(b"x").unwrap();
        assert_eq!((reported(5000), reported(0)), (1, 0));
        far.read_exact(&mut [0]).unwrap();
        drop(near);
        assert_eq!(reported(5000), 1);
    }

    #[test]
    fn kernels_without_nanoseconds_wait_for_milliseconds() {
        let (epoll, mut ready) = (Epoll::new().unwrap(), Ready::with_capacity(1));
        assert_eq!(epoll.wait_roughly(&mut ready, Duration::ZERO).unwrap(), 0);
    }
}
