//! The control link of an agent whose launcher has no byte stream for it: it dials the controller,
//! and both sides prove that they know the run's secret ([`ew_proto::sealed`]).

use crate::problem::Problem;
use ew_proto::sealed::{Call, LinkSecret, Opener, Records, Sealer};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long one address may take to take the connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// How long the controller may take to prove who it is.
const PROOF_LIMIT: Duration = Duration::from_secs(5);
/// A controller that takes nothing for this long is gone.
const WRITE_LIMIT: Duration = Duration::from_secs(4);

/// Whom to dial, and as whom.
#[derive(Clone, Debug)]
pub struct DialBack {
    /// Where the controller may be, the best first.
    pub controllers: Vec<SocketAddr>,
    /// The host's name in the inventory.
    pub name: String,
    /// Of this run.
    pub secret: LinkSecret,
}

/// Both directions of the link.
pub(crate) struct Dialled {
    pub(crate) reader: OpenedReader,
    pub(crate) writer: SealedWriter,
}

/// Dials until one controller proves that it is ours.
pub(crate) fn dial(options: &DialBack) -> Result<Dialled, Problem> {
    let mut problems = Vec::new();
    for controller in &options.controllers {
        match dial_one(options, *controller) {
            Ok(dialled) => return Ok(dialled),
            Err(error) => problems.push(format!("{controller}: {error}")),
        }
    }
    let attempts = problems.join("; ");
    Err(Problem::Unreachable { attempts })
}

fn dial_one(options: &DialBack, controller: SocketAddr) -> io::Result<Dialled> {
    let mut stream = TcpStream::connect_timeout(&controller, CONNECT_LIMIT)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PROOF_LIMIT))?;
    stream.set_write_timeout(Some(WRITE_LIMIT))?;
    let (call, record) = Call::new(&options.secret, &options.name).map_err(io::Error::other)?;
    stream.write_all(&record)?;
    let (mut records, mut buffer) = (Records::default(), [0; 1024]);
    let answer = loop {
        match stream.read(&mut buffer)? {
            0 => {
                return Err(io::Error::other(
                    "it hung up: another program, or another run",
                ));
            }
            length => records.push(&buffer[..length]),
        }
        if let Some(answer) = records.next_record() {
            break answer;
        }
    };
    let (sealer, mut opener, confirmation) = call.answered(&answer).map_err(io::Error::other)?;
    stream.write_all(&confirmation)?;
    stream.set_read_timeout(None)?;
    records.drain_into(&mut opener);
    Ok(Dialled {
        reader: OpenedReader {
            stream: stream.try_clone()?,
            opener,
            plain: Vec::new(),
        },
        writer: SealedWriter { stream, sealer },
    })
}

/// What the controller sends.
pub(crate) struct OpenedReader {
    stream: TcpStream,
    opener: Opener,
    plain: Vec<u8>,
}

impl Read for OpenedReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut buffer = [0; 16 * 1024];
        while self.plain.is_empty() {
            match self.opener.next_record().map_err(io::Error::other)? {
                Some(plain) => self.plain = plain,
                None => match self.stream.read(&mut buffer)? {
                    0 => return Ok(0),
                    length => self.opener.push(&buffer[..length]),
                },
            }
        }
        let length = into.len().min(self.plain.len());
        into[..length].copy_from_slice(&self.plain[..length]);
        self.plain.drain(..length);
        Ok(length)
    }
}

/// What is sent to the controller.
pub(crate) struct SealedWriter {
    stream: TcpStream,
    sealer: Sealer,
}

impl Write for SealedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sealed = self.sealer.seal(bytes).map_err(io::Error::other)?;
        self.stream.write_all(&sealed)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_proto::sealed::take_call;
    use std::net::TcpListener;
    use std::thread;

    fn secret(byte: u8) -> LinkSecret {
        LinkSecret::new([byte; 32])
    }

    /// A controller that knows this secret, sends `hello` and repeats what it hears.
    fn controller(known: LinkSecret) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut records, mut buffer) = (Records::default(), [0; 4096]);
            let record = loop {
                let length = stream.read(&mut buffer).unwrap();
                records.push(&buffer[..length]);
                if let Some(record) = records.next_record() {
                    break record;
                }
            };
            let Ok(mut taken) = take_call(&known, &record) else {
                return;
            };
            // In one piece: what follows the answer must not be lost.
            let hello = taken.sealer.seal(b"hello").unwrap();
            stream.write_all(&[taken.answer, hello].concat()).unwrap();
            while let Ok(length @ 1..) = stream.read(&mut buffer) {
                taken.opener.push(&buffer[..length]);
                while let Some(plain) = taken.opener.next_record().unwrap() {
                    let again = taken.sealer.seal(&plain).unwrap();
                    stream.write_all(&again).unwrap();
                }
            }
        });
        at
    }

    fn options(controllers: Vec<SocketAddr>) -> DialBack {
        DialBack {
            controllers,
            name: "n1".into(),
            secret: secret(1),
        }
    }

    #[test]
    fn the_first_controller_that_knows_the_secret_gets_the_link() {
        let nobody = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let other_run = controller(secret(2));
        let ours = controller(secret(1));
        let Dialled {
            mut reader,
            mut writer,
        } = dial(&options(vec![nobody, other_run, ours])).unwrap();
        let mut heard = [0; 5];
        reader.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"hello");
        let words = vec![9; 200_000];
        let sent = words.clone();
        let writing = thread::spawn(move || writer.write_all(&sent).map(|()| writer));
        let mut heard = vec![0; words.len()];
        reader.read_exact(&mut heard).unwrap();
        assert!(heard == words);
        writing.join().unwrap().unwrap();
    }

    #[test]
    fn without_one_every_address_is_named_with_its_problem() {
        let nobody = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let other_run = controller(secret(2));
        let Err(problem) = dial(&options(vec![nobody, other_run])) else {
            panic!("somebody else was taken for the controller");
        };
        let problem = problem.to_string();
        assert!(problem.contains(&format!("{nobody}: ")), "{problem}");
        assert!(
            problem.contains(&format!("{other_run}: it hung up")),
            "{problem}"
        );
    }
}
