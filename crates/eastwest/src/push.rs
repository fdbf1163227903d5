//! `--push`: the metrics of a run that is over, to a Prometheus Pushgateway
//! (<https://github.com/prometheus/pushgateway#api>).
//!
//! One group per scenario: a run replaces what the run before it pushed.

use anyhow::{Context as _, anyhow, bail};
use ew_report::prometheus::CONTENT_TYPE;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_TYPE as CONTENT_TYPE_HEADER, HOST};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;
use tokio::net::TcpStream;

/// From name resolution to the answer's end.
const LIMIT: Duration = Duration::from_secs(10);
/// Of a refusal's words.
const MAX_REASON_BYTES: usize = 400;

/// Where a Pushgateway is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pushgateway {
    /// Host and port.
    authority: String,
    host: String,
    port: u16,
    /// Without a slash at its end.
    path: String,
}

/// Takes the words of `--push`.
pub(crate) fn parse_gateway(text: &str) -> anyhow::Result<Pushgateway> {
    let form = "write it like http://pushgateway.monitoring:9091";
    let uri: Uri = text
        .parse()
        .map_err(|error| anyhow!("`{text}` is not a URL ({error}); {form}"))?;
    match uri.scheme_str() {
        Some("http") => {}
        Some("https") => bail!("`{text}`: metrics are pushed by plain http only; {form}"),
        _ => bail!("`{text}` does not begin with http://; {form}"),
    }
    let authority = uri
        .authority()
        .with_context(|| format!("`{text}` names no host; {form}"))?;
    if authority.as_str().contains('@') || uri.query().is_some() {
        bail!("`{text}`: a user, password or query cannot be pushed with; {form}");
    }
    Ok(Pushgateway {
        authority: authority.to_string(),
        host: authority.host().trim_matches(['[', ']']).to_owned(),
        port: authority.port_u16().unwrap_or(80),
        path: uri.path().trim_end_matches('/').to_owned(),
    })
}

impl fmt::Display for Pushgateway {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "http://{}{}", self.authority, self.path)
    }
}

impl Pushgateway {
    /// Replaces the group of a scenario.
    ///
    /// # Errors
    /// In words: nobody listens, no answer within 10 s, a refusal with its reason.
    pub(crate) async fn push(&self, scenario: &str, metrics: String) -> anyhow::Result<()> {
        let group = format!("/metrics/job/eastwest/scenario/{}", encoded(scenario));
        let path = format!("{}{group}", self.path);
        let pushed = tokio::time::timeout(LIMIT, self.put(&path, metrics)).await;
        let pushed =
            pushed.unwrap_or_else(|_| Err(anyhow!("no answer within {} s", LIMIT.as_secs())));
        pushed.with_context(|| format!("PUT {self}{group}"))
    }

    async fn put(&self, path: &str, metrics: String) -> anyhow::Result<()> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let request = Request::put(path)
            .header(HOST, &self.authority)
            .header(CONTENT_TYPE_HEADER, CONTENT_TYPE)
            .body(metrics)?;
        let exchange = async {
            let answer = sender.send_request(request).await?;
            let status = answer.status();
            if status.is_success() {
                return Ok(());
            }
            Err(anyhow!("{status}: {}", reason(answer).await))
        };
        tokio::pin!(exchange, connection);
        tokio::select! {
            done = &mut exchange => done,
            // It ends first where the answer is already here.
            ended = &mut connection => match ended {
                Ok(()) => exchange.await,
                Err(error) => Err(error.into()),
            },
        }
    }
}

/// What the gateway says of a refusal, as far as it can be read.
async fn reason(answer: Response<Incoming>) -> String {
    let mut body = answer.into_body();
    let mut bytes = Vec::new();
    while bytes.len() < MAX_REASON_BYTES {
        let frame = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        let Some(Ok(frame)) = frame else { break };
        if let Some(data) = frame.data_ref() {
            bytes.extend_from_slice(data);
        }
    }
    bytes.truncate(MAX_REASON_BYTES);
    crate::output::plain(String::from_utf8_lossy(&bytes).trim())
}

/// A path's segment.
fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateways_are_parsed_or_refused_with_the_remedy() {
        let gateway = parse_gateway("http://push.example:9091/prefix/").unwrap();
        assert_eq!(
            (gateway.host.as_str(), gateway.port),
            ("push.example", 9091)
        );
        assert_eq!(gateway.path, "/prefix");
        let bare = parse_gateway("http://[::1]").unwrap();
        assert_eq!(
            (bare.host.as_str(), bare.port, bare.path.as_str()),
            ("::1", 80, "")
        );
        for wrong in [
            "https://push.example",
            "push.example:9091",
            "http://a:b@push.example",
            "",
        ] {
            let error = parse_gateway(wrong).unwrap_err().to_string();
            assert!(
                error.contains(wrong) && error.contains("http://pushgateway"),
                "{error}"
            );
        }
    }

    #[test]
    fn scenario_names_become_one_segment() {
        assert_eq!(encoded("two-paths"), "two-paths");
        assert_eq!(encoded("a/b c"), "a%2Fb%20c");
    }
}
