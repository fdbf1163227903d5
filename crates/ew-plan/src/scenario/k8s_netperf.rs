//! k8s-netperf's configuration, both forms, as a scenario of ours: a mapping of named tests, or a
//! list of them under `tests` (cloud-bulldozer/k8s-netperf, `docs/configuration.md`).

use ew_model::pods::PodPath;
use ew_model::workload::WorkloadKind;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::fmt::Write;
use thiserror::Error;

/// A configuration that is none, or has nothing that can be run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum K8sNetperfError {
    /// Neither form.
    #[error(
        "{file}: not a k8s-netperf configuration: {words}; each test needs profile, duration, samples and messagesize"
    )]
    Form {
        /// The file's name.
        file: String,
        /// The reader's.
        words: String,
    },
    /// Only profiles that eastwest has no workload for.
    #[error("{file}: no test can be run: {}", skipped.join("; "))]
    Nothing {
        /// The file's name.
        file: String,
        /// Each with its reason.
        skipped: Vec<String>,
    },
}

/// A scenario in our own words, and the tests that are not in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Translated {
    /// As `scenario show` would print it.
    pub yaml: String,
    /// Each as `NAME: reason`.
    pub skipped: Vec<String>,
}

/// Why a test is not in the scenario.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
enum Skip {
    /// It has a rate of requests as uperf means it.
    #[error("`rate` is uperf's; write `request-rate` in a scenario of eastwest's")]
    Rate,
    /// It needs a workload that eastwest does not have.
    #[error(
        "profile {profile} has no workload in eastwest (TCP_STREAM, UDP_STREAM, TCP_RR, UDP_RR and TCP_CRR have)"
    )]
    Profile {
        /// As written.
        profile: String,
    },
}

#[derive(Debug, Deserialize)]
struct Listed {
    tests: Vec<Test>,
}

#[derive(Debug, Deserialize)]
struct Test {
    profile: String,
    /// Seconds.
    duration: u64,
    samples: u32,
    /// Bytes.
    messagesize: u64,
    parallelism: Option<u32>,
    burst: Option<u32>,
    service: Option<bool>,
    rate: Option<u64>,
    /// In the list a test's name is a key without a value.
    #[serde(flatten)]
    others: BTreeMap<String, IgnoredAny>,
}

/// Reads either form. Every test becomes one per path; a test through a Service has only that path.
///
/// # Errors
/// [`K8sNetperfError`].
pub fn from_k8s_netperf(
    text: &str,
    file: &str,
    paths: &[PodPath],
) -> Result<Translated, K8sNetperfError> {
    let tests = read(text, file)?;
    let mut skipped = Vec::new();
    let mut lines = String::new();
    for (name, test) in &tests {
        match test.lines(name, paths) {
            Ok(more) => lines.push_str(&more),
            Err(reason) => skipped.push(format!("{name}: {reason}")),
        }
    }
    if lines.is_empty() {
        let file = file.to_owned();
        return Err(K8sNetperfError::Nothing { file, skipped });
    }
    let yaml = format!(
        "name: k8s-netperf\ndescription: \"tests of a k8s-netperf configuration\"\norder: random\ndefaults: {{warm-up: 1s, gap: 200ms}}\ntests:\n{lines}"
    );
    Ok(Translated { yaml, skipped })
}

fn read(text: &str, file: &str) -> Result<Vec<(String, Test)>, K8sNetperfError> {
    let refuse = |words: String| K8sNetperfError::Form {
        file: file.to_owned(),
        words,
    };
    if let Ok(listed) = serde_saphyr::from_str::<Listed>(text) {
        let named = listed.tests.into_iter().zip(1..).map(|(test, number)| {
            let name = test.others.keys().next().cloned();
            (name.unwrap_or_else(|| format!("test {number}")), test)
        });
        return Ok(named.collect());
    }
    let named: BTreeMap<String, Test> = serde_saphyr::from_str(text)
        .map_err(|error| refuse(error.without_snippet().to_string()))?;
    if named.is_empty() {
        return Err(refuse("it is empty".to_owned()));
    }
    Ok(named.into_iter().collect())
}

impl Test {
    fn lines(&self, name: &str, paths: &[PodPath]) -> Result<String, Skip> {
        let kind = self.kind()?;
        if self.rate.is_some() {
            return Err(Skip::Rate);
        }
        let own = [PodPath::ClusterIp];
        let paths = if self.service == Some(true) {
            &own
        } else {
            paths
        };
        let mut lines = String::new();
        for path in paths {
            let _ = write!(
                lines,
                "  - {{name: \"{}, {}\", pattern: {{pods: {{path: {}}}}}, workload: {}, duration: {}s, samples: {}, message-size: {}, streams: {}",
                name.replace(['"', '\\'], " "),
                path.name(),
                path.name(),
                kind.name(),
                self.duration,
                self.samples,
                self.messagesize,
                self.parallelism.unwrap_or(1)
            );
            // netperf's -b is how many requests leave besides the first.
            if let (Some(burst @ 1..), WorkloadKind::TcpRr | WorkloadKind::UdpRr) =
                (self.burst, kind)
            {
                let _ = write!(lines, ", outstanding: {}", burst.saturating_add(1));
            }
            lines.push_str("}\n");
        }
        Ok(lines)
    }

    fn kind(&self) -> Result<WorkloadKind, Skip> {
        match self.profile.to_uppercase().as_str() {
            "TCP_STREAM" => Ok(WorkloadKind::TcpStream),
            "UDP_STREAM" => Ok(WorkloadKind::UdpStream),
            "TCP_RR" => Ok(WorkloadKind::TcpRr),
            "UDP_RR" => Ok(WorkloadKind::UdpRr),
            "TCP_CRR" => Ok(WorkloadKind::TcpCrr),
            _ => Err(Skip::Profile {
                profile: self.profile.clone(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "---\nTCPStream:\n   parallelism: 2\n   profile: \"TCP_STREAM\"\n   duration: 3\n   samples: 1\n   messagesize: 1024\n\
                      RR:\n   profile: TCP_RR\n   duration: 3\n   samples: 2\n   messagesize: 64\n   burst: 4\n\
                      Service:\n   profile: TCP_STREAM\n   duration: 3\n   samples: 1\n   messagesize: 64\n   service: True\n\
                      Sctp:\n   profile: SCTP_STREAM\n   duration: 3\n   samples: 1\n   messagesize: 64\n";
    const V2: &str = "tests :\n  - TCPStream:\n    parallelism: 1\n    profile: \"tcp_stream\"\n    duration: 3\n    samples: 1\n    messagesize: 1024\n\
                      \x20 - CRR:\n    profile: \"TCP_CRR\"\n    duration: 10\n    samples: 5\n    messagesize: 1024\n    service: false\n";
    const PATHS: [PodPath; 2] = [PodPath::HostNetwork, PodPath::OtherNode];

    #[test]
    fn both_forms_become_scenarios() {
        for (text, tests) in [(V1, 5), (V2, 4)] {
            let translated = from_k8s_netperf(text, "netperf.yml", &PATHS).unwrap();
            let scenario = crate::scenario::parse(&translated.yaml, "netperf.yml", &[]);
            let scenario = scenario.unwrap_or_else(|error| panic!("{error}\n{}", translated.yaml));
            assert_eq!(scenario.tests.len(), tests);
        }
    }

    #[test]
    fn settings_keep_their_meaning_and_nothing_is_skipped_in_silence() {
        let translated = from_k8s_netperf(V1, "netperf.yml", &PATHS).unwrap();
        assert!(translated.skipped.len() == 1 && translated.skipped[0].contains("SCTP_STREAM"));
        let scenario = crate::scenario::parse(&translated.yaml, "netperf.yml", &[]).unwrap();
        let find = |name: &str| {
            scenario
                .tests
                .iter()
                .find(|test| test.name == name)
                .unwrap()
        };
        assert_eq!(find("TCPStream, other-node").workload.streams, 2);
        assert_eq!(find("RR, host-network").workload.outstanding, 5);
        assert_eq!(find("RR, host-network").samples, 2);
        assert_eq!(find("Service, cluster-ip").duration_ns, 3_000_000_000);
    }

    #[test]
    fn what_is_no_configuration_is_refused() {
        for text in [
            "",
            "name: x\ntests: []\n",
            "a: {profile: TCP_STREAM}\n",
            "[1, 2]",
        ] {
            assert!(from_k8s_netperf(text, "x.yml", &PATHS).is_err(), "{text}");
        }
        let only = "A: {profile: SCTP_RR, duration: 1, samples: 1, messagesize: 1}\n";
        let error = from_k8s_netperf(only, "x.yml", &PATHS).unwrap_err();
        assert!(error.to_string().contains("SCTP_RR"), "{error}");
    }
}
