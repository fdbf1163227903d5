//! What a stage needs of its host.

use crate::inbox::Input;
use ew_engine::Engine;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

/// What a stage needs of its host.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    pub(crate) engine: Arc<Engine>,
    pub(crate) address: IpAddr,
    pub(crate) inbox: SyncSender<Input>,
}
