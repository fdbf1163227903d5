//! Disks: free space of file systems, and writing past the page cache.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
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

/// From now on writes to the file go to the disk directly (`O_DIRECT`, open(2)): memory, offsets and lengths must be multiples
/// of the disk's logical block.
///
/// # Errors
/// The system's, `EINVAL` where the file system cannot do this.
pub fn write_uncached(file: &File) -> io::Result<()> {
    let fd = file.as_raw_fd();
    // SAFETY: reading the flags of a descriptor that is open as long as `file`.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    // SAFETY: as above; the new flags only change how later writes are done.
    if flags < 0 || unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_DIRECT) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
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
