//! The one HTTP server, read-only: metrics, the live page and stored runs are sites of it.
//!
//! Requests are bounded in size, time and number, so that nobody who may connect can delay a run.

use crate::exit::Failure;
use anyhow::anyhow;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinSet;

/// Connections served at once; others wait in the kernel's queue.
const MAX_CONNECTIONS: usize = 16;
/// Of them, those that stay open for news: a page must be had as well.
const MAX_STREAMS: usize = 8;
/// From a connection's acceptance to its end. A browser that reads a page more slowly than this is
/// left alone.
const CONNECTION_LIMIT: Duration = Duration::from_secs(30);
/// The same of a stream of news. A browser opens another one by itself.
const STREAM_LIMIT: Duration = Duration::from_secs(600);
/// A stream sends something at least so often, so that one without a reader ends.
const STREAM_PULSE: Duration = Duration::from_secs(5);
/// A request's head must be here by then.
const HEAD_LIMIT: Duration = Duration::from_secs(3);
/// A request's head; a scrape's takes a few hundred bytes.
const MAX_HEAD_BYTES: usize = 16 * 1024;
const MAX_HEADERS: usize = 64;
/// After a failure to accept, which mostly means that there are no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub(crate) const TEXT: &str = "text/plain; charset=utf-8";
pub(crate) const HTML: &str = "text/html; charset=utf-8";
pub(crate) const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";

type Body = UnsyncBoxBody<Bytes, Infallible>;
type Response = hyper::Response<Body>;

/// What a site answers to a request.
pub(crate) enum Answer {
    /// A whole page: status, content type, text.
    Page(StatusCode, &'static str, String),
    /// A number that grows with the news, as server-sent events
    /// (<https://html.spec.whatwg.org/multipage/server-sent-events.html>). Only the newest is kept
    /// for a browser that does not read.
    News(watch::Receiver<u64>),
}

impl Answer {
    pub(crate) fn html(text: String) -> Self {
        Self::Page(StatusCode::OK, HTML, text)
    }

    pub(crate) fn not_found(words: &str) -> Self {
        Self::Page(StatusCode::NOT_FOUND, TEXT, format!("{words}\n"))
    }
}

/// What is served. Answers are made on a thread of their own: a site may read files.
pub(crate) trait Site: Send + Sync + 'static {
    /// The answer to GET; `query` is what is behind the question mark.
    fn answer(&self, path: &str, query: &str) -> Answer;
}

/// An address that is ours, but that nobody serves yet.
#[derive(Debug)]
pub(crate) struct Endpoint {
    listener: TcpListener,
    address: SocketAddr,
}

/// Serves until it is dropped, on a thread of its own.
#[derive(Debug)]
pub(crate) struct Serving {
    /// Dropped, it ends the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Served {
    site: Arc<dyn Site>,
    streams: Arc<Semaphore>,
    /// Whether only this machine can connect: then nobody has a reason to call it by a name, but a
    /// browser that another site's page has sent here (DNS rebinding).
    is_loopback: bool,
}

/// Takes an address with a port.
pub(crate) fn parse_address(text: &str) -> anyhow::Result<SocketAddr> {
    text.parse().map_err(|_| {
        anyhow!("`{text}` is not an address with a port; write 127.0.0.1:9464 or [::1]:9464")
    })
}

impl Endpoint {
    /// Takes the address, before anything else is started. `what` is served there, as `flag`
    /// specifies.
    pub(crate) fn bind(address: SocketAddr, what: &str, flag: &str) -> Result<Self, Failure> {
        let bind = || {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            std::io::Result::Ok(Self { listener, address })
        };
        bind().map_err(|error| {
            Failure::usage(anyhow!(
                "cannot serve {what} at {address}: {error}; give an address of this machine and a port that is free \
                 ({flag} 127.0.0.1:0 takes any that is)"
            ))
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves from now on.
    pub(crate) fn serve(self, site: Arc<dyn Site>) -> Result<Serving, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(MAX_CONNECTIONS)
            .build()
            .map_err(Failure::failed)?;
        let listener = {
            let _entered = runtime.enter();
            tokio::net::TcpListener::from_std(self.listener).map_err(Failure::failed)?
        };
        let served = Arc::new(Served {
            site,
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
            is_loopback: self.address.ip().is_loopback(),
        });
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accept(listener, served) => {}
                    _ = stopped => {}
                }
            });
            // An answer that is being made is not waited for.
            runtime.shutdown_background();
        });
        Ok(Serving {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Serving {
    /// The connections go with the thread that holds them.
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed already.
            let _ = thread.join();
        }
    }
}

async fn accept(listener: tokio::net::TcpListener, served: Arc<Served>) {
    let free = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        // Never closed, so there is always a permit in the end.
        let Ok(permit) = Arc::clone(&free).acquire_owned().await else {
            return;
        };
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let served = Arc::clone(&served);
        connections.spawn(async move {
            connection(stream, served).await;
            drop(permit);
        });
    }
}

/// One request, one answer: a scraper comes once in seconds, and a connection that stays open takes
/// another's place. Who is too slow, or speaks nonsense, is left alone.
async fn connection(stream: TcpStream, served: Arc<Served>) {
    let is_stream = Arc::new(AtomicBool::new(false));
    let service = service_fn(|request: Request<Incoming>| {
        let (served, is_stream) = (Arc::clone(&served), Arc::clone(&is_stream));
        async move {
            let response = answer(&request, served).await;
            let kind = response.headers().get(CONTENT_TYPE);
            let streams = kind.is_some_and(|kind| kind == EVENT_STREAM);
            is_stream.store(streams, Ordering::Relaxed);
            Ok::<_, Infallible>(response)
        }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .keep_alive(false)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    // A reader that has gone away is no concern of the run's.
    let first = tokio::time::timeout(CONNECTION_LIMIT, &mut connection).await;
    if first.is_err() && is_stream.load(Ordering::Relaxed) {
        let _ = tokio::time::timeout(STREAM_LIMIT, connection).await;
    }
}

/// The answer to HEAD is that to GET; hyper leaves the body out.
async fn answer(request: &Request<Incoming>, served: Arc<Served>) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refused = whole(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET and HEAD\n");
        let allowed = HeaderValue::from_static("GET, HEAD");
        refused.headers_mut().insert(ALLOW, allowed);
        return refused;
    }
    if served.is_loopback && !names_this_machine(request) {
        let words = "ask for it by its address, such as 127.0.0.1, or as localhost\n";
        return whole(StatusCode::FORBIDDEN, TEXT, words);
    }
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    let streams = Arc::clone(&served.streams);
    let made = tokio::task::spawn_blocking(move || served.site.answer(&path, &query)).await;
    match made {
        Ok(Answer::Page(status, kind, text)) => whole(status, kind, text),
        Ok(Answer::News(news)) => stream(news, streams),
        // A panic of a site has been printed already.
        Err(_) => whole(
            StatusCode::INTERNAL_SERVER_ERROR,
            TEXT,
            "this is a defect\n",
        ),
    }
}

/// Whether `Host` is an address or localhost. Without one it is not a browser's.
fn names_this_machine(request: &Request<Incoming>) -> bool {
    let Some(host) = request.headers().get(HOST) else {
        return true;
    };
    let Ok(host) = host.to_str() else {
        return false;
    };
    let is_address = host.parse::<SocketAddr>().is_ok() || host.parse::<IpAddr>().is_ok();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    is_address || name.eq_ignore_ascii_case("localhost")
}

fn stream(news: watch::Receiver<u64>, free: Arc<Semaphore>) -> Response {
    let Ok(permit) = free.try_acquire_owned() else {
        let words = "too many pages are open at once; close one\n";
        return whole(StatusCode::SERVICE_UNAVAILABLE, TEXT, words);
    };
    let events = futures_util::stream::unfold((news, permit), |(mut news, permit)| async move {
        let changed = tokio::time::timeout(STREAM_PULSE, news.changed()).await;
        if matches!(changed, Ok(Err(_))) {
            return None;
        }
        let number = *news.borrow_and_update();
        let frame = Frame::data(Bytes::from(format!("data: {number}\n\n")));
        Some((Ok(frame), (news, permit)))
    });
    headed(
        StatusCode::OK,
        EVENT_STREAM,
        StreamBody::new(events).boxed_unsync(),
    )
}

fn whole(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response {
    headed(status, kind, Full::new(body.into()).boxed_unsync())
}

fn headed(status: StatusCode, kind: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers: [(HeaderName, &'static str); 5] = [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "SAMEORIGIN"),
    ];
    for (name, value) in headers {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}
