//! `eastwest tools`: which external tools are where, and how the missing ones get there.

use crate::exit::{self, Failure, Outcome};
use crate::fleet::FleetArgs;
use crate::hosts::HostArgs;
use crate::output::{self, PlainArgs};
use crate::runtime::block_on;
use clap::Args;
use clap::builder::PossibleValuesParser;
use ew_controller::{LaunchOptions, NoAnswer, run_as_root_on, survey};
use ew_fleet::{Launcher, RootError};
use ew_model::tools::{Distribution, Installation, installation};
use ew_model::{HostFacts, HostId, Inventory, Tool};
use ew_plan::inventory::fold;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// A package manager behind a slow mirror.
const INSTALL_LIMIT: Duration = Duration::from_secs(15 * 60);

#[derive(Debug, Args)]
pub(crate) struct ToolsArgs {
    #[command(flatten)]
    hosts: HostArgs,
    #[command(flatten)]
    fleet: FleetArgs,
    /// Only these tools, separated by commas [default: all that eastwest drives]
    #[arg(long, value_name = "TOOL", value_delimiter = ',', value_parser = PossibleValuesParser::new(Tool::external().map(Tool::name)))]
    tool: Vec<String>,
    /// Install what is missing with the host's package manager, as root or by sudo that asks no
    /// password
    #[arg(long)]
    install_tools: bool,
    #[command(flatten, next_help_heading = "Output")]
    plain: PlainArgs,
}

/// What a host reported, or why it reported nothing.
type Answers = BTreeMap<HostId, Result<HostFacts, NoAnswer>>;

/// What came of each host's commands.
type Installed = BTreeMap<HostId, Result<(), RootError>>;

/// All that is to be reported.
struct Listing {
    inventory: Inventory,
    wanted: Vec<Tool>,
    before: Answers,
    /// Equal to `before` where nothing was installed.
    now: Answers,
    /// `None` when nothing was to be installed.
    installed: Option<Installed>,
}

pub(crate) fn run(args: &ToolsArgs) -> Outcome {
    let lab = args.fleet.attach_lab()?.map(Arc::new);
    let roles = args.hosts.roles(lab.as_deref(), None)?;
    let mut roster = args
        .hosts
        .roster(&args.fleet, lab.as_deref(), &[], roles.as_ref())?;
    let launcher = args.fleet.launcher(lab, &roster)?;
    let mut options = args.fleet.options();
    options.network = args.hosts.network()?;
    let listing = block_on(async {
        args.hosts.resolve(&mut roster, &args.fleet).await?;
        look(args, roster.inventory, launcher, options).await
    })?;
    if args.plain.is_json() {
        let json = serde_json::to_string_pretty(&listing.json()).map_err(Failure::failed)?;
        output::print(&json);
    } else {
        output::print(&listing.text());
    }
    Ok(listing.exit_code())
}

async fn look(
    args: &ToolsArgs,
    inventory: Inventory,
    launcher: Arc<dyn Launcher>,
    options: LaunchOptions,
) -> Result<Listing, Failure> {
    let wanted = wanted(&args.tool);
    let ask = || {
        survey(
            &inventory,
            Arc::clone(&launcher),
            options.clone(),
            wanted.clone(),
        )
    };
    let before = ask().await.map_err(not_surveyed)?;
    let mut listing = Listing {
        wanted: wanted.clone(),
        now: before.clone(),
        before,
        installed: None,
        inventory: inventory.clone(),
    };
    if args.install_tools {
        let commands = listing.commands();
        let limit = INSTALL_LIMIT;
        let done = run_as_root_on(&inventory, Arc::clone(&launcher), commands, limit).await;
        let done = done.map_err(not_surveyed)?;
        if !done.is_empty() {
            listing.now = ask().await.map_err(not_surveyed)?;
        }
        listing.installed = Some(done);
    }
    Ok(listing)
}

fn not_surveyed(error: std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::Interrupted => Failure::Interrupted,
        _ => Failure::failed(error),
    }
}

/// In the order help shows them.
fn wanted(names: &[String]) -> Vec<Tool> {
    let is_named = |tool: &Tool| names.iter().any(|name| name == tool.name());
    Tool::external()
        .filter(|tool| names.is_empty() || is_named(tool))
        .collect()
}

fn version(facts: &HostFacts, tool: Tool) -> Option<&str> {
    let mut tools = facts.tools.iter();
    let (_, version) = tools.find(|(name, _)| name == tool.name())?;
    Some(version)
}

fn system(facts: &HostFacts) -> &str {
    facts.os.as_ref().map_or("unknown system", |os| &os.name)
}

impl Listing {
    /// What would install each host's missing tools. Hosts that lack nothing, or of whose packages
    /// nothing is known, are not there.
    fn commands(&self) -> BTreeMap<HostId, Vec<String>> {
        let commands_of = |(id, answer): (&HostId, &Result<HostFacts, NoAnswer>)| {
            let installation = self.installation(answer.as_ref().ok()?)?;
            (!installation.commands.is_empty()).then_some((*id, installation.commands))
        };
        self.before.iter().filter_map(commands_of).collect()
    }

    /// `None` where nothing is missing, or the distribution is not known.
    fn installation(&self, facts: &HostFacts) -> Option<Installation> {
        let missing = self.missing(facts);
        let distribution = Distribution::of(facts.os.as_ref()?)?;
        (!missing.is_empty()).then(|| installation(distribution, &missing))
    }

    fn missing(&self, facts: &HostFacts) -> Vec<Tool> {
        let is_missing = |tool: &Tool| version(facts, *tool).is_none();
        self.wanted.iter().copied().filter(is_missing).collect()
    }

    /// Hosts that did not answer, or where an installation failed, make the answer partial. A tool
    /// that is missing is an answer.
    fn exit_code(&self) -> ExitCode {
        let all_answered = self.now.values().all(Result::is_ok);
        let all_done = self.installed.iter().flatten().all(|(_, r)| r.is_ok());
        if all_answered && all_done {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(exit::PARTIAL)
        }
    }

    fn text(&self) -> String {
        let mut lines = self.version_lines();
        lines.extend(self.silence_lines());
        match &self.installed {
            Some(installed) => lines.extend(self.installed_lines(installed)),
            None => lines.extend(self.missing_lines()),
        }
        lines.join("\n")
    }

    /// One line per tool and version.
    fn version_lines(&self) -> Vec<String> {
        let mut lines = vec![format!("{:<9} {:<24} version", "tool", "hosts")];
        let present: Vec<(HostId, &HostFacts)> = self.present(&self.now);
        for tool in &self.wanted {
            let of_tool = present
                .iter()
                .map(|(id, facts)| (version(facts, *tool).map(printable), *id));
            for (version, hosts) in grouped(of_tool) {
                let version = version.unwrap_or_else(|| "-".to_owned());
                let hosts = self.names(&hosts);
                lines.push(format!("{:<9} {hosts:<24} {version}", tool.name()));
            }
        }
        lines
    }

    fn silence_lines(&self) -> Vec<String> {
        let silent = self.now.iter().filter_map(|(id, answer)| {
            let reason = answer.as_ref().err()?;
            Some((printable(&reason.to_string()), *id))
        });
        let line = |(reason, hosts): (String, Vec<HostId>)| {
            format!("\n{} did not answer: {reason}", self.names(&hosts))
        };
        grouped(silent).into_iter().map(line).collect()
    }

    /// Per set of hosts alike: what is missing, and what would install it.
    fn missing_lines(&self) -> Vec<String> {
        let lacking = self
            .present(&self.now)
            .into_iter()
            .filter_map(|(id, facts)| {
                let missing = self.missing(facts);
                let what = (
                    printable(system(facts)),
                    words(&missing),
                    self.remedy(facts),
                );
                (!missing.is_empty()).then_some((what, id))
            });
        let mut lines = Vec::new();
        for ((system, missing, remedy), hosts) in grouped(lacking) {
            let hosts = self.names(&hosts);
            lines.push(format!("\n{hosts} ({system}): missing {missing}"));
            lines.extend(remedy);
        }
        if !lines.is_empty() {
            lines.push(
                "\n--install-tools does it where root or sudo without a password is there".into(),
            );
        }
        lines
    }

    fn remedy(&self, facts: &HostFacts) -> Vec<String> {
        let Some(installation) = self.installation(facts) else {
            return vec!["    no commands are known for this distribution".to_owned()];
        };
        let commands = installation.commands.iter();
        let mut lines: Vec<String> = commands.map(|command| format!("    {command}")).collect();
        if !installation.without_package.is_empty() {
            let without = words(&installation.without_package);
            lines.push(format!(
                "    not in the distribution's archive, as far as known: {without}"
            ));
        }
        lines
    }

    /// What was done, per host.
    fn installed_lines(&self, installed: &Installed) -> Vec<String> {
        let mut lines = vec![String::new()];
        for (id, facts) in self.present(&self.before) {
            let name = self.inventory.name(id);
            let missing = self.missing(facts);
            lines.push(match installed.get(&id) {
                Some(Ok(())) => format!("{name}: {}", self.gained(id, &missing)),
                Some(Err(reason)) => format!("{name}: nothing installed: {reason}"),
                None if missing.is_empty() => format!("{name}: nothing was missing"),
                None => format!("{name}: no package is known for {}", words(&missing)),
            });
        }
        lines
    }

    fn gained(&self, id: HostId, missing: &[Tool]) -> String {
        let Some(Ok(facts)) = self.now.get(&id) else {
            return "installed, but it did not answer afterwards".to_owned();
        };
        let is_there = |tool: &&Tool| version(facts, **tool).is_some();
        let (gained, lacking): (Vec<&Tool>, Vec<&Tool>) = missing.iter().partition(is_there);
        let named = |tools: Vec<&Tool>| words(&tools.into_iter().copied().collect::<Vec<_>>());
        match (gained.is_empty(), lacking.is_empty()) {
            (false, true) => format!("installed {}", named(gained)),
            (false, false) => format!(
                "installed {}; still missing {}",
                named(gained),
                named(lacking)
            ),
            (true, _) => format!("the commands worked, but still missing {}", named(lacking)),
        }
    }

    fn json(&self) -> serde_json::Value {
        let host = |(id, answer): (&HostId, &Result<HostFacts, NoAnswer>)| {
            let facts = answer.as_ref().ok();
            let installation = facts.and_then(|facts| self.installation(facts));
            let tools: Option<BTreeMap<&str, Option<&str>>> = facts.map(|facts| {
                let all = self.wanted.iter();
                all.map(|tool| (tool.name(), version(facts, *tool)))
                    .collect()
            });
            let done = self.installed.as_ref().and_then(|done| done.get(id));
            serde_json::json!({
                "host": self.inventory.name(*id),
                "error": answer.as_ref().err().map(ToString::to_string),
                "os": facts.map(system),
                "tools": tools,
                "commands": installation.as_ref().map(|i| &i.commands),
                "without_package": installation.map(|i| i.without_package),
                "installed": done.map(Result::is_ok),
                "install_error": done.and_then(|done| done.as_ref().err()).map(ToString::to_string),
            })
        };
        let hosts: Vec<_> = self.now.iter().map(host).collect();
        serde_json::json!({ "hosts": hosts })
    }

    fn present<'a>(&self, answers: &'a Answers) -> Vec<(HostId, &'a HostFacts)> {
        let all = answers.iter();
        all.filter_map(|(id, answer)| Some((*id, answer.as_ref().ok()?)))
            .collect()
    }

    fn names(&self, hosts: &[HostId]) -> String {
        fold(hosts.iter().map(|id| self.inventory.name(*id)))
    }
}

/// Hosts by what they have in common.
fn grouped<K: Ord>(pairs: impl Iterator<Item = (K, HostId)>) -> BTreeMap<K, Vec<HostId>> {
    let mut groups: BTreeMap<K, Vec<HostId>> = BTreeMap::new();
    for (key, host) in pairs {
        groups.entry(key).or_default().push(host);
    }
    groups
}

fn words(tools: &[Tool]) -> String {
    let names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
    names.join(", ")
}

/// Another program's words, without what a terminal would obey.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}
