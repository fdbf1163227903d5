//! Child processes that cannot outlive us, resource limits and usage.
