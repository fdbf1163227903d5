//! eastwest on one host: runs flows, reads counters, holds no opinion
