//! Privileges that this process has through its program's file, not through the user who started it (execve(2),
//! capabilities(7)): the set-user-ID and set-group-ID bits, and file capabilities. Every user who may execute the file has
//! them.
//!
//! The kernel reports them through AT_SECURE (getauxval(3)). It does not set that for programs started by root, or by a
//! service manager with ambient capabilities.

use rustix::process::{getegid, geteuid, getgid, getuid};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use crate::users;

/// Capabilities that are kept to trace the user's commands with BPF.
const TRACING: CapabilitySet = CapabilitySet::BPF.union(CapabilitySet::PERFMON);

/// Why a process should not continue with its privileges.
#[derive(Debug, thiserror::Error)]
pub enum PrivilegesError {
    /// The real and the effective user differ.
    #[error(
        "this program's file is set-user-ID: it would write files and run programs that {} names as {}; clear the bit (chmod u-s) and start it by sudo(8)",
        users::describe(*.real), users::describe(*.effective)
    )]
    SetUserId {
        /// User who started it.
        real: u32,
        /// User whose rights it has.
        effective: u32,
    },
    /// The real and the effective group differ.
    #[error(
        "this program's file is set-group-ID: it would write files and run programs that a user of group {real} names with the rights of group {effective}; clear the bit (chmod g-s)"
    )]
    SetGroupId {
        /// Group of the user who started it.
        real: u32,
        /// Group whose rights it has.
        effective: u32,
    },
    /// capset(2) failed.
    #[error("the capabilities of this program's file cannot be dropped: {}", tollgate_model::text::plainly(.0))]
    Kept(std::io::Error),
}

/// Gives up the privileges of the program's file, and returns the names of the capabilities dropped. Those for tracing are
/// kept for [`raise`], without effect until then. Call it at the start of a program: it affects the calling thread.
///
/// # Errors
/// The file is set-user-ID or set-group-ID, or the kernel refuses.
pub fn give_up() -> Result<Vec<String>, PrivilegesError> {
    let (real, effective) = (getuid().as_raw(), geteuid().as_raw());
    if real != effective {
        return Err(PrivilegesError::SetUserId { real, effective });
    }
    let (real, effective) = (getgid().as_raw(), getegid().as_raw());
    if real != effective {
        return Err(PrivilegesError::SetGroupId { real, effective });
    }
    let brought = brought();
    if brought.is_empty() {
        return Ok(Vec::new());
    }
    set(CapabilitySet::empty(), brought & TRACING).map_err(PrivilegesError::Kept)?;
    Ok((brought - TRACING).iter_names().map(|(name, _)| format!("cap_{}", name.to_lowercase())).collect())
}

/// Returns whether this process has capabilities through its program's file. They may then be used only on processes of its
/// own user which it started and which cannot change to another user.
pub fn are_of_file() -> bool {
    !brought().is_empty()
}

/// Makes the capabilities that [`give_up`] kept effective, in the calling thread and those that it starts.
pub fn raise() {
    let kept = brought();
    if !kept.is_empty() {
        // If this fails, the kernel later refuses the calls that need them.
        let _ = set(kept, kept);
    }
}

fn brought() -> CapabilitySet {
    // SAFETY: getauxval(3) has no preconditions.
    let is_secure = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    if is_secure && !getuid().is_root() {
        capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.permitted)
    } else {
        CapabilitySet::empty()
    }
}

fn set(effective: CapabilitySet, permitted: CapabilitySet) -> std::io::Result<()> {
    let sets = CapabilitySets { effective, permitted, inheritable: CapabilitySet::empty() };
    Ok(set_capabilities(None, sets)?)
}
