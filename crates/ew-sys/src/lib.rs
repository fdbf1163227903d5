//! The only unsafe code: socket options, tcp_info, ethtool, namespaces, process control
