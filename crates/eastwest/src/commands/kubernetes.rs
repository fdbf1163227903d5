//! `eastwest kubernetes`: the rights a run needs, and what runs inside pods and next to links.

use crate::commands::compare;
use crate::exit::{Failure, Outcome};
use crate::kubernetes::{AccessArgs, default_image, refused};
use crate::output;
use crate::push::{self, Pushgateway};
use crate::runtime::block_on;
use clap::{Args, Subcommand};
use eastwest_agent::HoldArgs;
use ew_kubernetes::{
    Access, Bootstrap, ControllerJob, PodOptions, exec, go_architecture, remove_made_namespace,
    rules_yaml, to_yaml,
};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// How often, and how far apart, the guard asks for the removal: an API server that is busy or
/// starts anew is there again by then.
const GUARD_TRIES: u32 = 30;
const GUARD_PAUSE: Duration = Duration::from_secs(2);
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
    Guard(AccessArgs),
}

#[derive(Debug, Args)]
struct RbacArgs {
    /// Namespace of the run
    #[arg(long, value_name = "NAME", default_value = "default")]
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
    #[arg(long, value_name = "NAME", default_value = "default")]
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
    #[arg(long, value_name = "SCHEDULE")]
    cron: Option<String>,
    /// Push the metrics of each run to this Prometheus Pushgateway
    #[arg(long, value_name = "URL", value_parser = push::parse_gateway)]
    push: Option<Pushgateway>,
    /// PEM file in the Job's pod with the certificates that --push trusts by https, for example
    /// /runs/ca.pem on the claim
    #[arg(long, value_name = "FILE", requires = "push")]
    push_ca: Option<PathBuf>,
    /// Fail the Job when something differs and is worse than in the last complete run by more
    /// than this [default: 10% with --cron]
    #[arg(long, value_name = "PERCENT", requires = "claim", value_parser = compare::parse_share)]
    threshold: Option<f64>,
    /// When the cluster ends the Job by itself
    #[arg(long, value_name = "TIME", default_value = "2h", value_parser = crate::flag_values::parse_duration)]
    deadline: Duration,
    /// Architecture of the Job's node, as Kubernetes names it: that of the eastwest that wrote the
    /// image [default: this eastwest's]
    #[arg(long, value_name = "ARCH")]
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
            output::print(&job_yaml(args));
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

fn job_yaml(args: &JobArgs) -> String {
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
    format!("{rules}{}", to_yaml(&job.documents()))
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
fn guard(args: &AccessArgs) -> Outcome {
    let mut input = std::io::stdin().lock();
    let _ = std::io::copy(&mut input, &mut std::io::sink());
    block_on(remove_namespace(args))
}

async fn remove_namespace(args: &AccessArgs) -> Outcome {
    let access = Access::open(&args.options()).await.map_err(refused)?;
    for _ in 0..GUARD_TRIES {
        if remove_made_namespace(&access).await.is_ok() {
            return Ok(ExitCode::SUCCESS);
        }
        tokio::time::sleep(GUARD_PAUSE).await;
    }
    Ok(ExitCode::FAILURE)
}
