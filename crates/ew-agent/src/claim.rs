//! One run at a time on a host. Every agent holds an abstract Unix socket (unix(7)) of the host's
//! network namespace: it shows whose run has the host to whoever asks, and ends when the host's
//! owner ends it (`eastwest stop`). The kernel releases it with the process, so nothing is left
//! behind, and no file can be planted in its place.
//!
//! A run takes a host in this order: bind, ask all others, decide. Two that come at the same time
//! see each other, because both were bound before they asked; the one that began earlier gets the
//! host. Whoever has decided keeps it.

use crate::inbox::Input;
use ew_model::claim::Claim;
use ew_sys::process;
use ew_sys::socket::peer_user;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use thiserror::Error;

const NAME: &str = "eastwest/agent";
/// Agents that one network namespace has at once: those of `--via local` share it.
const SLOTS: u32 = 128;
/// How long one who asks, or one who is asked, may take: on a starved host threads wait for a CPU.
const PATIENCE: Duration = Duration::from_secs(1);
/// The pause before who has the host is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(200);
/// An agent whose controller is gone ends within this time: nobody is refused for its sake.
const LEFTOVER: Duration = Duration::from_secs(5);
/// No question and no answer is longer.
const MAX_BYTES: u64 = 4096;
const STACK_BYTES: usize = 64 * 1024;

/// What may be asked of an agent.
#[derive(Debug, Serialize, Deserialize)]
enum Question {
    /// Whose the host is. Comes from a run that wants it.
    Who(Claim),
    /// End.
    Stop,
}

/// What an agent answers.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    /// Its run wants the host. `is_decided`: and has it.
    Run { claim: Claim, is_decided: bool },
    /// It shares the host with everybody, or does not know yet.
    NoRun,
    /// The agent is somebody else's.
    Denied,
}

/// What `eastwest stop` did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stopped {
    /// Runs whose agents ended; `None` for an agent without a run of its own, as the doctor's.
    pub agents: Vec<Option<Claim>>,
    /// Agents of other users, which go on.
    pub denied: usize,
}

/// What an agent shows.
#[derive(Debug, Default)]
enum Shown {
    #[default]
    Nothing,
    Wants(Claim),
    /// A run that began earlier wants the host, too.
    GaveWay(Claim),
    Has(Claim),
}

/// An agent's own slot among those of its network namespace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slot {
    shown: Arc<Mutex<Shown>>,
    /// `None` where there was no free slot or no socket: then nobody gets an answer.
    index: Option<u32>,
    name: Arc<str>,
    leftover: Duration,
}

impl Slot {
    /// Takes the first slot that is free, and answers there until the process ends.
    pub(crate) fn hold(inbox: &SyncSender<Input>) -> Self {
        Self::hold_in(NAME, LEFTOVER, inbox)
    }

    fn hold_in(name: &str, leftover: Duration, inbox: &SyncSender<Input>) -> Self {
        let mut slot = Self {
            name: name.into(),
            leftover,
            ..Self::default()
        };
        let bind = |index| {
            Some((
                index,
                UnixListener::bind_addr(&address(name, index).ok()?).ok()?,
            ))
        };
        let Some((index, listener)) = (0..SLOTS).find_map(bind) else {
            return slot;
        };
        let (shown, inbox) = (Arc::clone(&slot.shown), inbox.clone());
        let serving = thread::Builder::new().stack_size(STACK_BYTES);
        let serving = serving.spawn(move || {
            for connection in listener.incoming() {
                let served = connection.and_then(|connection| serve(connection, &shown, &inbox));
                if served.is_err() {
                    // A want of descriptors must not become a busy loop.
                    thread::sleep(ASK_AGAIN);
                }
            }
        });
        // Without the thread nobody gets an answer, and the run goes on.
        slot.index = serving.ok().map(|_| index);
        slot
    }

    /// Takes the host for a run until the process ends. Returns another run that has it, for longer
    /// than an agent outlives its controller.
    pub(crate) fn take(&self, claim: &Claim) -> Option<Claim> {
        *lock(&self.shown) = Shown::Wants(claim.clone());
        let began = Instant::now();
        loop {
            let other = self.other_run(claim);
            let mut shown = lock(&self.shown);
            let other = match &*shown {
                Shown::GaveWay(winner) => other.or(Some(winner.clone())),
                _ => other,
            };
            if other.is_none() || began.elapsed() > self.leftover {
                *shown = Shown::Has(claim.clone());
                return other;
            }
            *shown = Shown::Wants(claim.clone());
            drop(shown);
            thread::sleep(ASK_AGAIN);
        }
    }

    /// Another run that goes before this one.
    fn other_run(&self, own: &Claim) -> Option<Claim> {
        let others = (0..SLOTS).filter(|index| Some(*index) != self.index);
        let mut answers =
            others.filter_map(|index| ask(&self.name, index, &Question::Who(own.clone())).ok());
        answers.find_map(|answer| match answer {
            Answer::Run { claim, is_decided } => {
                let is_first = is_decided || goes_before(&claim, own);
                (claim.run != own.run && is_first).then_some(claim)
            }
            Answer::NoRun | Answer::Denied => None,
        })
    }
}

/// An agent, or what else holds its slot, that could not be asked to end.
#[derive(Debug, Error)]
#[error("@{slot}: {source}; find what holds it with `ss -xlp` and end it{stopped}")]
pub struct StopError {
    slot: String,
    source: io::Error,
    /// The others, which were.
    stopped: Stopped,
}

impl Display for Stopped {
    /// As the end of a sentence; nothing where nobody was asked.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (position, claim) in self.agents.iter().enumerate() {
            f.write_str(if position == 0 { "; stopped: " } else { ", " })?;
            match claim {
                Some(claim) => write!(f, "run {} of {}", claim.run, claim.by)?,
                None => f.write_str("an agent without a run")?,
            }
        }
        match self.denied {
            0 => Ok(()),
            denied => write!(f, "; {denied} of other users: stop them as root"),
        }
    }
}

/// Ends every agent of this network namespace that this user may end: the user's own, or all for
/// root.
///
/// # Errors
/// [`StopError`] of the first that does not answer, when all have been asked.
pub fn stop_all() -> Result<Stopped, StopError> {
    stop_all_in(NAME)
}

fn stop_all_in(name: &str) -> Result<Stopped, StopError> {
    let mut stopped = Stopped::default();
    let mut failed = None;
    for index in 0..SLOTS {
        match stop(name, index) {
            Ok(Answer::Run { claim, .. }) => stopped.agents.push(Some(claim)),
            Ok(Answer::NoRun) => stopped.agents.push(None),
            Ok(Answer::Denied) => stopped.denied += 1,
            Err(error) if is_nobody(&error) => {}
            Err(error) => {
                failed.get_or_insert((format!("{name}/{index}"), error));
            }
        }
    }
    match failed {
        None => Ok(stopped),
        Some((slot, source)) => Err(StopError {
            slot,
            source,
            stopped,
        }),
    }
}

/// On a thread of its own: it waits without a limit to be let in where nobody takes connections.
fn stop(name: &str, index: u32) -> io::Result<Answer> {
    let (sender, answer) = sync_channel(1);
    let name = name.to_owned();
    let asking = thread::Builder::new().stack_size(STACK_BYTES);
    asking.spawn(move || {
        // Nobody may wait for it any more.
        let _ = sender.send(ask(&name, index, &Question::Stop));
    })?;
    let answer = answer.recv_timeout(2 * PATIENCE);
    answer.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// The slot is free, or its agent ended while it was asked.
fn is_nobody(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe
    )
}

fn address(name: &str, index: u32) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{name}/{index}"))
}

fn lock(shown: &Mutex<Shown>) -> MutexGuard<'_, Shown> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The order between runs of which none has the host yet.
fn goes_before(first: &Claim, second: &Claim) -> bool {
    (first.since_unix_s, &first.run) < (second.since_unix_s, &second.run)
}

fn serve(
    mut connection: UnixStream,
    shown: &Mutex<Shown>,
    inbox: &SyncSender<Input>,
) -> io::Result<()> {
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    let mut question = Vec::new();
    (&mut connection)
        .take(MAX_BYTES)
        .read_to_end(&mut question)?;
    match serde_json::from_slice(&question)? {
        Question::Who(asker) => {
            let shown = show(&mut lock(shown), asker);
            reply(&mut connection, &shown)
        }
        Question::Stop => {
            let user = peer_user(&connection)?;
            if user != 0 && user != process::user() {
                return reply(&mut connection, &Answer::Denied);
            }
            let run = answer(&lock(shown));
            let replied = reply(&mut connection, &run);
            // Last, since it ends the process; and whether or not who asked still listens.
            let _ = inbox.send(Input::Stop { user });
            replied
        }
    }
}

fn reply(connection: &mut UnixStream, answer: &Answer) -> io::Result<()> {
    connection.write_all(&serde_json::to_vec(answer)?)
}

/// The answer to a run that wants the host. It is given way to where it goes before.
fn show(shown: &mut Shown, asker: Claim) -> Answer {
    let given = answer(shown);
    if let Shown::Wants(own) = shown
        && own.run != asker.run
        && goes_before(&asker, own)
    {
        *shown = Shown::GaveWay(asker);
    }
    given
}

fn answer(shown: &Shown) -> Answer {
    let run = |claim: &Claim, is_decided| Answer::Run {
        claim: claim.clone(),
        is_decided,
    };
    match shown {
        Shown::Nothing | Shown::GaveWay(_) => Answer::NoRun,
        Shown::Wants(claim) => run(claim, false),
        Shown::Has(claim) => run(claim, true),
    }
}

fn ask(name: &str, index: u32, question: &Question) -> io::Result<Answer> {
    let mut connection = UnixStream::connect_addr(&address(name, index)?)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.write_all(&serde_json::to_vec(question)?)?;
    connection.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    connection.take(MAX_BYTES).read_to_end(&mut answer)?;
    // Whoever holds the slot and does not answer as an agent keeps it busy all the same.
    Ok(
        serde_json::from_slice(&answer).unwrap_or_else(|_| Answer::Run {
            claim: Claim {
                run: "of an unknown program".into(),
                ..Claim::default()
            },
            is_decided: true,
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    const SOON: Duration = Duration::from_millis(600);

    fn claim(run: &str, since_unix_s: u64) -> Claim {
        Claim {
            run: run.into(),
            since_unix_s,
            ..Claim::default()
        }
    }

    /// Slots are of the machine's network namespace: other tests have names of their own.
    fn name(test: &str, round: u32) -> String {
        format!("eastwest/test/{test}/{}/{round}", std::process::id())
    }

    #[test]
    fn of_runs_that_come_together_exactly_one_gets_the_host() {
        for round in 0..5 {
            let (name, barrier) = (name("together", round), Barrier::new(4));
            let (inbox, _kept) = sync_channel(4);
            let refused: Vec<bool> = thread::scope(|scope| {
                let runs = ["a", "b", "c", "d"].map(|run| {
                    let (name, barrier, inbox) = (&name, &barrier, inbox.clone());
                    scope.spawn(move || {
                        barrier.wait();
                        let slot = Slot::hold_in(name, SOON, &inbox);
                        slot.take(&claim(run, 7)).is_some()
                    })
                });
                runs.map(|run| run.join().unwrap()).into()
            });
            let got = refused.iter().filter(|refused| !**refused).count();
            assert_eq!(got, 1, "{refused:?}");
        }
    }

    #[test]
    fn who_has_the_host_keeps_it_whatever_the_others_clock_shows() {
        let (name, (inbox, _kept)) = (name("keeps", 0), sync_channel(4));
        let first = Slot::hold_in(&name, SOON, &inbox);
        assert_eq!(first.take(&claim("first", 100)), None);
        let same = Slot::hold_in(&name, SOON, &inbox);
        assert_eq!(same.take(&claim("first", 100)), None, "agents of one run");
        let earlier = Slot::hold_in(&name, SOON, &inbox);
        let refused = earlier.take(&claim("second", 50));
        assert_eq!(refused.map(|claim| claim.run), Some("first".into()));
    }

    #[test]
    fn an_agent_without_a_run_keeps_nobody_away_and_can_be_stopped() {
        let (name, (inbox, stops)) = (name("stop", 0), sync_channel(4));
        let _doctor = Slot::hold_in(&name, SOON, &inbox);
        let run = Slot::hold_in(&name, SOON, &inbox);
        assert_eq!(run.take(&claim("run", 1)), None);
        for (index, is_run) in [(0, false), (1, true)] {
            let answer = ask(&name, index, &Question::Stop).unwrap();
            assert_eq!(matches!(answer, Answer::Run { .. }), is_run, "{answer:?}");
            assert!(matches!(stops.recv().unwrap(), Input::Stop { .. }));
        }
        let nobody = ask(&name, 2, &Question::Stop).unwrap_err();
        assert!(is_nobody(&nobody), "{nobody}");
    }

    #[test]
    fn one_that_does_not_answer_saves_no_other_from_being_stopped() {
        let (name, (inbox, stops)) = (name("mute", 0), sync_channel(4));
        let mute = UnixListener::bind_addr(&address(&name, 0).unwrap()).unwrap();
        let run = Slot::hold_in(&name, SOON, &inbox);
        *lock(&run.shown) = Shown::Has(claim("run", 1));
        let error = stop_all_in(&name).unwrap_err().to_string();
        assert!(error.starts_with(&format!("@{name}/0: ")), "{error}");
        assert!(error.ends_with("; stopped: run run of "), "{error}");
        assert!(matches!(stops.recv().unwrap(), Input::Stop { .. }));
        drop(mute);
    }

    #[test]
    fn one_that_lets_nobody_in_is_waited_for_with_a_limit() {
        process::raise_open_files_limit();
        let name = name("full", 0);
        let address = address(&name, 0).unwrap();
        let _full = UnixListener::bind_addr(&address).unwrap();
        // Until one waits to be let in.
        let (sender, waiting) = sync_channel(0);
        thread::spawn(move || while sender.send(UnixStream::connect_addr(&address)).is_ok() {});
        let mut held = Vec::new();
        while let Ok(connection) = waiting.recv_timeout(PATIENCE) {
            held.push(connection.unwrap());
        }
        let error = stop(&name, 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn an_agent_that_ends_while_it_is_asked_is_nobody() {
        let name = name("ends", 0);
        let listener = UnixListener::bind_addr(&address(&name, 0).unwrap()).unwrap();
        thread::scope(|scope| {
            let asking = scope.spawn(|| ask(&name, 0, &Question::Stop));
            // What it sent is not read when this end goes, as of a process that ends.
            let (mut connection, _) = listener.accept().unwrap();
            connection.read_exact(&mut [0]).unwrap();
            drop(connection);
            let error = asking.join().unwrap().unwrap_err();
            assert!(is_nobody(&error), "{error}");
        });
    }
}
