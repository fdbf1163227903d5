//! An emulated leaf-spine cluster in network namespaces, with faults
