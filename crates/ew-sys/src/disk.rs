//! Disks: free space of file systems, and writing past the page cache.

#[cfg(target_os = "linux")]
use std::ffi::CString;
use std::fs::File;
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::os::fd::IntoRawFd;
#[cfg(target_os = "linux")]
use std::os::unix::ffi::OsStrExt;
#[cfg(target_os = "linux")]
use std::path::Path;

/// Bytes that an unprivileged process may still write to the file system of `path`
/// (statvfs(3)).
///
/// # Errors
/// The system's, for example when the path does not exist.
#[cfg(target_os = "linux")]
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: statvfs is plain integers: all zeroes are a valid value.
    let mut usage: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: `path` is NUL-terminated and `usage` a valid address for the answer.
    if unsafe { libc::statvfs(path.as_ptr(), &raw mut usage) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(usage.f_bavail.saturating_mul(usage.f_frsize))
}

/// From now on writes to the file go to the disk directly (`O_DIRECT`, open(2)): memory, offsets
/// and lengths must be multiples of the disk's logical block.
///
/// # Errors
/// The system's, `EINVAL` where the file system cannot do this.
pub fn write_uncached(file: &File) -> io::Result<()> {
    set_direct(file, true)
}

/// Whether from now on reads and writes pass by the page cache (`O_DIRECT`, open(2)): then memory,
/// offsets and lengths must be multiples of the disk's logical block.
///
/// # Errors
/// The system's, `EINVAL` where the file system cannot do this.
#[cfg(target_os = "linux")]
pub fn set_direct(file: &File, direct: bool) -> io::Result<()> {
    let fd = file.as_raw_fd();
    // SAFETY: reading the flags of a descriptor that is open as long as `file`.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    if flags < 0 {
        return Err(io::Error::last_os_error());
    }
    let flags = match direct {
        true => flags | libc::O_DIRECT,
        false => flags & !libc::O_DIRECT,
    };
    // SAFETY: as above; the new flags only change how later reads and writes are done.
    if unsafe { libc::fcntl(fd, libc::F_SETFL, flags) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Drops the file's clean pages from this host's page cache (`POSIX_FADV_DONTNEED`,
/// posix_fadvise(2)). Pages that wait to be written stay: fsync before.
///
/// # Errors
/// The system's, for example `ESPIPE` for a pipe.
#[cfg(target_os = "linux")]
pub fn drop_cache(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open as long as `file`; the call touches no memory of ours.
    let code = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    match code {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// Only hosts move files, and they are Linux.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn set_direct(_: &File, _: bool) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// As [`set_direct`].
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn drop_cache(_: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Closes a file and returns whether that worked: NFS reports a full disk or an exceeded quota here
/// (close(2)), which dropping the file swallows.
///
/// # Errors
/// The system's; the descriptor is gone all the same.
pub fn close(file: File) -> io::Result<()> {
    // SAFETY: `into_raw_fd` gives the descriptor up, so nobody closes it a second time.
    match unsafe { libc::close(file.into_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_exist_has_no_space() {
        assert!(free_bytes(Path::new("/")).is_ok());
        assert!(free_bytes(Path::new("/no/such/folder")).is_err());
    }

    #[test]
    fn only_files_have_a_page_cache_to_drop() {
        let own = File::open("/proc/self/exe").unwrap();
        drop_cache(&own).unwrap();
        set_direct(&own, false).unwrap();
        let (pipe, _) = io::pipe().unwrap();
        let pipe = File::from(std::os::fd::OwnedFd::from(pipe));
        assert!(drop_cache(&pipe).is_err());
    }
}
