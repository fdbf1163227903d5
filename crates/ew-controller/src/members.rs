//! The agents of a run, and the one module that orders what happens to them.

#[cfg(test)]
pub(crate) mod puppets;

use crate::abort::Conditions;
use crate::alarm::Alarm;
use crate::command::{Command, MAX_QUEUED_COMMANDS};
use crate::fleet_event::FleetEvent;
use crate::job::LaunchOptions;
use crate::max_rate;
use crate::member::MemberTask;
use crate::outside::{Clock, Interrupts, Outside};
use ew_fleet::{LaunchSlots, Launcher, Relay};
use ew_model::claim::Claim;
use ew_model::facts::{HostFacts, InterfaceFacts};
use ew_model::inventory::{HostId, Inventory};
use ew_model::workload::Tool;
use ew_proto::clock::ClockEstimate;
use ew_proto::controller_session::ControllerEvent;
use ew_proto::message::{RelayKey, RunToken, Welcome};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Time between whole readings of a watched host: what a person can follow.
const WATCH_INTERVAL_NS: u64 = 1_000_000_000;

/// The whole fleet has this long to end after goodbye.
const TEAR_DOWN_LIMIT: Duration = Duration::from_secs(6);

/// A deadline is at most this late, however much comes.
const MAX_OVERDUE_NS: u64 = 1_000_000_000;

/// What may wait for the dispatcher; then the agents' links wait, and with them the agents.
const MAX_QUEUED_HAPPENINGS: usize = 1024;

/// A host's state.
#[derive(Debug)]
pub(crate) enum State {
    Launching,
    Up {
        facts: Box<HostFacts>,
        data_port: u16,
        /// The host's wall clock against ours, when it became ready.
        wall_clock_off_ns: u64,
    },
    Down {
        message: String,
    },
}

/// One host and the way to its task.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) state: State,
    pub(crate) clock: Option<ClockEstimate>,
    pub(crate) launches: u32,
    /// It has been up at least once, so it is part of the plan.
    pub(crate) was_up: bool,
    /// It was not stopped by its owner.
    may_return: bool,
    /// Its launch failed for a reason that a later one would meet again.
    failed_for_good: Arc<AtomicBool>,
    commands: Option<mpsc::Sender<Command>>,
}

impl Member {
    /// Whether another launch may bring it up.
    pub(crate) fn is_worth_launching(&self) -> bool {
        self.may_return && !self.failed_for_good.load(Ordering::Relaxed)
    }
}

/// A way for the program from host to host.
fn relay(inventory: &Inventory) -> std::io::Result<(RelayKey, Arc<Relay>)> {
    let mut key = [0; 16];
    getrandom::fill(&mut key).map_err(std::io::Error::other)?;
    let key = RelayKey(key);
    Ok((key, Arc::new(Relay::new(inventory, key))))
}

/// All hosts of a run.
pub(crate) struct Members {
    inventory: Inventory,
    launcher: Arc<dyn Launcher>,
    options: LaunchOptions,
    token: RunToken,
    claim: Option<Claim>,
    tools: Vec<Tool>,
    members: BTreeMap<HostId, Member>,
    slots: Arc<LaunchSlots>,
    relay: Option<(RelayKey, Arc<Relay>)>,
    sender: mpsc::Sender<FleetEvent>,
    fleet_events: mpsc::Receiver<FleetEvent>,
    clock: Clock,
    alarm: Alarm,
    interrupts: Interrupts,
    /// Tasks that are not over: whose, and for which of the host's launches.
    running_tasks: BTreeSet<(HostId, u32)>,
    aborted: Option<oneshot::Receiver<String>>,
    conditions: Conditions,
    /// Why a condition ended the run.
    pub(crate) aborted_because: Option<String>,
    pub(crate) unclean: Vec<(String, String)>,
}

impl Members {
    /// With this process's clock, secret and signals. For what loads nothing: no host is lost, and
    /// no link slow, for its sake.
    pub(crate) fn of_process(
        inventory: &Inventory,
        launcher: Arc<dyn Launcher>,
        options: LaunchOptions,
    ) -> std::io::Result<Self> {
        let outside = Outside::real(Clock::system())?;
        let mut members = Self::new(inventory, launcher, options, outside)?;
        members.silence_conditions();
        Ok(members)
    }

    /// Nobody is launched yet.
    pub(crate) fn new(
        inventory: &Inventory,
        launcher: Arc<dyn Launcher>,
        options: LaunchOptions,
        outside: Outside,
    ) -> std::io::Result<Self> {
        // Four for each host; the default of 1024 is enough for 250 hosts.
        ew_sys::process::raise_open_files_limit();
        let (sender, fleet_events) = mpsc::channel(MAX_QUEUED_HAPPENINGS);
        let behind_one = launcher.max_hosts_behind_one();
        let relays = options.relay.relays(inventory.hosts.len(), behind_one);
        let relays = launcher.relays() && relays;
        let relay = relays.then(|| relay(inventory)).transpose()?;
        let conditions = Conditions::new(options.abort_limits);
        Ok(Self {
            relay,
            inventory: inventory.clone(),
            slots: Arc::new(LaunchSlots::new(launcher.fan_out())),
            launcher,
            options,
            token: RunToken(outside.secret),
            claim: None,
            tools: Vec::new(),
            members: BTreeMap::new(),
            sender,
            fleet_events,
            clock: outside.clock,
            alarm: Alarm::default(),
            interrupts: outside.interrupts,
            running_tasks: BTreeSet::new(),
            aborted: None,
            conditions,
            aborted_because: None,
            unclean: Vec::new(),
        })
    }

    /// From now on hosts are launched for this run alone.
    pub(crate) fn claim_hosts(&mut self, claim: Claim) {
        self.claim = Some(claim);
    }

    /// From now on hosts are launched that report which of these tools they have.
    pub(crate) fn look_for(&mut self, tools: Vec<Tool>) {
        self.tools = tools;
    }

    /// The controller's monotonic clock.
    pub(crate) fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// The wall clock, since 1970.
    pub(crate) fn realtime_ns(&self) -> u64 {
        self.clock.realtime_ns()
    }

    /// Interrupts the run, as the user would, when this comes.
    pub(crate) fn abort_on(&mut self, condition: oneshot::Receiver<String>) {
        self.aborted = Some(condition);
    }

    /// Flows begin or end: what others suffer meanwhile may be of the load.
    pub(crate) fn load(&mut self, is_on: bool) {
        self.conditions.load(is_on);
    }

    /// Hosts that another run is loading, by name, with that run.
    pub(crate) fn in_use(&self) -> Vec<(&str, &Claim)> {
        let members = self.members.iter();
        members
            .filter_map(|(id, member)| match &member.state {
                State::Up { facts, .. } => {
                    let claim = facts.in_use_by.as_deref()?;
                    Some((self.inventory.name(*id), claim))
                }
                State::Launching | State::Down { .. } => None,
            })
            .collect()
    }

    /// Hosts that do other work, by name, with what it is. The hosts of a lab are this machine,
    /// whatever else it does.
    pub(crate) fn at_work(&self) -> Vec<(&str, &[String])> {
        let is_lab = self.launcher.name() == "lab";
        let members = self.members.iter().filter(|_| !is_lab);
        members
            .filter_map(|(id, member)| match &member.state {
                State::Up { facts, .. } if !facts.other_work.is_empty() => {
                    Some((self.inventory.name(*id), facts.other_work.as_slice()))
                }
                _ => None,
            })
            .collect()
    }

    /// What the data interfaces of hosts that are up report, where they have a link of their own;
    /// else what was expected, such as of virtio, which reports none.
    pub(crate) fn link_speeds(&self, expected_bits_per_sec: Option<f64>) -> BTreeMap<HostId, f64> {
        let speed = |id: HostId| {
            let interface = self.data_interface(id)?;
            let speed = interface.speed_bits_per_sec;
            let speed = speed.filter(|_| !max_rate::is_virtual(interface));
            Some((id, speed.or(expected_bits_per_sec)?))
        };
        self.alive().into_iter().filter_map(speed).collect()
    }

    /// Starts a host's task, for the first time or again.
    pub(crate) fn launch(&mut self, id: HostId) {
        let before = self.members.get(&id);
        let launches = before.map_or(0, |member| member.launches) + 1;
        let was_up = before.is_some_and(|member| member.was_up);
        let failed_for_good = Arc::default();
        let host = self.inventory.host(id).clone();
        let (commands, receiver) = mpsc::channel(MAX_QUEUED_COMMANDS);
        let task = MemberTask {
            id,
            launch: launches,
            welcome: Welcome {
                host: id,
                address: host.address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
                network: self.options.network.clone(),
                token: self.token,
                relay_key: self.relay.as_ref().map(|(key, _)| *key),
                data_ports: self.options.data_ports,
                sample_interval_ns: self.options.sample_interval_ns,
                offer_iperf3_port: self.options.offer_iperf3_port,
                watch_interval_ns: self
                    .options
                    .watched
                    .contains(&id)
                    .then_some(WATCH_INTERVAL_NS),
                claim: self.claim.clone(),
                syslog: self.options.syslog && self.claim.is_some(),
                tools: self.tools.clone(),
            },
            host,
            launcher: Arc::clone(&self.launcher),
            build: self.options.build.clone(),
            launch_limit: self.options.launch_limit,
            tries_again: was_up || launches == 1,
            failed_for_good: Arc::clone(&failed_for_good),
            slots: Arc::clone(&self.slots),
            relay: self.relay.as_ref().map(|(_, relay)| Arc::clone(relay)),
            fleet_events: self.sender.clone(),
            clock: self.clock,
        };
        let member = Member {
            state: State::Launching,
            clock: None,
            launches,
            was_up,
            may_return: true,
            failed_for_good,
            commands: Some(commands),
        };
        self.members.insert(id, member);
        self.running_tasks.insert((id, launches));
        tokio::spawn(task.run(receiver));
    }

    /// Waits for the next event and keeps the members' states true to it.
    pub(crate) async fn next(&mut self, deadline_ns: u64) -> FleetEvent {
        let event = match self.conditions.take_reason() {
            Some(why) => {
                self.aborted_because = Some(why);
                FleetEvent::Interrupt
            }
            None => self.wait(deadline_ns).await,
        };
        if matches!(event, FleetEvent::Interrupt) {
            self.silence_conditions();
        }
        self.keep(&event);
        event
    }

    async fn wait(&mut self, deadline_ns: u64) -> FleetEvent {
        let now_ns = self.now_ns();
        let is_long_over = now_ns.saturating_sub(deadline_ns) > MAX_OVERDUE_NS;
        tokio::select! {
            // What came before a deadline is taken before it, also where this thread is late.
            biased;
            () = self.interrupts.next() => FleetEvent::Interrupt,
            why = condition(&mut self.aborted) => {
                self.aborted_because = Some(why);
                FleetEvent::Interrupt
            }
            Some(event) = self.fleet_events.recv(), if !is_long_over => event,
            () = self.alarm.rings(deadline_ns, now_ns, Duration::MAX) => FleetEvent::Deadline,
        }
    }

    /// What ends anyway, a condition does not end: it would count as the user's second Ctrl-C.
    fn silence_conditions(&mut self) {
        self.aborted = None;
        self.conditions.silence();
    }

    /// Sends something to a host; silently nothing when it is down (its loss is or will be a
    /// event).
    pub(crate) fn send(&self, id: HostId, command: Command) {
        if let Some(commands) = self.members.get(&id).and_then(|m| m.commands.as_ref()) {
            // A full queue means a dead link, which the session notices by itself.
            let _ = commands.try_send(command);
        }
    }

    /// Hosts that are up.
    pub(crate) fn alive(&self) -> Vec<HostId> {
        self.in_state(|state| matches!(state, State::Up { .. }))
    }

    /// Hosts still coming up.
    pub(crate) fn launching(&self) -> Vec<HostId> {
        self.in_state(|state| matches!(state, State::Launching))
    }

    /// Hosts that failed or were lost.
    pub(crate) fn down(&self) -> Vec<HostId> {
        self.in_state(|state| matches!(state, State::Down { .. }))
    }

    /// A host's standing.
    pub(crate) fn get(&self, id: HostId) -> Option<&Member> {
        self.members.get(&id)
    }

    /// Whether a host that is up has a tool's programs.
    pub(crate) fn has_tool(&self, id: HostId, tool: Tool) -> bool {
        let state = self.members.get(&id).map(|member| &member.state);
        let Some(State::Up { facts, .. }) = state else {
            return false;
        };
        tool == Tool::Engine || facts.tools.iter().any(|(name, _)| name == tool.name())
    }

    /// Whether hosts find their addresses themselves.
    pub(crate) fn chooses_network(&self) -> bool {
        self.options.network.is_some()
    }

    /// Who takes part, with the addresses that hosts which are up have on the network that was
    /// asked for.
    pub(crate) fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// What a host's owner allows, bits per second on the wire in each direction.
    pub(crate) fn owners_limit(&self, id: HostId) -> Option<f64> {
        match &self.members.get(&id)?.state {
            State::Up { facts, .. } => facts.max_bits_per_sec,
            State::Launching | State::Down { .. } => None,
        }
    }

    /// The interface that carries a host's data, when it is up.
    pub(crate) fn data_interface(&self, id: HostId) -> Option<&InterfaceFacts> {
        match &self.members.get(&id)?.state {
            State::Up { facts, .. } => {
                let address = self.inventory.host(id).address?;
                facts.interface_with(address)
            }
            State::Launching | State::Down { .. } => None,
        }
    }

    /// Where a host's data listener is, when it is up.
    pub(crate) fn data_address(&self, id: HostId) -> Option<SocketAddr> {
        match &self.members.get(&id)?.state {
            State::Up { data_port, .. } => Some(SocketAddr::new(
                self.inventory.host(id).address?,
                *data_port,
            )),
            State::Launching | State::Down { .. } => None,
        }
    }

    /// Sends goodbye to everybody and waits until every task is over; a second interrupt kills at
    /// once. Who is not gone by the limit is not confirmed clean.
    pub(crate) async fn tear_down(&mut self) {
        self.silence_conditions();
        let deadline_ns = self.clock.now_ns() + TEAR_DOWN_LIMIT.as_nanos() as u64;
        let all: Vec<HostId> = self.members.keys().copied().collect();
        for id in &all {
            let launching = matches!(self.members[id].state, State::Launching);
            self.send(
                *id,
                if launching {
                    Command::Kill
                } else {
                    Command::Goodbye
                },
            );
        }
        while !self.running_tasks.is_empty() {
            match self.next(deadline_ns).await {
                FleetEvent::Interrupt => self.kill_all(),
                FleetEvent::Deadline => {
                    self.kill_all();
                    self.report_silent();
                    return;
                }
                FleetEvent::Agent(..)
                | FleetEvent::LaunchFailed { .. }
                | FleetEvent::Ended { .. } => {}
            }
        }
    }

    /// Hosts whose tasks are not over: nobody saw their agents end.
    fn report_silent(&mut self) {
        let silent: BTreeSet<HostId> = self.running_tasks.iter().map(|(id, _)| *id).collect();
        let reason = format!(
            "the agent's end was not seen within {} s; without a controller it ends itself within 5 s: find a process named eastwest there",
            TEAR_DOWN_LIMIT.as_secs()
        );
        for id in silent {
            let name = self.inventory.name(id).to_owned();
            self.unclean.push((name, reason.clone()));
        }
    }

    fn kill_all(&mut self) {
        for member in self.members.values_mut() {
            // Dropping the sender ends the task at once, also one that has not connected yet.
            member.commands = None;
        }
    }

    fn keep(&mut self, event: &FleetEvent) {
        if let FleetEvent::Agent(host, event) = event {
            let now_ns = self.clock.now_ns();
            (self.conditions).heard(&self.inventory, *host, event, now_ns);
        }
        match event {
            FleetEvent::Agent(id, ControllerEvent::Ready { facts, data_port }) => {
                self.on_ready(*id, facts, *data_port);
            }
            FleetEvent::Agent(id, ControllerEvent::Stopped) => {
                if let Some(member) = self.members.get_mut(id) {
                    member.may_return = false;
                }
            }
            FleetEvent::Agent(
                id,
                ControllerEvent::Synced(estimate) | ControllerEvent::ClockMoved(estimate),
            ) => {
                if let Some(member) = self.members.get_mut(id) {
                    member.clock = Some(*estimate);
                }
            }
            FleetEvent::Agent(id, ControllerEvent::Alive { clock_error_ns, .. }) => {
                let clock = self.members.get_mut(id).and_then(|m| m.clock.as_mut());
                if let (Some(clock), Some(error_ns)) = (clock, *clock_error_ns) {
                    clock.error_ns = error_ns;
                }
            }
            FleetEvent::Agent(id, ControllerEvent::Lost { reason: message })
            | FleetEvent::LaunchFailed { host: id, message } => self.on_lost(*id, message),
            FleetEvent::Ended {
                host,
                launch,
                unclean,
            } => self.on_ended(*host, *launch, unclean.as_ref()),
            FleetEvent::Agent(..) | FleetEvent::Interrupt | FleetEvent::Deadline => {}
        }
    }

    fn on_ready(&mut self, id: HostId, facts: &HostFacts, data_port: u16) {
        if let Some(network) = &self.options.network {
            self.inventory.hosts[id.index()].address = network.address_on(&facts.interfaces);
        }
        let state = State::Up {
            wall_clock_off_ns: self.clock.realtime_ns().abs_diff(facts.realtime_ns),
            facts: Box::new(facts.clone()),
            data_port,
        };
        self.set_state(id, state);
        if let Some(member) = self.members.get_mut(&id) {
            member.was_up = true;
        }
        if let Some((_, relay)) = &self.relay {
            let name = self.inventory.name(id);
            match self.data_address(id) {
                Some(address) => relay.is_up(name, address),
                None => relay.is_gone(name),
            }
        }
    }

    fn on_lost(&mut self, id: HostId, message: &str) {
        let state = self.members.get(&id).map(|member| &member.state);
        if let Some(State::Up { .. }) = state {
            let up = self.alive().len();
            self.conditions.lost(self.clock.now_ns(), up);
        }
        if let Some((_, relay)) = &self.relay {
            relay.is_gone(self.inventory.name(id));
        }
        let message = message.to_owned();
        self.set_state(id, State::Down { message });
    }

    /// A host that was lost may be up again by the time that its former task is over.
    fn on_ended(&mut self, host: HostId, launch: u32, unclean: Option<&String>) {
        self.running_tasks.remove(&(host, launch));
        if let Some(reason) = unclean {
            self.unclean
                .push((self.inventory.name(host).to_owned(), reason.clone()));
        }
        let member = self.members.get(&host);
        let is_its = |member: &&Member| member.launches == launch;
        if let Some(State::Up { .. }) = member.filter(is_its).map(|member| &member.state) {
            self.set_state(
                host,
                State::Down {
                    message: "the agent ended".into(),
                },
            );
        }
    }

    fn set_state(&mut self, id: HostId, state: State) {
        if let Some(member) = self.members.get_mut(&id) {
            member.state = state;
        }
    }

    fn in_state(&self, wanted: impl Fn(&State) -> bool) -> Vec<HostId> {
        self.members
            .iter()
            .filter(|(_, m)| wanted(&m.state))
            .map(|(id, _)| *id)
            .collect()
    }
}

/// Why the condition came about; never, where there is none.
async fn condition(aborted: &mut Option<oneshot::Receiver<String>>) -> String {
    if let Some(receiver) = aborted
        && let Ok(why) = receiver.await
    {
        return why;
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::puppets::Puppets;
    use super::*;

    const HOST: HostId = HostId(0);

    fn ended() -> FleetEvent {
        FleetEvent::Ended {
            host: HOST,
            launch: 1,
            unclean: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_condition_of_a_run_that_ends_is_no_second_interrupt() {
        let mut puppets = Puppets::up(1);
        let (fails, condition) = oneshot::channel();
        puppets.members.abort_on(condition);
        fails.send("`check` ended with 1".to_owned()).unwrap();
        puppets.say(ended());
        puppets.members.tear_down().await;
        let orders = puppets.orders(HOST);
        assert!(matches!(orders[..], [Some(Command::Goodbye)]), "{orders:?}");
        assert_eq!(puppets.members.aborted_because, None);
    }

    #[tokio::test(start_paused = true)]
    async fn after_one_interrupt_only_the_user_makes_another() {
        let mut puppets = Puppets::up(1);
        let (fails, condition) = oneshot::channel();
        puppets.members.abort_on(condition);
        puppets.interrupts.try_send(()).unwrap();
        let event = puppets.members.next(u64::MAX).await;
        assert!(matches!(event, FleetEvent::Interrupt), "{event:?}");
        // Nobody listens to it any more.
        fails.send("late".to_owned()).unwrap_err();
        puppets.interrupts.try_send(()).unwrap();
        let event = puppets.members.next(u64::MAX).await;
        assert!(matches!(event, FleetEvent::Interrupt), "{event:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_falls_silent_in_tear_down_is_not_clean() {
        let mut puppets = Puppets::up(2);
        puppets.say(ended());
        puppets.members.tear_down().await;
        let unclean = &puppets.members.unclean;
        let [(name, reason)] = &unclean[..] else {
            panic!("{unclean:?}");
        };
        assert_eq!(name, "n2");
        assert!(reason.contains("was not seen within 6 s"), "{reason}");
        assert!(matches!(
            puppets.orders(HostId(1))[..],
            [Some(Command::Goodbye), None]
        ));
    }
}
