//! Privileges that this process has by its program's file, and not by the user who started it (execve(2), capabilities(7)): the bits
//! set-user-ID and set-group-ID, and capabilities of the file. Each user who may execute the file has them.
//!
//! The kernel says so by AT_SECURE (getauxval(3)). What root starts, and what a manager of services starts with ambient capabilities, is
//! not secure in this sense.

use rustix::process::{getegid, geteuid, getgid, getuid};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use crate::users;

/// What is kept: it traces commands of the user by BPF.
const TRACING: CapabilitySet = CapabilitySet::BPF.union(CapabilitySet::PERFMON);

/// Why a process should not go on with its privileges.
#[derive(Debug, thiserror::Error)]
pub enum PrivilegesError {
    /// The real and the effective user differ.
    #[error(
        "this program's file is set-user-ID: it would write files and run programs that {} names as {}; take the bit away (chmod u-s) and start it by sudo(8)",
        users::describe(*.real), users::describe(*.effective)
    )]
    SetUserId {
        /// Who started it.
        real: u32,
        /// As whom it acts.
        effective: u32,
    },
    /// The real and the effective group differ.
    #[error(
        "this program's file is set-group-ID: it would write files and run programs that a user of group {real} names with the rights of group {effective}; take the bit away (chmod g-s)"
    )]
    SetGroupId {
        /// Of the user who started it.
        real: u32,
        /// With whose rights it acts.
        effective: u32,
    },
    /// capset(2) failed.
    #[error("the capabilities of this program's file cannot be given up: {}", tollgate_model::text::plainly(.0))]
    Kept(std::io::Error),
}

/// Gives up what the program's file brings. Capabilities for tracing are kept for [`raise`], without effect until then. Returns the names of
/// the others. For the beginning of a program: it is the calling thread that gives up.
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

/// Whether this process has capabilities by its program's file. Then they are for processes of its own user, which it has started and which
/// can become no other user.
pub fn are_of_file() -> bool {
    !brought().is_empty()
}

/// Makes the capabilities effective that [`give_up`] kept, in the calling thread and those that it starts.
pub fn raise() {
    let kept = brought();
    if !kept.is_empty() {
        // Refused, the kernel refuses what needs them.
        let _ = set(kept, kept);
    }
}

/// The capabilities that the file brought and that were not given up.
fn brought() -> CapabilitySet {
    // SAFETY: getauxval(3) has no preconditions.
    let is_secure = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    match is_secure && !getuid().is_root() {
        true => capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.permitted),
        false => CapabilitySet::empty(),
    }
}

fn set(effective: CapabilitySet, permitted: CapabilitySet) -> std::io::Result<()> {
    let sets = CapabilitySets { effective, permitted, inheritable: CapabilitySet::empty() };
    Ok(set_capabilities(None, sets)?)
}
