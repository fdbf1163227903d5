//! One file per pattern.
