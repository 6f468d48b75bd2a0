//! Namespaces of this process's own: unshare(2).

use std::{io, os::fd::AsFd};

use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

/// Moves this thread, and its children from now on, to a new IPC namespace: its semaphores end with it (ipc_namespaces(7)).
///
/// # Errors
/// EPERM without CAP_SYS_ADMIN.
pub fn own_ipc() -> io::Result<()> {
    unshare(UnshareFlags::NEWIPC)
}

/// Moves this thread, and its children from now on, to a copy of its mount namespace (mount_namespaces(7)). What is mounted here from
/// then on is not seen outside; what is unmounted outside is unmounted here too.
///
/// # Errors
/// EPERM without CAP_SYS_ADMIN.
pub fn own_mounts() -> io::Result<()> {
    unshare(UnshareFlags::NEWNS)?;
    Ok(mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?)
}

/// Moves this thread to another mount namespace, by a descriptor of /proc/PID/ns/mnt; its root and working directory become that of the
/// namespace. What is mounted only in the one that it leaves is unmounted with the last process there (setns(2)).
///
/// # Errors
/// EPERM without CAP_SYS_ADMIN and CAP_SYS_CHROOT; EINVAL where threads share the root directory.
pub fn enter_mounts(namespace: impl AsFd) -> io::Result<()> {
    Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Mount))?)
}

fn unshare(flag: UnshareFlags) -> io::Result<()> {
    // SAFETY: neither flag closes or splits descriptors, memory or thread state that Rust relies on.
    Ok(unsafe { rustix::thread::unshare_unsafe(flag) }?)
}
