//! `--metrics`: a run's Prometheus metrics over HTTP, while the run lasts.
//!
//! Read-only: two pages, made from the run's events. Requests are bounded in size, time and number,
//! so that nobody who may connect can hold up the run.

use crate::exit::Failure;
use anyhow::anyhow;
use ew_model::RunEvent;
use ew_report::prometheus::{CONTENT_TYPE, Exposition};
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE as CONTENT_TYPE_HEADER, HOST, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Connections served at once; others wait in the kernel's queue.
const MAX_CONNECTIONS: usize = 16;
/// From a connection's acceptance to its end.
const CONNECTION_LIMIT: Duration = Duration::from_secs(10);
/// A request's head must be here by then.
const HEAD_LIMIT: Duration = Duration::from_secs(3);
/// A request's head; a scrape's takes a few hundred bytes.
const MAX_HEAD_BYTES: usize = 16 * 1024;
const MAX_HEADERS: usize = 64;
/// After a failure to accept, which mostly means that there are no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Metrics are made anew at most this often.
const RENDER_INTERVAL: Duration = Duration::from_millis(500);

const FRONT_PAGE: &str = "<!doctype html><title>eastwest</title><p>A run of eastwest. \
<a href=\"/metrics\">Metrics</a> for Prometheus.</p>\n";
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// Takes the words of `--metrics`.
pub(crate) fn parse_address(text: &str) -> anyhow::Result<SocketAddr> {
    text.parse().map_err(|_| {
        anyhow!("`{text}` is not an address with a port; write 127.0.0.1:9464 or [::1]:9464")
    })
}

/// An address that is ours, but that nobody serves yet.
#[derive(Debug)]
pub(crate) struct Endpoint {
    listener: TcpListener,
    address: SocketAddr,
}

/// Serves until it is dropped, on a thread of its own.
pub(crate) struct Serving {
    served: Arc<Served>,
    /// Dropped, it ends the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What is served.
struct Served {
    page: Mutex<Page>,
    /// Whether only this machine can connect: then nobody has a reason to call it by a name, but a
    /// browser that a foreign page has sent here (DNS rebinding).
    is_loopback: bool,
}

struct Page {
    exposition: Exposition,
    /// As of when, and the text: scrapers must not make the run's machine render again and again.
    rendered: Option<(Instant, String)>,
}

impl Page {
    fn text(&mut self) -> String {
        match &self.rendered {
            Some((at, text)) if at.elapsed() < RENDER_INTERVAL => text.clone(),
            _ => {
                let text = self.exposition.render();
                self.rendered = Some((Instant::now(), text.clone()));
                text
            }
        }
    }
}

impl Endpoint {
    /// Takes the address, before anything else of a run is started.
    pub(crate) fn bind(address: SocketAddr) -> Result<Self, Failure> {
        let bind = || {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            std::io::Result::Ok(Self { listener, address })
        };
        bind().map_err(|error| {
            Failure::usage(anyhow!(
                "cannot serve metrics at {address}: {error}; give an address of this machine and a port that is free \
                 (--metrics 127.0.0.1:0 takes any that is)"
            ))
        })
    }

    /// Where the metrics are.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/metrics", self.address)
    }

    /// Serves from now on.
    pub(crate) fn serve(self, version: &str) -> Result<Serving, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Failure::failed)?;
        let listener = {
            let _entered = runtime.enter();
            tokio::net::TcpListener::from_std(self.listener).map_err(Failure::failed)?
        };
        let began_unix_ns = ew_sys::clock::realtime_ns();
        let served = Arc::new(Served {
            page: Mutex::new(Page {
                exposition: Exposition::new(version, began_unix_ns),
                rendered: None,
            }),
            is_loopback: self.address.ip().is_loopback(),
        });
        let (stop, stopped) = oneshot::channel();
        let thread = {
            let served = Arc::clone(&served);
            thread::spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = accept(listener, served) => {}
                        _ = stopped => {}
                    }
                });
            })
        };
        Ok(Serving {
            served,
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Serving {
    /// Takes one event; `at_ns` is the time since the run began.
    pub(crate) fn take(&self, at_ns: u64, event: &RunEvent) {
        lock(&self.served.page).exposition.take(at_ns, event);
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
            // Who is too slow, or speaks nonsense, is left alone.
            let _ = tokio::time::timeout(CONNECTION_LIMIT, connection(stream, served)).await;
            drop(permit);
        });
    }
}

/// One request, one answer: a scraper comes once in seconds, and a connection that stays open takes
/// another's place.
async fn connection(stream: TcpStream, served: Arc<Served>) {
    let service = service_fn(|request: Request<Incoming>| {
        let answer = answer(&request, &served);
        async { Ok::<_, Infallible>(answer) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .keep_alive(false)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    // A scraper that has gone away is no concern of the run's.
    drop(served);
}

/// The answer to HEAD is that to GET; hyper leaves the body out.
fn answer(request: &Request<Incoming>, served: &Served) -> Response<String> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refused = page(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET and HEAD\n");
        let allowed = HeaderValue::from_static("GET, HEAD");
        refused.headers_mut().insert(ALLOW, allowed);
        return refused;
    }
    if served.is_loopback && !names_this_machine(request) {
        let words = "ask for it by its address, such as 127.0.0.1, or as localhost\n";
        return page(StatusCode::FORBIDDEN, TEXT, words);
    }
    match request.uri().path() {
        "/metrics" => {
            let metrics = lock(&served.page).text();
            page(
                StatusCode::OK,
                HeaderValue::from_static(CONTENT_TYPE),
                metrics,
            )
        }
        "/" => {
            let html = HeaderValue::from_static("text/html; charset=utf-8");
            page(StatusCode::OK, html, FRONT_PAGE)
        }
        _ => page(StatusCode::NOT_FOUND, TEXT, "only / and /metrics\n"),
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

fn page(status: StatusCode, kind: HeaderValue, body: impl Into<String>) -> Response<String> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE_HEADER, kind);
    response
}

/// What was counted stays readable, whatever happened to another reader.
fn lock(page: &Mutex<Page>) -> MutexGuard<'_, Page> {
    page.lock().unwrap_or_else(PoisonError::into_inner)
}
