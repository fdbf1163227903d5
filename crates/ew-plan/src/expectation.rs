//! Max-min fair share.
