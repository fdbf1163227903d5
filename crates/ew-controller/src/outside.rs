//! What the thread that keeps the agents alive takes from outside: time, secrets, and the user's
//! wish to end the run. A simulation has its own, and then the same seed gives the same run.

use ew_sys::clock;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Where a simulated run's clocks begin: an arbitrary time that is not near 0.
const SIMULATED_BEGIN_NS: u64 = 1_000_000_000_000;

/// The runtime's clock, which a simulation moves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    began: Instant,
    began_ns: u64,
    is_simulated: bool,
}

impl Clock {
    /// The system's monotonic clock.
    pub(crate) fn system() -> Self {
        Self {
            began: Instant::now(),
            began_ns: clock::monotonic_ns(),
            is_simulated: false,
        }
    }

    /// One that begins now, at the same time in every simulation.
    pub(crate) fn simulated() -> Self {
        Self {
            began: Instant::now(),
            began_ns: SIMULATED_BEGIN_NS,
            is_simulated: true,
        }
    }

    /// Monotonic.
    pub(crate) fn now_ns(self) -> u64 {
        self.began_ns + self.began.elapsed().as_nanos() as u64
    }

    /// The wall clock, since 1970.
    pub(crate) fn realtime_ns(self) -> u64 {
        match self.is_simulated {
            true => self.now_ns(),
            false => clock::realtime_ns(),
        }
    }
}

/// What is from outside.
#[derive(Debug)]
pub(crate) struct Outside {
    pub(crate) clock: Clock,
    /// Nobody else knows it.
    pub(crate) secret: [u8; 16],
    pub(crate) interrupts: Interrupts,
}

impl Outside {
    /// Of this process.
    pub(crate) fn real(clock: Clock) -> std::io::Result<Self> {
        let mut secret = [0; 16];
        getrandom::fill(&mut secret).map_err(std::io::Error::other)?;
        let interrupts = Interrupts::Signals([
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ]);
        // An earlier run of this process may have given them back.
        ew_sys::process::retake_signals();
        Ok(Self {
            clock,
            secret,
            interrupts,
        })
    }
}

/// The user's wish to end.
#[derive(Debug)]
pub(crate) enum Interrupts {
    /// SIGINT, SIGTERM and SIGHUP.
    Signals([Signal; 3]),
    /// One for each that comes.
    Simulated(mpsc::Receiver<()>),
}

impl Interrupts {
    /// The next one; never, where none comes any more.
    pub(crate) async fn next(&mut self) {
        match self {
            Self::Signals([interrupt, terminate, hangup]) => {
                tokio::select! {
                    biased;
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
                }
            }
            Self::Simulated(interrupts) => {
                if interrupts.recv().await.is_none() {
                    std::future::pending::<()>().await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_sys::process::{Signal, kill_process, restore_signals};

    #[tokio::test]
    async fn a_later_run_of_a_process_hears_the_user_too() {
        drop(Outside::real(Clock::system()).unwrap());
        restore_signals();
        let mut later = Outside::real(Clock::system()).unwrap();
        kill_process(std::process::id(), Signal::Interrupt).unwrap();
        later.interrupts.next().await;
    }
}
