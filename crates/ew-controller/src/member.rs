//! One agent as the controller sees it: a task that owns the link and its session, and nothing
//! else's state.

use crate::alarm::Alarm;
use crate::command::Command;
use crate::fleet_event::FleetEvent;
use crate::outside::Clock;
use ew_fleet::{LaunchSlot, LaunchSlots, Launcher, Link, LinkGuard, Relay, launch_from};
use ew_model::inventory::{Host, HostId};
use ew_proto::controller_session::{ControllerEvent, ControllerSession};
use ew_proto::message::Welcome;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

/// An agent that sends goodbye has this long before its launcher's process is killed.
const FINISH_LIMIT: Duration = Duration::from_secs(4);
/// A link that has not taken a whole frame within this is dead.
const WRITE_LIMIT: Duration = Duration::from_secs(4);
/// Longest wait of a task.
const MAX_WAIT: Duration = Duration::from_secs(1);
/// Read from a link at once: more than a reading of a large host's counters.
const READ_BYTES: usize = 16 * 1024;

/// Everything a member's task needs.
pub(crate) struct MemberTask {
    pub(crate) id: HostId,
    /// Which of the host's launches this is, from 1.
    pub(crate) launch: u32,
    pub(crate) host: Host,
    pub(crate) launcher: Arc<dyn Launcher>,
    pub(crate) welcome: Welcome,
    pub(crate) build: String,
    pub(crate) launch_limit: Duration,
    /// Whether a launch that fails may be tried again at once.
    pub(crate) tries_again: bool,
    /// Set before a failed launch is reported that no later one would better.
    pub(crate) failed_for_good: Arc<AtomicBool>,
    pub(crate) slots: Arc<LaunchSlots>,
    /// Where the program goes from host to host.
    pub(crate) relay: Option<Arc<Relay>>,
    pub(crate) fleet_events: mpsc::Sender<FleetEvent>,
    pub(crate) clock: Clock,
}

impl MemberTask {
    /// Launches the agent and serves its link until it ends; the last event is always `Ended`.
    pub(crate) async fn run(self, mut commands: mpsc::Receiver<Command>) {
        let connected = tokio::select! {
            biased;
            connected = self.connect() => connected,
            () = killed(&mut commands) => Err(Failed::for_good("stopped while it was being launched")),
        };
        let unclean = match connected {
            Ok((link, slot)) => self.serve(link, slot, commands).await,
            Err(failed) => {
                self.report_failed(failed).await;
                None
            }
        };
        self.report(FleetEvent::Ended {
            host: self.id,
            launch: self.launch,
            unclean,
        })
        .await;
    }

    /// Tries again where that is worth it, each time a little later and not in step with the other
    /// hosts. What ends the last try may only be what the first one's trouble leads to, so both are
    /// reported.
    async fn connect(&self) -> Result<(Link, LaunchSlot), Failed> {
        let mut tried = 0;
        let mut first: Option<String> = None;
        loop {
            // Before the slot: who waits for a neighbour must not keep it from being launched.
            let neighbour = match &self.relay {
                Some(relay) => relay.assign(&self.host.name).await,
                None => None,
            };
            let slot = self.slots.take().await;
            let slot = slot.ok_or_else(|| Failed::for_good("launches have ended"))?;
            let began = Instant::now();
            let launcher = self.launcher.as_ref();
            match launch_from(launcher, &self.host, self.launch_limit, neighbour.as_ref()).await {
                Ok(link) => {
                    self.slots.launched_after(began.elapsed());
                    if let Some(relay) = self.relay.as_ref().filter(|_| link.was_kept) {
                        relay.was_kept();
                    }
                    return Ok((link, slot));
                }
                Err(error) => {
                    if tried == 0 && error.is_turned_away() {
                        self.slots.turned_away(Instant::now());
                    }
                    let worthwhile = error.worthwhile_retries();
                    if tried >= worthwhile || !self.tries_again {
                        return Err(Failed {
                            message: both_errors(first, error.to_string()),
                            is_passing: worthwhile > 0,
                        });
                    }
                    first.get_or_insert_with(|| error.to_string());
                }
            }
            drop(slot);
            tried += 1;
            tokio::time::sleep(self.retry_pause(tried)).await;
        }
    }

    async fn serve(
        &self,
        link: Link,
        slot: LaunchSlot,
        mut commands: mpsc::Receiver<Command>,
    ) -> Option<String> {
        let Link {
            mut reader,
            mut writer,
            guard,
            was_kept: _,
        } = link;
        let now_ns = self.clock.now_ns();
        let hello_deadline_ns = now_ns + self.launch_limit.as_nanos() as u64;
        let mut session =
            ControllerSession::with_hello_deadline(&self.build, self.id, now_ns, hello_deadline_ns);
        let mut serving = Serving {
            slot: Some(slot),
            ready: false,
            over: None,
        };
        let mut buffer = vec![0; READ_BYTES];
        let mut alarm = Alarm::default();
        while serving.over.is_none() {
            while let Some(bytes) = session.poll_transmit() {
                if !matches!(
                    timeout(WRITE_LIMIT, writer.write_all(&bytes)).await,
                    Ok(Ok(()))
                ) {
                    session.handle_eof(self.clock.now_ns());
                    break;
                }
            }
            self.pass_on(&mut session, &mut serving, &guard).await;
            if serving.over.is_some() {
                break;
            }
            let due_ns = session.poll_timeout().unwrap_or(u64::MAX);
            tokio::select! {
                // What came is taken before silence is judged, also where this thread is late.
                biased;
                command = commands.recv() => self.obey(&mut session, command, &mut serving).await,
                read = reader.read(&mut buffer) => match read {
                    Ok(0) | Err(_) => session.handle_eof(self.clock.now_ns()),
                    Ok(length) => session.handle_bytes(&buffer[..length], self.clock.now_ns()),
                },
                () = alarm.rings(due_ns, self.clock.now_ns(), MAX_WAIT) => {}
            }
            // Whatever comes: a host that sends without end keeps nobody from what is due.
            let now_ns = self.clock.now_ns();
            if session
                .poll_timeout()
                .is_some_and(|due_ns| due_ns <= now_ns)
            {
                session.handle_timeout(now_ns);
            }
        }
        drop(writer);
        let limit = if matches!(serving.over, Some(Over::Kill)) {
            Duration::ZERO
        } else {
            FINISH_LIMIT
        };
        guard
            .finish(limit)
            .await
            .err()
            .map(|unclean| unclean.to_string())
    }

    /// Answers hello on the spot; everything else is the dispatcher's business.
    async fn pass_on(
        &self,
        session: &mut ControllerSession,
        serving: &mut Serving,
        guard: &LinkGuard,
    ) {
        while let Some(event) = session.poll_event() {
            match event {
                ControllerEvent::Hello => self.welcome(session).await,
                ControllerEvent::Farewell => serving.over = Some(Over::Farewell),
                ControllerEvent::Fault { message } if !serving.ready => {
                    serving.over = Some(Over::Lost);
                    self.report_failed(Failed::for_good(message)).await;
                }
                ControllerEvent::Lost { reason } => {
                    serving.over.get_or_insert(Over::Lost);
                    let message = in_the_launchers_words(&reason, &guard.stderr_tail());
                    if serving.ready {
                        let lost = ControllerEvent::Lost { reason: message };
                        self.report(FleetEvent::Agent(self.id, lost)).await;
                    } else {
                        let is_passing = true;
                        let failed = Failed {
                            message,
                            is_passing,
                        };
                        self.report_failed(failed).await;
                    }
                }
                event => {
                    if matches!(event, ControllerEvent::Ready { .. }) {
                        serving.ready = true;
                        serving.slot = None;
                    }
                    self.report(FleetEvent::Agent(self.id, event)).await;
                }
            }
        }
    }

    async fn welcome(&self, session: &mut ControllerSession) {
        if let Err(error) = session.welcome(self.welcome.clone()) {
            self.report_failed(Failed::for_good(error.to_string()))
                .await;
        }
    }

    async fn obey(
        &self,
        session: &mut ControllerSession,
        command: Option<Command>,
        serving: &mut Serving,
    ) {
        let done = match command {
            Some(Command::Sync) => session.sync(self.clock.now_ns()),
            Some(Command::Stage(order)) => session.send_stage(order),
            Some(Command::Go { stage, start_ns }) => session.go(stage, start_ns),
            Some(Command::Abort) => session.abort(),
            Some(Command::CheckPorts(check)) => session.check_ports(check),
            Some(Command::Storage(order)) => session.send_storage(order),
            Some(Command::EndStorage) => session.end_storage(),
            Some(Command::Goodbye) => session.goodbye(),
            Some(Command::Kill) | None => {
                serving.over = Some(Over::Kill);
                Ok(())
            }
        };
        if let Err(error) = done {
            let message = error.to_string();
            self.report(FleetEvent::Agent(
                self.id,
                ControllerEvent::Fault { message },
            ))
            .await;
        }
    }

    /// Between half and one and a half of a second, and twice as long after every further try.
    fn retry_pause(&self, tried: u32) -> Duration {
        let mut hasher = DefaultHasher::new();
        (self.welcome.token.0, self.id, tried).hash(&mut hasher);
        let spread_ms = hasher.finish() % 1000;
        Duration::from_millis(500 + spread_ms) * 2_u32.pow(tried.min(4) - 1)
    }

    async fn report_failed(&self, failed: Failed) {
        self.failed_for_good
            .store(!failed.is_passing, Ordering::Relaxed);
        self.report(FleetEvent::LaunchFailed {
            host: self.id,
            message: failed.message,
        })
        .await;
    }

    /// Waits while the dispatcher has enough to do: the link is not read meanwhile, which is what
    /// slows a host down.
    async fn report(&self, event: FleetEvent) {
        // Nobody listens any more only when the run is over.
        let _ = self.fleet_events.send(event).await;
    }
}

/// Why a host did not come up.
#[derive(Debug)]
struct Failed {
    message: String,
    /// A later launch may go better.
    is_passing: bool,
}

impl Failed {
    fn for_good(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_passing: false,
        }
    }
}

struct Serving {
    /// Held until the agent is ready: it bounds how many launches are under way.
    slot: Option<LaunchSlot>,
    ready: bool,
    over: Option<Over>,
}

enum Over {
    Farewell,
    Lost,
    Kill,
}

async fn killed(commands: &mut mpsc::Receiver<Command>) {
    while !matches!(commands.recv().await, None | Some(Command::Kill)) {}
}

/// What the first try failed with, and the last if that is another.
pub(crate) fn both_errors(first: Option<String>, last: String) -> String {
    match first {
        Some(first) if first != last => format!("{first}; tried again: {last}"),
        _ => last,
    }
}

/// ssh's own last words are more specific than "end of file".
fn in_the_launchers_words(reason: &str, stderr_tail: &str) -> String {
    let words = stderr_tail.trim();
    if words.is_empty() {
        reason.to_owned()
    } else {
        format!("{words} ({reason})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_fleet::{FanOut, Payload, Ssh, SshOptions};
    use ew_proto::message::RunToken;
    use std::fs;
    use std::net::{IpAddr, Ipv4Addr};
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    /// A program in place of ssh, which counts its calls in `calls` and then goes on as `script`.
    fn task(directory: &Path, script: &str) -> MemberTask {
        let program = directory.join("ssh");
        let text = format!(
            "#!/bin/sh\ncd '{0}'; echo >>calls; calls=$(wc -l <calls); for command; do :; done\n{script}\n",
            directory.display()
        );
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let options = SshOptions {
            program,
            remote_dir: Some(directory.to_str().unwrap().to_owned()),
            ..SshOptions::default()
        };
        let agent = b"#!/bin/sh\n[ \"$1\" = agent ] || exit 0\ncat\n".to_vec();
        let ssh = Ssh::new(Payload::new(agent), options).unwrap();
        MemberTask {
            id: HostId(0),
            launch: 1,
            host: Host {
                name: "a".into(),
                address: None,
                rack: None,
            },
            welcome: welcome(),
            build: String::new(),
            launch_limit: Duration::from_secs(20),
            tries_again: true,
            failed_for_good: Arc::default(),
            slots: Arc::new(LaunchSlots::new(FanOut { first: 8, most: 64 })),
            relay: None,
            fleet_events: mpsc::channel(1).0,
            clock: Clock::system(),
            launcher: Arc::new(ssh),
        }
    }

    fn welcome() -> Welcome {
        Welcome {
            host: HostId(0),
            address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            network: None,
            token: RunToken([0; 16]),
            relay_key: None,
            data_ports: (0, 0),
            sample_interval_ns: 0,
            offer_iperf3_port: None,
            watch_interval_ns: None,
            claim: None,
            syslog: false,
            tools: Vec::new(),
        }
    }

    fn calls(directory: &Path) -> usize {
        fs::read_to_string(directory.join("calls"))
            .unwrap()
            .lines()
            .count()
    }

    const TURN_AWAY: &str =
        "echo 'kex_exchange_identification: Connection closed by remote host' >&2; exit 255";

    #[tokio::test]
    async fn a_connection_that_is_turned_away_is_tried_again_and_fewer_go_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let script = format!("[ $calls -gt 2 ] || {{ {TURN_AWAY}; }}; exec sh -c \"$command\"");
        let task = task(directory.path(), &script);
        let (link, slot) = task.connect().await.unwrap();
        drop((link, slot));
        assert_eq!(calls(directory.path()), 3);
        let mut slots = Vec::new();
        while let Ok(slot) = timeout(Duration::from_millis(20), task.slots.take()).await {
            slots.push(slot);
        }
        assert_eq!(slots.len(), 4, "half of the fan-out");
    }

    #[tokio::test]
    async fn what_no_further_try_helps_is_tried_once() {
        let directory = tempfile::tempdir().unwrap();
        let script = "echo 'a: Permission denied (publickey).' >&2; exit 255";
        let failed = task(directory.path(), script).connect().await.unwrap_err();
        assert!(failed.message.contains("Permission denied"), "{failed:?}");
        assert!(!failed.is_passing);
        assert_eq!(calls(directory.path()), 1);
    }

    #[tokio::test]
    async fn a_later_launch_is_one_try_whose_trouble_may_pass() {
        let directory = tempfile::tempdir().unwrap();
        let task = MemberTask {
            tries_again: false,
            ..task(directory.path(), TURN_AWAY)
        };
        assert!(task.connect().await.unwrap_err().is_passing);
        assert_eq!(calls(directory.path()), 1);
    }

    #[test]
    fn pauses_grow_and_are_not_in_step() {
        let directory = tempfile::tempdir().unwrap();
        let mut task = task(directory.path(), "");
        for tried in 1..=5 {
            let factor = 2_u32.pow(tried.min(4) - 1);
            let mut pause = |id| {
                task.id = HostId(id);
                task.retry_pause(tried)
            };
            let pauses: Vec<Duration> = (0..64).map(&mut pause).collect();
            let (shortest, longest) = (pauses.iter().min().unwrap(), pauses.iter().max().unwrap());
            assert!(*shortest >= Duration::from_millis(500) * factor);
            assert!(*longest < Duration::from_millis(1500) * factor);
            assert!(*longest - *shortest > Duration::from_millis(300) * factor);
        }
    }
}
