//! For tests: hosts that are up, with the test in their agents' place.

use super::{Member, Members, State};
use crate::command::{Command, MAX_QUEUED_COMMANDS};
use crate::fleet_event::FleetEvent;
use crate::job::{Job, LaunchOptions, RelayChoice};
use crate::outside::{Clock, Interrupts, Outside};
use ew_fleet::Local;
use ew_model::inventory::{Host, HostId, Inventory};
use ew_proto::clock::ClockEstimate;
use ew_proto::controller_session::ControllerEvent;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc;

pub(crate) const CLOCK: ClockEstimate = ClockEstimate {
    offset_ns: 0,
    error_ns: 1,
    rtt_ns: 2,
    rate_ppb: None,
};

/// Hosts `n1`, `n2`, ... of a run that nothing launches.
pub(crate) struct Puppets {
    pub(crate) job: Job,
    pub(crate) members: Members,
    pub(crate) interrupts: mpsc::Sender<()>,
    commands: Vec<mpsc::Receiver<Command>>,
}

impl Puppets {
    pub(crate) fn up(hosts: u8) -> Self {
        let job = job(hosts);
        let (interrupts, waiting) = mpsc::channel(1);
        let outside = Outside {
            clock: Clock::simulated(),
            secret: [0; 16],
            interrupts: Interrupts::Simulated(waiting),
        };
        let launcher = Arc::clone(&job.launcher);
        let options = job.options.clone();
        let members = Members::new(&job.inventory, launcher, options, outside).unwrap();
        let mut puppets = Self {
            job,
            members,
            interrupts,
            commands: Vec::new(),
        };
        for id in puppets.job.inventory.host_ids() {
            let (commands, receiver) = mpsc::channel(MAX_QUEUED_COMMANDS);
            puppets.commands.push(receiver);
            puppets.members.members.insert(id, member(commands));
            puppets.members.running_tasks.insert((id, 1));
        }
        puppets
    }

    /// What an agent says, or the end of its task: the controller takes it when it waits next.
    pub(crate) fn say(&self, event: FleetEvent) {
        self.members.sender.try_send(event).unwrap();
    }

    pub(crate) fn say_of(&self, host: HostId, event: ControllerEvent) {
        self.say(FleetEvent::Agent(host, event));
    }

    /// What a host was ordered since this was last asked. `None` at the end: its task is ended.
    pub(crate) fn orders(&mut self, host: HostId) -> Vec<Option<Command>> {
        let commands = &mut self.commands[host.index()];
        let mut orders = Vec::new();
        loop {
            match commands.try_recv() {
                Ok(command) => orders.push(Some(command)),
                Err(mpsc::error::TryRecvError::Empty) => return orders,
                Err(mpsc::error::TryRecvError::Disconnected) => {
                    orders.push(None);
                    return orders;
                }
            }
        }
    }
}

fn member(commands: mpsc::Sender<Command>) -> Member {
    Member {
        state: State::Up {
            facts: Box::default(),
            data_port: 5401,
            wall_clock_off_ns: 0,
        },
        clock: Some(CLOCK),
        launches: 1,
        was_up: true,
        may_return: true,
        failed_for_good: Arc::default(),
        commands: Some(commands),
    }
}

fn job(hosts: u8) -> Job {
    let scenario = ew_plan::scenario::builtin("pair").unwrap();
    let file = ew_plan::scenario::parse_file(scenario, "pair", &[]).unwrap();
    let hosts = (1..=hosts).map(|number| Host {
        name: format!("n{number}"),
        address: Some(Ipv4Addr::new(198, 18, 0, number).into()),
        rack: None,
    });
    Job {
        scenario: file.scenario,
        inventory: Inventory {
            hosts: hosts.collect(),
            ..Inventory::default()
        },
        seed: 1,
        launcher: Arc::new(Local {
            binary: "true".into(),
        }),
        options: options(),
        runs_dir: PathBuf::new(),
        command: Vec::new(),
        follow_flows: false,
        signals_end_analysis: false,
        detours: BTreeMap::new(),
        node_labels: BTreeMap::new(),
    }
}

fn options() -> LaunchOptions {
    LaunchOptions {
        relay: RelayChoice::Never,
        ..LaunchOptions::default()
    }
}
