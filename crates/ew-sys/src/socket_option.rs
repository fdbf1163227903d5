//! setsockopt(2) and getsockopt(2).

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

pub(crate) fn set_option<T: Copy>(
    socket: &impl AsFd,
    level: libc::c_int,
    name: libc::c_int,
    value: T,
) -> io::Result<()> {
    // SAFETY: the pointer and the length describe one value that lives through the call.
    let status = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The value, and how many bytes of it the kernel filled; the rest is the initial value's.
///
/// # Safety
/// `T` is plain integers, for which every bit pattern is a value; an address among them is the
/// caller's for whatever the option has the kernel do with it.
pub(crate) unsafe fn get_option<T: Copy>(
    socket: &impl AsFd,
    level: libc::c_int,
    name: libc::c_int,
    initial: T,
) -> io::Result<(T, usize)> {
    let mut value = initial;
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer and the length describe one value that lives through the call; the kernel
    // writes at most that much.
    let status = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            (&raw mut value).cast(),
            &raw mut length,
        )
    };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((value, length as usize))
}
