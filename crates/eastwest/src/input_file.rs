//! Files that users write, read whole and within bounds.

use std::fs::File;
use std::io::{Error, ErrorKind, Read};
use std::path::Path;

/// A lab file of a thousand racks has less than a tenth of it.
const LARGEST_BYTES: u64 = 16 << 20;

/// A text file. Pipes are files, too: `<(command)` of a shell is one.
pub(crate) fn read_text(path: &Path) -> std::io::Result<String> {
    File::open(path).and_then(|file| read_bounded(file, LARGEST_BYTES))
}

/// All of it, where it ends within so many bytes: `/dev/zero` does not.
pub(crate) fn read_bounded(source: impl Read, largest_bytes: u64) -> std::io::Result<String> {
    let mut text = String::new();
    source.take(largest_bytes + 1).read_to_string(&mut text)?;
    if text.len() as u64 > largest_bytes {
        let limit = format!("larger than {} MiB", largest_bytes >> 20);
        return Err(Error::new(ErrorKind::FileTooLarge, limit));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_end_is_not_read_to_its_end() {
        let error = read_text(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error.to_string(), "larger than 16 MiB");
        assert_eq!(read_bounded(&b"abc"[..], 3).unwrap(), "abc");
        assert!(read_bounded(&b"abcd"[..], 3).is_err());
    }
}
