//! Workloads on OS threads: connects flows, moves bytes, counts them inside the window
