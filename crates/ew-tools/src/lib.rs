//! External tools as workloads: start the server, run the client, parse its machine-readable output
