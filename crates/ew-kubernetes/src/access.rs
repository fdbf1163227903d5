//! From a kubeconfig to a client.

use crate::error::{KubernetesError, chain};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::path::PathBuf;
use std::time::Duration;

/// The API server has this long to accept a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Which cluster, and where in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessOptions {
    /// Instead of `$KUBECONFIG`, `~/.kube/config` or a pod's service account.
    pub kubeconfig: Option<PathBuf>,
    /// Instead of the kubeconfig's current context.
    pub context: Option<String>,
    /// Instead of the context's namespace.
    pub namespace: Option<String>,
}

/// A cluster that answers to somebody.
#[derive(Clone)]
pub struct Access {
    pub(crate) client: Client,
    /// The API server's address.
    pub server: String,
    /// Where everything is made.
    pub namespace: String,
}

impl Access {
    /// Reads the kubeconfig, or a pod's service account where there is none. Connects to nothing
    /// yet.
    ///
    /// # Errors
    /// [`KubernetesError::Access`], with what is wrong with the kubeconfig.
    pub async fn open(options: &AccessOptions) -> Result<Self, KubernetesError> {
        let mut config = config(options).await?;
        config.connect_timeout = Some(CONNECT_LIMIT);
        // A link may be silent for as long as a run lasts.
        config.read_timeout = None;
        let server = config.cluster_url.to_string();
        let namespace = options.namespace.clone();
        let namespace = namespace.unwrap_or_else(|| config.default_namespace.clone());
        let client = Client::try_from(config).map_err(|error| refused(&error))?;
        Ok(Self {
            client,
            server: server.trim_end_matches('/').to_owned(),
            namespace,
        })
    }

    /// An error of a first call: whether the server is there at all is distinguished from what it
    /// refuses.
    pub(crate) fn first_error(&self, what: &str, error: &kube::Error) -> KubernetesError {
        match error {
            kube::Error::HyperError(_) | kube::Error::Service(_) => KubernetesError::Unreachable {
                server: self.server.clone(),
                words: chain(error),
            },
            other => KubernetesError::of(what, other),
        }
    }
}

async fn config(options: &AccessOptions) -> Result<Config, KubernetesError> {
    let chosen = KubeConfigOptions {
        context: options.context.clone(),
        ..KubeConfigOptions::default()
    };
    if let Some(path) = &options.kubeconfig {
        let file = Kubeconfig::read_from(path).map_err(|error| refused(&error))?;
        let config = Config::from_custom_kubeconfig(file, &chosen).await;
        return config.map_err(|error| refused(&error));
    }
    if options.context.is_some() {
        let config = Config::from_kubeconfig(&chosen).await;
        return config.map_err(|error| refused(&error));
    }
    Config::infer().await.map_err(|error| refused(&error))
}

fn refused(error: &dyn std::error::Error) -> KubernetesError {
    KubernetesError::Access {
        words: chain(error),
    }
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Access({} in {})", self.namespace, self.server)
    }
}
