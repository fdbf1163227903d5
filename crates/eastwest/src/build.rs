//! What controller and agent must have in common.

/// This very binary, also after its file was replaced or removed.
pub(crate) const OWN_BINARY: &str = "/proc/self/exe";

/// Version and protocol as both sides send them.
pub(crate) fn build() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}
