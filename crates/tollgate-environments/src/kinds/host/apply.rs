//! The settings of `host`, which an agent applies to itself before it measures. Its children inherit them.

use std::io;

use tollgate_os::affinity;

use super::settings::{Sched, Setting};
use crate::error::{EnvironmentError, plainly, unusable};
use crate::seccomp::Filter;

/// Applies an environment's settings to this process, except for the variables, with which it was started. Fails if a setting
/// needs root or the kernel refuses it.
pub(super) fn apply(settings: &[Setting]) -> Result<(), EnvironmentError> {
    for setting in settings {
        match setting {
            Setting::Nice(nice) => set_nice(*nice)?,
            Setting::Sched(sched) => set_policy(*sched)?,
            Setting::SetarchR => keep_addresses()?,
            Setting::Seccomp(_) | Setting::Cpu(_) | Setting::Dir(_) | Setting::Variable(..) => {}
        }
    }
    // Last, since it may refuse the calls that the others need.
    for setting in settings {
        if let Setting::Seccomp(asked) = setting
            && let Some(filter) = Filter::read(asked)?
        {
            filter.install()?;
        }
    }
    Ok(())
}

/// Refuses settings that are visibly wrong before an agent is started.
pub(super) fn check(settings: &[Setting]) -> Result<(), EnvironmentError> {
    for setting in settings {
        match setting {
            Setting::Cpu(cpu) => {
                let allowed = affinity::allowed(0).unwrap_or_default();
                if !allowed.is_empty() && !allowed.contains(cpu) {
                    let allowed = tollgate_model::text::listed(&allowed);
                    return Err(unusable!(
                        "this process may run on the processors {allowed} (sched_getaffinity(2)); choose one of these"
                    ));
                }
            }
            Setting::Dir(dir) => match dir.metadata() {
                Ok(metadata) if metadata.is_dir() => {}
                Ok(_) => return Err(unusable!("{} is not a directory", dir.display())),
                Err(error) => return Err(unusable!("{}: {}", dir.display(), plainly(error))),
            },
            Setting::Seccomp(asked) => drop(Filter::read(asked)?),
            Setting::Nice(_) | Setting::Sched(_) | Setting::SetarchR | Setting::Variable(..) => {}
        }
    }
    Ok(())
}

fn refusal(setting: &str, privilege: &str, error: &io::Error) -> EnvironmentError {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => unusable!("{setting} needs root or {privilege}"),
        _ => unusable!("{setting}: {}", tollgate_model::text::plainly(error)),
    }
}

fn set_nice(nice: i32) -> Result<(), EnvironmentError> {
    rustix::process::setpriority_process(None, nice)
        .map_err(|error| refusal(&format!("nice={nice}"), "a higher `ulimit -e`", &error.into()))
}

fn set_policy(sched: Sched) -> Result<(), EnvironmentError> {
    let (policy, priority) = match sched {
        Sched::Batch => (libc::SCHED_BATCH, 0),
        Sched::Other => (libc::SCHED_OTHER, 0),
        Sched::Idle => (libc::SCHED_IDLE, 0),
        Sched::Fifo => (libc::SCHED_FIFO, 1),
        Sched::Rr => (libc::SCHED_RR, 1),
    };
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameters outlive the call, which changes the calling process.
    match unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } {
        -1 => {
            let error = io::Error::last_os_error();
            Err(refusal(&format!("sched={sched}"), "a higher `ulimit -r`", &error))
        }
        _ => Ok(()),
    }
}

/// Like `setarch -R`: programs that are executed from now on get fixed addresses.
fn keep_addresses() -> Result<(), EnvironmentError> {
    /// Queries without changing anything (personality(2)).
    const ASK: libc::c_ulong = 0xffff_ffff;
    let change = |to: libc::c_ulong| {
        // SAFETY: personality(2) takes a number.
        match unsafe { libc::personality(to) } {
            -1 => {
                Err(refusal("setarch=-R", "a filter that allows personality(2)", &io::Error::last_os_error()))
            }
            before => Ok(before),
        }
    };
    let before = change(ASK)?;
    change(libc::c_ulong::from(before.cast_unsigned()) | libc::ADDR_NO_RANDOMIZE as libc::c_ulong).map(drop)
}
