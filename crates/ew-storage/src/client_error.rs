//! What keeps this host from being a client of a store.

use hdfs_native::HdfsError;
use std::io;

/// Why there is no client of a store on this host.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The system does not say who we are.
    #[error("{0}")]
    OwnUser(#[source] io::Error),
    /// The user has no name, and HDFS knows only names.
    #[error(
        "user {id} has no name in /etc/passwd; set HADOOP_USER_NAME in the environment of each host's agent"
    )]
    NoUserName {
        /// Its number.
        id: u32,
    },
    /// Nobody to sign requests for.
    #[error(
        "no credentials; set {variable} in the environment of each host's agent (over ssh: in ~/.ssh/environment or the shell's profile)"
    )]
    NoCredentials {
        /// The first one that is missing.
        variable: &'static str,
    },
    /// No threads to drive the connections.
    #[error("{0}")]
    Threads(#[source] io::Error),
    /// HDFS's client refuses what it is made of.
    #[error("{0}")]
    Hdfs(#[source] Box<HdfsError>),
    /// S3's client refuses what it is made of.
    #[error("{}", in_words(.0))]
    S3(#[source] Box<object_store::Error>),
}

/// One line, with the causes that the outer words leave out.
pub(crate) fn in_words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_words = inner.to_string();
        if !words.contains(&inner_words) {
            words.push_str(": ");
            words.push_str(&inner_words);
        }
        cause = inner.source();
    }
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}
