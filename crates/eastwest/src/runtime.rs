//! Where asynchronous work runs.

use crate::exit::Failure;

/// One thread is enough for control, and children that must die with us are tied to it.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::failed)?;
    runtime.block_on(work)
}
