//! The overhead of tracing a call, measured with a minimal call.

#![allow(unsafe_code)] // Calls getppid(2) directly, since a library may cache the result.

use std::{io, time::Duration};

use tollgate_os::process;

use crate::descendants::{self, Descendants};
use crate::outcome::{Calibration, TraceError};
use crate::{bpf::Bpf, clock, launch::Child, launch::signals::Watch, ptrace::Tracer, request::Request};

/// The number of timed batches, whose median counts, and of calls in each.
const BATCHES: usize = 9;
const CALLS: u64 = 12;

/// Measures the overhead of tracing on this machine, by backend.
///
/// # Errors
/// If no process can be started.
pub fn calibrate() -> Result<Calibration, TraceError> {
    let _alone = descendants::alone();
    let untraced = untraced().map_err(|error| TraceError::System("fork(2)", error))?;
    let ptrace = by_ptrace();
    let cannot = || "it was loaded, but its overhead could not be measured".to_owned();
    let (bpf, bpf_others) = match Bpf::load(&Request::new(Vec::new())) {
        Ok(bpf) => (bpf.costs().traced.ok_or_else(cannot), bpf.costs().others.ok_or_else(cannot)),
        Err(why) => (Err(why.clone()), Err(why)),
    };
    Ok(Calibration { bpf, ptrace, bpf_others, untraced })
}

/// Measures the overhead of ptrace(2) for a call, in nanoseconds, or explains why it is unknown.
pub(super) fn by_ptrace() -> Result<f64, String> {
    let plain = untraced().map_err(|error| error.to_string())?;
    let traced = traced().map_err(|error| why_not(&error))?;
    Ok((traced - plain).max(0.0))
}

fn untraced() -> io::Result<f64> {
    let watch = Watch::begin();
    let mut child = Child::start_function(time_of_a_call, &watch.inherited())?;
    child.release()?;
    while let Err(error) = process::wait4(child.pid(), 0) {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(child.result() as f64 / 1000.0)
}

fn traced() -> io::Result<f64> {
    let descendants = Descendants::begin();
    let watch = Watch::begin();
    let mut child = Child::start_function(time_of_a_call, &watch.inherited())?;
    let mut tracer = Tracer::seize(&child, &Request::new(Vec::new()), false)?;
    tracer.count_at_once();
    child.release()?;
    tracer.run(&child, &watch, &descendants, Duration::ZERO)?;
    match child.result() {
        0 => Err(io::Error::other("a traced process did not end")),
        result => Ok(result as f64 / 1000.0),
    }
}

/// Returns picoseconds per call. Runs in a forked child, and allocates nothing.
fn time_of_a_call() -> u64 {
    let mut batches = [0; BATCHES];
    for batch in &mut batches {
        let began = clock::now();
        for _ in 0..CALLS {
            // SAFETY: getppid(2) has no preconditions.
            unsafe { libc::syscall(libc::SYS_getppid) };
        }
        *batch = clock::now().saturating_sub(began);
    }
    batches.sort_unstable();
    (batches[BATCHES / 2] * 1000 / CALLS).max(1)
}

fn why_not(error: &io::Error) -> String {
    let yama = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:")).map_or("0", str::trim);
    if tracer != "0" {
        return format!("process {tracer} already traces this program, and only one process can");
    }
    let error = tollgate_model::text::plainly(error);
    match yama.trim() {
        scope @ ("2" | "3") => {
            format!("{error}: kernel.yama.ptrace_scope is {scope}, and 0 or 1 would allow it")
        }
        _ => format!("{error}: a seccomp profile or a security module forbids it"),
    }
}
