//! Scenario files and built-ins.
