//! `--webhook` and `--remote-write`: a run's progress and results, sent while it goes on and after
//! it.
//!
//! Each has a thread and a queue with a bound: who takes too long misses what is in between, and
//! the run does not wait.

mod remote_write;

use crate::output;
use crate::push;
use anyhow::{Context as _, anyhow, bail};
use ew_model::{Analysis, RunEvent};
use ew_report::live::{LiveState, finished_json};
use ew_report::prometheus::Exposition;
use hyper::Uri;
use reqwest::{Client, RequestBuilder};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Messages that wait for one that is being taken.
const QUEUE: usize = 4;
/// Between two messages while a run goes on.
const INTERVAL_NS: u64 = 5_000_000_000;
/// The last message is tried so often, with a pause before each time but the first.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(2);

/// Where something is sent to. May contain a secret, so only its beginning is ever shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Url {
    whole: String,
    shown: String,
}

/// Takes the words of `--webhook` and `--remote-write`.
pub(crate) fn parse_url(text: &str) -> anyhow::Result<Url> {
    let form = "write it like https://hooks.example/eastwest";
    let uri: Uri = text
        .parse()
        .map_err(|error| anyhow!("no URL ({error}); {form}"))?;
    let scheme = uri.scheme_str().unwrap_or_default().to_owned();
    if !matches!(scheme.as_str(), "http" | "https") {
        bail!("begins with neither http:// nor https://; {form}");
    }
    let authority = uri
        .authority()
        .with_context(|| format!("names no host; {form}"))?;
    if authority.as_str().contains('@') {
        bail!(
            "a user or password has no place in a URL; set EASTWEST_PUSH_AUTHORIZATION to the \
             header's value, such as `Bearer TOKEN`"
        );
    }
    Ok(Url {
        whole: text.to_owned(),
        shown: format!("{scheme}://{authority}"),
    })
}

impl Url {
    /// Scheme and host: the rest may contain a secret.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }
}

impl std::fmt::Debug for Url {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.shown)
    }
}

/// All that a run is sent to.
#[derive(Default)]
pub(crate) struct Sinks {
    webhook: Option<(LiveState, Sink)>,
    remote_write: Option<(Exposition, remote_write::Encoder, Sink)>,
    /// When something was sent last, since the run began.
    sent_ns: Option<u64>,
}

impl Sinks {
    /// # Errors
    /// In words: certificates that cannot be read, no thread.
    pub(crate) fn new(
        webhook: Option<&Url>,
        remote_write: Option<&Url>,
        scenario: &str,
        version: &str,
        ca: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let sink = |url: &Url, what, headers| Sink::open(url, what, headers, ca);
        let webhook = webhook.map(|url| {
            let sink = sink(url, "--webhook", WEBHOOK_HEADERS)?;
            anyhow::Ok((LiveState::default(), sink))
        });
        let remote_write = remote_write.map(|url| {
            let began_unix_ns = ew_sys::clock::realtime_ns();
            let sink = sink(url, "--remote-write", remote_write::HEADERS)?;
            let encoder = remote_write::Encoder::new(scenario);
            anyhow::Ok((Exposition::new(version, began_unix_ns), encoder, sink))
        });
        Ok(Self {
            webhook: webhook.transpose()?,
            remote_write: remote_write.transpose()?,
            sent_ns: None,
        })
    }

    /// Takes one event, and sends what there is when it is time.
    pub(crate) fn take(&mut self, at_ns: u64, event: &RunEvent) {
        if let Some((state, _)) = &mut self.webhook {
            state.take(at_ns, event);
        }
        if let Some((exposition, ..)) = &mut self.remote_write {
            exposition.take(at_ns, event);
        }
        let since_ns = self.sent_ns.map(|sent_ns| at_ns.saturating_sub(sent_ns));
        if since_ns.is_some_and(|since_ns| since_ns < INTERVAL_NS) {
            return;
        }
        self.sent_ns = Some(at_ns);
        if let Some((state, sink)) = &mut self.webhook {
            sink.offer(state.progress_json().into_bytes());
        }
        if let Some((exposition, encoder, sink)) = &mut self.remote_write {
            sink.offer(encoder.encode(&exposition.series(), ew_sys::clock::realtime_ns()));
        }
    }

    /// Sends the results, and reports what did not arrive.
    pub(crate) fn finish(self, analysis: &Analysis) {
        if let Some((_, sink)) = self.webhook {
            let last = finished_json(analysis).map(String::into_bytes);
            sink.finish(last.unwrap_or_default());
        }
        if let Some((mut exposition, mut encoder, sink)) = self.remote_write {
            let series = exposition.series_final(analysis);
            sink.finish(encoder.encode_last(&series, ew_sys::clock::realtime_ns()));
        }
    }
}

const WEBHOOK_HEADERS: &[(&str, &str)] = &[("content-type", "application/json")];

/// One of them.
struct Sink {
    /// `--webhook https://hooks.example`.
    name: String,
    queue: SyncSender<Message>,
    /// Offered while the queue was full.
    passed_over: u64,
    thread: JoinHandle<Sent>,
}

enum Message {
    Progress(Vec<u8>),
    /// What waits before it is no longer worth sending.
    Last(Vec<u8>),
}

/// What became of an sink's messages.
#[derive(Default)]
struct Sent {
    arrived: u64,
    lost: u64,
    /// Of the last that was lost.
    reason: Option<String>,
}

impl Sink {
    fn open(
        url: &Url,
        what: &str,
        headers: &'static [(&str, &str)],
        ca: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let name = format!("{what} {}", url.shown);
        let client = push::client(ca).with_context(|| name.clone())?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (queue, waiting) = sync_channel(QUEUE);
        let whole = url.whole.clone();
        let thread = thread::Builder::new().spawn(move || {
            let request = || request(&client, &whole, headers);
            runtime.block_on(send_all(&waiting, request))
        })?;
        Ok(Self {
            name,
            queue,
            passed_over: 0,
            thread,
        })
    }

    /// Never waits.
    fn offer(&mut self, body: Vec<u8>) {
        let taken = self.queue.try_send(Message::Progress(body));
        self.passed_over += u64::from(taken.is_err());
    }

    /// Waits until the last message has arrived, or was tried often enough.
    fn finish(self, last: Vec<u8>) {
        // The thread takes messages until the queue is closed, so there will be space.
        let _ = self.queue.send(Message::Last(last));
        drop(self.queue);
        // A panic of the thread has been printed already.
        let sent = self.thread.join().unwrap_or_default();
        let lost = sent.lost + self.passed_over;
        if lost > 0 {
            let reason = sent.reason.unwrap_or_else(|| "it took too long".into());
            let all = lost + sent.arrived;
            output::say(&format!(
                "warning: {}: {lost} of {all} messages did not arrive: {reason}",
                self.name
            ));
        }
    }
}

fn request(client: &Client, url: &str, headers: &[(&str, &str)]) -> RequestBuilder {
    let request = push::authorized(client.post(url));
    let with =
        |request: RequestBuilder, (name, value): &(&str, &str)| request.header(*name, *value);
    headers.iter().fold(request, with)
}

async fn send_all(waiting: &Receiver<Message>, request: impl Fn() -> RequestBuilder) -> Sent {
    let mut sent = Sent::default();
    // Waiting here blocks the thread, which has nothing else to do.
    while let Ok(message) = waiting.recv() {
        match message {
            // The next one has it again, so it is tried once.
            Message::Progress(body) => sent.count(send(&request, body).await.map_err(|(e, _)| e)),
            Message::Last(body) => sent.count(send_last(&request, body).await),
        }
    }
    sent
}

async fn send_last(request: &impl Fn() -> RequestBuilder, body: Vec<u8>) -> anyhow::Result<()> {
    let mut tries = 1;
    loop {
        match send(request, body.clone()).await {
            Err((_, true)) if tries < TRIES => tokio::time::sleep(PAUSE).await,
            done => return done.map_err(|(error, _)| error),
        }
        tries += 1;
    }
}

/// A failure, and whether it may be otherwise next time.
async fn send(
    request: &impl Fn() -> RequestBuilder,
    body: Vec<u8>,
) -> Result<(), (anyhow::Error, bool)> {
    let answer = request().body(body).send().await;
    let answer = answer.map_err(|error| (anyhow!(error.without_url()), true))?;
    let status = answer.status();
    if status.is_success() {
        return Ok(());
    }
    let may_change = status.is_server_error() || status.as_u16() == 429;
    let words = push::reason(answer).await;
    Err((anyhow!("{status}: {words}"), may_change))
}

impl Sent {
    fn count(&mut self, result: anyhow::Result<()>) {
        match result {
            Ok(()) => self.arrived += 1,
            Err(error) => {
                self.lost += 1;
                self.reason = Some(format!("{error:#}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_whole_and_shown_without_their_secret() {
        let url = parse_url("https://hooks.example:8443/T0/secret?key=1").unwrap();
        assert_eq!(format!("{url:?}"), "https://hooks.example:8443");
        assert_eq!(url.whole, "https://hooks.example:8443/T0/secret?key=1");
        for (wrong, remedy) in [
            ("hooks.example", "https://"),
            ("ftp://hooks.example", "https://"),
            ("https://u:p@hooks.example/", "EASTWEST_PUSH_AUTHORIZATION"),
        ] {
            let error = parse_url(wrong).unwrap_err().to_string();
            assert!(error.contains(remedy), "{wrong}: {error}");
        }
    }
}
