//! Namespaces of this process's own: unshare(2).

use std::{io, os::fd::AsFd};

use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

/// Moves this thread and its future children to a new IPC namespace, whose semaphores end with it (ipc_namespaces(7)).
///
/// # Errors
/// EPERM without CAP_SYS_ADMIN.
pub fn own_ipc() -> io::Result<()> {
    unshare(UnshareFlags::NEWIPC)
}

/// Moves this thread and its future children to a copy of its mount namespace (mount_namespaces(7)). Later mounts here are
/// not seen outside; later unmounts outside take effect here too.
///
/// # Errors
/// EPERM without CAP_SYS_ADMIN.
pub fn own_mounts() -> io::Result<()> {
    unshare(UnshareFlags::NEWNS)?;
    Ok(mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?)
}

/// Moves this thread to another mount namespace, given a descriptor of /proc/PID/ns/mnt. The root and the working directory
/// become those of the namespace. Mounts that exist only in the namespace it leaves are unmounted when the last process
/// there ends (setns(2)).
///
/// # Errors
/// EPERM without CAP_SYS_ADMIN and CAP_SYS_CHROOT; EINVAL if threads share the root directory.
pub fn enter_mounts(namespace: impl AsFd) -> io::Result<()> {
    Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Mount))?)
}

fn unshare(flag: UnshareFlags) -> io::Result<()> {
    // SAFETY: neither flag closes or splits descriptors, memory or thread state that Rust relies on.
    Ok(unsafe { rustix::thread::unshare_unsafe(flag) }?)
}
