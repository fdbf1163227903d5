//! `eastwest kubernetes`: the rights a run needs, and what runs inside pods and next to links.

use crate::cli;
use crate::commands::compare;
use crate::exit::{Failure, Outcome};
use crate::kubernetes::{AccessArgs, default_image, refused};
use crate::output;
use crate::push::{self, Pushgateway};
use crate::runtime::block_on;
use crate::shorthand;
use anyhow::{anyhow, ensure};
use clap::{Args, Subcommand};
use eastwest_agent::HoldArgs;
use ew_kubernetes::{
    Access, Bootstrap, ControllerJob, PodOptions, exec, go_architecture, remove_made_namespace,
    rules_yaml, to_yaml,
};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// How often, and how far apart, the guard asks for the removal: an API server that is busy or
/// starts anew is there again by then.
const GUARD_TRIES: u32 = 30;
const GUARD_PAUSE: Duration = Duration::from_secs(2);
/// Schedules with a name.
const CRON_NAMES: [&str; 7] = [
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
];
/// Bounds and names of minute, hour, day, month and weekday.
const CRON_FIELDS: [(u32, u32, &[&str]); 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (
        1,
        12,
        &[
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
    ),
    (0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];
/// How much worse than the last run fails a CronJob.
const USUAL_THRESHOLD: f64 = 0.1;

#[derive(Debug, Args)]
pub(crate) struct KubernetesCommandArgs {
    #[command(subcommand)]
    command: KubernetesCommand,
}

#[derive(Debug, Subcommand)]
enum KubernetesCommand {
    /// Print the minimal rights of a run, as YAML for kubectl apply
    Rbac(RbacArgs),
    /// Print a Job, or a CronJob, that runs the controller in the cluster, with its account and
    /// rights, as YAML for kubectl apply
    Job(JobArgs),
    /// Carry an agent's standard streams through the API server; started by the launcher
    #[command(hide = true)]
    Link(LinkArgs),
    /// Hold a pod until it is ordered to end; started in pods
    #[command(hide = true)]
    Hold(HoldArgs),
    /// Print the routes of a pod's network; started in pods
    #[command(hide = true)]
    Routes,
    /// Remove a run's namespace when the run's process is gone; started by `run`
    #[command(hide = true)]
    Guard(GuardArgs),
}

#[derive(Debug, Args)]
struct GuardArgs {
    /// Word of the run, by which its pods are known
    #[arg(long, value_name = "RUN")]
    run: String,
    #[command(flatten)]
    access: AccessArgs,
}

#[derive(Debug, Args)]
struct RbacArgs {
    /// Namespace of the run
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = parse_namespace)]
    namespace: String,
    /// Who gets the rights: a user, or system:serviceaccount:NAMESPACE:NAME
    #[arg(long, value_name = "NAME", default_value = "eastwest")]
    subject: String,
    /// Also the right to make and remove the namespace
    #[arg(long)]
    make_namespace: bool,
}

#[derive(Debug, Args)]
struct JobArgs {
    /// Namespace of the Job and of its runs
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = parse_namespace)]
    namespace: String,
    /// Image that `eastwest image` wrote [default: eastwest:VERSION]
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// When nodes pull the image: Always, IfNotPresent, Never [default: Kubernetes' own]
    #[arg(long, value_name = "POLICY", value_parser = ["Always", "IfNotPresent", "Never"])]
    pull_policy: Option<String>,
    /// Image pull secret, of the Job and of the agents; repeatable
    #[arg(long, value_name = "NAME")]
    pull_secret: Vec<String>,
    /// PersistentVolumeClaim for run directories [default: they end with the pod]
    #[arg(long, value_name = "NAME")]
    claim: Option<String>,
    /// Run again and again, for example '0 3 * * *'
    #[arg(long, value_name = "SCHEDULE", value_parser = parse_cron)]
    cron: Option<String>,
    /// Push the metrics of each run to this Prometheus Pushgateway
    #[arg(long, value_name = "URL", value_parser = push::parse_gateway)]
    push: Option<Pushgateway>,
    /// PEM file in the Job's pod with the certificates that --push trusts by https, for example
    /// /runs/ca.pem on the claim
    #[arg(long, value_name = "FILE", requires = "push")]
    push_ca: Option<PathBuf>,
    /// Fail the Job when something differs and is worse than in the last complete run by more
    /// than this [default: 10% with --cron and --claim]
    #[arg(long, value_name = "PERCENT", requires = "claim", value_parser = compare::parse_share)]
    threshold: Option<f64>,
    /// When the cluster ends the Job by itself
    #[arg(long, value_name = "TIME", default_value = "2h", value_parser = crate::flag_values::parse_duration)]
    deadline: Duration,
    /// Architecture of the Job's node, as Kubernetes names it: that of the eastwest that wrote the
    /// image [default: this eastwest's]
    #[arg(long, value_name = "ARCH", value_parser = ["386", "amd64", "arm", "arm64"])]
    arch: Option<String>,
    /// Arguments of eastwest in the cluster, after --; --via kubernetes and the image are added
    #[arg(last = true)]
    arguments: Vec<String>,
}

#[derive(Debug, Args)]
struct LinkArgs {
    #[command(flatten)]
    access: AccessArgs,
    /// The pod
    #[arg(long, value_name = "NAME")]
    pod: String,
    /// What to run in it
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

pub(crate) fn run(args: &KubernetesCommandArgs) -> Outcome {
    match &args.command {
        KubernetesCommand::Rbac(args) => {
            let yaml = rules_yaml(&args.namespace, &args.subject, args.make_namespace);
            output::print(&yaml);
            Ok(ExitCode::SUCCESS)
        }
        KubernetesCommand::Job(args) => {
            output::print(&job_yaml(args)?);
            Ok(ExitCode::SUCCESS)
        }
        KubernetesCommand::Link(args) => block_on(link(args)),
        KubernetesCommand::Hold(args) => {
            eastwest_agent::hold(args).map_err(Failure::failed)?;
            Ok(ExitCode::SUCCESS)
        }
        KubernetesCommand::Routes => {
            eastwest_agent::print_routes().map_err(Failure::failed)?;
            Ok(ExitCode::SUCCESS)
        }
        KubernetesCommand::Guard(args) => guard(args),
    }
}

fn job_yaml(args: &JobArgs) -> Result<String, Failure> {
    let image = args.image.clone().unwrap_or_else(default_image);
    let mut arguments = match args.arguments.is_empty() {
        true => ["run", "pods", "--format", "json", "--quiet"]
            .map(str::to_owned)
            .to_vec(),
        false => args.arguments.clone(),
    };
    arguments.extend(["--via", "kubernetes", "--image", &image].map(str::to_owned));
    let mut options = PodOptions::new(&image, Bootstrap::Image);
    if let Some(policy) = &args.pull_policy {
        arguments.extend(["--pull-policy".to_owned(), policy.clone()]);
        options.pull_policy = Some(policy.clone());
    }
    for secret in &args.pull_secret {
        arguments.extend(["--pull-secret".to_owned(), secret.clone()]);
    }
    options.pull_secrets.clone_from(&args.pull_secret);
    arguments.extend(sequel(args));
    check_arguments(&arguments)?;
    let job = ControllerJob {
        namespace: args.namespace.clone(),
        claim: args.claim.clone(),
        arguments,
        cron: args.cron.clone(),
        options,
        deadline_seconds: args.deadline.as_secs().max(1),
        architecture: args.arch.clone().unwrap_or_else(own_architecture),
    };
    let subject = format!("system:serviceaccount:{}:eastwest", args.namespace);
    let rules = rules_yaml(&args.namespace, &subject, false);
    Ok(format!("{rules}{}", to_yaml(&job.documents())))
}

/// What the Job's eastwest would refuse, when nobody is there to read it.
fn check_arguments(arguments: &[String]) -> Result<(), Failure> {
    let words = std::iter::once("eastwest").chain(arguments.iter().map(String::as_str));
    let words = shorthand::spelled_out(words.map(OsString::from).collect());
    let parsed = cli::definition().try_get_matches_from(words);
    parsed.map(drop).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        Failure::usage(anyhow!(
            "the Job would run `eastwest {}`, which ends with: {}; write a command of eastwest after --",
            arguments.join(" "),
            first.trim_start_matches("error: ")
        ))
    })
}

/// As RFC 1123 has labels.
fn parse_namespace(text: &str) -> anyhow::Result<String> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_label = (1..=63).contains(&text.len())
        && text.chars().all(fits)
        && !text.starts_with('-')
        && !text.ends_with('-');
    ensure!(
        is_label,
        "`{text}` is no namespace; write 1 to 63 lower-case letters, digits and `-`, such as net-tests"
    );
    Ok(text.into())
}

/// As Kubernetes reads schedules: five fields of numbers, or a name for some.
fn parse_cron(text: &str) -> anyhow::Result<String> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let is_schedule = match fields.as_slice() {
        [name] => CRON_NAMES.contains(name),
        fields => {
            fields.len() == CRON_FIELDS.len()
                && fields
                    .iter()
                    .zip(CRON_FIELDS)
                    .all(|(field, range)| is_cron_field(field, range))
        }
    };
    ensure!(
        is_schedule,
        "`{text}` is no schedule; write minute, hour, day, month and weekday, such as '0 3 * * *', or @daily"
    );
    Ok(text.into())
}

/// `*`, `*/15`, `1-5`, `mon-fri` or `0,30`.
fn is_cron_field(field: &str, (min, max, names): (u32, u32, &[&str])) -> bool {
    let number = |word: &str| {
        let lower = word.to_ascii_lowercase();
        let named = (min..).zip(names).find(|(_, name)| **name == lower);
        let number = named
            .map(|(number, _)| number)
            .or_else(|| word.parse().ok());
        number.filter(|number| (min..=max).contains(number))
    };
    let is_range = |range: &str| match range.split_once('-') {
        Some((first, last)) => number(first).zip(number(last)).is_some_and(|(a, b)| a <= b),
        None => ["*", "?"].contains(&range) || number(range).is_some(),
    };
    field.split(',').all(|item| {
        let (range, step) = item.split_once('/').unwrap_or((item, "1"));
        is_range(range) && step.parse::<u32>().is_ok_and(|step| step > 0)
    })
}

fn own_architecture() -> String {
    go_architecture(std::env::consts::ARCH).to_owned()
}

/// Words of `run` for what follows it. A comparison needs run directories that stay.
fn sequel(args: &JobArgs) -> Vec<String> {
    let mut words = Vec::new();
    let is_run = args.arguments.first().is_none_or(|word| word == "run");
    if !is_run {
        return words;
    }
    if let Some(gateway) = &args.push {
        words.extend(["--push".to_owned(), gateway.to_string()]);
    }
    if let Some(path) = &args.push_ca {
        words.extend(["--push-ca".to_owned(), path.display().to_string()]);
    }
    let nightly = args.cron.as_ref().and(args.claim.as_ref());
    let threshold = args.threshold.or(nightly.map(|_| USUAL_THRESHOLD));
    if let Some(threshold) = threshold {
        // A share of 0.07 is 7.000000000000001%.
        let percent = format!("{}%", (threshold * 1e6).round() / 1e4);
        words.extend(["--compare-with", "last", "--threshold", &percent].map(str::to_owned));
    }
    words
}

async fn link(args: &LinkArgs) -> Outcome {
    let access = Access::open(&args.access.options())
        .await
        .map_err(refused)?;
    let code = exec(&access, &args.pod, &args.command).await;
    Ok(ExitCode::from(code.map_err(refused)?))
}

/// Waits for the end of standard input, which the run's process holds open as long as it lives.
fn guard(args: &GuardArgs) -> Outcome {
    let mut input = std::io::stdin().lock();
    let _ = std::io::copy(&mut input, &mut std::io::sink());
    block_on(remove_namespace(args))
}

async fn remove_namespace(args: &GuardArgs) -> Outcome {
    let access = Access::open(&args.access.options())
        .await
        .map_err(refused)?;
    for _ in 0..GUARD_TRIES {
        if remove_made_namespace(&access, &args.run).await.is_ok() {
            return Ok(ExitCode::SUCCESS);
        }
        tokio::time::sleep(GUARD_PAUSE).await;
    }
    Ok(ExitCode::FAILURE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_those_of_kubernetes() {
        for text in [
            "0 3 * * *",
            "*/15 0-6,22 1 jan-mar Mon-Fri",
            "30 4 1,15 * 0",
            "@daily",
        ] {
            assert_eq!(parse_cron(text).unwrap(), text);
        }
        for text in [
            "",
            "garbage",
            "0 3 * *",
            "60 3 * * *",
            "0 3 * * fun",
            "5-1 * * * *",
            "*/0 * * * *",
        ] {
            assert!(parse_cron(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_namespace_is_a_label() {
        assert_eq!(parse_namespace("net-1").unwrap(), "net-1");
        for text in ["", "-net", "net-", "Net", "a.b", &"n".repeat(64)] {
            assert!(parse_namespace(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_job_runs_commands_that_there_are() {
        let check = |words: &str| {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            check_arguments(&words)
        };
        assert!(check("run pods --format json --quiet --via kubernetes --image e:1").is_ok());
        assert!(check("mesh --via kubernetes --image e:1").is_ok());
        let refused = check("nosuch --via kubernetes").unwrap_err().message();
        assert!(refused.contains("'nosuch'"), "{refused}");
    }
}
