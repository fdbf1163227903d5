//! `--push`: the metrics of a run that is over, to a Prometheus Pushgateway
//! (<https://github.com/prometheus/pushgateway#api>).
//!
//! One group per scenario: a run replaces what the run before it pushed.

use anyhow::{Context as _, anyhow, bail};
use ew_report::prometheus::CONTENT_TYPE;
use hyper::Uri;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE as CONTENT_TYPE_HEADER};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, RequestBuilder, Response};
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// From name resolution to the answer's end.
const LIMIT: Duration = Duration::from_secs(10);
/// The value of the `Authorization` header of everything that is pushed.
const AUTHORIZATION_VARIABLE: &str = "EASTWEST_PUSH_AUTHORIZATION";
/// Of a refusal's words.
const MAX_REASON_BYTES: usize = 400;

/// Where a Pushgateway is: its URL without a slash at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pushgateway(String);

/// Takes the words of `--push`.
pub(crate) fn parse_gateway(text: &str) -> anyhow::Result<Pushgateway> {
    let form = "write it like http://pushgateway.monitoring:9091";
    let uri: Uri = text
        .parse()
        .map_err(|error| anyhow!("`{text}` is not a URL ({error}); {form}"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        bail!("`{text}` begins with neither http:// nor https://; {form}");
    }
    let authority = uri
        .authority()
        .with_context(|| format!("`{text}` names no host; {form}"))?;
    if authority.as_str().contains('@') || uri.query().is_some() {
        bail!("`{text}`: a user, password or query cannot be pushed with; {form}");
    }
    Ok(Pushgateway(text.trim_end_matches('/').to_owned()))
}

impl fmt::Display for Pushgateway {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// What pushes. Made before a run, so that a certificate that cannot be read costs no run.
#[derive(Clone, Debug)]
pub(crate) struct Pusher {
    gateway: Pushgateway,
    client: Client,
}

impl Pusher {
    /// `ca` is a file of PEM certificates that are trusted instead of the system's.
    ///
    /// # Errors
    /// In words: a file that cannot be read or contains no certificate, a system without
    /// certificates.
    pub(crate) fn new(gateway: &Pushgateway, ca: Option<&Path>) -> anyhow::Result<Self> {
        let client = client(ca).with_context(|| format!("cannot push to {gateway}"))?;
        let gateway = gateway.clone();
        Ok(Self { gateway, client })
    }

    /// Replaces the group of a scenario.
    ///
    /// # Errors
    /// In words: nobody listens, no answer within 10 s, a certificate that is not trusted, a
    /// refusal with its reason.
    pub(crate) async fn push(&self, scenario: &str, metrics: String) -> anyhow::Result<()> {
        let scenario = encoded(scenario);
        let url = format!("{}/metrics/job/eastwest/scenario/{scenario}", self.gateway);
        let request = authorized(self.client.put(&url));
        let request = request.header(CONTENT_TYPE_HEADER, CONTENT_TYPE);
        let answer = request.body(metrics).send().await;
        let answer = answer.map_err(reqwest::Error::without_url);
        let answer = answer.with_context(|| format!("PUT {url}"))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        bail!("PUT {url}: {status}: {}", reason(answer).await)
    }
}

/// What talks to whoever takes pushes. `ca` is a file of PEM certificates that are trusted instead
/// of the system's.
///
/// # Errors
/// In words: a file that cannot be read or contains no certificate, a system without certificates.
pub(crate) fn client(ca: Option<&Path>) -> anyhow::Result<Client> {
    // Fails where it is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // The URL given is all that is asked for: what answers elsewhere is not who was meant.
    let mut builder = Client::builder().timeout(LIMIT).redirect(Policy::none());
    // Pushes are seconds apart, and connections that are kept may have ended meanwhile.
    builder = builder.no_proxy().pool_max_idle_per_host(0);
    if let Some(path) = ca {
        builder = builder.tls_certs_only(certificates(path)?);
    }
    let built = builder.build();
    built.context("give the certificates to trust with --push-ca FILE")
}

/// With the environment's credentials: a secret must not be on a command line.
pub(crate) fn authorized(request: RequestBuilder) -> RequestBuilder {
    match std::env::var(AUTHORIZATION_VARIABLE) {
        Ok(value) => request.header(AUTHORIZATION, value),
        Err(_) => request,
    }
}

fn certificates(path: &Path) -> anyhow::Result<Vec<Certificate>> {
    let name = path.display();
    let pem = std::fs::read(path);
    let pem = pem.with_context(|| format!("cannot read the certificates of --push-ca {name}"))?;
    let found = Certificate::from_pem_bundle(&pem).unwrap_or_default();
    if found.is_empty() {
        bail!(
            "--push-ca {name} contains no certificate; give a PEM file with the certificate authority's"
        );
    }
    Ok(found)
}

/// The reason of a refusal, as far as it can be read.
pub(crate) async fn reason(mut answer: Response) -> String {
    let mut bytes = Vec::new();
    while bytes.len() < MAX_REASON_BYTES {
        let Ok(Some(part)) = answer.chunk().await else {
            break;
        };
        bytes.extend_from_slice(&part);
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
        for (text, url) in [
            (
                "http://push.example:9091/prefix/",
                "http://push.example:9091/prefix",
            ),
            ("https://[::1]", "https://[::1]"),
        ] {
            assert_eq!(parse_gateway(text).unwrap().to_string(), url);
        }
        for wrong in [
            "ftp://push.example",
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
    fn a_file_without_certificates_is_refused_by_name() {
        let temp_dir = tempfile::tempdir().unwrap();
        let file = temp_dir.path().join("ca.pem");
        let gateway = parse_gateway("https://push.example").unwrap();
        let words = |file: &Path| format!("{:#}", Pusher::new(&gateway, Some(file)).unwrap_err());
        assert!(words(&file).contains("cannot read") && words(&file).contains("ca.pem"));
        std::fs::write(&file, "no certificate").unwrap();
        assert!(words(&file).contains("contains no certificate"));
    }

    #[test]
    fn scenario_names_become_one_segment() {
        assert_eq!(encoded("two-paths"), "two-paths");
        assert_eq!(encoded("a/b c"), "a%2Fb%20c");
    }
}
