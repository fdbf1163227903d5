//! What controller and agent must have in common.

/// Version and protocol as both sides say it.
pub(crate) fn build() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}
