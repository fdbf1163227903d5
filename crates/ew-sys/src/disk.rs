//! Free space of file systems.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes that an unprivileged process may still write to the file system that holds `path` (statvfs(3)).
///
/// # Errors
/// The system's, for example when the path does not exist.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: statvfs is plain integers: all zeroes are a valid value.
    let mut usage: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: `path` is NUL-terminated and `usage` a valid place for the answer.
    if unsafe { libc::statvfs(path.as_ptr(), &raw mut usage) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(usage.f_bavail.saturating_mul(usage.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_exist_has_no_space() {
        assert!(free_bytes(Path::new("/")).is_ok());
        assert!(free_bytes(Path::new("/no/such/folder")).is_err());
    }
}
