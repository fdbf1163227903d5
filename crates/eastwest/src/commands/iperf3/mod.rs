//! `eastwest iperf3`: a client and a server that talk to anybody's iperf3.

mod flags;
mod show;

use crate::build::OWN_BINARY;
use crate::exit::{Failure, Outcome};
use crate::output;
use anyhow::{Context, anyhow};
use ew_iperf3::report::{Report, json};
use ew_iperf3::{Server, run_client};
pub(crate) use flags::Iperf3Args;
use flags::Role;
use show::{Console, Shown, ShownServer};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Set in the server that `-D` starts.
const IN_BACKGROUND: &str = "EASTWEST_IN_BACKGROUND";
/// A server that cannot listen ends within this time.
const AT_ONCE: Duration = Duration::from_millis(300);

pub(crate) fn run(args: &Iperf3Args) -> Outcome {
    let stop = raise_on_signal()?;
    let outcome = match args.role() {
        Role::Server => serve(args, &stop),
        Role::Client(host) => ask(args, host, &stop),
    };
    match outcome {
        // The document, which has the error in it, is the answer.
        Err(Reported::InJson(failure)) => Ok(ExitCode::from(failure.code())),
        Err(Reported::NotYet(failure)) if args.json => {
            output::print(&error_document(&failure.message()));
            Ok(ExitCode::from(failure.code()))
        }
        Err(Reported::NotYet(failure)) => Err(failure),
        Ok(()) => Ok(ExitCode::SUCCESS),
    }
}

/// For a command line that does not parse: whether it asks for iperf3's JSON.
pub(crate) fn wants_json(words: &[String]) -> bool {
    let is_json = |word: &String| {
        word == "--json" || (word.starts_with('-') && !word.starts_with("--") && word.contains('J'))
    };
    words.get(1).is_some_and(|word| word == "iperf3") && words.iter().any(is_json)
}

/// iperf3's document of a test that never began.
pub(crate) fn error_document(message: &str) -> String {
    json::document(&Report {
        error: Some(message.to_owned()),
        ..Report::default()
    })
}

/// A failure, and whether it has been shown.
enum Reported {
    NotYet(Failure),
    InJson(Failure),
}

impl From<Failure> for Reported {
    fn from(failure: Failure) -> Self {
        Self::NotYet(failure)
    }
}

fn ask(args: &Iperf3Args, host: &str, stop: &AtomicBool) -> Result<(), Reported> {
    let options = args.client_options(host)?;
    let console = Arc::new(Console::open(args)?);
    let mut shown = Shown::new(Arc::clone(&console), args, 0);
    let result = run_client(&options, stop, &mut shown);
    drop(shown);
    result.map_err(|error| {
        let failure = if stop.load(Ordering::Relaxed) {
            Failure::Interrupted
        } else {
            Failure::failed(error)
        };
        if args.json {
            Reported::InJson(failure)
        } else {
            Reported::NotYet(failure)
        }
    })
}

/// Starts this command line again in the background, without a terminal.
///
/// # Errors
/// When it ends at once, as it does where the port is taken.
fn serve_in_background() -> Result<(), Reported> {
    let mut command = Command::new(OWN_BINARY);
    command
        .args(std::env::args_os().skip(1))
        .env(IN_BACKGROUND, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    ew_sys::process::new_process_group(&mut command);
    let mut child = command.spawn().map_err(Failure::failed)?;
    let deadline = Instant::now() + AT_ONCE;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().map_err(Failure::failed)? {
            let error =
                anyhow!("the server ended at once ({status}); start it without -D to see why");
            return Err(Failure::failed(error).into());
        }
        std::thread::sleep(AT_ONCE / 10);
    }
    Ok(())
}

/// The process id in a file, as long as the server runs.
struct PidFile<'a>(&'a Path);

impl<'a> PidFile<'a> {
    fn write(path: &'a Path) -> Result<Self, Failure> {
        std::fs::write(path, format!("{}\n", std::process::id()))
            .with_context(|| format!("cannot write `{}`", path.display()))
            .map_err(Failure::usage)?;
        Ok(Self(path))
    }
}

impl Drop for PidFile<'_> {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = std::fs::remove_file(self.0);
    }
}

fn serve(args: &Iperf3Args, stop: &AtomicBool) -> Result<(), Reported> {
    if args.serving.daemon && std::env::var_os(IN_BACKGROUND).is_none() {
        return serve_in_background();
    }
    // Every stream of every client has one.
    ew_sys::process::raise_open_files_limit();
    let console = Arc::new(Console::open(args)?);
    let mut options = args.server_options()?;
    options.watcher = Some(Box::new(ShownServer::new(Arc::clone(&console), args)));
    let server = Server::bind(args.listen_address(), options);
    // A host without IPv6 serves IPv4.
    let server = match (server, args.fallback_address()) {
        (Err(_), Some(address)) => {
            let mut options = args.server_options()?;
            options.watcher = Some(Box::new(ShownServer::new(Arc::clone(&console), args)));
            Server::bind(address, options)
        }
        (server, _) => server,
    };
    let server = server.map_err(Failure::failed)?;
    let pidfile = args.serving.pidfile.as_deref();
    let _pidfile = pidfile.map(PidFile::write).transpose()?;
    console.listening(server.local_addr().port());
    server.run(stop).map_err(Failure::failed)?;
    if stop.load(Ordering::Relaxed) {
        return Err(Reported::InJson(Failure::Interrupted));
    }
    Ok(())
}

/// The flag is raised by the first of Ctrl-C, SIGTERM and SIGHUP; the second ends the process.
fn raise_on_signal() -> Result<Arc<AtomicBool>, Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::failed)?;
    let entered = runtime.enter();
    let mut signals = [
        signal(SignalKind::interrupt()).map_err(Failure::failed)?,
        signal(SignalKind::terminate()).map_err(Failure::failed)?,
        signal(SignalKind::hangup()).map_err(Failure::failed)?,
    ];
    drop(entered);
    std::thread::spawn(move || {
        runtime.block_on(async {
            let [interrupt, terminate, hangup] = &mut signals;
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
                }
                if flag.swap(true, Ordering::Relaxed) {
                    std::process::exit(Failure::Interrupted.code().into());
                }
            }
        });
    });
    Ok(stop)
}
