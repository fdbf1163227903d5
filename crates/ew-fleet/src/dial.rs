//! Links that agents dial: a listener that takes only callers who know the run's secret, and hands
//! each to whoever waits for it. What comes and goes is sealed ([`ew_proto::sealed`]).

use ew_proto::sealed::{
    LinkSecret, MAX_CALL_BYTES, Opener, Records, SealError, Sealer, Taken, take_call,
};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Callers that have proved nothing yet.
const MAX_UNPROVED: usize = 256;
/// How long a caller may take to prove who it is.
const PROOF_LIMIT: Duration = Duration::from_secs(5);
/// Bytes that wait between the connection and whoever reads or writes the link.
const PIPE_BYTES: usize = 64 * 1024;
/// After a listener that fails, for example for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// A link that an agent dialled.
#[derive(Debug)]
pub(crate) struct Dialled {
    pub(crate) reader: ReadHalf<DuplexStream>,
    pub(crate) writer: WriteHalf<DuplexStream>,
    /// Ends when the agent's end of the connection does.
    pub(crate) incoming: JoinHandle<()>,
    pub(crate) outgoing: JoinHandle<()>,
}

/// Where agents dial in. Dropped, it takes no more calls.
#[derive(Debug)]
pub(crate) struct Desk {
    port: u16,
    expected: Expected,
    listening: JoinHandle<()>,
}

type Expected = Arc<Mutex<BTreeMap<String, oneshot::Sender<Dialled>>>>;

impl Desk {
    /// Listens at the first free one of these ports, or at any free one where the first is 0.
    pub(crate) async fn open(ports: (u16, u16), secret: LinkSecret) -> io::Result<Self> {
        let listener = listen(ports).await?;
        let port = listener.local_addr()?.port();
        let expected = Expected::default();
        let listening = tokio::spawn(listen_on(listener, secret, Arc::clone(&expected)));
        Ok(Self {
            port,
            expected,
            listening,
        })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Whether it still takes calls: it ends with the runtime that it was opened on.
    pub(crate) fn is_open(&self) -> bool {
        !self.listening.is_finished()
    }

    /// The next call of this name. Only the latest who asked gets it.
    pub(crate) fn expect(&self, name: &str) -> oneshot::Receiver<Dialled> {
        let (sender, receiver) = oneshot::channel();
        let mut expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        expected.insert(name.to_ascii_lowercase(), sender);
        receiver
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn listen((first, last): (u16, u16)) -> io::Result<TcpListener> {
    let mut refused = io::Error::from(io::ErrorKind::AddrInUse);
    for port in first..=last {
        // All addresses of both families, or of the one there is.
        for any in ["[::]", "0.0.0.0"] {
            match TcpListener::bind(format!("{any}:{port}")).await {
                Ok(listener) => return Ok(listener),
                Err(error) => refused = error,
            }
        }
    }
    Err(refused)
}

async fn listen_on(listener: TcpListener, secret: LinkSecret, expected: Expected) {
    let unproved = Arc::new(Semaphore::new(MAX_UNPROVED));
    loop {
        let Ok(slot) = Arc::clone(&unproved).acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (secret, expected) = (secret.clone(), Arc::clone(&expected));
        tokio::spawn(async move {
            // Who cannot prove anything is hung up on, without a word.
            if let Ok(Ok(call)) = timeout(PROOF_LIMIT, prove(stream, &secret)).await {
                hand_over(call, &expected);
            }
            drop(slot);
        });
    }
}

/// A caller who knows the secret.
struct Proved {
    name: String,
    sealer: Sealer,
    opener: Opener,
    stream: TcpStream,
}

async fn prove(mut stream: TcpStream, secret: &LinkSecret) -> io::Result<Proved> {
    stream.set_nodelay(true)?;
    let record = first_record(&mut stream).await?;
    let Taken {
        name,
        answer,
        sealer,
        mut opener,
    } = take_call(secret, &record).map_err(io::Error::other)?;
    stream.write_all(&answer).await?;
    let mut buffer = [0; MAX_CALL_BYTES];
    while opener.next_record().map_err(io::Error::other)?.is_none() {
        match stream.read(&mut buffer).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => opener.push(&buffer[..length]),
        }
    }
    Ok(Proved {
        name,
        sealer,
        opener,
        stream,
    })
}

/// The call itself. The caller sends nothing more until it is answered.
async fn first_record(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let (mut records, mut buffer) = (Records::default(), [0; MAX_CALL_BYTES]);
    loop {
        match stream.read(&mut buffer).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => records.push(&buffer[..length]),
        }
        if let Some(length) = records.announced_bytes().filter(|l| *l > MAX_CALL_BYTES) {
            return Err(io::Error::other(SealError::LongCall(length)));
        }
        if let Some(record) = records.next_record() {
            return Ok(record);
        }
    }
}

fn hand_over(call: Proved, expected: &Expected) {
    let waiting = {
        let mut expected = expected.lock().unwrap_or_else(PoisonError::into_inner);
        expected.remove(&call.name.to_ascii_lowercase())
    };
    // A caller that nobody waits for is hung up on.
    let Some(waiting) = waiting else { return };
    let (from, to) = call.stream.into_split();
    let (near, far) = duplex(PIPE_BYTES);
    let (reader, writer) = split(near);
    let (far_reader, far_writer) = split(far);
    // Who waited may have given up.
    let _ = waiting.send(Dialled {
        reader,
        writer,
        incoming: tokio::spawn(open_all(from, call.opener, far_writer)),
        outgoing: tokio::spawn(seal_all(far_reader, call.sealer, to)),
    });
}

/// Until the connection ends, or brings what nobody sealed.
async fn open_all(mut from: OwnedReadHalf, mut opener: Opener, mut to: WriteHalf<DuplexStream>) {
    let mut buffer = vec![0; PIPE_BYTES];
    loop {
        match opener.next_record() {
            Ok(Some(plain)) if to.write_all(&plain).await.is_err() => return,
            Ok(Some(_)) => continue,
            Ok(None) => {}
            Err(_) => break,
        }
        match from.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(length) => opener.push(&buffer[..length]),
        }
    }
    let _ = to.shutdown().await;
}

/// Until the link's writer is dropped, or the connection takes no more.
async fn seal_all(mut from: ReadHalf<DuplexStream>, mut sealer: Sealer, mut to: OwnedWriteHalf) {
    let mut buffer = vec![0; PIPE_BYTES];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let Ok(sealed) = sealer.seal(&buffer[..length]) else {
            break;
        };
        if to.write_all(&sealed).await.is_err() {
            break;
        }
    }
    // The agent's input ends with it, and with that the agent.
    let _ = to.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_proto::sealed::Call;
    use std::net::SocketAddr;

    fn secret(byte: u8) -> LinkSecret {
        LinkSecret::new([byte; 32])
    }

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap().block_on(work)
    }

    /// An agent's end. `None`: hung up on.
    async fn dial(
        port: u16,
        secret: &LinkSecret,
        name: &str,
    ) -> Option<(Sealer, Opener, TcpStream)> {
        let at = SocketAddr::from(([127, 0, 0, 1], port));
        let mut stream = TcpStream::connect(at).await.unwrap();
        let (call, record) = Call::new(secret, name).unwrap();
        stream.write_all(&record).await.unwrap();
        let answer = first_record(&mut stream).await.ok()?;
        let (sealer, opener, confirmation) = call.answered(&answer).unwrap();
        stream.write_all(&confirmation).await.unwrap();
        Some((sealer, opener, stream))
    }

    #[test]
    fn an_agent_that_knows_the_secret_gets_a_link_both_ways() {
        block_on(async {
            let desk = Desk::open((0, 0), secret(1)).await.unwrap();
            let waiting = desk.expect("N1");
            let (mut sealer, mut opener, mut stream) =
                dial(desk.port(), &secret(1), "n1").await.unwrap();
            let mut link = waiting.await.unwrap();
            let words = vec![7; 300_000];
            let sealed = sealer.seal(&words).unwrap();
            let mut heard = vec![0; words.len()];
            let (sent, read) = tokio::join!(
                stream.write_all(&sealed),
                link.reader.read_exact(&mut heard)
            );
            sent.unwrap();
            read.unwrap();
            assert!(heard == words);
            link.writer.write_all(b"go").await.unwrap();
            let mut buffer = [0; 64];
            let length = stream.read(&mut buffer).await.unwrap();
            opener.push(&buffer[..length]);
            assert_eq!(opener.next_record().unwrap().unwrap(), b"go");
            drop(stream);
            assert_eq!(link.reader.read(&mut buffer).await.unwrap(), 0);
            link.incoming.await.unwrap();
        });
    }

    #[test]
    fn others_are_hung_up_on_and_keep_nobody_waiting() {
        block_on(async {
            let desk = Desk::open((0, 0), secret(1)).await.unwrap();
            let waiting = desk.expect("n1");
            assert!(dial(desk.port(), &secret(2), "n1").await.is_none());
            let at = SocketAddr::from(([127, 0, 0, 1], desk.port()));
            let mut noise = TcpStream::connect(at).await.unwrap();
            noise.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
            let mut answer = Vec::new();
            let _ = noise.read_to_end(&mut answer).await;
            assert!(answer.is_empty(), "{answer:?}");
            // One who sends nothing at all.
            let _silent = TcpStream::connect(at).await.unwrap();
            let unknown = dial(desk.port(), &secret(1), "n9").await;
            assert!(
                unknown.is_some(),
                "it knows the secret; nobody waits for it"
            );
            let _agent = dial(desk.port(), &secret(1), "n1").await.unwrap();
            assert!(waiting.await.is_ok());
        });
    }

    #[test]
    fn the_first_free_port_is_taken() {
        block_on(async {
            let first = Desk::open((0, 0), secret(1)).await.unwrap();
            let port = first.port();
            let taken = Desk::open((port, port), secret(1)).await;
            assert_eq!(taken.unwrap_err().kind(), io::ErrorKind::AddrInUse);
            let last = port.saturating_add(20);
            assert!(Desk::open((port, last), secret(1)).await.is_ok());
        });
    }
}
