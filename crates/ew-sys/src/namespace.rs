//! Network namespaces: create, enter, run in.
