//! The control link: two threads, so that a stuck peer can never stop the agent's loop.

use crate::inbox::Input;
use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

/// Frames that may wait for a slow link. More means the controller is as good as gone.
const MAX_QUEUED_WRITES: usize = 4096;

/// Puts what can be read into the inbox until end of file.
pub(crate) fn spawn_reader(mut source: impl Read + Send + 'static, inbox: SyncSender<Input>) {
    thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = match source.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            let input = Input::Bytes {
                bytes: buffer[..read].to_vec(),
                read_ns: ew_sys::clock::monotonic_ns(),
            };
            if inbox.send(input).is_err() {
                return;
            }
        }
        // The loop may be gone already; then nobody needs to know.
        let _ = inbox.send(Input::LinkClosed);
    });
}

/// The writing side of the link.
#[derive(Debug)]
pub(crate) struct Writer {
    queue: Option<SyncSender<Vec<u8>>>,
    drained: Receiver<()>,
}

impl Writer {
    /// Starts the thread that writes to `sink`.
    pub(crate) fn spawn(mut sink: impl Write + Send + 'static, inbox: SyncSender<Input>) -> Self {
        let (queue, frames) = sync_channel::<Vec<u8>>(MAX_QUEUED_WRITES);
        let (drained_sender, drained) = sync_channel(1);
        thread::spawn(move || {
            for frame in frames {
                if sink.write_all(&frame).and_then(|()| sink.flush()).is_err() {
                    let _ = inbox.send(Input::LinkClosed);
                    break;
                }
            }
            let _ = drained_sender.send(());
        });
        Self {
            queue: Some(queue),
            drained,
        }
    }

    /// Queues bytes; false when the link is gone or hopelessly slow.
    pub(crate) fn send(&self, bytes: Vec<u8>) -> bool {
        let Some(queue) = &self.queue else {
            return false;
        };
        match queue.try_send(bytes) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        }
    }

    /// Waits until everything queued is written, at most `limit`.
    pub(crate) fn drain(mut self, limit: Duration) {
        self.queue = None;
        // Either outcome is fine: written, or the link is stuck and the agent leaves anyway.
        let _ = self.drained.recv_timeout(limit);
    }
}
