//! What controller and agent must have in common.

/// Version and protocol as both sides send them.
pub(crate) fn build() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}
