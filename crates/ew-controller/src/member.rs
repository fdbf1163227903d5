//! One agent as the controller sees it: a task that owns the link and its session, and nothing
//! else's state.

use crate::members::FleetEvent;
use ew_fleet::{LaunchSlot, LaunchSlots, Launcher, Link, LinkGuard, Relay, launch_from};
use ew_model::inventory::{Host, HostId};
use ew_model::plan::StageIndex;
use ew_model::storage::StorageOrder;
use ew_proto::controller_session::{ControllerEvent, ControllerSession};
use ew_proto::message::{StageOrder, Welcome};
use ew_sys::clock;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// An agent that says goodbye has this long before its launcher's process is killed.
const FINISH_LIMIT: Duration = Duration::from_secs(4);
/// A link that takes no bytes for this long is dead.
const WRITE_LIMIT: Duration = Duration::from_secs(4);
/// Commands that may wait for one agent.
pub(crate) const MAX_QUEUED_COMMANDS: usize = 64;

/// What the dispatcher asks of one agent.
#[derive(Debug)]
pub(crate) enum Command {
    Sync,
    Stage(StageOrder),
    Go { stage: StageIndex, start_ns: u64 },
    Abort,
    CheckPorts(Vec<SocketAddr>),
    Storage(StorageOrder),
    EndStorage,
    Goodbye,
    Kill,
}

/// Everything a member's task needs.
pub(crate) struct MemberTask {
    pub(crate) id: HostId,
    pub(crate) host: Host,
    pub(crate) launcher: Arc<dyn Launcher>,
    pub(crate) welcome: Welcome,
    pub(crate) build: String,
    pub(crate) launch_limit: Duration,
    pub(crate) slots: Arc<LaunchSlots>,
    /// Where the program goes from host to host.
    pub(crate) relay: Option<Arc<Relay>>,
    pub(crate) fleet_events: mpsc::Sender<FleetEvent>,
}

impl MemberTask {
    /// Launches the agent and serves its link until it ends; the last event is always `Ended`.
    pub(crate) async fn run(self, mut commands: mpsc::Receiver<Command>) {
        let connected = tokio::select! {
            connected = self.connect() => connected,
            () = killed(&mut commands) => Err("stopped while it was being launched".into()),
        };
        let unclean = match connected {
            Ok((link, slot)) => self.serve(link, slot, commands).await,
            Err(message) => {
                self.report(FleetEvent::LaunchFailed {
                    host: self.id,
                    message,
                })
                .await;
                None
            }
        };
        self.report(FleetEvent::Ended {
            host: self.id,
            unclean,
        })
        .await;
    }

    /// Tries again where that is worth it, each time a little later and not in step with the other
    /// hosts. What ends the last try may only be what the first one's trouble leads to, so both are
    /// reported.
    async fn connect(&self) -> Result<(Link, LaunchSlot), String> {
        let mut tried = 0;
        let mut first: Option<String> = None;
        loop {
            // Before the slot: who waits for a neighbour must not keep it from being launched.
            let neighbour = match &self.relay {
                Some(relay) => relay.assign(&self.host.name).await,
                None => None,
            };
            let slot = self.slots.take().await;
            let slot = slot.ok_or("launches have ended")?;
            let began = Instant::now();
            let launcher = self.launcher.as_ref();
            match launch_from(launcher, &self.host, self.launch_limit, neighbour.as_ref()).await {
                Ok(link) => {
                    self.slots.launched_after(began.elapsed());
                    return Ok((link, slot));
                }
                Err(error) if tried >= error.worthwhile_retries() => {
                    return Err(both_errors(first, error.to_string()));
                }
                Err(error) => {
                    first.get_or_insert_with(|| error.to_string());
                }
            }
            drop(slot);
            tried += 1;
            tokio::time::sleep(retry_pause(tried)).await;
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
        } = link;
        let now_ns = clock::monotonic_ns();
        let hello_deadline_ns = now_ns + self.launch_limit.as_nanos() as u64;
        let mut session =
            ControllerSession::with_hello_deadline(&self.build, self.id, now_ns, hello_deadline_ns);
        let mut serving = Serving {
            slot: Some(slot),
            ready: false,
            over: None,
        };
        let mut buffer = vec![0; 64 * 1024];
        while serving.over.is_none() {
            while let Some(bytes) = session.poll_transmit() {
                if !matches!(
                    timeout(WRITE_LIMIT, writer.write_all(&bytes)).await,
                    Ok(Ok(()))
                ) {
                    session.handle_eof(clock::monotonic_ns());
                    break;
                }
            }
            self.pass_on(&mut session, &mut serving, &guard).await;
            if serving.over.is_some() {
                break;
            }
            let wait = time_until(session.poll_timeout());
            tokio::select! {
                read = reader.read(&mut buffer) => match read {
                    Ok(0) | Err(_) => session.handle_eof(clock::monotonic_ns()),
                    Ok(length) => session.handle_bytes(&buffer[..length], clock::monotonic_ns()),
                },
                command = commands.recv() => self.obey(&mut session, command, &mut serving).await,
                () = tokio::time::sleep(wait) => session.handle_timeout(clock::monotonic_ns()),
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
                    self.report(FleetEvent::LaunchFailed {
                        host: self.id,
                        message,
                    })
                    .await;
                }
                ControllerEvent::Lost { reason } => {
                    serving.over.get_or_insert(Over::Lost);
                    let message = in_the_launchers_words(&reason, &guard.stderr_tail());
                    let host = self.id;
                    self.report(if serving.ready {
                        FleetEvent::Agent(host, ControllerEvent::Lost { reason: message })
                    } else {
                        FleetEvent::LaunchFailed { host, message }
                    })
                    .await;
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
            self.report(FleetEvent::LaunchFailed {
                host: self.id,
                message: error.to_string(),
            })
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
            Some(Command::Sync) => session.sync(clock::monotonic_ns()),
            Some(Command::Stage(order)) => session.send_stage(order),
            Some(Command::Go { stage, start_ns }) => session.go(stage, start_ns),
            Some(Command::Abort) => session.abort(),
            Some(Command::CheckPorts(peers)) => session.check_ports(peers),
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

    /// Waits while the dispatcher has enough to do: the link is not read meanwhile, which is what
    /// slows a host down.
    async fn report(&self, event: FleetEvent) {
        // Nobody listens any more only when the run is over.
        let _ = self.fleet_events.send(event).await;
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
fn both_errors(first: Option<String>, last: String) -> String {
    match first {
        Some(first) if first != last => format!("{first}; tried again: {last}"),
        _ => last,
    }
}

/// Between half and one and a half of a second, and twice as long after every further try.
fn retry_pause(tried: u32) -> Duration {
    let spread_ms = getrandom::u32().unwrap_or(500) % 1000;
    Duration::from_millis(u64::from(500 + spread_ms)) * 2_u32.pow(tried.min(4) - 1)
}

fn time_until(due_ns: Option<u64>) -> Duration {
    let due_ns = due_ns.unwrap_or(u64::MAX);
    Duration::from_nanos(
        due_ns
            .saturating_sub(clock::monotonic_ns())
            .min(1_000_000_000),
    )
}

/// ssh's own last words say more than "end of file".
fn in_the_launchers_words(reason: &str, stderr_tail: &str) -> String {
    let words = stderr_tail.trim();
    if words.is_empty() {
        reason.to_owned()
    } else {
        format!("{words} ({reason})")
    }
}
