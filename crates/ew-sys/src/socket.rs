//! Socket options and TCP_INFO.
