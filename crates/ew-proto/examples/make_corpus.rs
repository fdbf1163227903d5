//! Writes the generated part of the fuzz corpus anew, after a change of the messages.

use ew_proto::fuzzing::seeds;
use std::fs;
use std::path::Path;

fn main() -> std::io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for seed in seeds::all() {
        let folder = corpus.join(seed.target);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(&seed.name), &seed.bytes)?;
    }
    Ok(())
}
