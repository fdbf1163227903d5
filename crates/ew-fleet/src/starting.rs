//! Starting an agent's process, and handing the binary over.

use crate::bootstrap::{Failure, Line};
use crate::error::{LaunchError, Step, ssh_hint};
use crate::greeting::Greeting;
use crate::launcher::{AgentCommand, Launcher};
use crate::link::{LAST_WORDS, Link, LinkGuard, Process, say};
use crate::payload::Payloads;
use crate::relay::Neighbour;
use crate::tail::Tail;
use ew_model::Host;
use ew_sys::process::{die_with_parent, new_process_group};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, timeout};

/// How much may come before our own lines: what login scripts print.
const NOISE_LIMIT_BYTES: u64 = 64 * 1024;
/// How long a host may be silent while it receives the binary. It reports every second how much has
/// arrived, and gives a copy that stalls up by itself before this, in words that are more specific:
/// silence this long is a link that was cut.
const COPY_SILENCE: Duration = Duration::from_secs(5);
/// How long a copy may take that moves all the time: longer than anybody waits.
pub(crate) const COPY_LIMIT: Duration = Duration::from_secs(3600);

/// Starts the agent of one host; with a payload, hands it over and waits until the far side has
/// started it. The far side must answer within `deadline`; the copy may then take as long as it
/// moves. The program may come from a neighbour, which takes less of our uplink; one that gives
/// nothing is none.
///
/// The agent's own greeting is not waited for: the first bytes of [`Link::reader`] are the agent's.
///
/// # Errors
/// [`LaunchError`] with the other side's own words; by then nothing runs here any more, and the far
/// side has cleaned up or does so when it notices that the connection is gone.
pub async fn launch_from(
    launcher: &dyn Launcher,
    host: &Host,
    deadline: Duration,
    neighbour: Option<&Neighbour>,
) -> Result<Link, LaunchError> {
    if let Some(slurm) = launcher.step() {
        return slurm.link(host, deadline).await;
    }
    if let Some(agents) = launcher.in_process() {
        let link = agents.launch(host, deadline).await?;
        return Ok(link.into_link(&host.name));
    }
    let login_slots = launcher.login_slots(host);
    let mut login = Vec::with_capacity(login_slots.len());
    for slots in &login_slots {
        login.extend(slots.acquire().await.ok());
    }
    let command = match neighbour {
        Some(neighbour) => launcher.agent_command_from(host, neighbour),
        None => launcher.agent_command(host),
    };
    let AgentCommand { command, payloads } = command?;
    let mut starting = Starting::spawn(command, host, payloads.is_some())?;
    let Some(payloads) = payloads else {
        return Ok(starting.into_link(false));
    };
    let greeting = match timeout(deadline, starting.await_greeting()).await {
        Ok(Ok(greeting)) => greeting,
        Ok(Err(stop)) => return Err(starting.explain(stop).await),
        Err(_) => return Err(starting.too_late(deadline)),
    };
    drop(login);
    // A copy that moves may take its time: many at once share an uplink, and none of them is at
    // fault.
    let copy_limit = COPY_LIMIT.max(deadline);
    let was_kept = greeting.is_kept;
    match timeout(copy_limit, starting.hand_over(greeting, &payloads)).await {
        Ok(Ok(())) => Ok(starting.into_link(was_kept)),
        Ok(Err(stop)) => Err(starting.explain(stop).await),
        Err(_) => Err(starting.too_late(copy_limit)),
    }
}

/// A process that is not a link yet.
struct Starting {
    reader: Output,
    writer: ChildStdin,
    process: Process,
    noise: Noise,
    step: Step,
    began: Instant,
}

/// What the process writes.
type Output = BufReader<ChildStdout>;

/// What the far side sends that is not ours: what login scripts print.
struct Noise {
    tail: Tail,
    left_bytes: u64,
}

/// Why the far side did not get as far as the agent.
enum Stop {
    /// Its output ended.
    Ended,
    /// It reported which step failed, and where.
    Failed(Failure),
    /// It fell silent while it received the binary.
    Silence,
    /// It is another kind of machine.
    Machine(Greeting, String),
    /// It sends too much.
    Noise,
}

impl Starting {
    fn spawn(
        mut command: std::process::Command,
        host: &Host,
        remote: bool,
    ) -> Result<Self, LaunchError> {
        let program = command.get_program().to_string_lossy().into_owned();
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        new_process_group(&mut command);
        // Last, because entering a user namespace would make the kernel forget it.
        die_with_parent(&mut command);
        let failed = |source| LaunchError::Spawn {
            host: host.name.clone(),
            program: program.clone(),
            source,
        };
        let mut command = Command::from(command);
        let mut child = command.kill_on_drop(true).spawn().map_err(failed)?;
        let (Some(writer), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(failed(std::io::ErrorKind::BrokenPipe.into()));
        };
        let tail = Tail::default();
        let drained = Some(tokio::spawn(tail.clone().drain(errors)));
        let process = Process {
            host: host.name.clone(),
            remote,
            child,
            tail,
            drained,
        };
        Ok(Self {
            reader: BufReader::new(output),
            writer,
            process,
            noise: Noise {
                tail: Tail::default(),
                left_bytes: NOISE_LIMIT_BYTES,
            },
            step: Step::Connecting,
            began: Instant::now(),
        })
    }

    fn into_link(self, was_kept: bool) -> Link {
        Link {
            reader: Box::new(self.reader),
            writer: Box::new(self.writer),
            guard: LinkGuard::process(self.process),
            was_kept,
        }
    }

    async fn hand_over(&mut self, greeting: Greeting, payloads: &Payloads) -> Result<(), Stop> {
        let Some(payload) = payloads.for_machine(&greeting) else {
            return Err(Stop::Machine(greeting, payloads.machines()));
        };
        let Self { reader, writer, .. } = self;
        let bytes = payload.packed(greeting.packing);
        let copy = async {
            // The far side has the last word, also after a broken pipe.
            let _ = writer.write_all(bytes).await;
            std::future::pending().await
        };
        let size_bytes = bytes.len() as u64;
        tokio::select! {
            arrived = await_arrival(reader, &mut self.noise, size_bytes, &mut self.step) => arrived,
            never = copy => never,
        }
    }

    async fn await_greeting(&mut self) -> Result<Greeting, Stop> {
        loop {
            if let Line::Greeting(greeting) = hear(&mut self.reader, &mut self.noise).await? {
                return Ok(greeting);
            }
        }
    }

    /// Ends the process, if it has not ended, and returns why there is no agent.
    async fn explain(self, stop: Stop) -> LaunchError {
        let Self {
            reader,
            writer,
            process: mut guard,
            noise,
            step,
            began,
        } = self;
        // The far side's input ends and nobody hears it any more: it cleans up, for which it gets a
        // moment.
        drop((reader, writer));
        let status = timeout(LAST_WORDS, guard.child.wait()).await;
        guard.kill();
        guard.drain_stderr().await;
        let host = guard.host.clone();
        let words = said(&guard.tail, &noise.tail);
        match stop {
            Stop::Ended => ended_early(host, status.ok().and_then(Result::ok), words),
            Stop::Failed(failure) => {
                let waited = began.elapsed();
                failed_step(failure, host, words, step, waited)
            }
            Stop::Silence => LaunchError::CopyStalled { host, step, words },
            Stop::Machine(greeting, built_for) => LaunchError::Architecture {
                host,
                system: greeting.system,
                machine: greeting.machine,
                built_for,
            },
            Stop::Noise => LaunchError::TooNoisy {
                host,
                limit_bytes: NOISE_LIMIT_BYTES,
                words: noise.tail.words(),
            },
        }
    }

    fn too_late(mut self, waited: Duration) -> LaunchError {
        self.process.kill();
        LaunchError::TooLate {
            host: self.process.host.clone(),
            waited,
            step: self.step,
            words: said(&self.process.tail, &self.noise.tail),
        }
    }
}

/// Hears the host out until the binary is there and is being started; `step` gets the progress.
async fn await_arrival(
    reader: &mut Output,
    noise: &mut Noise,
    size_bytes: u64,
    step: &mut Step,
) -> Result<(), Stop> {
    let mut arrived_bytes = 0;
    loop {
        *step = Step::Copying {
            arrived_bytes,
            size_bytes,
        };
        match timeout(COPY_SILENCE, hear(reader, noise)).await {
            Ok(Ok(Line::Arrived { bytes })) => arrived_bytes = bytes,
            Ok(Ok(Line::Ready)) => return Ok(()),
            Ok(Ok(Line::Greeting(_) | Line::Failed(_))) => {}
            Ok(Err(stop)) => return Err(stop),
            Err(_) => return Err(Stop::Silence),
        }
    }
}

/// Reads lines until one is the script's; a failure that it reports is an error.
async fn hear(reader: &mut Output, noise: &mut Noise) -> Result<Line, Stop> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut limited = reader.take(noise.left_bytes);
        let length = limited.read_until(b'\n', &mut line).await;
        let length = length.map_err(|_| Stop::Ended)? as u64;
        match Line::find(&String::from_utf8_lossy(&line)) {
            Some(Line::Failed(failure)) => return Err(Stop::Failed(failure)),
            Some(said) => return Ok(said),
            None => noise.tail.push(&line),
        }
        noise.left_bytes -= length;
        match (length, noise.left_bytes) {
            (_, 0) => return Err(Stop::Noise),
            (0, _) => return Err(Stop::Ended),
            _ => {}
        }
    }
}

/// Standard error's last words; some programs, such as nologin, complain on standard output.
fn said(errors: &Tail, output: &Tail) -> String {
    let words = errors.words();
    match words.is_empty() {
        true => output.words(),
        false => words,
    }
}

fn failed_step(
    failure: Failure,
    host: String,
    words: String,
    step: Step,
    waited: Duration,
) -> LaunchError {
    let Failure { word, directory } = failure;
    match word.as_str() {
        "stalled" => LaunchError::CopyStalled { host, step, words },
        "slow" => LaunchError::TooLate {
            host,
            waited,
            step,
            words,
        },
        "directory" => LaunchError::NoDirectory {
            host,
            directory,
            words,
        },
        "unsafe" => LaunchError::UnsafeDirectory { host, directory },
        "execute" => LaunchError::NotExecutable {
            host,
            directory,
            words,
        },
        _ => LaunchError::CopyIncomplete {
            host,
            directory,
            words,
        },
    }
}

fn ended_early(host: String, status: Option<ExitStatus>, words: String) -> LaunchError {
    let Some(status) = status.filter(|s| s.code() != Some(255)) else {
        let words = match words.is_empty() {
            true => "ssh ended without a word".to_owned(),
            false => words,
        };
        let hint = ssh_hint(&words);
        return LaunchError::Ssh { host, words, hint };
    };
    let status = say(status);
    let words = match words.is_empty() {
        true => "it reported nothing".to_owned(),
        false => words,
    };
    LaunchError::RemoteShell {
        host,
        status,
        words,
    }
}
