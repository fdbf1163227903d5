//! One run at a time on a host. Whoever holds an abstract Unix socket (unix(7)) of the host's
//! network namespace has the host, says who that is to whoever asks, and ends when the host's owner
//! says so (`eastwest stop`). The kernel releases it with the process, so nothing is left behind,
//! and no file can be planted in its place.

use crate::inbox::Input;
use ew_model::claim::Claim;
use ew_sys::socket::peer_user;
use ew_sys::{clock, process};
use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

const NAME: &str = "eastwest/agent";
/// Runs that share a host by force, and agents of one run that do.
const PLACES: u32 = 16;
/// How long one who asks, or one who is asked, may take.
const PATIENCE: Duration = Duration::from_millis(200);
/// An agent whose controller is gone ends within this time: nobody is refused for its sake.
const LEFTOVER_NS: u64 = 5_000_000_000;
/// No claim is longer.
const MAX_BYTES: u64 = 4096;
const STACK_BYTES: usize = 64 * 1024;
/// What may be asked of an agent: one byte.
const WHO: u8 = b'?';
const STOP: u8 = b'!';

/// Takes the host for a run until the process ends. Returns another run that has it, for longer
/// than an agent outlives its controller.
pub(crate) fn take(claim: &Claim, inbox: &Sender<Input>) -> Option<Claim> {
    let until_ns = clock::monotonic_ns() + LEFTOVER_NS;
    loop {
        let others = (0..PLACES).filter_map(|place| ask(place, WHO).ok());
        let other = others.into_iter().find(|other| other.run != claim.run);
        if other.is_none() || clock::monotonic_ns() > until_ns {
            hold(claim, inbox);
            return other;
        }
        thread::sleep(PATIENCE);
    }
}

/// Ends every agent of this network namespace that this user may end: the user's own, or all for
/// root. Returns whose they were.
///
/// # Errors
/// The system's, `PermissionDenied` for an agent of somebody else.
pub fn stop_all() -> io::Result<Vec<Claim>> {
    let mut stopped = Vec::new();
    for place in 0..PLACES {
        match ask(place, STOP) {
            Ok(claim) => stopped.push(claim),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(error) => return Err(error),
        }
    }
    Ok(stopped)
}

fn address(place: u32) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{NAME}/{place}"))
}

/// Takes the first place that is free, and answers there one after the other.
fn hold(claim: &Claim, inbox: &Sender<Input>) {
    let bind = |place| UnixListener::bind_addr(&address(place)?);
    let Some(listener) = (0..PLACES).find_map(|place| bind(place).ok()) else {
        return;
    };
    let Ok(answer) = serde_json::to_vec(claim) else {
        return;
    };
    let inbox = inbox.clone();
    let serving = thread::Builder::new().stack_size(STACK_BYTES);
    // Without the thread nobody gets an answer, and the run goes on.
    let _ = serving.spawn(move || {
        for connection in listener.incoming() {
            let served = connection.and_then(|connection| serve(connection, &answer, &inbox));
            if served.is_err() {
                // A want of descriptors must not become a busy loop.
                thread::sleep(PATIENCE);
            }
        }
    });
}

fn serve(mut connection: UnixStream, answer: &[u8], inbox: &Sender<Input>) -> io::Result<()> {
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    let mut question = [0];
    connection.read_exact(&mut question)?;
    if question == [STOP] {
        let user = peer_user(&connection)?;
        if user != 0 && user != process::user() {
            return connection.write_all(b"denied");
        }
        // The loop may have ended the agent meanwhile.
        let _ = inbox.send(Input::Stop { user });
    }
    connection.write_all(answer)
}

fn ask(place: u32, question: u8) -> io::Result<Claim> {
    let mut connection = UnixStream::connect_addr(&address(place)?)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.write_all(&[question])?;
    let mut answer = Vec::new();
    connection.take(MAX_BYTES).read_to_end(&mut answer)?;
    if answer == b"denied" {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    // Whoever holds the place and does not answer as an agent keeps it busy all the same.
    Ok(serde_json::from_slice(&answer).unwrap_or_else(|_| Claim {
        run: "of an unknown program".into(),
        ..Claim::default()
    }))
}
