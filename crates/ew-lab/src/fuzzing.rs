//! What the fuzz target runs, and the test that replays its inputs: it panics when a promise is
//! broken and returns otherwise.

use crate::spec::{LabSpec, troubles};
use std::collections::BTreeSet;

/// A file of a few bytes may ask for 1000 racks of 240 hosts, and is refused once these are made.
pub const LAB_BYTES: usize = 256 << 20;

/// A lab file: no two hosts of what it describes have a name or an address in common.
pub fn lab_file(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(spec) = LabSpec::parse(text, "fuzz.yaml") else {
        return;
    };
    let names: BTreeSet<&str> = spec.hosts().map(|host| host.name.as_str()).collect();
    let addresses: BTreeSet<_> = spec.hosts().map(|host| host.address).collect();
    assert_eq!(names.len(), spec.hosts().count());
    assert_eq!(addresses.len(), names.len());
    for host in spec.hosts() {
        let _ = troubles(host);
    }
}
