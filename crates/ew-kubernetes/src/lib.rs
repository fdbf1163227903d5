//! Agents as pods: nodes, manifests, rights, the exec link, what keeps pods from coming up or from
//! reaching each other, the image.
//!
//! [`Access`] is a kubeconfig's context, [`Deployment`] a run's objects from their making to the
//! proof that nothing is left, and [`exec`] the stream that carries an agent's standard input and
//! output through the API server. Everything made belongs to one owner object, a Job without pods
//! whose deadline and time to live remove it, and all that it owns, also when nobody is left to do
//! so.

mod access;
mod deploy;
mod error;
mod exec;
mod fate;
mod image;
mod manifest;
mod nodes;
mod reach;
mod rights;
mod routes;
mod trouble;
mod workload;

pub use access::{Access, AccessOptions};
pub use deploy::{Deployment, Placed, ServiceAddress, lacks_namespace, remove_made_namespace};
pub use error::{KubernetesError, NotRunning, Remainder, RemovalError};
pub use exec::exec;
pub use fate::{PodWatch, fallen};
pub use image::{ImageError, ImageProgram, go_architecture, write_image};
pub use manifest::{
    Bootstrap, PodOptions, PodPlan, RunObjects, ServicePlan, Toleration, TolerationError, to_yaml,
};
pub use nodes::{NodeFacts, list_nodes};
pub use reach::{Attempt, why_unreachable};
pub use rights::{Need, check_rights, rules_yaml};
pub use workload::ControllerJob;
